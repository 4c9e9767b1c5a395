// Tables: what a range of time adds up to, as text that can be read, copied and listened to.

import { isWhole, jump, placeWords, rangeWords, shareWords, source, whereOf, type App } from "./app.ts";
import { ceil, floor, max, min, sum } from "./brief.ts";
import { cutFunctions, cutLines, cutWords } from "./cut.ts";
import { div, dot, h, link, small, type Child } from "./dom.ts";
import { mostTableRows, mostTables } from "./limits.ts";
import { listing } from "./listing.ts";
import { overlap, type LineTime, type Remark, type SourceFile, type Step } from "./recording.ts";
import { matcher } from "./search.ts";
import { rangeOf, show } from "./state.ts";
import { stateTimes } from "./sums.ts";
import { statePaints } from "./theme.ts";
import { micros, percent, plural } from "./words.ts";

export const section = (heading: string, note: Child, ...content: Child[]): HTMLElement => h("section", null, h("h4", null, heading + " ", small(note)), ...content);

/** table makes a table; figures stand in the columns whose heading begins with "#". */
export function table(headings: string[], rows: Child[][]): HTMLElement {
  const column = (i: number) => headings[i]![0] === "#" && "o-n";
  return h(
    "table",
    null,
    h("thead", null, h("tr", null, ...headings.map((v, i) => h("th", { scope: "col", class: column(i) }, v.replace("#", ""))))),
    h("tbody", null, ...rows.map((r) => h("tr", null, ...r.map((v, i) => h("td", column(i), v))))),
  );
}

/** bar is a length (a share of the longest), divided into parts of one paint each. */
const bar = (share: number, title = "", parts: [paint: string, part: number][] = [["bar", 1]]): HTMLElement =>
  div({ class: "o-bar", title, role: title && "img", style: "--share:" + share }, ...parts.map(([paint, part]) => part > 0 && h("i", { class: "o-" + paint, style: `flex:${part} 0 0;background-color:var(--${paint})` })));

/** stateBar is a length divided by what the thread was doing. */
const stateBar = (app: App, shares: Float64Array, most: number): HTMLElement =>
  bar(sum(shares) / most, shareWords(app, shares, micros), [...shares].map((us, i): [string, number] => [i > 4 ? "wait" : statePaints[i]!, us]));

/** joined is one text of those that there are. */
const joined = (...texts: unknown[]): string => texts.filter(Boolean).join(" · ");

const code = (text: string, strong?: unknown) => text && h("code", strong ? "o-strong" : null, text);

/**
 * linesTable is the user's source with its time in the margin; brief shows one file, and only what took time. Of other
 * lines than the target's, the crew says whose they are, and has a word for each.
 */
export function linesTable<L extends LineTime = LineTime>(app: App, brief: boolean, lines = app.m.lines(...rangeOf(app.s)) as L[], crew?: { says: string; word: ((l: L) => Child) | false }): HTMLElement[] {
  const most = lines[0]?.self || 1;
  const { gpu } = app.m.r;
  if (FULL && !crew) {
    const cut = cutLines(app.m, ...rangeOf(app.s));
    const word = (l: L) => cutWords(l.self, cut(l.place));
    crew = { says: "", word: lines.some(word) && word };
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
    .slice(0, brief ? 1 : mostTables)
    .map(([{ path, source }, { times }], nth) => {
      const hot = [...times.values()].filter((l) => l.self > most / 300).map((l) => l.place.line);
      const { shown, more } = listing(source, hot, brief);
      const rows = shown.map((n): Child[] => {
        const l = times.get(n);
        const text = n ? code(source?.[n - 1] || "", l && l.self > most / 2) : "⋯";
        return [l && micros(l.self), l && stateBar(app, l.shares, most), ...(gpu ? [l && l.idle > most / 300 && micros(l.idle), l && bar(l.idle / most)] : []), small(n || ""), text, ...(FULL && crew?.word ? [l && small(crew.word(l))] : [])];
      });
      return section(brief ? "Lines" : path, (brief ? `of ${path}, ${(FULL && crew?.says) || ""}` : (FULL && crew?.says) || "") + rangeWords(app) + moreWords(more, "line") + (brief || nth < mostTables - 1 ? "" : moreWords(files.size - mostTables, "file")), table(["#time", "", ...(gpu ? ["#GPU idle", ""] : []), "#", "", ...(FULL && crew?.word ? [""] : [])], rows));
    });
}

/** moreWords say what was left out of a table. */
const moreWords = (n: number, one: string): string => (n > 0 ? ` · ${plural(n, `more ${one}`)} not shown` : "");

/** functionsTable ranks functions of the range, or those that match the search; who shows a function's callers. */
export function functionsTable(app: App, most: number, who?: (fn: number) => void): HTMLElement | null {
  const [from, to] = rangeOf(app.s);
  const { fns } = app.m.r;
  const { query } = app.s;
  const match = matcher(query);
  const rows = [...app.m.functions(from, to)].filter(([fn, t]) => match(fns[fn]!) && t.total > (to - from) * 1e-4).sort(([, a], [, b]) => (query ? b.total - a.total : b.self - a.self));
  const top = rows.reduce((most, [, t]) => max(most, t.self), 0);
  let cut: Map<number, number>;
  if (FULL) cut = cutFunctions(app.m, from, to);
  const cells = rows.slice(0, most).map(([fn, { self, total, shares }]): Child[] => {
    const f = fns[fn]!;
    const split = sum(shares.slice(2)) > self / 20 && shareWords(app, shares, micros);
    return [who ? link(f.called, () => who(fn)) : f.called, micros(self), stateBar(app, shares, top), small(joined(split, total > self * 1.02 && micros(total) + " with callees", FULL && cutWords(self, cut.get(fn)))), code(whereOf(f))];
  });
  return cells[0] ? section(query ? "Functions that match" : "Busiest functions", `own time, all threads, ${rangeWords(app)}${rows.length > most ? ` · ${rows.length - most} more` : ""}`, table(["", "#own", "", "", ""], cells)) : null;
}

/** idleShares divides the range's idle time by cause; what evidence does not tell has none. */
export function idleShares({ m: { r }, s }: App, whole: boolean): [cause: Remark | null, us: number][] {
  if (whole) return r.causes.map((c) => [c, c.us]);
  const [from, to] = rangeOf(s);
  let left = overlap(r.idle, from, to);
  return r.causes
    .map((c): [Remark | null, number] => [c, overlap(c.evidence, from, to)])
    .sort((a, b) => b[1] - a[1])
    .concat([[null, left]])
    .map(([c, us]): [Remark | null, number] => {
      us = min(us, left);
      left -= us;
      return [c, us];
    })
    .filter(([, us]) => us > 1);
}

/** evident is a text that shows where it shows. */
const evident = (app: App, text: string, { evidence }: Remark): Child => (evidence[0]! >= 0 ? link(text, () => jump(app, evidence)) : text);

/** idleTable ranks what the GPUs waited for. */
export function idleTable(app: App, most: number): HTMLElement | false {
  const whole = isWhole(app);
  const shares = idleShares(app, whole);
  const all = sum(shares.map(([, us]) => us));
  const rows = shares.slice(0, most).map(([c, us]): Child[] => [
    c ? evident(app, c.says, c) : "not told apart at this length",
    micros(us),
    bar(us / shares[0]![1]),
    small(percent(us / all) + (whole && c && c.low >= 0 ? ` [${micros(c.low)} – ${micros(c.high)}]` : "")),
    small(placeWords(app, c && c.place)),
    code(source(c && c.place)),
    small(us > all / 30 && c && c.hint),
  ]);
  return app.m.r.gpu && section("What the GPU waited for", all ? `idle ${micros(all)}, ${rangeWords(app)}` : "not idle here", table(["", "#idle", "", "", "", "", ""], rows));
}

/** threadsTable says how each thread spent the range. */
export function threadsTable(app: App): HTMLElement {
  const { r } = app.m;
  const [from, to] = rangeOf(app.s);
  const all = r.threads
    .filter((t) => !t.internal)
    .map((t): [string, Float64Array] => [t.called, stateTimes(r, t, from, to)])
    .filter(([, shares]) => shares.some((us, i) => us && i !== 2));
  const rows = all.slice(0, 40);
  return section("Threads", rangeWords(app) + moreWords(all.length - rows.length, "thread"), table(["", "", ""], rows.map(([called, shares]) => [called, stateBar(app, shares, to - from), small(shareWords(app, shares, micros))])));
}

export const findingsTable = (app: App): HTMLElement =>
  section(
    "Findings",
    app.m.r.findings.length ? moreWords(app.m.r.findings.length - mostTableRows, "finding") : "nothing stood out",
    table(
      ["", "", "#could save"],
      app.m.r.findings.slice(0, mostTableRows).map((f): Child[] => [dot(f.serious ? "bar" : "other"), div("o-wrap", evident(app, f.says, f), small(" " + placeWords(app, f.place) + " "), code(source(f.place)), div("", small(f.hint))), f.us > 0 && "up to " + micros(f.us)]),
    ),
  );

/** More steps than this share rows; the slowest of each is shown. */
const mostSteps = 60;

/** stepsTable shows how long steps were, and what they were made of. */
export function stepsTable(app: App): HTMLElement {
  const { steps } = app.m.r;
  const length = (s: Step) => s.end - s.begin;
  const slowest = [...steps].sort((a, b) => length(b) - length(a));
  const quantile = (q: number) => micros(length(slowest[floor((1 - q) * (slowest.length - 1))]!));
  const per = ceil(steps.length / mostSteps);
  const rows = steps
    .filter((_, i) => i % per === 0)
    .map((_, c): Child[] => {
      const s = steps.slice(c * per, (c + 1) * per).reduce((a, b) => (length(b) > length(a) ? b : a));
      const loading = min(s.loading, length(s));
      const busy = min(s.busy || 0, length(s) - loading);
      const words = small(joined(loading && "waiting for data " + micros(loading), busy && "GPU busy " + micros(busy)));
      const go = () => app.put(show(app.s, app.m.whole, s.begin, s.end));
      return [link(s.called || "step " + (steps.indexOf(s) + 1), go), micros(length(s)), bar(length(s) / length(slowest[0]!), "", [["data", loading], ["gpu", busy], ["ba", length(s) - loading - busy]]), words];
    });
  const note = rows[0] && `${plural(steps.length, "step")} · median ${quantile(0.5)} · 95 % within ${quantile(0.95)} · slowest ${quantile(1)}${per > 1 ? ` · the slowest of every ${per}` : ""}`;
  return section("Steps", note || "none were seen", table(["", "#time", "", ""], rows));
}
