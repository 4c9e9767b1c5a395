// Two recordings side by side.

import { callees, type Graph } from "./graph.ts";
import { amount, index, list, object, objects, string, type Json } from "./json.ts";
import { chartOf } from "./lanes.ts";
import { cellThread, modelOf, type Model } from "./model.ts";
import type { Func } from "./recording.ts";
import type { CallTree } from "./tree.ts";
import { clean } from "./words.ts";

/** Verdicts on a change; what is none of these is within noise. */
export const verdicts = ["less", "more", "new", "gone"];

/** Change is how something differs between two recordings; times are microseconds. */
export interface Change {
  called: string;
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

const signed = (v: unknown): number => (typeof v === "number" && Math.abs(v) < 1e300 ? v / 1000 : 0);

const changeOf = (c: Json): Change => ({
  called: clean(string(c["name"])),
  before: amount(c["before_ns"]) / 1000,
  after: amount(c["after_ns"]) / 1000,
  low: signed(c["low_ns"]),
  high: signed(c["high_ns"]),
  verdict: verdicts.includes(string(c["verdict"])) ? string(c["verdict"]) : "",
  fn: index(c["function"], 1e9),
  place: clean(string(c["place"])),
  code: clean(string(c["code"])),
});

/** comparisonOf reads a document; null where it is none. */
export function comparisonOf(document: unknown): Comparison | null {
  const d = object(document);
  const chart = chartOf(d);
  const [before, after] = [modelOf(d["before"], chart), modelOf(d["after"], chart)];
  const changes = (name: string) => objects(list(d[name])).map(changeOf);
  return before && after && { before, after, whole: changes("whole"), lines: changes("lines"), functions: changes("functions"), causes: changes("causes"), steps: changes("steps"), same: list(d["same"]).map(list) };
}

/** identity is what makes a function of one recording the same as one of the other where no number tells: cells change their numbers, lines move. */
export const identity = (f: Func): string => (f.file.isCell ? "" : f.file.path) + "\n" + (f.place ? f.called : "");

/** Compared is the flame graph of the second recording, with the first one's time of each box. */
export interface Compared extends Graph {
  was: number[];
}

/** compared lays the second recording's flame graph over the first one's; boxes that went away are not in it. */
export function compared({ before, after, same }: Comparison, folded: boolean): Compared {
  const [a, b] = [before, after].map((m) => ({ t: m.tree(folded), sums: m.sums(folded, cellThread, 0, m.r.duration) }));
  const children = new Map<string, number>();
  const old = a!.t;
  const who = (side: number, t: CallTree, n: number) => same[side]?.[t.fn[n]!] ?? identity(t.fns[t.fn[n]!]!);
  for (let n = 1; n < old.above.length; n++) children.set(old.above[n] + "\n" + who(0, old, n), n);
  const t = b!.t;
  const twin = [0];
  const was = [a!.sums.total[0]!];
  for (let n = 1; n < t.above.length; n++) {
    twin[n] = children.get(twin[t.above[n]!] + "\n" + who(1, t, n)) ?? -1;
    was[n] = twin[n]! < 0 ? 0 : a!.sums.total[twin[n]!]!;
  }
  return { ...callees(t, b!.sums), was };
}
