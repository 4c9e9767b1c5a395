// The report document (version 2) as columns that need no more checks.

import { floats, ints, max, min } from "./brief.ts";
import { amount, first, index, known, list, object, objects, string, type Json } from "./json.ts";
import { mostNodes, mostRows, type Rows } from "./limits.ts";
import { clean, count, shortFile } from "./words.ts";

// Times are microseconds since the document's origin, unless a name says otherwise.

/** states in the order of this program, whatever the document's; each is an index into this list. */
const states = ["python", "native", "waiting", "io", "gil", "off", "unknown"];
export const stateCount = 7;
/** computes tells the states in which a thread had a CPU. */
export const computes = (state: number): boolean => state < 2;
/** waits tells the states that are hatched. */
export const waits = (state: number): boolean => state > 1 && state < 6;
/** idleStates are waiting, no free CPU and unknown, as Go's State.Idle: of threads that do not run the cell they count for nothing. */
export const idleStates = [2, 5, 6];

/** codes are whose code a function is, which is its colour; the first two are the user's own. */
const codes = ["cell", "user", "data", "framework", "device", "io", "picture", "other"];
export const codeCount = 8;
export const otherCode = 7;
export const isOwn = (code: number): boolean => code < 2;

export interface SourceFile {
  nth: number; // in the document's list; -1 for no file
  path: string;
  code: number;
  pkg: string;
  source: string[] | null;
  isCell: boolean;
}

export interface Func {
  called: string; // its name
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

export interface Thread {
  called: string;
  process: number; // in the document's list; -1: unknown
  begin: number; // index of its first span
  end: number; // of the one after its last
  main: boolean; // of the target's process
  runsCell: boolean;
  internal: boolean;
}

export interface Track {
  rate: boolean;
  unit: string;
  at: Float64Array;
  level: Float64Array; // NaN: unknown
  device: number;
}

/** Stretches are pairs of start and end, in order, none over another. */
export type Stretches = number[];

/** Remark is a cause of idle time, or a finding: what, why, where, and when it shows. */
export interface Remark {
  says: string;
  hint: string;
  us: number; // idle for it, or what it could save
  low: number; // NaN: exact
  high: number;
  serious: boolean;
  place: Place | null;
  evidence: Stretches;
}

/** Gap is a stretch in which a process's stacks tell nothing, and why. */
export interface Gap {
  process: number;
  begin: number;
  end: number;
  says: string;
}

export interface DeviceIdle {
  device: number;
  stretches: Stretches;
}

export interface Step {
  begin: number;
  end: number;
  called: string;
  loading: number;
  busy: number; // NaN: unknown
}

/** LineTime is the time for which a line was the user's innermost, and what of it a GPU was idle for. */
export interface LineTime {
  place: Place;
  self: number;
  idle: number;
  shares: Float64Array; // of self, by state
}

/** Worker is a process beside the target's, with the lines of the user's own that it worked at over the whole recording. */
export interface Worker {
  process: number;
  called: string; // "rank 1"
  lines: LineTime[];
}

/** Spans are columns of what ran from when to when; of each thread in order, none over another. */
export interface Spans {
  begin: Float64Array;
  end: Float64Array;
  node: Int32Array;
  state: Uint8Array;
}

/** Stream is what one stream of a device ran, where a trace tells. Its spans' nodes are kernels. */
export interface Stream extends Spans {
  kernels: string[];
  joined: unknown[]; // by span: of how many kernels it is the longest
}

/** OfPages is what only pages show: an output's script does not read it. */
interface OfPages {
  workers: Worker[];
  gaps: Gap[];
  streams: Stream[];
  cut: Set<unknown>; // spans whose stack could not be read to its end
}

export interface Recording extends Spans, OfPages {
  duration: number;
  fns: Func[];
  // The stack tree: node 0 is the empty stack, a parent precedes its children.
  above: Int32Array;
  fnOf: Int32Array;
  lineOf: Int32Array;
  threads: Thread[];
  tracks: Track[];
  gpu: boolean; // a device was used, and its idle time is known
  idle: Stretches; // every used device idle at once
  causes: Remark[];
  deviceIdle: DeviceIdle[];
  steps: Step[]; // of the process that leads
  lines: LineTime[]; // of the target
  findings: Remark[];
  leftOut: string[]; // what is in the document and not here
}

const words = (v: unknown, limit?: number): string => clean(string(v), limit);
/** us is a length of time, of nanoseconds. */
const us = (v: unknown): number => amount(v) / 1000;

/** recordingOf reads a document; of one that makes no sense it reads what does. */
export function recordingOf(document: unknown): Recording {
  const d = object(document);
  const enumerations = object(d["enumerations"]);
  const own = (ids: unknown, ours: string[], other: number) => {
    const map = list(ids).map((id) => ours.indexOf(string(id)));
    return (v: unknown): number => (map[v as number]! >= 0 ? map[v as number]! : other);
  };
  const stateOf = own(enumerations["state"], states, 6);
  const codeOf = own(enumerations["code"], codes, otherCode);
  const duration = max(us(d["duration_ns"]), 1);

  const leftOut: string[] = [];
  const rows = (v: unknown, what: Rows): Json[] => {
    const size = list(v).length;
    if (size > mostRows[what]) leftOut.push(`Of ${count(size)} ${what} the first ${count(mostRows[what])} are read.`);
    return objects(first(v, mostRows[what]));
  };
  const files = rows(d["files"], "files").map(
    (f, nth): SourceFile => ({
      nth,
      path: words(f["name"]),
      code: codeOf(f["code"]),
      pkg: words(f["package"], 60),
      source: Array.isArray(f["lines"]) ? f["lines"].map((l) => words(l)) : null,
      isCell: f["execution_count"] != null,
    }),
  );
  const nowhere: SourceFile = { nth: -1, path: "", code: otherCode, pkg: "", source: null, isCell: false };
  const fns = rows(d["functions"], "functions").map((f): Func => {
    const file = files[index(f["file"], files.length)] || nowhere;
    const line = amount(f["first_line"]);
    const short = shortFile(file.path);
    const given = words(f["label"]) || words(f["name"]) || "<module>";
    const called = (given === "<module>" && short) || given;
    return { called, file, line, code: codeOf(f["code"]), place: f["name"] === "<module>" || !short ? "" : line ? short + ":" + line : short };
  });
  const stacks = stacksOf(d, fns, nowhere);
  const nodes = list(object(d["nodes"])["parent"]).length;
  if (nodes > mostNodes) leftOut.push(`Of ${count(nodes)} different stacks the first ${count(mostNodes)} are read.`);
  const { firsts, ...spans } = spansOf(object(d["spans"]), "us", duration, stacks.above.length, stateOf);

  const placeOf = (o: Json): Place | null => {
    const file = files[index(o["file"], files.length)];
    return file && amount(o["line"]) ? { file, line: amount(o["line"]) } : null;
  };
  const remark = (o: Json): Remark => ({
    says: words(o["text"], 300),
    hint: words(o["hint"], 300),
    us: us(o["ns"] ?? o["cost_ns"]),
    low: known(o["low_ns"]) / 1000,
    high: known(o["high_ns"]) / 1000,
    serious: o["severity"] !== "info",
    place: placeOf(o),
    evidence: stretchesOf(o["evidence"], duration),
  });
  const recorded = object(list(d["targets"])[0]);
  const target = (FULL ? recorded["program"] : null) ?? recorded["process"]; // cells start nothing that is told in their place
  const idle = object(d["idle"]);
  const used = rows(d["devices"], "devices").map((v) => !!v["used"]);
  const deviceIdle = objects(first(idle["devices"], mostRows.devices)).map(
    (v): DeviceIdle => ({
      device: index(v["device"], used.length),
      stretches: stretchesOf(v["intervals"], duration),
    }),
  );
  const ofProcess = new Map<unknown, LineTime[]>();
  for (const l of rows(d["lines"], "lines")) {
    const place = placeOf(l);
    if (!place) continue;
    const shares = floats(stateCount);
    first(l["state_ns"], states.length).forEach((v, i) => (shares[stateOf(i)]! += us(v)));
    const times = ofProcess.get(l["process"]) || [];
    times.push({ place, self: us(l["self_ns"]), idle: us(l["idle_ns"]), shares });
    ofProcess.set(l["process"], times);
  }
  const linesOf = (process: unknown) => ofProcess.get(process) || [];
  const ofUsed = deviceIdle.filter((v) => used[v.device]).map((v) => v.stretches);
  return {
    ...stacks,
    ...spans,
    duration,
    fns,
    threads: threadsOf(rows(d["threads"], "threads"), target, firsts),
    tracks: rows(d["tracks"], "tracks").map(trackOf),
    gpu: ofUsed.length > 0,
    idle: ofUsed.length ? ofUsed.reduce(intersection) : [],
    causes: rows(idle["causes"], "causes").map(remark).sort((a, b) => b.us - a.us),
    deviceIdle,
    steps: rows(d["steps"], "steps")
      .filter((s, _, all) => s["process"] === all[0]!["process"])
      .map(
        (s): Step => ({
          begin: us(s["start_ns"]),
          end: min(us(s["end_ns"]), duration),
          called: words(s["name"], 60),
          loading: us(s["data_wait_ns"]),
          busy: known(s["busy_ns"]) / 1000,
        }),
      )
      .filter((s) => s.end > s.begin)
      .sort((a, b) => a.begin - b.begin),
    lines: linesOf(target),
    findings: rows(d["findings"], "findings").map(remark),
    leftOut,
    ...((FULL
      ? {
          workers: rows(d["processes"], "processes").map((p, process): Worker => ({ process, called: words(p["text"], 40), lines: process === target ? [] : linesOf(process) })),
          cut: new Set(list(object(d["spans"])["incomplete"])),
          gaps: rows(d["gaps"], "gaps").map((g): Gap => ({ process: index(g["process"], 1e6), begin: us(g["start_ns"]), end: us(g["end_ns"]), says: words(g["text"], 300) })),
          streams: rows(d["kernels"], "streams").map((k): Stream => {
            const kernels = list(k["names"]).map((v) => words(v));
            return { ...spansOf({ ...k, "node": k["name"], "state": k["name"] }, "ns", duration, kernels.length, () => 0), kernels: kernels.concat("?"), joined: list(k["count"]) };
          }),
        }
      : {}) as OfPages),
  };
}

/** stacksOf reads the tree of stacks. A frame that is none becomes a function without a name, a parent that is none the root. */
function stacksOf(d: Json, fns: Func[], nowhere: SourceFile): Pick<Recording, "above" | "fnOf" | "lineOf"> {
  const frames = object(d["frames"]);
  const functions = list(frames["function"]);
  const lines = list(frames["line"]);
  const parents = list(object(d["nodes"])["parent"]);
  const nodes = list(object(d["nodes"])["frame"]);
  const size = max(min(parents.length, nodes.length, mostNodes), 1);
  const above = ints(size);
  const fnOf = ints(size);
  const lineOf = ints(size);
  const unknown = fns.push({ called: "?", file: nowhere, line: 0, code: otherCode, place: "" }) - 1;
  for (let n = 1; n < size; n++) {
    above[n] = max(index(parents[n], n), 0);
    const fn = index(functions[nodes[n] as number], unknown);
    fnOf[n] = fn < 0 ? unknown : fn;
    lineOf[n] = amount(lines[nodes[n] as number]);
  }
  return { above, fnOf, lineOf };
}

/** spansOf adds up the columns of gaps and lengths, thread by thread, in a unit of time; firsts is where each thread begins. */
function spansOf(s: Json, unit: "us" | "ns", duration: number, nodeCount: number, stateOf: (v: unknown) => number): Spans & { firsts: number[] } {
  const [gaps, lengths, nodes, ids] = ["gap_" + unit, "length_" + unit, "node", "state"].map((k) => list(s[k])) as [unknown[], unknown[], unknown[], unknown[]];
  const size = min(gaps.length, lengths.length, nodes.length, ids.length);
  const begin = floats(size);
  const end = floats(size);
  const node = ints(size);
  const state = new Uint8Array(size);
  let last = 0;
  const firsts = list(s["first"]).map((v) => (last = min(max(amount(v) | 0, last), size)));
  const per = FULL && unit === "ns" ? 1000 : 1;
  let thread = 0;
  let at = 0;
  for (let i = 0; i < size; i++) {
    while (firsts[thread] === i) {
      thread++;
      at = 0;
    }
    begin[i] = at = min(at + amount(gaps[i]) / per, duration);
    end[i] = at = min(at + amount(lengths[i]) / per, duration);
    node[i] = max(index(nodes[i], nodeCount), 0);
    state[i] = stateOf(ids[i]);
  }
  return { begin, end, node, state, firsts };
}

function threadsOf(threads: Json[], target: unknown, firsts: number[]): Thread[] {
  return threads.map((t, i): Thread => {
    const begin = firsts[i] || 0;
    return {
      called: words(t["name"]),
      process: FULL ? index(t["process"], 1e6) : 0,
      begin,
      end: max(firsts[i + 1] || 0, begin),
      main: !!t["main"] && t["process"] === target,
      runsCell: !!t["runs_cell"],
      internal: !!t["internal"],
    };
  });
}

function trackOf(t: Json): Track {
  const values = list(t["value"]);
  let last = 0;
  const at = list(t["at_us"])
    .slice(0, values.length)
    .map((v) => (last = max(amount(v), last)));
  return {
    rate: t["kind"] !== "gauge",
    unit: words(t["unit"], 12),
    at: floats(at),
    level: floats(values.map(known)),
    device: index(t["device"], 1e6),
  };
}

/** stretchesOf reads pairs of nanoseconds, in order and joined where they touch. */
export function stretchesOf(v: unknown, duration: number): Stretches {
  const out: number[] = [];
  list(v)
    .map((p) => list(p).map((at) => min(us(at), duration)) as [number, number])
    .filter(([a, b]) => b > a)
    .sort((a, b) => a[0] - b[0])
    .forEach(([a, b]) => {
      const n = out.length;
      if (n && a <= out[n - 1]!) out[n - 1] = max(out[n - 1]!, b);
      else out.push(a, b);
    });
  return out;
}

/** intersection is what two lists have in common. */
export function intersection(a: Stretches, b: Stretches): Stretches {
  const out: number[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const from = max(a[i]!, b[j]!);
    const to = min(a[i + 1]!, b[j + 1]!);
    if (from < to) out.push(from, to);
    if (a[i + 1]! < b[j + 1]!) i += 2;
    else j += 2;
  }
  return out;
}

/** overlap is how much of from … to lies in stretches. */
export function overlap(s: Stretches, from: number, to: number): number {
  let sum = 0;
  for (let i = 0; i < s.length; i += 2) sum += max(min(s[i + 1]!, to) - max(s[i]!, from), 0);
  return sum;
}
