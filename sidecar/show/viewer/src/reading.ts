// The report document (version 2), read as a recording: of what makes no sense, what does.

import { Code, codes, State, states } from "./generated.ts";
import { amount, first, index, known, list, object, objects, string, us, type Json } from "./json.ts";
import { mostNodes, mostRows, type Rows } from "./limits.ts";
import { floats, ints, max, min } from "./math.ts";
import type {
  DeviceIdle,
  Func,
  Gap,
  Growth,
  LineTime,
  Place,
  Recording,
  Remark,
  SourceFile,
  Spans,
  Step,
  Stream,
  Thread,
  Track,
  Worker,
} from "./recording.ts";
import { intersection, stretchesOf } from "./stretches.ts";
import { poolsOf, subjectOf, type Subject } from "./subject.ts";
import { clean, count, micros, shortFile } from "./words.ts";

const words = (v: unknown, limit?: number): string => clean(string(v), limit);

/** recordingOf reads a document; of one that makes no sense it reads what does. */
export function recordingOf(document: unknown): Recording {
  const row = object(document);
  const enumerations = object(row["enumerations"]);
  const own = (ids: unknown, ours: string[], other: number) => {
    const map = list(ids).map((id) => ours.indexOf(string(id)));
    return (v: unknown): number => (map[v as number]! >= 0 ? map[v as number]! : other);
  };
  const stateOf = own(enumerations["state"], states, State.unknown);
  const codeOf = own(enumerations["code"], codes, Code.other);
  const duration = max(us(row["duration_ns"]), 1);

  const leftOut: string[] = [];
  const rows = (v: unknown, what: Rows): Json[] => {
    const size = list(v).length;
    if (size > mostRows[what]) leftOut.push(`Of ${count(size)} ${what} the first ${count(mostRows[what])} are read.`);
    return objects(first(v, mostRows[what]));
  };
  const files = rows(row["files"], "files").map((f, nth): SourceFile => ({
    nth,
    path: words(f["name"]),
    code: codeOf(f["code"]),
    pkg: words(f["package"], 60),
    source: Array.isArray(f["lines"]) ? f["lines"].map((l) => words(l)) : null,
    isCell: f["execution_count"] != null,
  }));
  const nowhere: SourceFile = { nth: -1, path: "", code: Code.other, pkg: "", source: null, isCell: false };
  const fns = rows(row["functions"], "functions").map((f): Func => {
    const file = files[index(f["file"], files.length)] || nowhere;
    const line = amount(f["first_line"]);
    const short = shortFile(file.path);
    const given = words(f["label"]) || words(f["name"]) || "<module>";
    const name = (given === "<module>" && short) || given;
    return {
      name,
      file,
      line,
      code: codeOf(f["code"]),
      place: f["name"] === "<module>" || !short ? "" : line ? short + ":" + line : short,
    };
  });
  const stacks = stacksOf(row, fns, nowhere);
  const nodes = list(object(row["nodes"])["parent"]).length;
  if (nodes > mostNodes) leftOut.push(`Of ${count(nodes)} different stacks the first ${count(mostNodes)} are read.`);
  const { firsts, ...spans } = spansOf(object(row["spans"]), "us", duration, stacks.above.length, stateOf);

  const placeOf = (o: Json): Place | null => {
    const file = files[index(o["file"], files.length)];
    return file && amount(o["line"]) ? { file, line: amount(o["line"]) } : null;
  };
  const remark = (o: Json): Remark => ({
    text: words(o["text"], 300),
    hint: words(o["hint"], 300),
    us: us(o["ns"] ?? o["cost_ns"]),
    low: known(o["low_ns"]) / 1000,
    high: known(o["high_ns"]) / 1000,
    serious: o["severity"] !== "info",
    place: placeOf(o),
    evidence: stretchesOf(o["evidence"], duration),
  });
  const threadRows = rows(row["threads"], "threads");
  const subject = subjectOf(row, threadRows);
  const threads = threadsOf(threadRows, subject, firsts);
  const idle = object(row["idle"]);
  const used = rows(row["devices"], "devices").map((v) => !!v["used"]);
  const deviceIdle = objects(first(idle["devices"], mostRows.devices)).map((v): DeviceIdle => ({
    device: index(v["device"], used.length),
    stretches: stretchesOf(v["intervals"], duration),
  }));
  const ofProcess = new Map<unknown, LineTime[]>();
  for (const l of rows(row["lines"], "lines")) {
    const place = placeOf(l);
    if (!place) continue;
    const shares = floats(states.length);
    first(l["state_ns"], states.length).forEach((v, i) => (shares[stateOf(i)]! += us(v)));
    const times = ofProcess.get(l["process"]) || [];
    const freed = fns[index(l["freeing_function"], fns.length)];
    const freeing = freed && `of it ${micros(us(l["freeing_ns"]))} freeing what ${freed.name}() held`;
    times.push({ place, self: us(l["self_ns"]), idle: us(l["idle_ns"]), shares, freeing });
    ofProcess.set(l["process"], times);
  }
  const linesOf = (process: unknown) => ofProcess.get(process) || [];
  const tracks = rows(row["tracks"], "tracks").map(trackOf);
  const activity = tracks.filter((track) => track.isActivity && used[track.device]);
  const ofUsed = deviceIdle.filter((v) => used[v.device]).map((v) => v.stretches);
  return {
    ...stacks,
    ...spans,
    duration,
    cell: index(object(object(list(row["targets"])[0])["cell"])["file"], files.length),
    fns,
    threads,
    subject: threads[subject.thread],
    tracks,
    activity,
    gpu: ofUsed.length + activity.length > 0,
    idle: ofUsed.length ? ofUsed.reduce(intersection) : [],
    causes: rows(idle["causes"], "causes")
      .map(remark)
      .sort((a, b) => b.us - a.us),
    deviceIdle,
    steps: rows(row["steps"], "steps")
      .filter((s, _, all) => s["process"] === all[0]!["process"])
      .map((s): Step => ({
        begin: us(s["start_ns"]),
        end: min(us(s["end_ns"]), duration),
        name: words(s["name"], 60),
        loading: us(s["data_wait_ns"]),
        busy: known(s["busy_ns"]) / 1000,
        phases: object(s["phases_ns"]),
      }))
      .filter((step) => step.end > step.begin)
      .sort((a, b) => a.begin - b.begin),
    lines: linesOf(subject.program),
    growth: rows(row["memory"], "lines").flatMap((m): Growth | [] => {
      const place = placeOf(m);
      return place && m["process"] === subject.program
        ? { place, bytes: amount(m["grown_bytes"]), evidence: stretchesOf(m["evidence"], duration) }
        : [];
    }),
    findings: rows(row["findings"], "findings").map(remark),
    stepsCut: !!object(object(row["thinned"])["tables"])["steps"],
    leftOut,
    workers: rows(row["processes"], "processes").map((p, process): Worker => ({
      process,
      name: words(p["text"], 40),
      lines: process === subject.program ? [] : linesOf(process),
    })),
    pools: poolsOf(row),
    cut: new Set(list(object(row["spans"])["incomplete"])),
    gaps: rows(row["gaps"], "gaps").map((g): Gap => ({
      process: index(g["process"], 1e6),
      begin: us(g["start_ns"]),
      end: us(g["end_ns"]),
      text: words(g["text"], 300),
    })),
    streams: rows(row["kernels"], "streams").map((k): Stream => {
      const kernels = list(k["names"]).map((v) => words(v));
      return {
        ...spansOf({ ...k, "node": k["name"], "state": k["name"] }, "ns", duration, kernels.length, () => 0),
        kernels: kernels.concat("?"),
        joined: list(k["count"]),
        launch: list(k["launch_ns"]),
        launcher: list(k["launcher"]),
      };
    }),
  };
}

/**
 * stacksOf reads the tree of stacks. A frame that is none becomes a function without a name, a parent that is none the
 * root.
 */
function stacksOf(row: Json, fns: Func[], nowhere: SourceFile): Pick<Recording, "above" | "fnOf" | "lineOf"> {
  const frames = object(row["frames"]);
  const functions = list(frames["function"]);
  const lines = list(frames["line"]);
  const parents = list(object(row["nodes"])["parent"]);
  const nodes = list(object(row["nodes"])["frame"]);
  const size = max(min(parents.length, nodes.length, mostNodes), 1);
  const above = ints(size);
  const fnOf = ints(size);
  const lineOf = ints(size);
  const unknown = fns.push({ name: "?", file: nowhere, line: 0, code: Code.other, place: "" }) - 1;
  for (let n = 1; n < size; n++) {
    above[n] = max(index(parents[n], n), 0);
    const fn = index(functions[nodes[n] as number], unknown);
    fnOf[n] = fn < 0 ? unknown : fn;
    lineOf[n] = amount(lines[nodes[n] as number]);
  }
  return { above, fnOf, lineOf };
}

/**
 * spansOf adds up the columns of gaps and lengths, thread by thread, in a unit of time; firsts is where each thread
 * begins.
 */
function spansOf(
  row: Json,
  unit: "us" | "ns",
  duration: number,
  nodeCount: number,
  stateOf: (v: unknown) => number,
): Spans & { firsts: number[] } {
  const [gaps, lengths, nodes, ids] = ["gap_" + unit, "length_" + unit, "node", "state"].map((k) => list(row[k])) as [
    unknown[],
    unknown[],
    unknown[],
    unknown[],
  ];
  const size = min(gaps.length, lengths.length, nodes.length, ids.length);
  const begin = floats(size);
  const end = floats(size);
  const node = ints(size);
  const state = new Uint8Array(size);
  let last = 0;
  const firsts = list(row["first"]).map((v) => (last = min(max(amount(v) | 0, last), size)));
  const per = unit === "ns" ? 1000 : 1;
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

function threadsOf(threads: Json[], subject: Subject, firsts: number[]): Thread[] {
  return threads.map((row, i): Thread => {
    const begin = firsts[i] || 0;
    return {
      name: words(row["name"]),
      process: index(row["process"], 1e6),
      begin,
      end: max(firsts[i + 1] || 0, begin),
      main: !!row["main"] && row["process"] === subject.program,
      runs: subject.threads.has(i),
      internal: !!row["internal"],
      atWork: !!row["at_work"],
    };
  });
}

function trackOf(row: Json): Track {
  const values = list(row["value"]);
  let last = 0;
  const at = list(row["at_us"])
    .slice(0, values.length)
    .map((v) => (last = max(amount(v), last)));
  return {
    isActivity: row["id"] === "gpu.util",
    resident: row["id"] === "rss",
    rate: row["kind"] !== "gauge",
    unit: words(row["unit"], 12),
    at: floats(at),
    level: floats(values.map(known)),
    device: index(row["device"], 1e6),
  };
}
