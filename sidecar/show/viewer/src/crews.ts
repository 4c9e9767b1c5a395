// The lines of other processes than the target's, those of one kind together: what the workers of a pool
// did, or the ranks that a launcher started.

import { isWhole, type App } from "./app.ts";
import { sum } from "./brief.ts";
import { mostTables } from "./limits.ts";
import { remember, type Model } from "./model.ts";
import { idleStates, type LineTime, type Worker } from "./recording.ts";
import { rangeOf } from "./state.ts";
import { lineTimes } from "./sums.ts";
import { linesTable } from "./tables.ts";
import { micros } from "./words.ts";

/** CrewLine is a line's time in all processes of a crew, and in each, most first. */
export interface CrewLine extends LineTime {
  by: [called: string, us: number][];
}

/** Crew is the processes of one kind. */
export interface Crew {
  called: string; // "2 ranks"; one process goes by its name
  several: boolean;
  lines: CrewLine[]; // most first
}

/** worthLine is a line's least part of the longest one's time. */
const worthLine = 1 / 300;

/** linesIn are those that a worker worked at; over the whole recording the report's own figures hold. */
export function linesIn(m: Model, w: Worker, from: number, to: number, whole: boolean): LineTime[] {
  if (whole) return w.lines;
  const { r } = m;
  const lines = lineTimes(r, m.own(-1), from, to, r.threads.filter((t) => t.process === w.process && !t.internal));
  for (const l of lines) {
    for (const state of idleStates) l.shares[state] = 0;
    l.self = sum(l.shares);
    l.idle = 0;
  }
  return lines.filter((l) => l.self > 0);
}

/** crewsOf sums the other processes' lines in a range of time; the crew that worked most is the first. */
export function crewsOf(m: Model, from: number, to: number, whole: boolean): Crew[] {
  const kinds = new Map<string, Worker[]>();
  for (const w of m.r.workers) {
    if (!w.lines[0]) continue;
    const kind = w.called.replace(/ \d+$/, "");
    const members = kinds.get(kind);
    if (members) members.push(w);
    else kinds.set(kind, [w]);
  }
  const work = (c: Crew) => sum(c.lines.map((l) => l.self));
  return [...kinds]
    .map(([kind, members]): Crew => {
      const lines = new Map<string, CrewLine>();
      for (const w of members) {
        for (const { place, self, idle, shares } of linesIn(m, w, from, to, whole)) {
          const at = place.file.nth + ":" + place.line;
          const known = lines.get(at) || { place, self: 0, idle: 0, shares: shares.map(() => 0), by: [] };
          lines.set(at, known);
          known.self += self;
          known.idle += idle;
          shares.forEach((us, state) => (known.shares[state]! += us));
          known.by.push([w.called, self]);
        }
      }
      const sorted = [...lines.values()].sort((a, b) => b.self - a.self).filter((l, _, all) => l.self > all[0]!.self * worthLine);
      for (const l of sorted) l.by.sort((a, b) => b[1] - a[1]);
      return { called: members[1] ? members.length + " " + kind + (kind.endsWith("s") ? "es" : "s") : members[0]!.called, several: !!members[1], lines: sorted };
    })
    .filter((c) => c.lines[0])
    .sort((a, b) => work(b) - work(a));
}

const crews = new WeakMap<Model, (from: number, to: number, whole: boolean) => Crew[]>();

/** few is how many processes a line's time is told of one by one; of more, the most and the least. */
const few = 4;

/** splitWords say how a line's time is divided among its processes. */
export function splitWords({ by }: CrewLine): string {
  const word = ([called, us]: [string, number]) => called + " " + micros(us);
  return by.length < 2 ? (by[0] ? by[0][0] : "") : by.length <= few ? by.map(word).join(" · ") : `${word(by[0]!)} … ${word(by[by.length - 1]!)}`;
}

/** crewTables are the lines of each crew; brief, of the one that worked most, where the target has none of its own. */
export function crewTables(app: App, brief: boolean): HTMLElement[] {
  const { m, s } = app;
  if (!crews.has(m)) crews.set(m, remember((from: number, to: number, whole: boolean) => crewsOf(m, from, to, whole)));
  const all = crews.get(m)!(...rangeOf(s), isWhole(app));
  return all.slice(0, !brief ? mostTables : m.r.lines[0] ? 0 : 1).flatMap((c) => linesTable(app, brief, c.lines, { says: c.called + ", ", word: c.several && splitWords }));
}
