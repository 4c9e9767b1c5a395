// Call trees: stacks merged by function, libraries and imports folded on demand.

import { ints, max } from "./brief.ts";
import { isOwn, otherCode, type Func, type Recording } from "./recording.ts";

/** Rows a drawing can have; what calls deeper is counted to the function at this depth. */
export const mostDepth = 400;

/**
 * CallTree merges the recording's stacks: lines do not matter, and a function that calls itself
 * directly counts once. Node 0 is the empty stack, a parent precedes its children.
 */
export interface CallTree {
  fns: Func[]; // the recording's, then those that stand for several
  above: Int32Array; // the caller
  fn: Int32Array;
  depth: Int32Array; // 0 for the root
  repeats: Int32Array; // calls of itself directly below itself, at most
  code: Uint8Array; // of the outermost library call on the stack, else of the function itself
  outer: Uint8Array; // 1 where the function does not stand further out on the stack: recursion counts once
  of: Int32Array; // by node of the recording
}

/**
 * callTree merges stacks. Folded,
 *  - a call into a library stands for what it calls within its package, until other code is called;
 *  - a module that is imported is one row "import NAME" in place of importlib's ten.
 */
export function callTree(r: Recording, folded: boolean): CallTree {
  const size = r.above.length;
  const fns = r.fns.slice();
  const above = [-1];
  const fn = [-1];
  const depth = [0];
  const repeats = [0];
  const code = [otherCode];
  const outer = [1];
  const of = ints(size);
  const again = ints(size); // by node of the recording: direct repetitions so far
  const below = ints(size).fill(-1); // what a row of importlib stands on; -1: it is none
  const children = new Map<number, number>();

  const call = (at: number, f: number): number => {
    const key = at * fns.length + f;
    let child = children.get(key);
    if (child === undefined) {
      if (depth[at]! >= mostDepth) return at;
      child = above.push(at) - 1;
      children.set(key, child);
      fn.push(f);
      depth.push(depth[at]! + 1);
      repeats.push(1);
      code.push(at && !isOwn(code[at]!) ? code[at]! : fns[f]!.code);
      let k = at;
      while (k > 0 && fn[k] !== f) k = above[k]!;
      outer.push(k > 0 ? 0 : 1);
    }
    return child;
  };

  // Functions that stand for imports are all known before the tree grows: its keys count on their number.
  const imports = new Map<string, number>();
  const importOf = (f: Func, called: string): number => {
    if (!imports.has(called)) imports.set(called, fns.push({ ...f, called, place: "" }) - 1);
    return imports.get(called)!;
  };
  const own = r.fns.length;
  const machinery = r.fns.map((f) => folded && isImportlib(f));
  const modules = r.fns.map((f) => (folded && !f.place && f.file.path ? importOf(f, "import " + moduleName(f.file.path)) : -1));
  const search = machinery.includes(true) ? importOf(r.fns[machinery.indexOf(true)]!, "import") : -1;

  for (let n = 1; n < size; n++) {
    const p = r.above[n]!;
    const f = r.fnOf[n]!;
    const at = of[p]!;
    const base = below[p]! < 0 ? at : below[p]!;
    const module = below[p]! < 0 ? -1 : modules[f]!;
    if (machinery[f]) {
      below[n] = base;
      of[n] = fn[base]! >= own ? base : call(base, search); // an import's own search is part of it
    } else if (module >= 0) {
      of[n] = fn[base]! >= own && isInside(fns[fn[base]!]!, r.fns[f]!) ? base : call(base, module);
    } else if (folded && at && isInside(fns[fn[at]!]!, r.fns[f]!)) {
      of[n] = at;
    } else if (at && fn[at] === f) {
      of[n] = at;
      again[n] = again[p]! + 1;
      repeats[at] = max(repeats[at]!, again[n]! + 1);
    } else {
      of[n] = call(at, f);
    }
  }
  return { fns, above: ints(above), fn: ints(fn), depth: ints(depth), repeats: ints(repeats), code: new Uint8Array(code), outer: new Uint8Array(outer), of };
}

/** isInside tells whether a call stays within the caller's package. */
const isInside = (caller: Func, f: Func): boolean => !!f.file.pkg && f.file.pkg === caller.file.pkg && !isOwn(f.file.code) && !isOwn(f.code);

const isImportlib = (f: Func): boolean => /^<frozen (importlib|zipimport)|\/importlib\/(__init__|_bootstrap\w*)\.py$/.test(f.file.path);

/** moduleName is the name under which a file is imported, as far as its path tells. */
export function moduleName(file: string): string {
  const path = file.replace(/^.*\/(site-packages|dist-packages|lib\/python[\d.]+t?)\//, "");
  const name = path.replace(/^<frozen (.*)>$/, "$1").replace(/(\/__init__)?\.\w+$/, "");
  return path === file ? name.slice(name.lastIndexOf("/") + 1) : name.replace(/\//g, ".");
}

/** labelsOf are ways to name a node, the most telling first. */
export function labelsOf(t: CallTree, node: number): string[] {
  const f = t.fns[t.fn[node]!]!;
  const times = t.repeats[node]! > 1 ? " ×" + t.repeats[node] : "";
  const dot = f.called.lastIndexOf(".");
  const short = dot > 0 && dot + 1 < f.called.length && f.place ? f.called.slice(dot + 1) : f.called;
  return f.place ? [`${f.called}${times}  ${f.place}`, f.called + times, short + times] : [f.called + times];
}
