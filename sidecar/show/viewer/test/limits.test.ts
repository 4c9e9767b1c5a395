// Documents made to exhaust the page: of every kind of too much, what is refused, what is left out, and that work
// grows no faster than the document.

import { expect, test } from "vitest";
import { poolLinesOf } from "../src/poollines.ts";
import { documentOf, payloadOf, shapeCheck } from "../src/decode.ts";
import { frameOf } from "../src/frame.ts";
import { layOut } from "../src/lanes.ts";
import { mostLevels, mostRows, TooMuch } from "../src/limits.ts";
import { cellThread, everyThread, modelOf, type Model } from "../src/model.ts";
import { listing } from "../src/listing.ts";
import { zoom } from "../src/state.ts";
import { cutLines } from "../src/cut.ts";
import { randomOf } from "./payloads.ts";
import { small } from "./samples.ts";

/** packed is the payload's data of a text repeated between two others, without the text ever being whole. */
async function packed(begin: string, part: string, times: number, end: string): Promise<string> {
  const block = part.repeat(Math.min(times, 4096));
  let left = times;
  const text = new ReadableStream<string>({
    start: (to) => to.enqueue(begin),
    pull(to) {
      const now = Math.min(left, 4096);
      if (now) to.enqueue(now === 4096 ? block : part.repeat(now));
      else (to.enqueue(end), to.close());
      left -= now;
    },
  });
  const bytes = new Uint8Array(
    await new Response(
      text.pipeThrough(new TextEncoderStream()).pipeThrough(new CompressionStream("gzip")),
    ).arrayBuffer(),
  );
  let binary = "";
  for (let i = 0; i < bytes.length; i += 8192) binary += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(binary);
}

/** refusal is what a document is refused for; "" where it is read, or damaged. */
const refusal = (data: string): Promise<string> =>
  documentOf(data).then(
    () => "",
    (e) => (e instanceof TooMuch ? e.message : ""),
  );

/** shape is what a text is refused for by its shape, handed over in pieces of these lengths. */
function shape(text: string, length = () => 1e6): string {
  const bytes = new TextEncoder().encode(text);
  const check = shapeCheck();
  try {
    for (let at = 0; at < bytes.length;) check(bytes.subarray(at, (at += length())));
  } catch (e) {
    return (e as Error).message;
  }
  return "";
}

const elapsed = async (work: () => unknown): Promise<number> => {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
};

test("opening brackets without end are refused at the first of them", async () => {
  const data = await packed("", "[", 50e6, "");
  const ms = await elapsed(async () => expect(await refusal(data)).toBe(`it has more than ${mostLevels} levels`));
  expect(ms).toBeLessThan(2000);
});

test("what unpacks to a thousand times its size is refused, nested or not", async () => {
  for (const [begin, part, end, why] of [
    ['{"x":"', "y", '"}', /unpacks to more than \d+ MB/],
    ['{"x":0', "  ", "}", /unpacks to more than \d+ MB/],
    ["[", "[],", "[]]", /more than 2 million parts|unpacks to more than/],
    ["[0", ",0", "]", /unpacks to more than \d+ MB/],
  ] as const) {
    const data = await packed(begin, part, 60e6 / part.length, end);
    const ms = await elapsed(async () => expect(why.test(await refusal(data)), part).toBe(true));
    expect(ms, part).toBeLessThan(3000);
  }
});

test("a payload of any length is refused unread", async () => {
  expect(await refusal("A".repeat(70e6))).toBe("it is longer than 64 MB");
  expect(payloadOf("omni_perf 2 " + "a:b ".repeat(1e6) + "\nH4sI")!.views.length).toBeLessThan(100);
});

test("the shape of a text is that of JSON, however it is cut in pieces", () => {
  const random = randomOf(11);
  const value = (depth: number): unknown => {
    const kind = random(depth > 5 ? 3 : 5);
    if (kind < 3) return [random(1000), 'brackets [[{ and "quotes" \\', "x\\"][kind];
    return kind === 3
      ? Array.from({ length: random(5) }, () => value(depth + 1))
      : Object.fromEntries(Array.from({ length: random(5) }, (_, i) => ["[{" + i, value(depth + 1)]));
  };
  for (let i = 0; i < 300; i++) {
    expect(
      shape("[".repeat(mostLevels - 7) + JSON.stringify(value(0)) + "]".repeat(mostLevels - 7), () => 1 + random(9)),
    ).toBe("");
  }
  expect(shape('"[["' + "[".repeat(mostLevels))).toBe("");
  expect(shape("[".repeat(mostLevels + 1))).toBe(`it has more than ${mostLevels} levels`);
});

/** wide is a document with n of everything, most of it of one place in time or code. */
function wide(n: number): Record<string, unknown> {
  const d = small([0, 0, 4, "Cell [1]:cell.f@1"], [0, 4, 9, "Cell [1]:cell.f@2", 2]) as Record<
    string,
    Record<string, unknown[]>
  >;
  const many = <T>(of: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => of(i));
  const nodes = d["nodes"]!;
  nodes["parent"] = [0, ...many((i) => (i % 300 ? i : 0))];
  nodes["frame"] = [0, ...many((i) => i)];
  d["frames"] = { function: many((i) => i), line: many((i) => 1 + i) };
  const place = (i: number) => ({ file: 0, line: 1 + i });
  return {
    ...d,
    functions: many((i) => ({ file: 0, name: "f" + i, first_line: 1 + i, code: 0 })),
    files: [
      { name: "Cell [1]", code: 0, package: null, execution_count: 1, lines: many((i) => "x = " + i) },
      ...many((i) => ({ name: `f${i}.py`, code: 1, lines: null })),
    ],
    spans: {
      first: [0, ...many(() => n)],
      gap_us: many(() => 0),
      length_us: many(() => 9000 / n),
      node: many((i) => i),
      state: many((i) => i % 7),
      incomplete: many((i) => i),
    },
    threads: many((i) => ({ name: "t" + i, process: i, runs_cell: true })),
    processes: many((i) => ({ text: "worker " + i })),
    subject: { process: 0, program: 0, thread: 0, threads: many((i) => i) },
    lines: many((i) => ({
      self_ns: 1e6 + i,
      idle_ns: 1,
      state_ns: Array(20).fill(1),
      process: i % 3 ? 0 : i,
      ...place(i),
    })),
    devices: many(() => ({ used: true })),
    idle: {
      causes: many((i) => ({ ns: i, text: "c", ...place(i), evidence: [[0, 1e6]] })),
      devices: many((i) => ({ device: i, intervals: [[0, 9e6]] })),
    },
    tracks: many(() => ({ kind: "rate", unit: "B", at_us: [1, 2], value: [1, 2] })),
    steps: many((i) => ({ start_ns: i, end_ns: i + 1000 })),
    findings: many((i) => ({ text: "x", ...place(i) })),
    gaps: many(() => ({ process: 0, start_ns: 0, end_ns: 1e6, text: "g" })),
    kernels: many(() => ({ names: ["k"], name: [0], gap_ns: [0], length_ns: [5] })),
    chart: {
      ...(d["chart"] as object),
      lanes: many((i) => ({
        kind: ["flame", "thread", "lines", "track", "stream"][i % 5],
        index: i % 50,
        y0: 100 + i,
        y1: 101 + i,
        rows: 500,
        sources: Array(100).fill("s"),
      })),
      ...Object.fromEntries(
        ["title", "finding", "legend", "notes", "threads", "states"].map((k) => [
          k,
          many(() => (k === "title" || k === "finding" || k === "legend" ? ["a", "b"] : "a")),
        ]),
      ),
    },
  };
}

/** usedAll is a model of which everything was asked. */
function usedAll(document: unknown): Model {
  const m = modelOf(document)!;
  const s = zoom(m.initial, m.initial, m.recording.duration / 3, 0.7);
  frameOf(m, s, layOut(m.chart, 1120, new Map()), 1000, 1, 0, 1000);
  for (const who of [cellThread, everyThread]) m.sums(true, who, s.from, s.to);
  m.functions(s.from, s.to);
  const lines = m.lines(s.from, s.to);
  const cut = cutLines(m, s.from, s.to);
  lines.forEach((l) => cut(l.place));
  poolLinesOf(m, s.from, s.to, false);
  poolLinesOf(m, 0, m.recording.duration, true);
  listing(
    m.recording.lines[0]!.place.file.source,
    m.recording.lines.map((l) => l.place.line),
  );
  return m;
}

test("200,000 rows of everything are read in linear time, and what is left out is said", async () => {
  const [few, many] = [wide(25_000), wide(200_000)];
  usedAll(wide(2000));
  const short = await elapsed(() => usedAll(few));
  let m!: Model;
  const long = await elapsed(() => (m = usedAll(many)));
  expect(long).toBeLessThan(30_000);
  expect(long).toBeLessThan(30 * Math.max(short, 50));
  expect(m.recording.lines.length).toBeLessThanOrEqual(mostRows.lines);
  expect(m.recording.leftOut).toContain("Of 200,000 lines the first 100,000 are read.");
  for (const what of ["threads", "processes", "devices", "tracks", "causes", "findings", "gaps"])
    expect(m.recording.leftOut.join().includes(`200,000 ${what} the first`), what).toBe(true);
  expect(m.chart.leftOut).toEqual(["Of 200,000 lanes the first 500 are read."]);
  expect(
    Math.max(m.chart.notes.length, m.chart.legend.length, m.chart.heading.length, m.chart.states.length),
  ).toBeLessThan(50);
});

test("a list of lines is bounded, and says how many more there are", () => {
  const hot = Array.from({ length: 1000 }, (_, i) => 1 + 2 * i);
  expect(listing(null, [...hot])).toEqual({ shown: hot.slice(0, 300), more: 700 });
  const source = Array.from({ length: 2000 }, () => "x");
  const { shown, more } = listing(source, [...hot]);
  expect([shown.length, shown.at(-1)! + 2 * more]).toEqual([300, 2000]);
  expect(listing(source, [5, 50])).toEqual({ shown: [3, 4, 5, 6, 7, 0, 48, 49, 50, 51, 52], more: 0 });
});

test("what is honest is not left out", () => {
  const m = modelOf(small([0, 0, 4, "Cell [1]:cell.f@1"]))!;
  expect([m.recording.leftOut, m.chart.leftOut]).toEqual([[], []]);
});
