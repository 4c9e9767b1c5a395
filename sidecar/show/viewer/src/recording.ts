// A recording, as the viewer has it: columns that need no more checks. reading.ts makes it of a document.

import type { Pool } from "./subject.ts";
import { computes, State } from "./generated.ts";
import type { Json } from "./json.ts";
import type { Stretches } from "./stretches.ts";

// Times are microseconds since the document's origin, unless a name says otherwise.

/** waits reports whether a state is hatched: the thread had no CPU, and why is known. */
export const waits = (state: number): boolean => !computes[state] && state !== State.unknown;

export interface SourceFile {
  nth: number; // in the document's list; -1 for no file
  path: string;
  code: number;
  pkg: string;
  source: string[] | null;
  isCell: boolean;
}

export interface Func {
  name: string; // its name
  file: SourceFile;
  line: number; // the first
  code: number;
  place: string; // "train.py:12"; empty for a module's own code, whose name says the file
}

/** Place is a line of a file. */
export interface Place {
  file: SourceFile;
  line: number;
}

/** keyOf is the same for the same line. */
export const keyOf = ({ file, line }: Place): string => file.nth + ":" + line;

export interface Thread {
  name: string;
  process: number; // in the document's list; -1: unknown
  begin: number; // index of its first span
  end: number; // of the one after its last
  main: boolean; // of the program's process
  runs: boolean; // it runs the program's code
  internal: boolean;
  atWork: boolean; // it does its process's work
}

export interface Track {
  isActivity: boolean; // whether the device did anything
  rate: boolean;
  resident: boolean; // it is the target's resident memory
  unit: string;
  at: Float64Array;
  level: Float64Array; // NaN: unknown
  device: number;
}

/** Remark is a cause of idle time, or a finding: what, why, where, and when it shows. */
export interface Remark {
  text: string;
  hint: string;
  us: number; // idle for it, or what it could save
  low: number; // NaN: exact
  high: number;
  serious: boolean;
  place: Place | null;
  evidence: Stretches;
}

/** Gap is a stretch in which a process's stacks are unknown, and why. */
export interface Gap {
  process: number;
  begin: number;
  end: number;
  text: string;
}

export interface DeviceIdle {
  device: number;
  stretches: Stretches;
}

export interface Step {
  begin: number;
  end: number;
  name: string;
  loading: number;
  busy: number; // NaN: unknown
  phases: Json; // nanoseconds by phase of a training
}

/** LineTime is the time for which a line was the user's innermost, and what of it a GPU was idle for. */
export interface LineTime {
  place: Place;
  self: number;
  idle: number;
  shares: Float64Array; // of self, by state
  freeing?: string | undefined; // over the whole recording: what of self was freeing what a function had held
}

/** Growth is what the target's resident memory grew by in a line, and when most of it did. */
export interface Growth {
  place: Place;
  bytes: number;
  evidence: Stretches;
}

/** Worker is a process beside the target's, with the user's own lines that it worked at over the whole recording. */
export interface Worker {
  process: number;
  name: string; // "rank 1"
  lines: LineTime[];
}

/** Spans are columns of what ran from when to when; of each thread in order, none over another. */
export interface Spans {
  begin: Float64Array;
  end: Float64Array;
  node: Int32Array;
  state: Uint8Array;
}

/** Stream is what one stream of a device ran, where a trace has it. Its spans' nodes are kernels. */
export interface Stream extends Spans {
  kernels: string[];
  joined: unknown[]; // by span: of how many kernels it is the longest
  launch: unknown[]; // by span: the nanoseconds from the begin of the call that queued it
  launcher: unknown[]; // by span: the thread that called
}

export interface Recording extends Spans {
  duration: number;
  cell: number; // its file, in the document's list; -1: no cell was recorded
  fns: Func[];
  // The stack tree: node 0 is the empty stack, a parent precedes its children.
  above: Int32Array;
  fnOf: Int32Array;
  lineOf: Int32Array;
  threads: Thread[];
  subject: Thread | undefined; // its stacks are the flame chart
  tracks: Track[];
  activity: Track[]; // of each device in use, in percent
  gpu: boolean; // a device was used, and its idle time is known
  idle: Stretches; // every used device idle at once
  causes: Remark[];
  deviceIdle: DeviceIdle[];
  steps: Step[]; // of the process that leads
  stepsCut: boolean; // only the first ones are there
  lines: LineTime[]; // of the target
  growth: Growth[];
  findings: Remark[];
  workers: Worker[];
  pools: Pool[];
  gaps: Gap[];
  streams: Stream[];
  cut: Set<unknown>; // spans whose stack could not be read to its end
  leftOut: string[]; // what is in the document and not here
}
