// What a range of time adds up to: functions, lines, idle causes, means of tracks.

import { floats, ints, max, min } from "./brief.ts";
import { firstAfter } from "./columns.ts";
import { idleStates, isOwn, stateCount, type LineTime, type Place, type Recording, type SourceFile, type Thread, type Track } from "./recording.ts";
import type { CallTree } from "./tree.ts";

/** eachSpan calls back for what of a thread's spans lies in from … to. */
export function eachSpan(r: Recording, t: Thread, from: number, to: number, each: (span: number, us: number) => void): void {
  for (let i = firstAfter(r.end, t.begin, t.end, from); i < t.end && r.begin[i]! < to; i++) {
    const us = min(r.end[i]!, to) - max(r.begin[i]!, from);
    if (us > 0) each(i, us);
  }
}

/** cellThreads run the target's code; where none is known, its process's main thread counts, or the first one. */
export function cellThreads(r: Recording): Thread[] {
  const runs = r.threads.filter((t) => t.runsCell);
  return runs.length ? runs : [...r.threads.filter((t) => t.main), ...r.threads].slice(0, 1);
}

/** Sums are a tree's times in a range, by node. */
export interface Sums {
  self: Float64Array;
  total: Float64Array; // with all it called
  shares: Float64Array; // of self, by state: index node × stateCount + state
}

/**
 * sumsOf adds up threads. Of all of them, idle time only counts of those that run the target's code and of its main
 * thread, as in the report's tables: a pool of parked workers would outweigh the work.
 */
export function sumsOf(r: Recording, t: CallTree, threads: Thread[], from: number, to: number, ofAll: boolean): Sums {
  const size = t.above.length;
  const [self, total, shares] = [floats(size), floats(size), floats(size * stateCount)];
  for (const thread of threads) {
    const whole = !ofAll || thread.runsCell || thread.main;
    eachSpan(r, thread, from, to, (i, us) => {
      const state = r.state[i]!;
      const n = t.of[r.node[i]!]!;
      if (!whole && idleStates.includes(state)) return;
      self[n]! += us;
      shares[n * stateCount + state]! += us;
    });
  }
  for (let n = size - 1; n >= 0; n--) {
    total[n]! += self[n]!;
    if (n) total[t.above[n]!]! += total[n]!;
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
export function functionTimes(t: CallTree, { self, total, shares }: Sums): Map<number, Times> {
  const out = new Map<number, Times>();
  for (let n = 1; n < total.length; n++) {
    if (!total[n]) continue;
    let f = out.get(t.fn[n]!);
    if (!f) out.set(t.fn[n]!, (f = { self: 0, total: 0, shares: floats(stateCount) }));
    f.self += self[n]!;
    if (t.outer[n]) f.total += total[n]!;
    for (let s = 0; s < stateCount; s++) f.shares[s]! += shares[n * stateCount + s]!;
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
export function ownLines(r: Recording, file: number): OwnLines {
  const places: Place[] = [];
  const ids = new Map<SourceFile, number[]>();
  const at = ints(r.above.length).fill(-1);
  for (let n = 1; n < at.length; n++) {
    const of = r.fns[r.fnOf[n]!]!.file;
    const line = r.lineOf[n]!;
    if (!line || !isOwn(of.code) || (file >= 0 && of.nth !== file)) {
      at[n] = at[r.above[n]!]!;
      continue;
    }
    let lines = ids.get(of);
    if (!lines) ids.set(of, (lines = []));
    at[n] = lines[line] ??= places.push({ file: of, line }) - 1;
  }
  const part = places.map(() => 0);
  for (const t of cellThreads(r).slice(0, 1)) eachSpan(r, t, 0, r.duration, (i, us) => at[r.node[i]!]! >= 0 && (part[at[r.node[i]!]!]! += us / r.duration));
  return { places, at, part };
}

/** lineTimes sums threads by line, those that run the cell, and the idle time while the first of them was there. */
export function lineTimes(r: Recording, own: OwnLines, from: number, to: number, threads = cellThreads(r)): LineTime[] {
  const sums = new Map<number, LineTime>();
  const { idle } = r;
  threads.forEach((t, which) => {
    let k = 0;
    eachSpan(r, t, from, to, (i, us) => {
      const id = own.at[r.node[i]!]!;
      if (id < 0) return;
      let line = sums.get(id);
      if (!line) sums.set(id, (line = { place: own.places[id]!, self: 0, idle: 0, shares: floats(stateCount) }));
      line.self += us;
      line.shares[r.state[i]!]! += us;
      if (which) return;
      const a = max(r.begin[i]!, from);
      const b = min(r.end[i]!, to);
      while (k < idle.length && idle[k + 1]! <= a) k += 2;
      for (let j = k; j < idle.length && idle[j]! < b; j += 2) line.idle += min(idle[j + 1]!, b) - max(idle[j]!, a);
    });
  });
  return [...sums].sort(([a], [b]) => a - b).map(([, l]) => l);
}

/** stateTimes is how a thread spent from … to. */
export function stateTimes(r: Recording, t: Thread, from: number, to: number): Float64Array {
  const sums = floats(stateCount);
  eachSpan(r, t, from, to, (i, us) => (sums[r.state[i]!]! += us));
  return sums;
}

/**
 * heights are a track's levels by column of from … to. A rate's value holds over the time since the one
 * before it: a column has the mean. A gauge's column has the largest, or what lies between two values.
 */
export function heights({ at, level, rate }: Track, from: number, to: number, columns: number): Float32Array {
  const column = (to - from) / columns;
  return new Float32Array(columns).map((_, c) => {
    const a = from + c * column;
    const b = a + column;
    const i = firstAfter(at, 0, at.length, a);
    let sum = 0;
    let time = 0;
    let most = NaN;
    for (let k = i; k < at.length; k++) {
      const us = min(at[k]!, b) - max(k ? at[k - 1]! : 0, a);
      if (us > 0 && level[k]! >= 0) {
        sum += level[k]! * us;
        time += us;
      }
      if (at[k]! <= b && !(most >= level[k]!)) most = level[k]!;
      if (at[k]! >= b) break;
    }
    if (rate) return time > column / 100 ? sum / time : NaN;
    const [before, after] = [level[i - 1]!, level[i]!];
    return isNaN(most) ? before + ((after - before) * (a + column / 2 - at[i - 1]!)) / (at[i]! - at[i - 1]!) : most;
  });
}
