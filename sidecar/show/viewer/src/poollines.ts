// The lines of other processes than the program's, those of a pool together: what its workers did, the
// ranks that a launcher started, or the runs of another program.

import { isWhole, type App } from "./app.ts";
import { sum } from "./math.ts";
import { mostTables } from "./limits.ts";
import { remember, type Model } from "./model.ts";
import { keyOf, type LineTime, type Worker } from "./recording.ts";
import { rangeOf } from "./state.ts";
import { lineTimes } from "./sums.ts";
import { linesTable } from "./linestable.ts";
import { leadingLines } from "./tables.ts";
import { micros } from "./words.ts";

/** PoolLine is a line's time in all processes of a pool, and in each, most first. */
export interface PoolLine extends LineTime {
  by: [name: string, us: number][];
}

/** PoolLines is the processes of a pool, or one of none. */
export interface PoolLines {
  name: string; // "2 ranks"; a single process goes by its name
  several: boolean;
  lines: PoolLine[]; // most first
}

/** worthLine is a line's least part of the longest one's time. */
const worthLine = 1 / 300;

/** linesIn are those that a worker worked at; over the whole recording the report's own figures hold. */
export function linesIn(model: Model, worker: Worker, from: number, to: number, whole: boolean): LineTime[] {
  if (whole) return worker.lines;
  const { threads } = model.recording;
  const its = threads.filter((thread) => thread.process === worker.process && !thread.internal);
  return lineTimes(model.recording, model.own(-1), from, to, its, true);
}

/** poolLinesOf sums the other processes' lines in a range of time; the pool that worked most is the first. */
export function poolLinesOf(model: Model, from: number, to: number, whole: boolean): PoolLines[] {
  const { workers, pools } = model.recording;
  const pooled = new Set(pools.flatMap((pool) => pool.members));
  const single = workers.flatMap(({ process, name }) => (pooled.has(process) ? [] : [{ name, members: [process] }]));
  const work = (pool: PoolLines) => sum(pool.lines.map((line) => line.self));
  return [...pools, ...single]
    .map((pool): PoolLines => {
      const members = pool.members.flatMap((process) => (workers[process]?.lines[0] ? [workers[process]] : []));
      const lines = new Map<string, PoolLine>();
      for (const w of members) {
        for (const { place, self, idle, shares } of linesIn(model, w, from, to, whole)) {
          const at = keyOf(place);
          const known = lines.get(at) || { place, self: 0, idle: 0, shares: shares.map(() => 0), by: [] };
          lines.set(at, known);
          known.self += self;
          known.idle += idle;
          shares.forEach((us, state) => (known.shares[state]! += us));
          known.by.push([w.name, self]);
        }
      }
      const sorted = [...lines.values()]
        .sort((a, b) => b.self - a.self)
        .filter((l, _, all) => l.self > all[0]!.self * worthLine);
      for (const l of sorted) l.by.sort((a, b) => b[1] - a[1]);
      return {
        name: members[1] ? pool.name : members[0]?.name || "",
        several: !!members[1],
        lines: sorted,
      };
    })
    .filter((c) => c.lines[0])
    .sort((a, b) => work(b) - work(a));
}

const known = new WeakMap<Model, (from: number, to: number, whole: boolean) => PoolLines[]>();

/** few is how many processes of a line's time are named one by one; of more, the most and the least. */
const few = 4;

/** splitWords say how a line's time is divided among its processes. */
export function splitWords({ by }: PoolLine): string {
  const word = ([name, us]: [string, number]) => name + " " + micros(us);
  return by.length < 2
    ? by[0]
      ? by[0][0]
      : ""
    : by.length <= few
      ? by.map(word).join(" · ")
      : `${word(by[0]!)} … ${word(by[by.length - 1]!)}`;
}

/** poolTables are the lines of each pool; brief, the leading ones of the pool that worked most. */
export function poolTables(app: App, brief: boolean): (HTMLElement | null)[] {
  const { model, state } = app;
  if (!known.has(model))
    known.set(
      model,
      remember((from: number, to: number, whole: boolean) => poolLinesOf(model, from, to, whole)),
    );
  const all = known.get(model)!(...rangeOf(state), isWhole(app));
  return all.slice(0, brief ? 1 : mostTables).flatMap(({ name, several, lines }) => {
    const word = several && splitWords;
    return brief
      ? leadingLines(app, lines, { title: name, word })
      : linesTable(app, lines, { title: name + ", ", word });
  });
}
