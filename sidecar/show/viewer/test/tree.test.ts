import { expect, test } from "vitest";
import { modelOf } from "../src/model.ts";
import { labelsOf, mostDepth, type CallTree } from "../src/tree.ts";
import { small } from "./samples.ts";

const site = "~/venv/lib/python3.12/site-packages/";

/** path is a stack of a tree, outermost call first. */
const path = (t: CallTree, n: number): string =>
  n > 0 ? [path(t, t.above[n]!), t.fns[t.fn[n]!]!.name].filter(Boolean).join(" > ") : "";

/** stacks are those of a document's spans, in order. */
function stacks(folded: boolean, ...of: string[]): string[] {
  const m = modelOf(small(...of.map((s, i): [number, number, number, string] => [0, i, i + 1, s])))!;
  const t = m.tree(folded);
  return of.map((_, i) => path(t, t.of[m.recording.node[i]!]!));
}

test("lines do not matter, direct recursion counts once", () => {
  expect(
    stacks(
      false,
      "Cell [1]:cell.f@1",
      "Cell [1]:cell.f@2",
      "Cell [1]:cell.f>Cell [1]:cell.f@7>Cell [1]:cell.f>Cell [1]:cell.g",
    ),
  ).toEqual(["f", "f", "f > g"]);
  const m = modelOf(small([0, 0, 1, "a.py:user.f>a.py:user.f>a.py:user.f"]))!;
  const t = m.tree(false);
  expect(labelsOf(t, t.of[m.recording.node[0]!]!)[1]).toBe("f ×3");
});

test("folded, a package's modules are imported with it", () => {
  const module = (path: string, name: string) => `${site}${path}.py:other.import ${name}`;
  expect(
    stacks(
      true,
      `Cell [1]:cell.<module>>${module("scipy/__init__", "scipy")}>${module("scipy/stats/__init__", "scipy.stats")}>${site}scipy/stats/_a.py:other.make`,
      `Cell [1]:cell.<module>>${module("scipy/__init__", "scipy")}>${module("numpy/__init__", "numpy")}>${module("numpy/core", "numpy.core")}`,
    ),
  ).toEqual(["Cell [1] > import scipy", "Cell [1] > import scipy > import numpy"]);
});

test("folded, a call into a library stands for all it calls within its package", () => {
  const torch = (name: string) => `${site}torch/nn/modules.py:framework.${name}`;
  expect(
    stacks(
      true,
      `Cell [1]:cell.train>${torch("_call_impl")}>${torch("_inner")}>Cell [1]:cell.forward>${torch("linear")}>${site}numpy/a.py:framework.dot`,
      `Cell [1]:cell.train>${torch("backward")}>${torch("_engine")}`,
    ),
  ).toEqual(["train > _call_impl > forward > linear > dot", "train > backward"]);
});

test("the user's own modules never fold", () => {
  expect(stacks(true, "~/a.py:user.f>~/a.py:user.g>~/b.py:user.h")).toEqual(["f > g > h"]);
});

test("stacks are as deep as they may be", () => {
  const deep = Array.from({ length: 900 }, (_, i) => `a.py:user.f${i % 2}`).join(">");
  const m = modelOf(small([0, 0, 1, deep]))!;
  const t = m.tree(false);
  expect(t.depth[t.of[m.recording.node[0]!]!]!).toBe(mostDepth);
});

test("recursion is known by the outermost call", () => {
  const m = modelOf(small([0, 0, 1, "a.py:user.f>a.py:user.g>a.py:user.f>a.py:user.g"]))!;
  expect([...m.tree(false).outer]).toEqual([1, 1, 1, 0, 0]);
});
