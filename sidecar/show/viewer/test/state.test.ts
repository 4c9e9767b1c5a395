import { expect, test } from "vitest";
import {
  back,
  initialState,
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
const initial = initialState(10 * second, true);

test("zooming leaves the instant under the pointer where it is", () => {
  let s = initial;
  const at = 3 * second;
  for (let i = 0; i < 20; i++) {
    const before = (at - s.from) / (s.to - s.from);
    s = zoom(s, initial, at, 0.7);
    expect((at - s.from) / (s.to - s.from)).toBeCloseTo(before, 6);
  }
  expect(s.to - s.from).toBeLessThan(second);
});

test("no window leaves the recording or is narrower than what was measured", () => {
  for (const s of [
    zoom(initial, initial, 5, 100),
    pan(zoom(initial, initial, 5 * second, 0.1), initial, -50),
    pan(zoom(initial, initial, 5 * second, 0.1), initial, 50),
    toWindow(initial, initial, -5, 1e99),
  ]) {
    expect(s.from).toBeGreaterThanOrEqual(0);
    expect(s.to).toBeLessThanOrEqual(initial.to);
    expect(s.to - s.from).toBeGreaterThan(0);
  }
  let s = initial;
  for (let i = 0; i < 200; i++) s = zoom(s, initial, 7 * second, 0.5);
  expect(s.to - s.from).toBeCloseTo(20, 6);
});

test("panning keeps the width, at the ends too", () => {
  const s = zoom(initial, initial, 5 * second, 0.2);
  for (const share of [-0.3, 0.3, 99, -99])
    expect(pan(s, initial, share).to - pan(s, initial, share).from).toBeCloseTo(s.to - s.from, 6);
});

test("a selection is a range whichever way it is drawn, or none", () => {
  expect(pick(initial, initial, 5, 2).picked).toEqual([2, 5]);
  expect(pick(initial, initial, 5, 5).picked).toBe(null);
  expect(rangeOf(pick(initial, initial, 2, 5))).toEqual([2, 5]);
  expect(rangeOf(initial)).toEqual([0, 10 * second]);
});

test("evidence is shown with air around it, selected, on the timeline", () => {
  const s = show({ ...initial, view: "findings" }, initial, 4 * second, 5 * second);
  expect([s.view, s.from, s.to, s.picked]).toEqual(["timeline", 3.5 * second, 5.5 * second, [4 * second, 5 * second]]);
});

test("Escape goes back step by step, at last to the picture", () => {
  let s = {
    ...pick(zoom(initial, initial, 5, 0.5), initial, 1, 2),
    view: "flame",
    query: "load",
    root: 3,
    callersOf: 2,
  };
  const seen: string[] = [];
  for (let i = 0; i < 6; i++) {
    s = back(s, initial);
    seen.push([s.query, s.callersOf, s.root, !!s.picked, isZoomed(s, initial), s.view].join());
  }
  expect(seen).toEqual([
    "load,2,3,true,true,flame".replace("load", ""),
    ",-1,3,true,true,flame",
    ",-1,0,true,true,flame",
    ",-1,0,false,true,flame",
    ",-1,0,false,false,flame",
    ",-1,0,false,false,timeline",
  ]);
  expect(isPristine(s, initial)).toBe(true);
});

test("keys zoom, pan and go back; others change nothing", () => {
  const zoomed = keyed(initial, initial, "w")!;
  expect(isZoomed(zoomed, initial)).toBe(true);
  expect(keyed(zoomed, initial, "d")!.from).toBeGreaterThan(zoomed.from);
  expect(keyed(zoomed, initial, "a")!.from).toBeLessThan(zoomed.from);
  expect(isPristine(keyed(zoomed, initial, "0")!, initial)).toBe(true);
  for (const key of ["b", "x", "Enter", "F5", " "]) expect(keyed(initial, initial, key)).toBe(undefined);
});

test("wheels count in pixels, lines or pages", () => {
  expect(wheelFactor(16, 0)).toBeCloseTo(wheelFactor(1, 1), 9);
  expect(wheelFactor(-1e9, 2)).toBeGreaterThan(0.3);
  expect(wheelFactor(100, 0) * wheelFactor(-100, 0)).toBeCloseTo(1, 9);
});
