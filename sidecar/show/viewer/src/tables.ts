// Tables: what a range of time adds up to, as text that can be read, copied and listened to.

import { State, computes } from "./generated.ts";
import { isWhole, jump, placeWords, rangeWords, shareWords, source, whereOf, type App } from "./app.ts";
import { floor, max, min, sum } from "./math.ts";
import { cutFunctions, cutLines, cutWords } from "./cut.ts";
import { code, div, dot, element, link, small, type Child } from "./dom.ts";
import { mostTableRows, mostTables } from "./limits.ts";
import { idleShares, type IdleShare } from "./idle.ts";
import { listing } from "./listing.ts";
import type { LineTime, Remark, SourceFile, Step } from "./recording.ts";
import { matcher } from "./search.ts";
import { rangeOf, show } from "./state.ts";
import { stateTimes } from "./sums.ts";
import { statePaints } from "./theme.ts";
import { micros, percent, plural } from "./words.ts";

export const section = (heading: string, note: Child, ...content: Child[]): HTMLElement =>
  element("section", null, element("h4", null, heading + " ", small(note)), ...content);

/** table makes a table; figures stand in the columns whose heading begins with "#". */
export function table(headings: string[], rows: Child[][]): HTMLElement {
  const column = (i: number) => headings[i]![0] === "#" && "o-n";
  return element(
    "table",
    null,
    element(
      "thead",
      null,
      element(
        "tr",
        null,
        ...headings.map((v, i) => element("th", { scope: "col", class: column(i) }, v.replace("#", ""))),
      ),
    ),
    element("tbody", null, ...rows.map((r) => element("tr", null, ...r.map((v, i) => element("td", column(i), v))))),
  );
}

/** bar is a length (a share of the longest), divided into parts of one paint each. */
const bar = (share: number, title = "", parts: [paint: string, part: number][] = [["bar", 1]]): HTMLElement =>
  div(
    { class: "o-bar", title, role: title && "img", style: "--share:" + share },
    ...parts.map(
      ([paint, part]) =>
        part > 0 && element("i", { class: "o-" + paint, style: `flex:${part} 0 0;background-color:var(--${paint})` }),
    ),
  );

/** stateBar is a length divided by what the thread was doing. */
const stateBar = (app: App, shares: Float64Array, most: number): HTMLElement =>
  bar(
    sum(shares) / most,
    shareWords(app, shares, micros),
    [...shares].map((us, i): [string, number] => [i < State.off ? statePaints[i]! : "wait", us]),
  );

/** joined is one text of those that there are. */
const joined = (...texts: unknown[]): string => texts.filter(Boolean).join(" · ");

/**
 * linesTable is the user's source with its time in the margin; brief shows one file, and only what took time. Of other
 * lines than the target's, the pool has a title and a word for each.
 */
export function linesTable<L extends LineTime = LineTime>(
  app: App,
  brief: boolean,
  lines = app.model.lines(...rangeOf(app.state)) as L[],
  pool?: { title: string; word: ((l: L) => Child) | false },
): HTMLElement[] {
  const most = lines[0]?.self || 1;
  const { gpu } = app.model.recording;
  if (!pool) {
    const cut = cutLines(app.model, ...rangeOf(app.state));
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
    .slice(0, brief ? 1 : mostTables)
    .map(([{ path, source }, { times }], nth) => {
      const hot = [...times.values()].filter((l) => max(l.self, l.idle) > most / 300).map((l) => l.place.line);
      const { shown, more } = listing(source, hot, brief);
      const rows = shown.map((n): Child[] => {
        const l = times.get(n);
        const text = n ? code(source?.[n - 1] || "", l && l.self > most / 2) : "⋯";
        return [
          l && micros(l.self),
          l && stateBar(app, l.shares, most),
          ...(gpu ? [l && l.idle > most / 300 && micros(l.idle), l && bar(l.idle / most)] : []),
          small(n || ""),
          text,
          ...(pool!.word ? [l && small(pool!.word(l))] : []),
        ];
      });
      return section(
        brief ? "Lines" : path,
        (brief ? `of ${path}, ` : "") +
          pool!.title +
          rangeWords(app) +
          moreWords(more, "line") +
          (brief || nth < mostTables - 1 ? "" : moreWords(files.size - mostTables, "file")),
        table(["#time", "", ...(gpu ? ["#GPU idle", ""] : []), "#", "", ...(pool!.word ? [""] : [])], rows),
      );
    });
}

/** moreWords say what was left out of a table. */
export const moreWords = (n: number, one: string): string => (n > 0 ? ` · ${plural(n, `more ${one}`)} not shown` : "");

/** functionsTable ranks functions of the range, or those that match the search; who shows a function's callers. */
export function functionsTable(app: App, most: number, who?: (fn: number) => void): HTMLElement | null {
  const [from, to] = rangeOf(app.state);
  const { fns } = app.model.recording;
  const { query } = app.state;
  const match = matcher(query);
  const rows = [...app.model.functions(from, to)]
    .filter(([fn, times]) => match(fns[fn]!) && times.total > (to - from) * 1e-4)
    .sort(([, a], [, b]) => (query ? b.total - a.total : b.self - a.self));
  const top = rows.reduce((most, [, t]) => max(most, t.self), 0);
  const cut = cutFunctions(app.model, from, to);
  const cells = rows.slice(0, most).map(([fn, { self, total, shares }]): Child[] => {
    const func = fns[fn]!;
    const split = sum(shares.filter((_, state) => !computes[state])) > self / 20 && shareWords(app, shares, micros);
    return [
      who ? link(func.name, () => who(fn)) : func.name,
      micros(self),
      stateBar(app, shares, top),
      small(joined(split, total > self * 1.02 && micros(total) + " with callees", cutWords(self, cut.get(fn)))),
      code(whereOf(func)),
    ];
  });
  return cells[0]
    ? section(
        query ? "Functions that match" : "Busiest functions",
        `own time, all threads, ${rangeWords(app)}${moreWords(rows.length - most, "function")}`,
        table(["", "#own", "", "", ""], cells),
      )
    : null;
}

/** evident is a text that shows where it shows. */
const evident = (app: App, text: string, { evidence }: Remark): Child =>
  evidence[0]! >= 0 ? link(text, () => jump(app, evidence)) : text;

/** bounds are what an estimate may truly be; empty for what is none, and where both are written alike. */
export function bounds({ low, high }: Remark): string {
  const [from, to] = [micros(low), micros(high)];
  return low >= 0 && from !== to ? ` [${from} – ${to}]` : "";
}

/** idleTable ranks what the GPUs waited for; in a part of the recording a cause has at least what is said. */
export function idleTable(app: App, most: number): HTMLElement | false {
  const { recording } = app.model;
  const whole = isWhole(app);
  const shares = whole
    ? recording.causes.map((cause): IdleShare => [cause, cause.us])
    : idleShares(recording, ...rangeOf(app.state));
  const all = sum(shares.map(([, us]) => us));
  const rows = shares.slice(0, most).map(([cause, us]): Child[] => {
    return [
      cause ? evident(app, cause.text, cause) : "partly idle",
      (whole || !cause ? "" : "≥ ") + micros(us),
      bar(us / shares[0]![1]),
      small(percent(us / all) + (whole && cause ? bounds(cause) : "")),
      small(placeWords(app, cause && cause.place)),
      code(source(cause && cause.place)),
      us > all / 30 && cause && element("small", "o-advice", cause.hint),
    ];
  });
  const note = all ? `idle ${micros(all)}, ${rangeWords(app)}` : "not idle here";
  return recording.gpu && section("What the GPU waited for", note, table(["", "#idle", "", "", "", "", ""], rows));
}

/** threadsTable says how each thread spent the range. */
export function threadsTable(app: App): HTMLElement {
  const { recording } = app.model;
  const [from, to] = rangeOf(app.state);
  const all = recording.threads
    .filter((thread) => !thread.internal)
    .map((t): [string, Float64Array] => [t.name, stateTimes(recording, t, from, to)])
    .filter(([, shares]) => shares.some((us, i) => us && i !== State.waiting));
  const rows = all.slice(0, 40);
  return section(
    "Threads",
    rangeWords(app) + moreWords(all.length - rows.length, "thread"),
    table(
      ["", "", ""],
      rows.map(([name, shares]) => [name, stateBar(app, shares, to - from), small(shareWords(app, shares, micros))]),
    ),
  );
}

export function findingsTable(app: App): HTMLElement {
  const { findings } = app.model.recording;
  return section(
    "Findings",
    findings.length ? moreWords(findings.length - mostTableRows, "finding") : "nothing stood out",
    table(
      ["", "", "#could save"],
      findings
        .slice(0, mostTableRows)
        .map((remark): Child[] => [
          dot(remark.serious ? "bar" : "other"),
          div(
            "o-wrap",
            evident(app, remark.text, remark),
            small(" " + placeWords(app, remark.place) + " "),
            code(source(remark.place)),
            div("", small(remark.hint)),
          ),
          remark.us > 0 && "up to " + micros(remark.us),
        ]),
    ),
  );
}

/** So many steps are shown. */
const mostSteps = 60;

const length = (step: Step) => step.end - step.begin;

/** slowestFirst are the steps, the longest first. */
export const slowestFirst = (steps: Step[]): Step[] => [...steps].sort((a, b) => length(b) - length(a));

/** quantile says the length of one of the steps, of which the longest is the first; of none nothing. */
export const quantile = (slowest: Step[], q: number): string =>
  slowest[0] ? micros(length(slowest[floor((1 - q) * (slowest.length - 1))]!)) : "";

/** stepsTable shows how long steps were, and what the slowest were made of. */
export function stepsTable(app: App): HTMLElement {
  const { steps } = app.model.recording;
  const slowest = slowestFirst(steps);
  const most = slowest[0] ? length(slowest[0]) : 1;
  const rows = slowest.slice(0, mostSteps).map((step): Child[] => {
    const loading = min(step.loading, length(step));
    const busy = min(step.busy || 0, length(step) - loading);
    const go = () => app.put(show(app.state, app.model.whole, step.begin, step.end));
    return [
      link(step.name || "step " + (steps.indexOf(step) + 1), go),
      micros(length(step)),
      bar(length(step) / most, "", [
        ["data", loading],
        ["gpu", busy],
        ["ba", length(step) - loading - busy],
      ]),
      small(joined(loading && "waiting for data " + micros(loading), busy && "GPU busy " + micros(busy))),
    ];
  });
  const note = joined(
    plural(steps.length, "step"),
    "median " + quantile(slowest, 0.5),
    "95 % within " + quantile(slowest, 0.95),
    "slowest first",
  );
  return section("Steps", note, table(["", "#time", "", ""], rows));
}
