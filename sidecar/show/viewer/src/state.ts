// What is shown, and how keys and wheels change it. Nothing here knows a page.

import { clamp, max, min } from "./brief.ts";

/** State is all that a reader changed; times are microseconds. */
export interface State {
  readonly view: string;
  readonly from: number; // the window on the time axis
  readonly to: number;
  readonly picked: readonly [number, number] | null; // the selected stretch
  readonly query: string;
  readonly folded: boolean; // libraries and imports
  readonly colour: string; // "code", "module" or "state"
  readonly upward: boolean; // the flame graph shows callers
  readonly root: number; // the box of the flame graph that fills it
  readonly callersOf: number; // function whose callers are shown; -1: none
  readonly who: number; // threads of the flame graph: a number, everyThread or cellThread
  readonly unfolded: ReadonlyMap<number, number>; // rows by lane, where not the picture's own
}

export const initial = (duration: number, folded: boolean): State => ({
  view: "timeline",
  from: 0,
  to: duration,
  picked: null,
  query: "",
  folded,
  colour: "code",
  upward: false,
  root: 0,
  callersOf: -1,
  who: -2,
  unfolded: new Map(),
});

// In what follows, whole is the state that the static picture shows.

export const isZoomed = (s: State, whole: State): boolean => s.from > 0 || s.to < whole.to;

/** isPristine tells a state that the static picture shows as well. */
export const isPristine = (s: State, whole: State): boolean =>
  s.view === whole.view && !isZoomed(s, whole) && !s.picked && !s.query && s.folded === whole.folded && s.colour === whole.colour && !s.unfolded.size;

/** rangeOf is the stretch of time that figures are about. */
export const rangeOf = (s: State): readonly [number, number] => s.picked || [s.from, s.to];

/** Windows shorter than this show nothing that was measured. */
const leastWindow = 20;

/** toWindow shows a stretch of time, as near as the recording has it. */
export function toWindow(s: State, whole: State, from: number, to: number): State {
  const width = clamp(to - from, leastWindow, whole.to);
  from = clamp((from + to - width) / 2, 0, whole.to - width);
  return { ...s, from, to: from + width };
}

/** zoom narrows (factor < 1) or widens the window and leaves the instant at where it stands. */
export function zoom(s: State, whole: State, at: number, factor: number): State {
  const width = clamp((s.to - s.from) * factor, leastWindow, whole.to);
  const from = at - ((at - s.from) / (s.to - s.from)) * width;
  return toWindow(s, whole, from, from + width);
}

/** pan moves the window by a share of its width. */
export const pan = (s: State, whole: State, share: number): State => {
  const by = (s.to - s.from) * share;
  return toWindow(s, whole, s.from + by, s.to + by);
};

/** pick selects a stretch, or nothing where it is empty. */
export function pick(s: State, whole: State, a: number, b: number): State {
  const from = max(min(a, b), 0);
  const to = min(max(a, b), whole.to);
  return { ...s, picked: to > from ? [from, to] : null };
}

/** show brings a stretch into view with some air around it, and selects it. */
export const show = (s: State, whole: State, from: number, to: number): State =>
  pick({ ...toWindow(s, whole, from - (to - from) / 2, to + (to - from) / 2), view: whole.view }, whole, from, to);

/** unzoomed shows all of the recording. */
export const unzoomed = (s: State, whole: State): State => ({ ...s, from: 0, to: whole.to, picked: null });

/** back takes one step towards the static picture. */
export const back = (s: State, whole: State): State =>
  s.query
    ? { ...s, query: "" }
    : s.callersOf >= 0
      ? { ...s, callersOf: -1 }
      : s.root
        ? { ...s, root: 0 }
        : s.picked
          ? { ...s, picked: null }
          : isZoomed(s, whole)
            ? unzoomed(s, whole)
            : whole;

/** wheelFactor is the zoom of a wheel's turn, whatever it counts in: pixels, lines or pages. */
export const wheelFactor = (delta: number, mode: number): number => Math.exp(clamp(delta * [1, 16, 400][mode]!, -300, 300) * 0.003);

/** keyed is the state after a key; undefined for a key that changes none. */
export function keyed(s: State, whole: State, key: string): State | undefined {
  const [from, to] = rangeOf(s);
  const middle = (from + to) / 2;
  const states: Record<string, () => State> = {
    w: () => zoom(s, whole, middle, 0.6),
    s: () => zoom(s, whole, middle, 1 / 0.6),
    a: () => pan(s, whole, -0.2),
    d: () => pan(s, whole, 0.2),
    0: () => unzoomed(s, whole),
    Escape: () => back(s, whole),
  };
  return states[key]?.();
}
