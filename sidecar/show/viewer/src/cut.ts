// What of a line's or a function's own time may have been spent in something it called: their stacks could not be
// read to the end. Of pages only.

import { min } from "./math.ts";
import type { Model } from "./model.ts";
import { keyOf, type Place, type Recording, type Thread } from "./recording.ts";
import { cellThreads, eachSpan } from "./sums.ts";
import { micros } from "./words.ts";

/** worthCut is the share of an own time from which on it is shown: single stacks are always cut. */
const worthCut = 0.05;

export const cutWords = (self: number, cut = 0): string =>
  cut > 0 && cut >= worthCut * self ? `of it ${micros(min(cut, self))} with its callee cut` : "";

/** cutTimes sums what was cut of threads in a range of time, by what a node is of. */
function cutTimes(
  recording: Recording,
  threads: Thread[],
  from: number,
  to: number,
  of: (node: number) => number,
): Map<number, number> {
  const out = new Map<number, number>();
  for (const thread of recording.cut.size ? threads : [])
    eachSpan(recording, thread, from, to, (i, us) => {
      const id = of(recording.node[i]!);
      if (recording.cut.has(i)) out.set(id, (out.get(id) || 0) + us);
    });
  return out;
}

/** cutFunctions are times by function, of the threads whose functions' own times the tables have. */
export const cutFunctions = ({ recording }: Model, from: number, to: number): Map<number, number> =>
  cutTimes(
    recording,
    recording.threads.filter((thread) => !thread.internal),
    from,
    to,
    (n) => (n ? recording.fnOf[n]! : -1),
  );

/** cutLines returns the times of the target's lines. */
export function cutLines(model: Model, from: number, to: number): (place: Place) => number {
  const { places, at } = model.own(-1);
  const times = cutTimes(model.recording, cellThreads(model.recording), from, to, (n) => at[n]!);
  const byPlace = new Map<string, number>();
  for (const [id, us] of times) if (id >= 0) byPlace.set(keyOf(places[id]!), us);
  return (place) => byPlace.get(keyOf(place)) || 0;
}
