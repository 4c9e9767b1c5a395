// What a range of time adds up to: functions, lines, idle causes, means of tracks.

import { floats, ints, max, min } from "./math.ts";
import { firstAfter } from "./columns.ts";
import { idles, isOwn, states } from "./generated.ts";
import type { LineTime, Place, Recording, Spans, SourceFile, Thread, Track } from "./recording.ts";
import type { CallTree } from "./tree.ts";

/** eachSpan calls back for what of begin … end of the spans lies in from … to. */
export function eachSpan(
  spans: Spans,
  { begin, end }: { begin: number; end: number },
  from: number,
  to: number,
  each: (span: number, us: number) => void,
): void {
  for (let i = firstAfter(spans.end, begin, end, from); i < end && spans.begin[i]! < to; i++) {
    const us = min(spans.end[i]!, to) - max(spans.begin[i]!, from);
    if (us > 0) each(i, us);
  }
}

/** cellThreads run the program's code. */
export const cellThreads = (recording: Recording): Thread[] => recording.threads.filter((thread) => thread.runs);

/** Sums are a tree's times in a range, by node. */
export interface Sums {
  self: Float64Array;
  total: Float64Array; // with all it called
  shares: Float64Array; // of self, by state: index node × states.length + state
}

/**
 * sumsOf adds up threads. Of all of them, idle time only counts of those that run the target's code and of its main
 * thread, as in the report's tables: a pool of parked workers would outweigh the work.
 */
export function sumsOf(
  recording: Recording,
  tree: CallTree,
  threads: Thread[],
  from: number,
  to: number,
  ofAll: boolean,
): Sums {
  const size = tree.above.length;
  const [self, total, shares] = [floats(size), floats(size), floats(size * states.length)];
  for (const thread of threads) {
    const whole = !ofAll || thread.runs || thread.main;
    eachSpan(recording, thread, from, to, (i, us) => {
      const state = recording.state[i]!;
      const n = tree.of[recording.node[i]!]!;
      if (!whole && idles[state]) return;
      self[n]! += us;
      shares[n * states.length + state]! += us;
    });
  }
  for (let n = size - 1; n >= 0; n--) {
    total[n]! += self[n]!;
    if (n) total[tree.above[n]!]! += total[n]!;
  }
  return { self, total, shares };
}

/** Times of one function. */
export interface Times {
  self: number;
  total: number; // recursion counts once
  shares: Float64Array; // of self, by state
}

/** functionTimes sums nodes' times by function of the tree. */
export function functionTimes(tree: CallTree, { self, total, shares }: Sums): Map<number, Times> {
  const out = new Map<number, Times>();
  for (let n = 1; n < total.length; n++) {
    if (!total[n]) continue;
    let times = out.get(tree.fn[n]!);
    if (!times) out.set(tree.fn[n]!, (times = { self: 0, total: 0, shares: floats(states.length) }));
    times.self += self[n]!;
    if (tree.outer[n]) times.total += total[n]!;
    for (let s = 0; s < states.length; s++) times.shares[s]! += shares[n * states.length + s]!;
  }
  return out;
}

/** OwnLines are the user's lines on stacks: by node of the recording the innermost one, -1 for none. */
export interface OwnLines {
  places: Place[];
  at: Int32Array;
  part: number[]; // of the cell's time, by place
}

/** ownLines finds the innermost own line of each stack; of one file, where that is asked. */
export function ownLines(recording: Recording, file: number): OwnLines {
  const places: Place[] = [];
  const ids = new Map<SourceFile, number[]>();
  const at = ints(recording.above.length).fill(-1);
  for (let n = 1; n < at.length; n++) {
    const of = recording.fns[recording.fnOf[n]!]!.file;
    const line = recording.lineOf[n]!;
    if (!line || !isOwn[of.code] || (file >= 0 && of.nth !== file)) {
      at[n] = at[recording.above[n]!]!;
      continue;
    }
    let lines = ids.get(of);
    if (!lines) ids.set(of, (lines = []));
    at[n] = lines[line] ??= places.push({ file: of, line }) - 1;
  }
  const part = places.map(() => 0);
  if (recording.subject)
    eachSpan(
      recording,
      recording.subject,
      0,
      recording.duration,
      (i, us) => at[recording.node[i]!]! >= 0 && (part[at[recording.node[i]!]!]! += us / recording.duration),
    );
  return { places, at, part };
}

/**
 * lineTimes sums threads by line, those that run the cell; of workers, all of the time of the threads at work and what
 * others did. Idle time is charged apart.
 */
export function lineTimes(
  recording: Recording,
  own: OwnLines,
  from: number,
  to: number,
  threads = cellThreads(recording),
  ofWorkers = false,
): LineTime[] {
  const sums = new Map<number, LineTime>();
  for (const thread of threads)
    eachSpan(recording, thread, from, to, (i, us) => {
      const id = own.at[recording.node[i]!]!;
      if (id < 0 || (ofWorkers && !thread.atWork && idles[recording.state[i]!])) return;
      let line = sums.get(id);
      if (!line) sums.set(id, (line = { place: own.places[id]!, self: 0, idle: 0, shares: floats(states.length) }));
      line.self += us;
      line.shares[recording.state[i]!]! += us;
    });
  return [...sums].sort(([a], [b]) => a - b).map(([, time]) => time);
}

/** stateTimes is how a thread spent from … to. */
export function stateTimes(recording: Recording, thread: Thread, from: number, to: number): Float64Array {
  const sums = floats(states.length);
  eachSpan(recording, thread, from, to, (i, us) => (sums[recording.state[i]!]! += us));
  return sums;
}

/** rateTimes is a rate's level × time in from … to, and how much of that time it is known. */
export function rateTimes({ at, level }: Track, from: number, to: number): [product: number, known: number] {
  let product = 0;
  let known = 0;
  for (let k = firstAfter(at, 0, at.length, from); k < at.length && !(at[k - 1]! >= to); k++) {
    const us = min(at[k]!, to) - max(k ? at[k - 1]! : 0, from);
    if (us > 0 && level[k]! >= 0) {
      product += level[k]! * us;
      known += us;
    }
  }
  return [product, known];
}

/** gaugeIn is a gauge's largest value in from … to, else the one that its next value ends. */
function gaugeIn({ at, level }: Track, from: number, to: number): number {
  const first = firstAfter(at, 0, at.length, from);
  let most = NaN;
  for (let k = first; at[k]! <= to; k++) if (level[k]! > most || isNaN(most)) most = level[k]!;
  return isNaN(most) ? level[first]! : most;
}

/**
 * heights are a track's levels by column of from … to. A rate's value holds over the time since the one
 * before it, and a gauge's, too: a column has a rate's mean, a hundredth of its time at least, and a gauge's largest.
 */
export function heights(track: Track, from: number, to: number, columns: number): Float32Array {
  const column = (to - from) / columns;
  return new Float32Array(columns).map((_, c) => {
    const begin = from + c * column;
    if (!track.rate) return gaugeIn(track, begin, begin + column);
    const [product, known] = rateTimes(track, begin, begin + column);
    return known > column / 100 ? product / known : NaN;
  });
}
