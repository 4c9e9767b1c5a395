import { expect, test } from "vitest";
import {
  back,
  initial,
  isPristine,
  isZoomed,
  keyed,
  pan,
  pick,
  rangeOf,
  show,
  toWindow,
  wheelFactor,
  zoom,
} from "../src/state.ts";

const second = 1e6;
const whole = initial(10 * second, true);

test("zooming leaves the instant under the pointer where it is", () => {
  let s = whole;
  const at = 3 * second;
  for (let i = 0; i < 20; i++) {
    const before = (at - s.from) / (s.to - s.from);
    s = zoom(s, whole, at, 0.7);
    expect((at - s.from) / (s.to - s.from)).toBeCloseTo(before, 6);
  }
  expect(s.to - s.from).toBeLessThan(second);
});

test("no window leaves the recording or is narrower than what was measured", () => {
  for (const s of [
    zoom(whole, whole, 5, 100),
    pan(zoom(whole, whole, 5 * second, 0.1), whole, -50),
    pan(zoom(whole, whole, 5 * second, 0.1), whole, 50),
    toWindow(whole, whole, -5, 1e99),
  ]) {
    expect(s.from).toBeGreaterThanOrEqual(0);
    expect(s.to).toBeLessThanOrEqual(whole.to);
    expect(s.to - s.from).toBeGreaterThan(0);
  }
  let s = whole;
  for (let i = 0; i < 200; i++) s = zoom(s, whole, 7 * second, 0.5);
  expect(s.to - s.from).toBeCloseTo(20, 6);
});

test("panning keeps the width, at the ends too", () => {
  const s = zoom(whole, whole, 5 * second, 0.2);
  for (const share of [-0.3, 0.3, 99, -99])
    expect(pan(s, whole, share).to - pan(s, whole, share).from).toBeCloseTo(s.to - s.from, 6);
});

test("a selection is a range whichever way it is drawn, or none", () => {
  expect(pick(whole, whole, 5, 2).picked).toEqual([2, 5]);
  expect(pick(whole, whole, 5, 5).picked).toBe(null);
  expect(rangeOf(pick(whole, whole, 2, 5))).toEqual([2, 5]);
  expect(rangeOf(whole)).toEqual([0, 10 * second]);
});

test("evidence is shown with air around it, selected, on the timeline", () => {
  const s = show({ ...whole, view: "findings" }, whole, 4 * second, 5 * second);
  expect([s.view, s.from, s.to, s.picked]).toEqual(["timeline", 3.5 * second, 5.5 * second, [4 * second, 5 * second]]);
});

test("Escape goes back step by step, at last to the picture", () => {
  let s = { ...pick(zoom(whole, whole, 5, 0.5), whole, 1, 2), view: "flame", query: "load", root: 3, callersOf: 2 };
  const seen: string[] = [];
  for (let i = 0; i < 6; i++) {
    s = back(s, whole);
    seen.push([s.query, s.callersOf, s.root, !!s.picked, isZoomed(s, whole), s.view].join());
  }
  expect(seen).toEqual([
    "load,2,3,true,true,flame".replace("load", ""),
    ",-1,3,true,true,flame",
    ",-1,0,true,true,flame",
    ",-1,0,false,true,flame",
    ",-1,0,false,false,flame",
    ",-1,0,false,false,timeline",
  ]);
  expect(isPristine(s, whole)).toBe(true);
});

test("keys zoom, pan and go back; others change nothing", () => {
  const zoomed = keyed(whole, whole, "w")!;
  expect(isZoomed(zoomed, whole)).toBe(true);
  expect(keyed(zoomed, whole, "d")!.from).toBeGreaterThan(zoomed.from);
  expect(keyed(zoomed, whole, "a")!.from).toBeLessThan(zoomed.from);
  expect(isPristine(keyed(zoomed, whole, "0")!, whole)).toBe(true);
  for (const key of ["b", "x", "Enter", "F5", " "]) expect(keyed(whole, whole, key)).toBe(undefined);
});

test("wheels count in pixels, lines or pages", () => {
  expect(wheelFactor(16, 0)).toBeCloseTo(wheelFactor(1, 1), 9);
  expect(wheelFactor(-1e9, 2)).toBeGreaterThan(0.3);
  expect(wheelFactor(100, 0) * wheelFactor(-100, 0)).toBeCloseTo(1, 9);
});
