// Search by regular expression among functions.

import type { Func, Recording, Thread } from "./recording.ts";
import type { Stretches } from "./stretches.ts";
import { eachSpan } from "./sums.ts";
import type { CallTree } from "./tree.ts";

/** matcher reads a query as a regular expression; undefined where it is none. */
export function matcher(query: string): ((func: Func) => boolean) | undefined {
  try {
    const expression = new RegExp(query, "i");
    return (f) => [f.name, f.place, f.file.path].some((v) => expression.test(v));
  } catch {
    return undefined;
  }
}

/** Matches of a query in a tree. */
export interface Matches {
  fns: boolean[];
  nodes: Uint8Array; // 1: the node's function matches, or one that it stands for; 2: one further out on its stack does
}

export function matchesOf(recording: Recording, tree: CallTree, query: string): Matches {
  const fns = tree.fns.map(matcher(query) || (() => false));
  const nodes = new Uint8Array(tree.above.length);
  // Of each call what it is made of: what a folded one stands for is found in it.
  recording.fnOf.forEach((f, n) => fns[f] && (nodes[tree.of[n]!] = 1));
  nodes[0] = 0;
  for (let n = 1; n < nodes.length; n++) nodes[n] ||= nodes[tree.above[n]!] && 2;
  return { fns, nodes };
}

/** matchedTime is the time of stacks on which some function matches. */
export const matchedTime = (matches: Matches, self: Float64Array): number =>
  self.reduce((sum, us, n) => (matches.nodes[n] ? sum + us : sum), 0);

/** placesOf are the stretches in which a thread was in what matches, one after the other; a call in a row is one. */
export function placesOf({ nodes }: Matches, recording: Recording, tree: CallTree, thread: Thread): Stretches {
  const places: Stretches = [];
  eachSpan(recording, thread, 0, recording.duration, (i) => {
    if (!nodes[tree.of[recording.node[i]!]!]) return;
    if (places[places.length - 1] === recording.begin[i]) places[places.length - 1] = recording.end[i]!;
    else places.push(recording.begin[i]!, recording.end[i]!);
  });
  return places;
}
