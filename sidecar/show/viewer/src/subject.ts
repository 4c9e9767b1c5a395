// Whom a report is about, and which of its processes belong together: what the report says.

import { first, index, object, objects, string, type Json } from "./json.ts";
import { mostRows } from "./limits.ts";
import { clean } from "./words.ts";

/** Subject is whom a report is about. Processes and threads are indices in the document's lists; -1: none is known. */
export interface Subject {
  program: unknown; // the process whose lines are the report's own
  thread: number; // its stacks are the flame chart
  threads: Set<unknown>; // those that run the program's code
}

/** Pool is the workers of one role that work for one process, or the runs of one program. */
export interface Pool {
  name: string; // "2 ranks"
  members: number[]; // processes
}

/** subjectOf reads the subject. */
export function subjectOf(row: Json, threads: Json[]): Subject {
  const subject = object(row["subject"]);
  const runs = new Set(first(subject["threads"], mostRows.threads));
  return { program: subject["program"], thread: index(subject["thread"], threads.length), threads: runs };
}

/** poolsOf reads the pools; a process is in one. */
export function poolsOf(row: Json): Pool[] {
  const pooled = new Set<number>([-1]);
  return objects(first(row["pools"], mostRows.pools)).map((pool) => ({
    name: clean(string(pool["text"]), 60),
    members: first(pool["members"], mostRows.processes)
      .map((member) => index(member, mostRows.processes))
      .filter((member) => !pooled.has(member) && pooled.add(member)),
  }));
}
