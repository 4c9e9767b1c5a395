// What is shown, and how keys and wheels change it. Nothing here knows a page.

import { clamp, max, min } from "./math.ts";

/** State is all that a reader changed; times are microseconds. */
export interface State {
  readonly view: string;
  readonly from: number; // the window on the time axis
  readonly to: number;
  readonly picked: readonly [number, number] | null; // the selected stretch
  readonly query: string;
  readonly nth: number; // the place shown of those that the search found, from 1; 0 before the first
  readonly folded: boolean; // libraries and imports
  readonly colour: string; // "code", "module" or "state"
  readonly upward: boolean; // the flame graph shows callers
  readonly root: number; // the box of the flame graph that fills it
  readonly callersOf: number; // function whose callers are shown; -1: none
  readonly who: number; // threads of the flame graph: a number, everyThread or cellThread
  readonly unfolded: ReadonlyMap<number, number>; // rows by lane, where not the picture's own
}

export const initialState = (duration: number, folded: boolean): State => ({
  view: "timeline",
  from: 0,
  to: duration,
  picked: null,
  query: "",
  nth: 0,
  folded,
  colour: "code",
  upward: false,
  root: 0,
  callersOf: -1,
  who: -2,
  unfolded: new Map(),
});

// In what follows, initial is the state that the static picture shows.

export const isZoomed = (state: State, initial: State): boolean => state.from > 0 || state.to < initial.to;

/** isPristine reports whether the static picture shows the state as well. */
export const isPristine = (state: State, initial: State): boolean =>
  state.view === initial.view &&
  !isZoomed(state, initial) &&
  !state.picked &&
  !state.query &&
  state.folded === initial.folded &&
  state.colour === initial.colour &&
  !state.unfolded.size;

/** rangeOf is the stretch of time that figures are about. */
export const rangeOf = (state: State): readonly [number, number] => state.picked || [state.from, state.to];

/** Windows shorter than this show nothing that was measured. */
const leastWindow = 20;

/** toWindow shows a stretch of time, as near as the recording has it. */
export function toWindow(state: State, initial: State, from: number, to: number): State {
  const width = clamp(to - from, leastWindow, initial.to);
  from = clamp((from + to - width) / 2, 0, initial.to - width);
  return { ...state, from, to: from + width };
}

/** zoom narrows (factor < 1) or widens the window and leaves the instant at where it stands. */
export function zoom(state: State, initial: State, at: number, factor: number): State {
  const width = clamp((state.to - state.from) * factor, leastWindow, initial.to);
  const from = at - ((at - state.from) / (state.to - state.from)) * width;
  return toWindow(state, initial, from, from + width);
}

/** pan moves the window by a share of its width. */
export const pan = (state: State, initial: State, share: number): State => {
  const by = (state.to - state.from) * share;
  return toWindow(state, initial, state.from + by, state.to + by);
};

/** pick selects a stretch, or nothing where it is empty. */
export function pick(state: State, initial: State, a: number, b: number): State {
  const from = max(min(a, b), 0);
  const to = min(max(a, b), initial.to);
  return { ...state, picked: to > from ? [from, to] : null };
}

/** show brings a stretch into view with some air around it, and selects it. */
export const show = (state: State, initial: State, from: number, to: number): State =>
  pick(
    { ...toWindow(state, initial, from - (to - from) / 2, to + (to - from) / 2), view: initial.view },
    initial,
    from,
    to,
  );

/** unzoomed shows all of the recording. */
export const unzoomed = (state: State, initial: State): State => ({ ...state, from: 0, to: initial.to, picked: null });

/** back takes one step towards the static picture: the latest kind of change is taken back first. */
export function back(state: State, initial: State): State {
  if (state.query) return { ...state, query: "" };
  if (state.callersOf >= 0) return { ...state, callersOf: -1 };
  if (state.root) return { ...state, root: 0 };
  if (state.picked) return { ...state, picked: null };
  return isZoomed(state, initial) ? unzoomed(state, initial) : initial;
}

/** wheelFactor is the zoom of a wheel's turn, whatever it counts in: pixels, lines or pages. */
export const wheelFactor = (delta: number, mode: number): number =>
  Math.exp(clamp(delta * [1, 16, 400][mode]!, -300, 300) * 0.003);

/** keyed is the state after a key; undefined for a key that changes none. */
export function keyed(state: State, initial: State, key: string): State | undefined {
  const [from, to] = rangeOf(state);
  const middle = (from + to) / 2;
  const states: Record<string, () => State> = {
    w: () => zoom(state, initial, middle, 0.6),
    s: () => zoom(state, initial, middle, 1 / 0.6),
    a: () => pan(state, initial, -0.2),
    d: () => pan(state, initial, 0.2),
    0: () => unzoomed(state, initial),
    Escape: () => back(state, initial),
  };
  return states[key]?.();
}
