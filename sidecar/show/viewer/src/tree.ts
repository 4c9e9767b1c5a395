// Call trees: stacks merged by function, libraries folded on demand.

import { ints, max } from "./math.ts";
import { Code, isOwn } from "./generated.ts";
import type { Func, Recording } from "./recording.ts";

/** Rows a drawing can have; what calls deeper is counted to the function at this depth. */
export const mostDepth = 400;

/**
 * CallTree merges the recording's stacks: lines do not matter, and a function that calls itself
 * directly counts once. Node 0 is the empty stack, a parent precedes its children.
 */
export interface CallTree {
  fns: Func[]; // the recording's
  above: Int32Array; // the caller
  fn: Int32Array;
  depth: Int32Array; // 0 for the root
  repeats: Int32Array; // calls of itself directly below itself, at most
  code: Uint8Array; // of the outermost library call on the stack, else of the function itself
  outer: Uint8Array; // 1 where the function does not stand further out on the stack: recursion counts once
  of: Int32Array; // by node of the recording
}

/**
 * callTree merges stacks. Folded, a call into a library stands for all it calls within its package, until other
 * code is called: an import of it for the modules that it is made of.
 */
export function callTree(recording: Recording, folded: boolean): CallTree {
  const size = recording.above.length;
  const { fns } = recording;
  const above = [-1];
  const fn = [-1];
  const depth = [0];
  const repeats = [0];
  const code = [Code.other];
  const outer = [1];
  const of = ints(size);
  const again = ints(size); // by node of the recording: direct repetitions so far
  const children = new Map<number, number>();

  for (let n = 1; n < size; n++) {
    const p = recording.above[n]!;
    const f = recording.fnOf[n]!;
    const at = of[p]!;
    const key = at * fns.length + f;
    if (folded && at && isInside(fns[fn[at]!]!, fns[f]!)) {
      of[n] = at;
    } else if (at && fn[at] === f) {
      of[n] = at;
      again[n] = again[p]! + 1;
      repeats[at] = max(repeats[at]!, again[n]! + 1);
    } else if (children.has(key)) {
      of[n] = children.get(key)!;
    } else if (depth[at]! >= mostDepth) {
      of[n] = at;
    } else {
      children.set(key, (of[n] = above.push(at) - 1));
      fn.push(f);
      depth.push(depth[at]! + 1);
      repeats.push(1);
      code.push(at && !isOwn[code[at]!] ? code[at]! : fns[f]!.code);
      let k = at;
      while (k > 0 && fn[k] !== f) k = above[k]!;
      outer.push(k > 0 ? 0 : 1);
    }
  }
  return {
    fns,
    above: ints(above),
    fn: ints(fn),
    depth: ints(depth),
    repeats: ints(repeats),
    code: new Uint8Array(code),
    outer: new Uint8Array(outer),
    of,
  };
}

/** isInside reports whether a call stays within its caller's package; the user's own code does not fold. */
const isInside = (caller: Func, func: Func): boolean =>
  !!func.file.pkg && func.file.pkg === caller.file.pkg && !isOwn[func.file.code] && !isOwn[func.code];

/** labelsOf are ways to name a node, the most informative first. */
export function labelsOf(tree: CallTree, node: number): string[] {
  const func = tree.fns[tree.fn[node]!]!;
  const times = tree.repeats[node]! > 1 ? " ×" + tree.repeats[node] : "";
  const dot = func.name.lastIndexOf(".");
  const short = dot > 0 && dot + 1 < func.name.length && func.place ? func.name.slice(dot + 1) : func.name;
  return func.place
    ? [`${func.name}${times} ${func.place}`, func.name + times, short + times]
    : [func.name + times, func.name.replace(/^import /, "") + times];
}
