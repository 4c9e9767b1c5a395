// Tables: what a range of time adds up to, as text that can be read, copied and listened to.

import { State, computes, idles, isOwn } from "./generated.ts";
import { isWhole, jump, placeWords, rangeWords, shareWords, source, whereOf, type App } from "./app.ts";
import { max, min, sum } from "./math.ts";
import { cutFunctions, cutLines, cutWords } from "./cut.ts";
import { code, div, element, fill, link, small, type Child } from "./dom.ts";
import { idleShares, type IdleShare } from "./idle.ts";
import type { Func, LineTime, Remark } from "./recording.ts";
import { matcher } from "./search.ts";
import { rangeOf } from "./state.ts";
import { stateTimes, type Times } from "./sums.ts";
import { statePaints } from "./theme.ts";
import type { Stretches } from "./stretches.ts";
import { micros, percent, plural } from "./words.ts";

export const section = (heading: string, note: Child, ...content: Child[]): HTMLElement =>
  element("section", null, element("h4", null, heading + " ", small(note)), ...content);

/** Cell is what a table shows at a place: a time in microseconds, or anything, with a number to sort it by. */
export type Cell = Child | [key: number, shown: Child];

/**
 * table makes a table. Figures are in the columns whose heading begins with "#": a click on the heading sorts the rows
 * that have one, most first, the next click the other way round.
 */
export function table(headings: string[], rows: Cell[][]): HTMLElement {
  const column = (i: number) => headings[i]![0] === "#" && "o-n";
  const keys = rows.map((row) => row.map((cell) => (Array.isArray(cell) ? cell[0] : cell)));
  const lines = rows.map((row) =>
    element(
      "tr",
      null,
      ...row.map((v, i) =>
        element("td", column(i), Array.isArray(v) ? v[1] : typeof v === "number" ? v && micros(v) : v),
      ),
    ),
  );
  const body = element("tbody", null, ...lines);
  const sort = (i: number) => {
    const down = heads[i]!.ariaSort !== "descending";
    for (const head of heads) head.ariaSort = null;
    heads[i]!.ariaSort = down ? "descending" : "ascending";
    const key = (n: number) => keys[n]![i] as number;
    const order = [...keys.keys()].filter(key).sort((a, b) => (down ? key(b) - key(a) : key(a) - key(b)));
    fill(
      body,
      order.map((n) => lines[n]!),
    );
  };
  const heads = headings.map((v, i) =>
    element("th", { scope: "col", class: column(i) }, column(i) ? link(v.slice(1), () => sort(i)) : v),
  );
  return element("table", null, element("thead", null, element("tr", null, ...heads)), body);
}

/** bar is a length (a share of the longest), divided into parts of one paint each. */
export const bar = (share: number, title = "", parts: [paint: string, part: number][] = [["bar", 1]]): HTMLElement =>
  div(
    { class: "o-bar", title, role: title && "img", style: "--share:" + share },
    ...parts.map(
      ([paint, part]) =>
        part > 0 && element("i", { class: "o-" + paint, style: `flex:${part} 0 0;background-color:var(--${paint})` }),
    ),
  );

/** stateBar is a length divided by what the thread was doing; a full one is all of the time. */
export const stateBar = (app: App, shares: Float64Array, all: number): HTMLElement =>
  bar(
    min(sum(shares) / all, 1),
    shareWords(app, shares, micros),
    [...shares].map((us, i): [string, number] => [i === State.off ? "wait" : statePaints[i]!, us]),
  );

/** joined is one text of those that there are. */
export const joined = (...texts: unknown[]): string => texts.filter(Boolean).join(" · ");

/** Ranked is a row of a table of what took most time. */
type Ranked = [name: Child, us: number, shares: Float64Array, text: Child, words: string];

/** ranked is such a table, as the picture has it. */
function ranked(app: App, heading: string, note: string, rows: Ranked[]): HTMLElement | null {
  const [from, to] = rangeOf(app.state);
  const cells = rows.map(([name, us, shares, text, words]): Cell[] => [
    name,
    us,
    stateBar(app, shares, to - from),
    us <= to - from && small(percent(us / (to - from))),
    text,
    words && element("small", "o-words", words),
  ]);
  return cells[0] ? section(heading, note, table(["", "#time", "", "", "", ""], cells)) : null;
}

/** splitWords say what a time was spent with, where much of it was not computing. */
const splitWords = (app: App, shares: Float64Array): string | false =>
  sum(shares.filter((_, state) => !computes[state])) > sum(shares) / 20 && shareWords(app, shares, micros);

/** So many lines are the first, and those with less than this share of the time are not. */
const [mostLines, worthRow] = [8, 0.005];

/** leadingLines are the lines that had most time, of the target or of a pool, which has a word for each. */
export function leadingLines<L extends LineTime = LineTime>(
  app: App,
  lines = app.model.lines(...rangeOf(app.state)) as L[],
  pool?: { title: string; word: ((l: L) => string) | false },
): HTMLElement | null {
  const [from, to] = rangeOf(app.state);
  const cut = cutLines(app.model, from, to);
  return ranked(
    app,
    pool ? "What " + pool.title + " did" : "Where the time went",
    "by your own lines, the innermost one on the stack, " + rangeWords(app),
    lines
      .filter((l) => max(l.self, l.idle) > (to - from) * worthRow)
      .slice(0, mostLines)
      .map((l): Ranked => [
        placeWords(app, l.place),
        l.self,
        l.shares,
        code(source(l.place)),
        joined(
          splitWords(app, l.shares),
          l.freeing,
          l.idle && "GPU idle " + micros(l.idle),
          pool ? pool.word && pool.word(l) : cutWords(l.self, cut(l.place)),
        ),
      ]),
  );
}

/** moreWords say what was left out of a table. */
export const moreWords = (n: number, one: string): string => (n > 0 ? ` · ${plural(n, `more ${one}`)} not shown` : "");

/** A library's function that did something for less than this share of its own time is not busy: it waited. */
const worthBusy = 0.05;

const onlyWaits = (func: Func, { self, shares }: Times): boolean => {
  const idle = sum(shares.filter((_, state) => idles[state]));
  return !isOwn[func.code] && !isOwn[func.file.code] && idle > 0 && self - idle < worthBusy * self;
};

/** functionsTable ranks functions of the range, or those that match the search; who shows a function's callers. */
export function functionsTable(app: App, most: number, who?: (fn: number) => void): HTMLElement | null {
  const [from, to] = rangeOf(app.state);
  const { fns } = app.model.recording;
  const { query } = app.state;
  const match = matcher(query);
  const rows = [...app.model.functions(from, to)]
    .filter(
      ([fn, times]) => (query ? match?.(fns[fn]!) : !onlyWaits(fns[fn]!, times)) && times.total > (to - from) * 1e-4,
    )
    .sort(([, a], [, b]) => (query ? b.total - a.total : b.self - a.self));
  const cut = cutFunctions(app.model, from, to);
  return ranked(
    app,
    query ? "Functions that match" : "Busiest functions",
    `own time, all threads, ${rangeWords(app)}${moreWords(rows.length - most, "function")}`,
    rows
      .slice(0, most)
      .map(([fn, { self, total, shares }]): Ranked => [
        who ? link(fns[fn]!.name, () => who(fn)) : fns[fn]!.name,
        self,
        shares,
        code(whereOf(fns[fn]!)),
        joined(splitWords(app, shares), cutWords(self, cut.get(fn)), total > self * 1.05 && micros(total) + " in all"),
      ]),
  );
}

/** evident is a text that shows where it shows. */
export const evident = (app: App, text: string, { evidence }: { evidence: Stretches }): Child =>
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
  const rows = shares
    .slice(0, most)
    .map(([cause, us]): Cell[] => [
      cause ? evident(app, cause.text, cause) : "partly idle",
      [us, (whole || !cause ? "" : "≥ ") + micros(us)],
      bar(us / all),
      small(percent(us / all) + (whole && cause ? bounds(cause) : "")),
      small(placeWords(app, cause && cause.place)),
      code(source(cause && cause.place)),
      us > all / 30 && cause && element("small", "o-advice", cause.hint),
    ]);
  const note = all ? `idle ${micros(all)}, ${rangeWords(app)}` : "not idle here";
  const heading = `Where the GPU${recording.deviceIdle[1] ? "s" : ""} waited`;
  return recording.gpu && section(heading, note, table(["", "#idle", "", "", "", "", ""], rows));
}

/** picturedTables are those of the picture that there are for the whole recording only. */
export const picturedTables = (app: App): HTMLElement[] =>
  app.model.chart.tables
    .filter(() => isWhole(app))
    .map(({ heading, note, rows }) =>
      section(
        heading,
        note,
        table(
          ["", "", "", "", "", ""],
          rows.map(({ name, figure, share, aside, text, hint }) => [
            name,
            figure,
            bar(share),
            small(aside),
            text && code(text),
            hint && element("small", "o-words", hint),
          ]),
        ),
      ),
    );

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
