/// <reference types="node" />
// Random documents, and what Go makes of them: tables, figures and boxes of the viewer are the same. A report has
// its tables beside the stacks they were summed up from; the viewer sums up the stacks, as it does for a part of them.
// OMNI_PERF_DOCUMENTS is how many; make truth takes 2,000.

import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { linesIn } from "../src/crews.ts";
import { frameOf } from "../src/frame.ts";
import { layOut } from "../src/lanes.ts";
import { modelOf, type Model } from "../src/model.ts";
import { lineTimes, stateTimes } from "../src/sums.ts";
import { micros } from "../src/words.ts";
import { rowsOf } from "./boxes.ts";
import type { FixtureBox } from "./samples.ts";

/** Answered is a document with Go's figures: documents.Answered. Times are microseconds. */
interface Answered {
  seed: number;
  document: Record<string, unknown>;
  functions: { Self: number; Total: number; States: number[] }[];
  lines: { Process: number; File: number; Line: number; Self: number; States: number[] }[] | null;
  threads: number[][];
  columns: number;
  scale: number; // columns for each pixel
  boxes: ((FixtureBox[] | null)[] | null)[];
  figures: [ns: number, words: string][] | null;
}

/** tenth rounds to what the sum of many floats is exact to. */
const tenth = (us: number): number => Math.round(us * 10) / 10;

function functionsOf(m: Model, { functions }: Answered): void {
  const times = m.functions(0, m.r.duration);
  functions.forEach(({ Self, Total, States }, fn) => {
    const t = times.get(fn);
    expect([m.r.fns[fn]!.called, tenth(t?.self || 0), tenth(t?.total || 0), ...Array.from(t?.shares || States.map(() => 0), tenth)]).toEqual([m.r.fns[fn]!.called, Self, Total, ...States]);
  });
}

function linesOf(m: Model, { lines, document }: Answered): void {
  const { program, process } = (document["targets"] as Record<string, number>[])[0]!;
  const got = [
    ...lineTimes(m.r, m.own(-1), 0, m.r.duration).map((l) => ({ ...l, of: program ?? process! })),
    ...m.r.workers.filter((w) => w.process !== (program ?? process)).flatMap((w) => linesIn(m, w, 0, m.r.duration, false).map((l) => ({ ...l, of: w.process }))),
  ];
  const row = (process: number, file: number, line: number, self: number, shares: Iterable<number>) => [process, file, line, tenth(self), ...Array.from(shares, tenth)].join();
  expect(got.map((l) => row(l.of, l.place.file.nth, l.place.line, l.self, l.shares)).sort()).toEqual((lines || []).map((l) => row(l.Process, l.File, l.Line, l.Self, l.States)).sort());
}

function boxesOf(m: Model, { boxes, columns, scale }: Answered): void {
  const shown = frameOf(m, m.whole, layOut(m.chart, m.chart.wide, new Map()), columns, scale, -1e6, 1e6);
  m.chart.lanes.forEach((lane, i) => {
    const own = m.own(lane.nth).places;
    expect(rowsOf(shown[i]!.grid!, (id) => (lane.kind === "lines" ? own[id - 1]!.line : id)), `${lane.kind} of ${lane.called}`).toEqual(boxes[i]);
  });
}

test("of random documents the viewer makes what Go makes", () => {
  const n = process.env["OMNI_PERF_DOCUMENTS"] || "100";
  const text = execFileSync("go", ["run", "./sidecar/testkit/harness", "-answers", n], { cwd: "../../..", encoding: "utf8", maxBuffer: 1 << 30 });
  const answers = text.trim().split("\n");
  expect(answers.length).toBe(+n);
  for (const line of answers) {
    const a = JSON.parse(line) as Answered;
    const m = modelOf(a.document)!;
    try {
      a.threads.forEach((states, i) => expect(Array.from(stateTimes(m.r, m.r.threads[i]!, 0, m.r.duration), tenth)).toEqual(states));
      functionsOf(m, a);
      linesOf(m, a);
      boxesOf(m, a);
      for (const [ns, words] of a.figures || []) expect(micros(ns / 1000)).toBe(words);
    } catch (e) {
      (e as Error).message = `document ${a.seed}: ${(e as Error).message}`;
      throw e;
    }
  }
});
