// Grids: what each row of a lane shows in each column.

import { ints, max, min } from "./math.ts";
import { State, codes, computes } from "./generated.ts";
import { waits, type Recording } from "./recording.ts";
import type { Matches } from "./search.ts";
import type { CallTree } from "./tree.ts";

/**
 * Grid is a lane as columns of pixels. A cell holds a number of the lane's own (a node of a tree, a line,
 * a state), 0 for nothing; -1 - i stands for marks[i].
 */
export interface Grid {
  rows: number;
  columns: number;
  cells: Int32Array; // row by row
  marks: Mark[];
  leaf: Int32Array | null; // by column: the row of the innermost call, where it waited; else -1
}

/** Mark is a box that stands for several. */
export interface Mark {
  node: number; // what most of it is; 0 for a count of callees
  share: number; // of the box that is node
  others: number; // different calls, or callees left out
}

export const gridOf = (rows: number, columns: number): Grid => ({
  rows,
  columns,
  cells: ints(rows * columns),
  marks: [],
  leaf: null,
});

/**
 * flameGrid stands the stack of each column upright, outermost call first. What calls deeper than limit
 * is counted in one more row, if the grid has one.
 */
export function flameGrid(tree: CallTree, recording: Recording, picks: Int32Array, rows: number, limit: number): Grid {
  const columns = picks.length;
  const grid = gridOf(rows, columns);
  const { cells, marks } = grid;
  grid.leaf = ints(columns).fill(-1);
  const deeper: number[] = [];
  for (let c = 0; c < columns; c++) {
    const span = picks[c]!;
    if (span < 0) continue;
    let k = tree.of[recording.node[span]!]!;
    const depth = tree.depth[k]!;
    let row = min(depth, limit);
    if (waits(recording.state[span]!)) grid.leaf[c] = row - 1;
    for (let over = depth; over > limit; over--) k = tree.above[k]!;
    if (depth > limit && limit < rows)
      cells[limit * columns + c] = deeper[depth] ??= -marks.push({ node: 0, share: 0, others: depth - limit });
    for (; row > 0; row--) {
      cells[(row - 1) * columns + c] = k;
      k = tree.above[k]!;
    }
  }
  return grid;
}

// A barcode: at least so many neighbours below one caller, each too narrow for a name and most too narrow to
// be told apart by eye, together wide enough to say something (pixels).
const leastRuns = 5;
const shortRun = 8;
const meanRun = 3;
const leastWidth = 12;

/**
 * sameOf is by column the depth to which it shows the very call that the column before shows: three spans between them
 * are asked. Where calls are much shorter than a column, neighbours show the same function by chance.
 */
export const sameOf = (tree: CallTree, recording: Recording, picks: Int32Array): Int32Array =>
  picks.map((pick, c) => {
    const last = picks[c - 1]!;
    if (!(last >= 0 && pick >= 0)) return 0;
    let call = tree.of[recording.node[pick]!]!;
    for (let k = 1; k < 4; k++) {
      let other = tree.of[recording.node[last + (((pick - last) * k) >> 2)]!]!;
      while (call !== other) {
        if (call > other) call = tree.above[call]!;
        else other = tree.above[other]!;
      }
    }
    return tree.depth[call]!;
  });

/** foldShort makes each barcode one box that says what most of it is; scale is columns per pixel, same what goes on. */
export function foldShort(grid: Grid, scale: number, same: Int32Array): void {
  const { cells, columns } = grid;
  const [short, mean] = [max(shortRun * scale, 3), max(meanRun * scale, 2)]; // chance counts in columns, however wide
  const runEnd = (at: number, end: number, row = -1) => {
    let c = at + 1;
    while (c < end && cells[c] === cells[at] && (!cells[c] || same[c % columns]! > row)) c++;
    return c;
  };
  for (let row = columns; row < cells.length; row += columns) {
    for (let at = row; at < row + columns;) {
      // Up to end all have one caller.
      const end = runEnd(at - columns, row) + columns;
      while (at < end) {
        let to = at;
        let runs = 0;
        let next = runEnd(to, end, row / columns);
        for (; to < end && next - to <= short; runs++, next = runEnd(to, end, row / columns)) to = next;
        if (runs >= leastRuns && to - at >= leastWidth * scale && to - at <= mean * runs && cells[at - columns])
          join(grid, at, to);
        at = runs ? to : next;
      }
    }
  }
}

/** join makes the cells from … to one box, if they differ; of numbers of deeper calls one will do. */
function join(grid: Grid, from: number, to: number): void {
  const times = new Map<number, number>();
  for (const id of grid.cells.subarray(from, to)) if (id) times.set(id, (times.get(id) || 0) + 1);
  const [id, most] = [...times].sort((a, b) => b[1] - a[1])[0]!;
  if (most < to - from)
    grid.cells.fill(
      id < 0 ? id : -grid.marks.push({ node: id, share: most / (to - from), others: times.size - 1 }),
      from,
      to,
    );
}

/** rowOf is a grid of one row, of what each picked span stands for. */
export function rowOf(picks: Int32Array, idOf: (span: number) => number): Grid {
  const grid = gridOf(1, picks.length);
  picks.forEach((span, c) => span >= 0 && (grid.cells[c] = idOf(span)));
  return grid;
}

/** isAwake is what a strip shows: what a thread did, and what is known to have kept it from it. */
const isAwake = (state: number): boolean => computes[state]! || state === State.io || state === State.gil;

/** stateRow is what a thread was doing: a cell is 1 + its state, where it was awake. */
export const stateRow = ({ state }: Recording, picks: Int32Array): Grid =>
  rowOf(picks, (i) => (isAwake(state[i]!) ? state[i]! + 1 : 0));

/**
 * codeRow is what a thread called: a cell is 1 + whose code that is, codes.length more where it is not what was found;
 * awake, nothing where it waited.
 */
export const codeRow = (
  tree: CallTree,
  recording: Recording,
  picks: Int32Array,
  found: Matches | null,
  awake?: boolean,
): Grid =>
  rowOf(picks, (i) => {
    const n = awake && recording.state[i] === State.waiting ? 0 : tree.of[recording.node[i]!]!;
    return n && tree.code[n]! + (found && !found.nodes[n] ? codes.length + 1 : 1);
  });

/** runAt is the box at a cell: its first column and the one after its last. */
export function runAt(grid: Grid, row: number, column: number): [from: number, to: number] {
  const line = grid.cells.subarray(row * grid.columns, (row + 1) * grid.columns);
  let from = column;
  let to = column + 1;
  while (from && line[from - 1] === line[column]) from--;
  while (to < grid.columns && line[to] === line[column]) to++;
  return [from, to];
}

/** boxes calls back for each box of a row of at least so many columns. */
export function boxes(
  grid: Grid,
  row: number,
  least: number,
  each: (id: number, from: number, to: number) => void,
): void {
  const base = row * grid.columns;
  for (let from = 0; from < grid.columns;) {
    const id = grid.cells[base + from]!;
    let to = from + 1;
    while (to < grid.columns && grid.cells[base + to] === id) to++;
    if (id && to - from >= least) each(id, from, to);
    from = to;
  }
}
