// What the parts of the viewer share while it shows something.

import { sum } from "./math.ts";
import type { Model } from "./model.ts";
import type { Place } from "./recording.ts";
import type { Stretches } from "./stretches.ts";
import { rangeOf, show, type State } from "./state.ts";
import type { Theme } from "./theme.ts";
import { micros, shortFile } from "./words.ts";

export interface App {
  model: Model;
  state: State;
  theme: Theme;
  /** inks are the colours of the tree that is shown, by node. */
  inks(): Uint32Array;
  /** put changes the state, and with the next frame what is shown. */
  put(change: Partial<State>): void;
  /** tip shows lines of text near a point of the window: a name, a place in code, figures; none hide it. */
  tip(x: number, y: number, lines: string[]): void;
}

/** placeWords name a line: "line 3" of the cell itself, else "train.py:3". */
export const placeWords = ({ model }: App, place: Place | null): string =>
  !place
    ? ""
    : place.file.nth === model.recording.cell
      ? "line " + place.line
      : shortFile(place.file.path) + ":" + place.line;

/** whereOf is a function's place in code. */
export const whereOf = ({ file, line }: Place): string =>
  file.path.replace(/.*\/((site|dist)-packages|python3[^/]*)\//, "") + (line ? ":" + line : "");

/** source is a line's text, where the report has it. */
export const source = (place: Place | null): string => (place?.file.source?.[place.line - 1] || "").trim();

/** jump shows where something happened: its longest stretch. */
export function jump(app: App, evidence: Stretches): void {
  let best = 0;
  for (let i = 2; i < evidence.length; i += 2)
    if (evidence[i + 1]! - evidence[i]! > evidence[best + 1]! - evidence[best]!) best = i;
  app.put(show(app.state, app.model.initial, evidence[best]!, evidence[best + 1]!));
}

/** goOn shows the next place of those that the search found, or the one before. */
export function goOn({ model, state, put }: App, by: number): void {
  const places = model.places(state.query);
  const all = places.length / 2;
  const nth = ((state.nth || (by < 0 ? 1 : 0)) + by - 1 + all) % all || 0;
  if (all) put({ ...show(state, model.initial, places[2 * nth]!, places[2 * nth + 1]!), nth: nth + 1 });
}

/** isWhole: figures are about the whole recording. */
export function isWhole({ state, model }: App): boolean {
  const [from, to] = rangeOf(state);
  return from <= 0 && to >= model.recording.duration;
}

/** rangeWords say what figures are about. */
export function rangeWords(app: App): string {
  const [from, to] = rangeOf(app.state);
  return isWhole(app)
    ? "in " + micros(to)
    : `${app.state.picked ? "selected" : "shown"} ${micros(to - from)} from ${micros(from)} on`;
}

/** shareWords say what a thread was doing, most first. */
export const shareWords = ({ model }: App, shares: Float64Array, words: (us: number) => string): string => {
  const least = sum(shares) / 100;
  return model.chart.states
    .map((word, i): [number, string] => [shares[i]!, word])
    .filter(([us]) => us > least)
    .sort((a, b) => b[0] - a[0])
    .map(([us, word]) => word + " " + words(us))
    .join(" · ");
};
