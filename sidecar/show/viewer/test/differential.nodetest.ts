/// <reference types="node" />
// Random documents, and what Go makes of them: tables, figures and boxes of the viewer are the same. A report has
// its tables beside the stacks they were summed up from; the viewer sums up the stacks, as it does for a part of them.
// OMNI_PERF_DOCUMENTS is how many; make truth takes 2,000.

import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { poolLinesOf, linesIn } from "../src/poollines.ts";
import { idleShares, idleTime } from "../src/idle.ts";
import { frameOf } from "../src/frame.ts";
import { layOut } from "../src/lanes.ts";
import { modelOf, type Model } from "../src/model.ts";
import { quantile, slowestFirst } from "../src/steps.ts";
import { heights, lineTimes, stateTimes } from "../src/sums.ts";
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
  Subject: AnsweredSubject;
  Pools: { text: string; members: number[] }[] | null;
  Steps: { Count: number; Median: string; P95: string };
  Findings: { Text: string; File: number; Line: number; Cost: number; Serious: boolean }[] | null;
  stretch: Stretch;
}

/** AnsweredSubject is whom a document is about; Thread is -1 where none is known. */
interface AnsweredSubject {
  Program: number;
  Thread: number;
  Threads: number[];
}

/** Stretch is a part of the recording: documents.AnsweredStretch. */
interface Stretch {
  From: number;
  To: number;
  Threads: number[][];
  Functions: number[];
  Levels: number[];
  Idle: number;
  Causes: number[];
}

/** tenth rounds to what the sum of many floats is exact to. */
const tenth = (us: number): number => Math.round(us * 10) / 10;

function functionsOf(m: Model, { functions }: Answered): void {
  const times = m.functions(0, m.recording.duration);
  functions.forEach(({ Self, Total, States }, fn) => {
    const t = times.get(fn);
    expect([
      m.recording.fns[fn]!.name,
      tenth(t?.self || 0),
      tenth(t?.total || 0),
      ...Array.from(t?.shares || States.map(() => 0), tenth),
    ]).toEqual([m.recording.fns[fn]!.name, Self, Total, ...States]);
  });
}

function linesOf(m: Model, { lines, document }: Answered): void {
  const { program } = document["subject"] as Record<string, number>;
  const got = [
    ...lineTimes(m.recording, m.own(-1), 0, m.recording.duration).map((l) => ({ ...l, of: program! })),
    ...m.recording.workers
      .filter((w) => w.process !== program)
      .flatMap((w) => linesIn(m, w, 0, m.recording.duration, false).map((l) => ({ ...l, of: w.process }))),
  ];
  const row = (process: number, file: number, line: number, self: number, shares: Iterable<number>) =>
    [process, file, line, tenth(self), ...Array.from(shares, tenth)].join();
  expect(got.map((l) => row(l.of, l.place.file.nth, l.place.line, l.self, l.shares)).sort()).toEqual(
    (lines || []).map((l) => row(l.Process, l.File, l.Line, l.Self, l.States)).sort(),
  );
}

function subjectIn(document: unknown, { Program, Thread, Threads }: AnsweredSubject): void {
  const { recording } = modelOf(document)!;
  const runs = recording.threads.flatMap((thread, i) => (thread.runs ? [i] : []));
  expect([recording.threads.indexOf(recording.subject!), runs]).toEqual([Thread, Threads]);
  expect(recording.workers[Program]!.lines).toEqual([]);
}

function poolsIn(m: Model, { Pools, document }: Answered): void {
  const names = (document["processes"] as { text: string }[]).map((process) => process.text);
  const pools = poolLinesOf(m, 0, m.recording.duration, true).filter((pool) => pool.several);
  const members = pools.map((c) => [c.name, ...new Set(c.lines.flatMap((l) => l.by.map(([name]) => name)))]);
  const want = (Pools || []).map((pool) => [pool.text, ...new Set(pool.members.map((member) => names[member]))]);
  expect(members.map(([text, ...of]) => [text, ...of.sort()].join()).sort()).toEqual(
    want.map(([text, ...of]) => [text, ...of.sort()].join()).sort(),
  );
}

function boxesOf(m: Model, { boxes, columns, scale }: Answered): void {
  const shown = frameOf(m, m.initial, layOut(m.chart, m.chart.wide, new Map()), columns, scale, -1e6, 1e6);
  m.chart.lanes.forEach((lane, i) => {
    const own = m.own(lane.nth).places;
    expect(
      rowsOf(shown[i]!.grid!, (id) => (lane.kind === "lines" ? own[id - 1]!.line : id)),
      `${lane.kind} of ${lane.name}`,
    ).toEqual(boxes[i]);
  });
}

function stepsOf({ recording }: Model, { Steps }: Answered): void {
  const { steps } = recording;
  expect(steps.length).toBe(Steps.Count);
  const slowest = slowestFirst(steps);
  expect([0.5, 0.95].map((q) => quantile(slowest, q))).toEqual([Steps.Median, Steps.P95]);
}

function findingsOf({ recording }: Model, { Findings }: Answered): void {
  expect(
    recording.findings.map(({ text, place, us, serious }) => [
      text,
      place?.file.nth ?? -1,
      place?.line || 0,
      us,
      serious,
    ]),
  ).toEqual((Findings || []).map((f) => [f.Text, f.File, f.Line, f.Cost, f.Serious]));
}

function stretchOf(model: Model, { stretch }: Answered): void {
  const { recording } = model;
  const { From, To, Threads, Functions, Levels, Idle, Causes } = stretch;
  const near = (got: number, want: number, what: string) => expect(Math.abs(got - want), what).toBeLessThan(0.1);
  Threads.forEach((states, i) => {
    const got = stateTimes(recording, recording.threads[i]!, From, To);
    states.forEach((us, state) => near(got[state]!, us, `thread ${i}, state ${state}`));
  });
  const times = model.functions(From, To);
  Functions.forEach((us, fn) => near(times.get(fn)?.self || 0, us, `function ${fn}`));
  recording.tracks.forEach((track, i) => {
    const level = heights(track, From, To, 1)[0]!;
    const got = isNaN(level) ? -1 : level;
    expect(Math.abs(got - Levels[i]!), `track ${i}`).toBeLessThanOrEqual(0.01 + Math.abs(got) * 1e-6);
  });
  near(idleTime(recording, From, To), Idle, "idle");
  const shares = idleShares(recording, From, To);
  Causes.forEach((want, i) => near(shares.find(([cause]) => cause?.text === String(i))?.[1] || 0, want, `cause ${i}`));
  near(
    shares.reduce((all, [, us]) => all + us, 0),
    Idle,
    "the causes' sum",
  );
  const charged = model.lines(From, To).reduce((all, line) => all + line.idle, 0);
  const placed = shares.reduce((all, [cause, us]) => all + (cause?.place ? us : 0), 0);
  near(charged, placed, "idle time of lines");
}

test("of random documents the viewer makes what Go makes", () => {
  const n = process.env["OMNI_PERF_DOCUMENTS"] || "100";
  const text = execFileSync("go", ["run", "./sidecar/testkit/harness", "-answers", n], {
    cwd: "../../..",
    encoding: "utf8",
    maxBuffer: 1 << 30,
  });
  const answers = text.trim().split("\n");
  expect(answers.length).toBe(+n);
  for (const line of answers) {
    const a = JSON.parse(line) as Answered;
    const m = modelOf(a.document)!;
    try {
      a.threads.forEach((states, i) =>
        expect(Array.from(stateTimes(m.recording, m.recording.threads[i]!, 0, m.recording.duration), tenth)).toEqual(
          states,
        ),
      );
      functionsOf(m, a);
      linesOf(m, a);
      subjectIn(a.document, a.Subject);
      poolsIn(m, a);
      stretchOf(m, a);
      stepsOf(m, a);
      findingsOf(m, a);
      boxesOf(m, a);
      for (const [ns, words] of a.figures || []) expect(micros(ns / 1000)).toBe(words);
    } catch (e) {
      (e as Error).message = `document ${a.seed}: ${(e as Error).message}`;
      throw e;
    }
  }
});
