import { expect, test } from "vitest";
import { compared, comparisonOf, identity } from "../src/compare.ts";
import { mutate, randomOf } from "./payloads.ts";
import { small } from "./samples.ts";

const chart = { width: 1120, plot: [100, 50, 1000, 60] };
const pair = (a: Record<string, unknown>, b: Record<string, unknown>, more = {}) => ({
  before: a,
  after: b,
  chart,
  ...more,
});

test("boxes of the second recording know the first one's time, though cells change their numbers", () => {
  const c = comparisonOf(
    pair(
      small([0, 0, 10, "Cell [7]:cell.<module>>a.py:user.load"], [0, 10, 12, "Cell [7]:cell.<module>>a.py:user.gone"]),
      small([0, 0, 4, "Cell [9]:cell.<module>>a.py:user.load@9"], [0, 4, 5, "Cell [9]:cell.<module>>a.py:user.new"]),
    ),
  )!;
  const g = compared(c, false);
  const t = c.after.tree(false);
  const times = Object.fromEntries(
    [1, 2, 3].map((n) => [t.fns[t.fn[n]!]!.name, [g.was[n]! / 1000, g.weight[n]! / 1000]]),
  );
  expect(times).toEqual({ "Cell [9]": [12, 5], load: [10, 4], new: [0, 1] });
});

test("functions are one where the document numbers them so, whatever they are name", () => {
  const [a, b] = [
    small([0, 0, 10, "a.py:user.<module>>a.py:user.load"]),
    small([0, 0, 4, "b.py:user.<module>>b.py:user.read"]),
  ];
  const was = (same: unknown) => compared(comparisonOf(pair(a, b, { same }))!, false).was.slice(1);
  expect(
    was([
      [7, 8],
      [7, 8],
    ]),
  ).toEqual([10000, 10000]);
  expect(
    was([
      [7, 8],
      [7, 9],
    ]),
  ).toEqual([10000, 0]);
  expect(was(undefined)).toEqual([0, 0]);
  expect(was([{}, "x", 5])).toEqual([0, 0]);
});

test("functions of one name in two files are two", () => {
  const c = comparisonOf(pair(small([0, 0, 1, "a.py:user.f"]), small([0, 0, 1, "b.py:user.f"])))!;
  expect(identity(c.before.recording.fns[0]!) === identity(c.after.recording.fns[0]!)).toBe(false);
});

test("changes are read with their bounds; an unknown verdict is within noise", () => {
  const changes = {
    lines: [
      { name: "x", before_ns: 5e6, after_ns: 2e6, low_ns: -4e6, high_ns: -2e6, verdict: "less" },
      { verdict: "magic", low_ns: "x" },
      null,
    ],
  };
  const c = comparisonOf(pair(small([0, 0, 1, "a.py:user.f"]), small([0, 0, 1, "a.py:user.f"]), changes))!;
  expect(c.lines.map((v) => [v.before, v.low, v.high, v.verdict])).toEqual([
    [5000, -4000, -2000, "less"],
    [0, 0, 0, ""],
    [0, 0, 0, ""],
  ]);
});

test("5,000 comparisons with other values in them", () => {
  const random = randomOf(9);
  const d = pair(small([0, 0, 10, "Cell [7]:cell.f>a.py:user.g"]), small([0, 0, 4, "Cell [9]:cell.f>a.py:user.g"]), {
    lines: [{ name: "x", before_ns: 1, after_ns: 2, low_ns: 0, high_ns: 1, verdict: "more", function: 0 }],
  });
  let read = 0;
  for (let i = 0; i < 5000; i++) {
    const c = comparisonOf(mutate(d, random));
    if (!c) continue;
    compared(c, i % 2 === 0);
    read++;
  }
  expect(read).toBeGreaterThan(2000);
});

test("what is no comparison is refused", () => {
  for (const d of [null, {}, small([0, 0, 1, "a.py:user.f"]), { before: 1, after: 2 }])
    expect(comparisonOf(d) === null || !comparisonOf(d)!.before.recording.begin.length).toBe(true);
});
