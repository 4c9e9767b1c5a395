// The user's source with its figures in the margin.

import { isWhole, rangeWords, type App } from "./app.ts";
import { cutLines, cutWords } from "./cut.ts";
import { code, small, type Child } from "./dom.ts";
import { mostTables } from "./limits.ts";
import { listing } from "./listing.ts";
import { max } from "./math.ts";
import { keyOf, type LineTime, type SourceFile } from "./recording.ts";
import { rangeOf } from "./state.ts";
import { bar, evident, moreWords, section, stateBar, table, type Cell } from "./tables.ts";
import { figure } from "./words.ts";

/** Growth of less than a MiB is of no line: pages come one by one in any program. */
const worthGrown = 2 ** 20;

/**
 * linesTable is the user's source with its time in the margin. Of other lines than the target's, the pool has a title
 * and a word for each.
 */
export function linesTable<L extends LineTime = LineTime>(
  app: App,
  lines = app.model.lines(...rangeOf(app.state)) as L[],
  pool?: { title: string; word: ((l: L) => Child) | false },
): HTMLElement[] {
  const most = lines[0]?.self || 1;
  const { gpu, growth } = app.model.recording;
  const [from, to] = rangeOf(app.state);
  const grown = new Map(!pool && isWhole(app) ? growth.map((g) => [keyOf(g.place), g]) : []);
  const grownCell = (key: string): Cell => {
    const g = grown.get(key);
    return g && g.bytes >= worthGrown && [g.bytes, evident(app, figure(g.bytes, "B"), g)];
  };
  if (!pool) {
    const cut = cutLines(app.model, from, to);
    const word = (l: L) => cutWords(l.self, cut(l.place));
    pool = { title: "", word: lines.some(word) && word };
  }
  const files = new Map<SourceFile, { us: number; times: Map<number, L> }>();
  for (const l of lines) {
    let file = files.get(l.place.file);
    if (!file) files.set(l.place.file, (file = { us: 0, times: new Map() }));
    file.us += l.self;
    if (!file.times.has(l.place.line)) file.times.set(l.place.line, l);
  }
  return [...files]
    .sort(([, a], [, b]) => b.us - a.us)
    .flatMap(([{ path, source }, { times }]) => {
      const hot = [...times.values()]
        .filter((l) => max(l.self, l.idle) > most / 300 || grown.get(keyOf(l.place))?.evidence[0]! >= 0)
        .map((l) => l.place.line);
      return hot[0] ? [{ path, source, times, hot }] : [];
    })
    .slice(0, mostTables)
    .map(({ path, source, times, hot }, nth) => {
      const { shown, more } = listing(source, hot);
      const rows = shown.map((n): Cell[] => {
        const l = times.get(n);
        return [
          l && l.self,
          l && stateBar(app, l.shares, to - from),
          ...(gpu ? [l && l.idle > most / 300 && l.idle, l && bar(l.idle / (to - from))] : []),
          ...(grown.size ? [l && grownCell(keyOf(l.place))] : []),
          [n, small(n || "")],
          n ? code(source?.[n - 1] || "", l && l.self > most / 2) : "⋯",
          ...(pool!.word ? [l && small(pool!.word(l))] : []),
        ];
      });
      return section(
        path,
        pool!.title +
          rangeWords(app) +
          moreWords(more, "line") +
          (nth < mostTables - 1 ? "" : moreWords(files.size - mostTables, "file")),
        table(
          [
            "#time",
            "",
            ...(gpu ? ["#GPU idle", ""] : []),
            ...(grown.size ? ["#grown"] : []),
            "#line",
            "",
            ...(pool!.word ? [""] : []),
          ],
          rows,
        ),
      );
    });
}
