// What of a line's or a function's own time may have been spent in something it called: their stacks could not be
// read to the end. Of pages only.

import { min } from "./brief.ts";
import type { Model } from "./model.ts";
import type { Place, Recording, Thread } from "./recording.ts";
import { cellThreads, eachSpan } from "./sums.ts";
import { micros } from "./words.ts";

/** worthCut is the share of an own time from which on it is told: single stacks are always cut. */
const worthCut = 0.05;

export const cutWords = (self: number, cut = 0): string => (cut > 0 && cut >= worthCut * self ? `of it ${micros(min(cut, self))} with its callee cut` : "");

/** cutTimes sums what was cut of threads in a range of time, by what a node is of. */
function cutTimes(r: Recording, threads: Thread[], from: number, to: number, of: (node: number) => number): Map<number, number> {
  const out = new Map<number, number>();
  for (const t of r.cut.size ? threads : [])
    eachSpan(r, t, from, to, (i, us) => {
      const id = of(r.node[i]!);
      if (r.cut.has(i)) out.set(id, (out.get(id) || 0) + us);
    });
  return out;
}

/** cutFunctions are times by function, of the threads whose functions' own times the tables have. */
export const cutFunctions = ({ r }: Model, from: number, to: number): Map<number, number> =>
  cutTimes(r, r.threads.filter((t) => !t.internal), from, to, (n) => (n ? r.fnOf[n]! : -1));

/** cutLines tells the times of the target's lines. */
export function cutLines(m: Model, from: number, to: number): (p: Place) => number {
  const { places, at } = m.own(-1);
  const times = cutTimes(m.r, cellThreads(m.r), from, to, (n) => at[n]!);
  const byPlace = new Map<string, number>();
  for (const [id, us] of times) if (id >= 0) byPlace.set(places[id]!.file.nth + ":" + places[id]!.line, us);
  return ({ file, line }) => byPlace.get(file.nth + ":" + line) || 0;
}
