// Two recordings side by side.

import { verdicts } from "./generated.ts";
import { callees, type Graph } from "./graph.ts";
import { amount, index, list, object, objects, string, type Json } from "./json.ts";
import { chartOf } from "./lanes.ts";
import { cellThread, modelOf, type Model } from "./model.ts";
import type { Func } from "./recording.ts";
import type { CallTree } from "./tree.ts";
import { abs } from "./math.ts";
import { clean } from "./words.ts";

/** Change is how something differs between two recordings; times are microseconds. */
export interface Change {
  name: string;
  before: number;
  after: number;
  low: number; // of the change, with its sign
  high: number;
  verdict: string; // "" is within noise
  fn: number; // of the second recording; -1: it is none
  place: string;
  code: string;
}

/** Comparison is the document of two recordings: their reports, and what differs. */
export interface Comparison {
  before: Model;
  after: Model;
  whole: Change[];
  lines: Change[];
  functions: Change[];
  causes: Change[];
  steps: Change[];
  same: unknown[][]; // numbers of both recordings' functions: equal ones are one function
}

const signed = (v: unknown): number => (typeof v === "number" && abs(v) < 1e300 ? v / 1000 : 0);

const changeOf = (row: Json): Change => ({
  name: clean(string(row["name"])),
  before: amount(row["before_ns"]) / 1000,
  after: amount(row["after_ns"]) / 1000,
  low: signed(row["low_ns"]),
  high: signed(row["high_ns"]),
  verdict: verdicts.find((verdict) => verdict === row["verdict"]) || "",
  fn: index(row["function"], 1e9),
  place: clean(string(row["place"])),
  code: clean(string(row["code"])),
});

/** comparisonOf reads a document; null where it is none. */
export function comparisonOf(document: unknown): Comparison | null {
  const row = object(document);
  if (!row["before"] || !row["after"]) return null;
  const chart = chartOf(row);
  const [before, after] = [modelOf(row["before"], chart), modelOf(row["after"], chart)];
  const changes = (name: string) => objects(list(row[name])).map(changeOf);
  return (
    before &&
    after && {
      before,
      after,
      whole: changes("whole"),
      lines: changes("lines"),
      functions: changes("functions"),
      causes: changes("causes"),
      steps: changes("steps"),
      same: list(row["same"]).map(list),
    }
  );
}

/**
 * identity is what makes a function of one recording the same as one of the other, where it has no number that says so:
 * cells change their numbers, lines move.
 */
export const identity = (func: Func): string =>
  (func.file.isCell ? "" : func.file.path) + "\n" + (func.place ? func.name : "");

/** Compared is the flame graph of the second recording, with the first one's time of each box. */
export interface Compared extends Graph {
  was: number[];
}

/** compared lays the second recording's flame graph over the first one's; boxes that went away are not in it. */
export function compared({ before, after, same }: Comparison, folded: boolean): Compared {
  const [a, b] = [before, after].map((model) => ({
    t: model.tree(folded),
    sums: model.sums(folded, cellThread, 0, model.recording.duration),
  }));
  const children = new Map<string, number>();
  const old = a!.t;
  const who = (side: number, tree: CallTree, n: number) =>
    same[side]?.[tree.fn[n]!] ?? identity(tree.fns[tree.fn[n]!]!);
  for (let n = 1; n < old.above.length; n++) children.set(old.above[n] + "\n" + who(0, old, n), n);
  const calls = b!.t;
  const twin = [0];
  const was = [a!.sums.total[0]!];
  for (let n = 1; n < calls.above.length; n++) {
    twin[n] = children.get(twin[calls.above[n]!] + "\n" + who(1, calls, n)) ?? -1;
    was[n] = twin[n]! < 0 ? 0 : a!.sums.total[twin[n]!]!;
  }
  return { ...callees(calls, b!.sums), was };
}
