import { expect, test } from "vitest";
import { poolLinesOf, splitWords } from "../src/poollines.ts";
import { modelOf } from "../src/model.ts";
import { small } from "./samples.ts";

const ms = 1000;

/** launcher is a target without lines of its own, with two ranks and another program, in milliseconds. */
function launcher(): Record<string, unknown> {
  const d = small(
    [0, 0, 20, "x/site-packages/torch/run.py:other.wait", 2],
    [1, 0, 8, "train.py:user.main@3"],
    [1, 8, 12, "train.py:user.main@5", 2], // waits for the other rank
    [1, 12, 20, "train.py:user.main@7"],
    [2, 0, 16, "train.py:user.main@3"],
    [2, 16, 20, "train.py:user.main@7"],
    [3, 0, 4, "serve.py:user.main@2"],
  );
  const line = (process: number, file: number, line: number, time: number) => ({
    process,
    file,
    line,
    self_ns: time * 1e6,
    total_ns: time * 1e6,
    idle_ns: 0,
    state_ns: [time * 1e6, 0, 0, 0, 0, 0, 0],
  });
  return {
    ...d,
    threads: [0, 1, 2, 3].map((process) => ({ name: "", process, main: true, runs_cell: process === 0 })),
    targets: [{ process: 0 }],
    subject: { process: 1, thread: 1, program: 0, threads: [0], why: "leading-rank" },
    pools: [{ role: "rank", owner: 0, members: [1, 2], text: "2 ranks" }],
    processes: ["torchrun", "rank 0", "rank 1", "serve.py"].map((text) => ({ text })),
    lines: [line(1, 1, 3, 8), line(1, 1, 7, 8), line(2, 1, 3, 16), line(2, 1, 7, 4), line(3, 2, 2, 4)],
  };
}

const poolLines = (from: number, to: number, whole: boolean) =>
  poolLinesOf(modelOf(launcher())!, from * ms, to * ms, whole).map((c) => [
    c.name,
    ...c.lines.map((l) => `${l.place.file.path}:${l.place.line} ${l.self / ms} ms: ${splitWords(l)}`),
  ]);

test("a launcher has no lines of its own, its ranks have", () => {
  expect(modelOf(launcher())!.lines(0, 20 * ms)).toEqual([]);
  expect(poolLines(0, 20, true)).toEqual([
    ["2 ranks", "train.py:3 24 ms: rank 1 16 ms · rank 0 8.0 ms", "train.py:7 12 ms: rank 0 8.0 ms · rank 1 4.0 ms"],
    ["serve.py", "serve.py:2 4 ms: serve.py"],
  ]);
});

test("the flame chart is of the rank that explains the launcher", () => {
  const m = modelOf(launcher())!;
  expect([m.recording.threads.indexOf(m.main!), m.recording.threads.map((t) => t.runs)]).toEqual([
    1,
    [true, false, false, false],
  ]);
});

test("pools of one role and two owners are two, and a name that ends with a number makes none", () => {
  const d = launcher();
  const pools = [
    { role: "loader-worker", owner: 0, members: [1], text: "DataLoader worker 0" },
    { role: "loader-worker", owner: 3, members: [2], text: "DataLoader worker 0" },
  ];
  const sums = poolLinesOf(
    modelOf({
      ...d,
      pools,
      processes: ["torchrun", "DataLoader worker 0", "DataLoader worker 0", "http 8080"].map((text) => ({ text })),
    })!,
    0,
    20 * ms,
    true,
  );
  expect(sums.map((c) => [c.name, c.several])).toEqual([
    ["DataLoader worker 0", false],
    ["DataLoader worker 0", false],
    ["http 8080", false],
  ]);
});

test("in a stretch they are summed anew, and waiting counts for no line", () => {
  expect(poolLines(6, 14, false)).toEqual([
    ["2 ranks", "train.py:3 10 ms: rank 1 8.0 ms · rank 0 2.0 ms", "train.py:7 2 ms: rank 0"],
  ]);
});

test("of many processes the most and the least are named", () => {
  const by = [9, 7, 5, 3, 1].map((us, i): [string, number] => ["pool worker " + i, us * ms]);
  expect(splitWords({ by } as never)).toBe("pool worker 0 9.0 ms … pool worker 4 1.0 ms");
});
