// A recording and what is derived from it once, when it is first asked for.

import { max } from "./math.ts";
import { idleShares, withIdle } from "./idle.ts";
import { chartOf, type Chart } from "./lanes.ts";
import { recordingOf } from "./reading.ts";
import type { LineTime, Recording, Thread } from "./recording.ts";
import { matchesOf, placesOf, type Matches } from "./search.ts";
import type { Stretches } from "./stretches.ts";
import { initialState, type State } from "./state.ts";
import {
  cellThreads,
  functionTimes,
  lineTimes,
  ownLines,
  sumsOf,
  type OwnLines,
  type Sums,
  type Times,
} from "./sums.ts";
import { callTree, type CallTree } from "./tree.ts";

export interface Model {
  recording: Recording;
  chart: Chart;
  initial: State;
  main: Thread | undefined;
  tree(folded: boolean): CallTree;
  own(file: number): OwnLines;
  /** depth is that of a thread's deepest stack. */
  depth(thread: number, folded: boolean): number;
  /** found is what a search finds in a tree; null for no search. */
  found(query: string, folded: boolean): Matches | null;
  /** places are the stretches in which the subject was in what a search finds. */
  places(query: string): Stretches;
  sums(folded: boolean, who: number, from: number, to: number): Sums;
  functions(from: number, to: number): Map<number, Times>;
  lines(from: number, to: number): LineTime[]; // most first
}

/** remember keeps a function's last few answers, by what its arguments read as. */
export function remember<A extends (string | number | boolean)[], T>(
  compute: (...key: A) => T,
  most = 8,
): (...key: A) => T {
  const known = new Map<string, T>();
  return (...key) => {
    const name = key.join();
    if (!known.has(name)) {
      if (known.size >= most) known.clear();
      known.set(name, compute(...key));
    }
    return known.get(name)!;
  };
}

/** everyThread and cellThread are who takes part in sums, in place of a thread's number. */
export const everyThread = -1;
export const cellThread = -2;

/** modelOf reads a document, of the chart in it or another; null where there is no picture to build on. */
export function modelOf(document: unknown, chart = chartOf(document)): Model | null {
  if (!chart) return null;
  const recording = recordingOf(document);
  recording.threads.forEach((t, i) => (t.name = chart.threads[i] || t.name));
  const tree = remember((folded: boolean) => callTree(recording, folded));
  const own = remember((file: number) => ownLines(recording, file));
  const sums = remember((folded: boolean, who: number, from: number, to: number): Sums => {
    const threads =
      who === cellThread
        ? cellThreads(recording)
        : recording.threads.filter((t, i) => (who < 0 ? !t.internal : who === i));
    return sumsOf(recording, tree(folded), threads, from, to, who === everyThread);
  });
  const found = (query: string, folded: boolean) => (query ? matchesOf(recording, tree(folded), query) : null);
  return {
    recording,
    chart,
    initial: initialState(recording.duration, chart.folded),
    main: recording.subject,
    tree,
    own,
    sums,
    depth: remember((thread: number, folded: boolean) => {
      const calls = tree(folded);
      const { begin, end } = recording.threads[thread]!;
      let most = 1;
      for (let i = begin; i < end; i++) most = max(most, calls.depth[calls.of[recording.node[i]!]!]!);
      return most;
    }),
    found: remember(found),
    places: remember((query: string) => {
      const matches = recording.subject && found(query, false);
      return matches ? placesOf(matches, recording, tree(false), recording.subject!) : [];
    }),
    functions: remember((from: number, to: number) => functionTimes(tree(false), sums(false, everyThread, from, to))),
    // Over the whole recording the report's own figures hold: they were not thinned.
    lines: remember((from: number, to: number) => {
      const whole = from <= 0 && to >= recording.duration && recording.lines.length;
      const lines = whole
        ? recording.lines.slice()
        : withIdle(lineTimes(recording, own(-1), from, to), idleShares(recording, from, to));
      return lines.sort((a, b) => b.self - a.self);
    }),
  };
}
