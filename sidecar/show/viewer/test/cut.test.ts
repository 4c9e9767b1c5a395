import { expect, test } from "vitest";
import { cutFunctions, cutLines, cutWords } from "../src/cut.ts";
import { modelOf } from "../src/model.ts";
import { small } from "./samples.ts";

const ms = 1000;

/** document has a line that calls, twice with its callee cut, and a line that does not. */
function document(...incomplete: unknown[]): Record<string, unknown> {
  const d = small(
    [0, 0, 6, "Cell [1]:cell.f@3"],
    [0, 6, 10, "Cell [1]:cell.f@3>site-packages/lib/a.py:other.g@9"],
    [0, 10, 14, "Cell [1]:cell.f@5"],
    [1, 0, 4, "Cell [1]:cell.f@3"],
  );
  (d["spans"] as Record<string, unknown>)["incomplete"] = incomplete;
  return d;
}

test("what was cut is charged to the innermost own line and to the function at the leaf", () => {
  const m = modelOf(document(0, 1, 3))!;
  const lines = cutLines(m, 0, 14 * ms);
  expect(m.lines(0, 14 * ms).map((l) => [l.place.line, l.self / ms, lines(l.place) / ms])).toEqual([
    [3, 10, 10],
    [5, 4, 0],
  ]);
  const functions = cutFunctions(m, 0, 14 * ms);
  expect(Object.fromEntries([...functions].map(([fn, us]) => [m.recording.fns[fn]!.name, us / ms]))).toEqual({
    f: 10,
    g: 4,
  });
});

test("a range has its own part", () => {
  const m = modelOf(document(0, 1))!;
  const lines = cutLines(m, 5 * ms, 8 * ms);
  const line = m.lines(5 * ms, 8 * ms).find((l) => l.place.line === 3)!;
  expect([line.self / ms, lines(line.place) / ms]).toEqual([3, 3]);
  expect([...cutFunctions(m, 5 * ms, 8 * ms).values()]).toEqual([1 * ms, 2 * ms]);
});

test("stray cut stacks are no news", () => {
  expect(cutWords(100 * ms, 4 * ms)).toBe("");
  expect(cutWords(100 * ms)).toBe("");
  expect(cutWords(1000 * ms, 800 * ms)).toBe("of it 0.80 s with its callee cut");
  expect(cutWords(100 * ms, 300 * ms)).toBe("of it 0.10 s with its callee cut"); // others' waiting is none of its time
});

test("indices that are none cut nothing", () => {
  const m = modelOf(document(-1, 99, "0", null, {}))!;
  expect([...cutFunctions(m, 0, 14 * ms)]).toEqual([]);
  const none = small([0, 0, 6, "a.py:user.f"]);
  expect([...cutFunctions(modelOf(none)!, 0, 6 * ms)]).toEqual([]);
});
