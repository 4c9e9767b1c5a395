// Flame graphs: time merged by who called whom, or by who was called by whom.

import { ints, min, round } from "./math.ts";
import { gridOf, type Grid } from "./grid.ts";
import type { Sums } from "./sums.ts";
import type { CallTree } from "./tree.ts";

/** Graph is a tree of boxes, 0 being all of it. What is below a box is found when it is asked for, heaviest first. */
export interface Graph {
  above: ArrayLike<number>;
  fn: ArrayLike<number>; // index into the tree's functions
  weight: ArrayLike<number>;
  below(box: number): number[];
}

/** callees is the flame graph: boxes are the call tree's nodes. */
export function callees(tree: CallTree, { total }: Sums): Graph {
  const children: number[][] = [];
  for (let n = 1; n < total.length; n++) if (total[n]! > 0) (children[tree.above[n]!] ||= []).push(n);
  return {
    above: tree.above,
    fn: tree.fn,
    weight: total,
    below: (box) => (children[box] || []).sort((a, b) => total[b]! - total[a]!),
  };
}

/**
 * callers is the flame graph upside down: below a function those that called it. Without a function it
 * begins with all functions by their own time, else with that one by the time it was on the stack.
 */
export function callers(tree: CallTree, { self, total }: Sums, of = -1): Graph {
  const above = [-1];
  const fn = [-1];
  const weight = [0];
  // By box: nodes of the call tree, and the time of each that counts here.
  const parts: [node: number, us: number][][] = [[]];
  const children: number[][] = [];
  const grow = (box: number, nodes: [node: number, us: number][]): number[] => {
    const byFn = new Map<number, number>();
    for (const [node, us] of nodes) {
      const f = tree.fn[node]!;
      let child = byFn.get(f);
      if (child === undefined) {
        byFn.set(f, (child = above.push(box) - 1));
        fn.push(f);
        weight.push(0);
        parts.push([]);
      }
      weight[child]! += us;
      parts[child]!.push([node, us]);
    }
    return (children[box] = [...byFn.values()].sort((a, b) => weight[b]! - weight[a]!));
  };
  for (let n = 1; n < total.length; n++) {
    const us = of < 0 ? self[n]! : tree.fn[n] === of && tree.outer[n] ? total[n]! : 0;
    weight[0]! += us;
    if (us) parts[0]!.push([n, us]);
  }
  grow(0, parts[0]!);
  return {
    above,
    fn,
    weight,
    below: (box) =>
      children[box] ||
      grow(
        box,
        parts[box]!.map(([n, us]): [number, number] => [tree.above[n]!, us]).filter(([n]) => n),
      ),
  };
}

/**
 * graphGrid lays a graph out below a box that fills it, the callers of that box over its whole width. What
 * is narrower than half a column is not drawn; a cell is a box of the graph.
 */
export function graphGrid(graph: Graph, root: number, columns: number, mostRows: number): Grid {
  const rows: Int32Array[] = [];
  for (let box = root; box > 0; box = graph.above[box]!) rows.unshift(ints(columns).fill(box));
  const scale = columns / (graph.weight[root]! || 1);
  const open: [box: number, x: number, row: number][] = [[root, 0, rows.length]];
  for (let next = open.pop(); next; next = open.pop()) {
    let [box, x, row] = next;
    if (row >= mostRows) continue;
    for (const child of graph.below(box)) {
      const width = graph.weight[child]! * scale;
      if (width < 0.5) break; // the rest is narrower still
      const from = round(x);
      const to = min(round(x + width), columns);
      if (to > from) {
        (rows[row] ||= ints(columns)).fill(child, from, to);
        open.push([child, x, row + 1]);
      }
      x += width;
    }
  }
  const grid = gridOf(rows.length, columns);
  rows.forEach((line, i) => grid.cells.set(line, i * columns));
  return grid;
}
