import { idleShares, idleTime } from "../src/idle.ts";
import { expect, test } from "vitest";
import { callees, callers, graphGrid } from "../src/graph.ts";
import { everyThread, modelOf, type Model } from "../src/model.ts";
import { stretchesOf } from "../src/stretches.ts";
import type { Track } from "../src/recording.ts";
import { matchedTime, matcher } from "../src/search.ts";
import { heights, stateTimes, rateTimes } from "../src/sums.ts";
import { modelIn, small, training, workers } from "./samples.ts";

const ms = 1000;

/** functions are times in milliseconds by name. */
const functions = (m: Model, from: number, to: number) =>
  Object.fromEntries(
    [...m.functions(from * ms, to * ms)].map(([fn, t]) => [m.recording.fns[fn]!.name, [t.self / ms, t.total / ms]]),
  );

test("functions have their own time and that with callees; recursion counts once", () => {
  const m = modelOf(
    small(
      [0, 0, 10, "a.py:user.f>a.py:user.g"],
      [0, 10, 15, "a.py:user.f"],
      [0, 15, 20, "a.py:user.f>a.py:user.g>a.py:user.f"],
    ),
  )!;
  expect(functions(m, 0, 20)).toEqual({ f: [10, 20], g: [10, 15] });
});

test("a range cuts the spans at its ends", () => {
  const m = modelOf(small([0, 0, 10, "a.py:user.f>a.py:user.g"], [0, 10, 20, "a.py:user.f"]))!;
  expect(functions(m, 5, 12)).toEqual({ f: [2, 7], g: [5, 5] });
});

test("other threads' waiting does not count, the cell's own does", () => {
  const m = modelOf(
    small([0, 0, 10, "a.py:user.main", 2], [1, 0, 8, "a.py:user.park", 2], [1, 8, 10, "a.py:user.work", 4]),
  )!;
  expect(functions(m, 0, 10)).toEqual({ main: [10, 10], work: [2, 2] });
});

test("threads are divided by what they did", () => {
  const m = modelOf(small([0, 0, 4, "a.py:user.f"], [0, 4, 10, "a.py:user.f", 4], [0, 12, 14, "a.py:user.f", 2]))!;
  expect([...stateTimes(m.recording, m.main!, 2 * ms, 13 * ms)].map((us) => us / ms)).toEqual([2, 0, 1, 0, 6, 0, 0]);
});

test("lines add up to the time of the thread, the innermost own one counts", () => {
  const m = modelOf(
    small(
      [0, 0, 6, "Cell [1]:cell.f@3>x/site-packages/lib/a.py:other.g@9"],
      [0, 6, 10, "Cell [1]:cell.f@3>Cell [1]:cell.h@5"],
    ),
  )!;
  expect(m.lines(0, 10 * ms).map((l) => [l.place.line, l.self / ms])).toEqual([
    [3, 6],
    [5, 4],
  ]);
});

test("in a part of the recording busy and idle add up, and idle time is charged to the lines of its causes", () => {
  const m = modelIn(training);
  for (const [from, to] of [
    [3e6, 4.7e6],
    [5.05e6, 7e6],
  ] as const) {
    const [product, known] = rateTimes(m.recording.activity[0]!, from, to);
    expect(idleTime(m.recording, from, to) + product / 100).toBeCloseTo(known, 3);
    const lines = m.lines(from, to);
    const shares = idleShares(m.recording, from, to);
    const add = (list: number[]) => list.reduce((a, us) => a + us, 0);
    expect(add(shares.map(([, us]) => us))).toBeCloseTo(idleTime(m.recording, from, to), 0);
    const placed = shares.filter(([cause]) => cause?.place);
    expect(placed.length).toBeGreaterThan(0);
    expect(add(lines.map((l) => l.idle))).toBeCloseTo(add(placed.map(([, us]) => us)), 3);
    const busy = lines.reduce((a, l) => a + l.self, 0);
    expect(Math.abs(busy - (to - from)), `${from}`).toBeLessThan(2e3);
  }
});

test("windows that are idle in part count with that part, and have no cause", () => {
  const m = modelIn(training);
  const half = { ...m.recording.activity[0]!, at: new Float64Array([100, 200]), level: new Float64Array([50, 50]) };
  const recording = { ...m.recording, activity: [half], idle: [] };
  expect(idleTime(recording, 0, 200)).toBe(100);
  expect(idleShares({ ...recording, causes: [] }, 0, 200)).toEqual([[null, 100]]);
});

test("over the whole recording the report's own figures hold", () => {
  const m = modelIn(workers);
  const want = (workers.document["lines"] as { self_ns: number }[]).map((l) => l.self_ns / 1000).sort((a, b) => b - a);
  expect(m.lines(0, m.recording.duration).map((l) => l.self)).toEqual(want);
});

const track = (kind: string, at: number[], level: number[]): Track => ({
  isActivity: false,
  resident: false,
  rate: kind === "rate",
  unit: "",
  at: new Float64Array(at),
  level: new Float64Array(level),
  device: -1,
});

test("a rate's value holds over the time before it, and a column has the mean", () => {
  const t = track("rate", [10, 20, 30, 40], [1, 3, NaN, 5]);
  expect([...heights(t, 0, 40, 4)]).toEqual([1, 3, NaN, 5]);
  expect([...heights(t, 0, 40, 2)]).toEqual([2, 5]);
  expect([...heights(t, 5, 15, 1)]).toEqual([2]);
  expect([...heights(t, 40, 60, 1)]).toEqual([NaN]);
});

test("a gauge's value holds over the time before it, and a column has the largest", () => {
  const t = track("gauge", [0, 10, 20], [0, 10, 4]);
  expect([...heights(t, 0, 20, 2)]).toEqual([10, 4]);
  expect([...heights(t, 0, 20, 20)].slice(0, 4)).toEqual([10, 10, 10, 10]);
  expect([...heights(t, 12, 14, 1)]).toEqual([4]);
});

test("stretches are in order and joined", () => {
  expect(stretchesOf([[5000, 7000], [1000, 2000], [2000, 3000], [9, 3], ["x"], null, [6000, 1e12]], 100)).toEqual([
    1, 3, 5, 100,
  ]);
});

test("the flame graph merges stacks, the upside-down one who name what is hot", () => {
  const m = modelOf(
    small([0, 0, 6, "a.py:user.f>a.py:user.g"], [0, 6, 8, "a.py:user.h>a.py:user.g"], [0, 8, 12, "a.py:user.f"]),
  )!;
  const t = m.tree(false);
  const sums = m.sums(false, everyThread, 0, 12 * ms);
  const names = (g: ReturnType<typeof callers>, box: number) =>
    g.below(box).map((b) => [t.fns[g.fn[b]!]!.name, g.weight[b]! / ms]);
  const down = callees(t, sums);
  expect(names(down, 0)).toEqual([
    ["f", 10],
    ["h", 2],
  ]);
  expect(names(down, down.below(0)[0]!)).toEqual([["g", 6]]);
  const up = callers(t, sums);
  expect(names(up, 0)).toEqual([
    ["g", 8],
    ["f", 4],
  ]);
  expect(names(up, up.below(0)[0]!)).toEqual([
    ["f", 6],
    ["h", 2],
  ]);
  const who = callers(
    t,
    sums,
    t.fns.findIndex((f) => f.name === "f"),
  );
  expect(who.weight[0]! / ms).toBe(10);
});

test("a graph's boxes share its width by their weight, and a box can fill it", () => {
  const m = modelOf(small([0, 0, 6, "a.py:user.f>a.py:user.g"], [0, 6, 8, "a.py:user.h"]))!;
  const t = m.tree(false);
  const g = callees(t, m.sums(false, everyThread, 0, 8 * ms));
  const whole = graphGrid(g, 0, 8, 10);
  expect([...whole.cells]).toEqual([1, 1, 1, 1, 1, 1, 3, 3, 2, 2, 2, 2, 2, 2, 0, 0]);
  expect([...graphGrid(g, 2, 4, 10).cells]).toEqual([1, 1, 1, 1, 2, 2, 2, 2]);
});

test("search finds by regular expression, nothing where it is none, and adds up without counting twice", () => {
  const m = modelOf(
    small([0, 0, 6, "a.py:user.load>a.py:user.decode"], [0, 6, 8, "a.py:user.other"], [0, 8, 10, "b.py:user.load_all"]),
  )!;
  const share = (query: string) =>
    matchedTime(m.found(query, false)!, m.sums(false, everyThread, 0, 10 * ms).self) / ms;
  expect(share("load|decode")).toBe(8);
  expect(share("^decode$")).toBe(6);
  expect(share("LOAD_")).toBe(2);
  expect(share("b\\.py")).toBe(2);
  expect(share("load(")).toBe(0);
  expect(share("[")).toBe(0);
  expect(m.found("", false)).toBe(null);
  expect([matcher("load(") === undefined, matcher("load") === undefined]).toEqual([true, false]);
});

test("the places of a search are stretches of the program, a call in a row is one", () => {
  const m = modelOf(
    small(
      [0, 0, 2, "a.py:user.load"],
      [0, 2, 3, "a.py:user.load>a.py:user.decode"],
      [0, 3, 6, "a.py:user.step"],
      [0, 7, 8, "a.py:user.load"],
    ),
  )!;
  expect(m.places("load")).toEqual([0, 3 * ms, 7 * ms, 8 * ms]);
  expect(m.places("nothing")).toEqual([]);
  expect(m.places("(")).toEqual([]);
});

test("a search finds what a folded call stands for, in it", () => {
  const site = "~/v/lib/python3.12/site-packages/json/";
  const m = modelOf(
    small(
      [0, 0, 4, `Cell [1]:cell.f>${site}a.py:other.loads>${site}b.py:other.decode`],
      [0, 4, 6, "Cell [1]:cell.f>~/b.py:user.g"],
    ),
  )!;
  const t = m.tree(true);
  const found = m.found("decode", true)!;
  const [f, loads, g] = [1, t.of[m.recording.node[0]!]!, t.of[m.recording.node[1]!]!];
  expect([0, f, loads, g].map((n) => found.nodes[n])).toEqual([0, 0, 1, 0]);
});
