import { expect, test } from "vitest";
import { bounds } from "../src/tables.ts";
import { figure, micros, percent, plural, seconds, shortFile } from "../src/words.ts";
import type { Remark } from "../src/recording.ts";
import { ticks } from "../src/ticks.ts";
import figures from "../testdata/figures.json";
import axis from "../testdata/ticks.json";

test("lengths of time, shares and figures read as in Go", () => {
  for (const cases of [figures.edges, figures.random]) {
    for (const [v, want] of cases.seconds as [number, string][]) {
      expect(seconds(v), `seconds(${v})`).toBe(want);
      expect(micros(v * 1e6), `micros(${v * 1e6})`).toBe(want);
    }
    for (const [v, want] of cases.percent as [number, string][]) expect(percent(v), `percent(${v})`).toBe(want);
    for (const [v, unit, want] of cases.figure as [number, string, string][])
      expect(figure(v, unit), `figure(${v}, ${unit})`).toBe(want);
  }
});

test("of whole nanoseconds no digit is lost on the way over microseconds", () => {
  for (let ns = 1; ns < 1e12; ns = Math.ceil(ns * 1.003)) expect(micros(ns / 1000), `${ns} ns`).toBe(seconds(ns / 1e9));
});

test("what is no number has no figure", () => {
  expect(seconds(NaN)).toBe("?");
  expect(percent(Infinity)).toBe("? %");
  expect(figure(NaN, "B")).toBe("?");
});

test("ticks over a whole recording are those of the static picture", () => {
  for (const [duration, n, want] of axis.ticks as [number, number, string[]][]) {
    const { at, label } = ticks(0, duration, n);
    expect(at.map(label), `${duration} s`).toEqual(want);
  }
});

test("ticks of any window are round, few, inside, and no two read alike", () => {
  for (let width = 2e-5; width < 1e6; width *= 1.7) {
    for (const from of [0, width / 3, 12.345678, 86400.5]) {
      const { at, label } = ticks(from, from + width, 15);
      expect(at.length, `${from} + ${width}`).toBeLessThanOrEqual(17);
      expect(at.length, `${from} + ${width}`).toBeGreaterThan(0);
      expect(new Set(at.map(label)).size, `${from} + ${width}: ${at.map(label).join(", ")}`).toBe(at.length);
      for (const t of at)
        expect(t >= from - width * 1e-6 && t <= from + width * (1 + 1e-6), `${t} in ${from} + ${width}`).toBe(true);
    }
  }
});

test("one step, two steps", () => {
  expect(plural(1, "step")).toBe("1 step");
  expect(plural(12345, "step")).toBe("12,345 steps");
  expect(shortFile("~/project/train.py")).toBe("train.py");
  expect(shortFile("Cell [5]")).toBe("Cell [5]");
});

test("bounds of an estimate are written where they are two figures", () => {
  const of = (low: number, high: number) => bounds({ low, high } as Remark);
  expect(of(210e3, 260e3)).toBe(" [0.21 s – 0.26 s]");
  expect(of(0, 240e3)).toBe(" [0 s – 0.24 s]");
  expect(of(240e3, 241e3)).toBe("");
  expect(of(NaN, NaN)).toBe("");
});
