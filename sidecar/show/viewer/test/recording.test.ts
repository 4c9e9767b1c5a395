import { expect, test } from "vitest";
import { documentOf, payloadOf } from "../src/decode.ts";
import { chartOf } from "../src/lanes.ts";
import { modelOf } from "../src/model.ts";
import { recordingOf } from "../src/reading.ts";
import { pack } from "./payloads.ts";
import { small, training } from "./samples.ts";

test("a payload is a line of words and the document, packed", async () => {
  const payload = payloadOf("omni_perf 2 timeline flame\n" + (await pack(JSON.stringify({ a: [1, "ü"] }))))!;
  expect([payload.version, payload.views]).toEqual([2, ["timeline", "flame"]]);
  expect(await documentOf(payload.data)).toEqual({ a: [1, "ü"] });
});

test("other text is no payload", () => {
  for (const text of ["", "hello", "H4sI", "omni_perf", "other 2 timeline\nH4sI"])
    expect(payloadOf(text), text).toBe(null);
});

test("what cannot be unpacked is refused, not thrown at the page", async () => {
  const packed = await pack('{"a":1}');
  for (const data of [
    "",
    "!!",
    "AAAA",
    packed.slice(0, -8),
    packed.slice(4),
    await pack("{"),
    "H4sI" + "A".repeat(100),
  ]) {
    let refused = false;
    await documentOf(data).catch(() => (refused = true));
    expect(refused, data.slice(0, 20)).toBe(true);
  }
});

test("columns add up to times, thread by thread", () => {
  const r = recordingOf(small([0, 2, 5, "a.py:user.f"], [0, 7, 9, "a.py:user.g", 3], [1, 1, 4, "a.py:user.f", 4]));
  expect([...r.begin]).toEqual([2000, 7000, 1000]);
  expect([...r.end]).toEqual([5000, 9000, 4000]);
  expect(r.threads.map((t) => [t.begin, t.end])).toEqual([
    [0, 2],
    [2, 3],
  ]);
  expect([...r.state]).toEqual([0, 3, 4]);
});

test("states and codes are known by id, whatever their order, and unknown ones are no harm", () => {
  const d = small([0, 0, 1, "a.py:user.f", 0], [0, 1, 2, "a.py:user.f", 1], [0, 2, 3, "a.py:user.f", 9]);
  d["enumerations"] = { state: ["gil", "sleeping"], code: ["other", "cell"] };
  const r = recordingOf(d);
  expect([...r.state]).toEqual([4, 6, 6]);
  expect(r.fns[0]!.code).toBe(0);
});

test("a reader ignores keys it does not know", () => {
  const d = { ...training.document, later: { things: [1, 2] } };
  expect(recordingOf(d).steps.length).toBe((training.document["steps"] as unknown[]).length);
});

test("a document that is none has nothing in it", () => {
  for (const d of [
    null,
    undefined,
    3,
    "x",
    [],
    {},
    { spans: [], nodes: 7, threads: "x", chart: { plot: [0, 0, 5, 5] } },
  ]) {
    const r = recordingOf(d);
    expect([r.begin.length, r.threads.length, r.above.length]).toEqual([0, 0, 1]);
    expect(modelOf(d)).toBe(null);
  }
});

test("names are bounded", () => {
  const d = small([0, 0, 1, "a.py:user." + "x".repeat(10_000)]);
  expect(recordingOf(d).fns[0]!.name.length).toBeLessThan(300);
});

test("a chart's paints and tags are words, never markup", () => {
  const c = chartOf({
    chart: {
      width: 1120,
      plot: [100, 50, 1000, 300],
      title: [
        ["a", "tp;}*{", "script"],
        ["b", "tg", "b"],
      ],
      legend: [["x)url(", "y"]],
      lanes: [{ kind: "track", y0: 60, y1: 70, paint: "<b>" }],
    },
  })!;
  expect(c.heading).toEqual([
    ["a", "", "span"],
    ["b", "tg", "b"],
  ]);
  expect(c.legend[0]![0]).toBe("");
  expect(c.lanes[0]!.paint).toBe("");
});

test("lanes never lie over each other, whatever they say", () => {
  const c = chartOf({
    chart: {
      width: 1120,
      plot: [100, 50, 1000, 300],
      lanes: [
        { kind: "track", y0: 60, y1: 90 },
        { kind: "track", y0: 70, y1: 95 },
        { kind: "thread", y0: 80, y1: 85 },
        { kind: "magic", y0: 100, y1: 200 },
      ],
    },
  })!;
  expect(c.lanes.map((l) => [l.y0, l.y1])).toEqual([
    [60, 90],
    [90, 95],
  ]);
});

test("it is known of steps whether they are all", () => {
  expect(recordingOf(training.document).stepsCut).toBe(false);
  const thinned = { tables: { steps: { kept: 64, of: 188 } } };
  expect(recordingOf({ ...training.document, thinned }).stepsCut).toBe(true);
});
