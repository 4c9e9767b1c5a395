// Search by regular expression among functions.

import type { Func, Recording } from "./recording.ts";
import type { CallTree } from "./tree.ts";

/** matcher reads a query as a regular expression, or letter by letter where it is none. */
export function matcher(query: string): (func: Func) => boolean {
  let matches = (v: string) => v.includes(query);
  try {
    const expression = new RegExp(query, "i");
    matches = (v) => expression.test(v);
  } catch {}
  return (f) => [f.name, f.place, f.file.path].some(matches);
}

/** Matches of a query in a tree. */
export interface Matches {
  fns: boolean[];
  nodes: Uint8Array; // 1: the node's function matches, or one that it stands for; 2: one further out on its stack does
}

export function matchesOf(recording: Recording, tree: CallTree, query: string): Matches {
  const fns = tree.fns.map(matcher(query));
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
