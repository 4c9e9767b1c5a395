// The sentence below the head: the answer for what is shown.

import { isWhole, placeWords, shareWords, source, type App } from "./app.ts";
import { code, element, small, type Child } from "./dom.ts";
import { idleTime } from "./idle.ts";
import type { Phrase } from "./lanes.ts";
import { max } from "./math.ts";
import { cellThread } from "./model.ts";
import { matchedTime, matcher } from "./search.ts";
import { rangeOf } from "./state.ts";
import { stateTimes } from "./sums.ts";
import { micros, percent, plural } from "./words.ts";

/** A line is named for the idle time if it has at least this share of it. */
const worthNaming = 0.05;

const strong = (text: string): HTMLElement => element("b", null, text);

/** phrase is a piece of a line in its tone. */
export const phrase = ([text, tone, tag]: Phrase): HTMLElement =>
  element(tag as "b", { style: tone && `color:var(--${tone})` }, text);

/** sentence answers for the whole recording, what is shown of it, the selection, or the search. */
export function sentence(app: App): Child[] {
  const { model, state } = app;
  const [from, to] = rangeOf(state);
  if (state.query) return foundWords(app);
  if (isWhole(app)) return model.chart.finding.map(phrase);
  const shown = `${state.picked ? "Selected" : "Shown"} ${micros(to - from)}: `;
  return model.recording.gpu ? idleWords(app, shown) : workWords(app, shown);
}

/** foundWords say how much of the time is in functions that match the search. */
function foundWords({ model, state }: App): Child[] {
  const { query, nth } = state;
  if (!matcher(query)) return [strong(`“${query}” is no regular expression`)];
  const [from, to] = rangeOf(state);
  const found = model.found(query, false)!;
  const { self, total } = model.sums(false, state.view === "flame" ? state.who : cellThread, from, to);
  const us = matchedTime(found, self);
  const functions = [...model.functions(from, to).keys()].filter((fn) => found.fns[fn]).length;
  const all = total[0]!;
  const part = `${micros(us)} of ${micros(all)} (${percent(us / (all || 1))})`;
  const places = model.places(query).length / 2;
  return [
    strong(`“${query}”: ${part} in ${plural(functions, "function")}`),
    small(places && `${nth ? nth + " of " : ""}${plural(places, "place")}, framed · Enter: the next one`),
  ];
}

/** idleWords say how long the GPUs were idle, of several the mean, and at which line, or beside which function. */
function idleWords(app: App, shown: string): Child[] {
  const { model } = app;
  const { activity } = model.recording;
  const [from, to] = rangeOf(app.state);
  const devices = max(activity.length, 1);
  const idle = idleTime(model.recording, from, to) / devices;
  const who = devices > 1 ? "the GPUs were idle in the mean" : "the GPU was idle";
  const [worst] = [...model.lines(from, to)].sort((a, b) => b.idle - a.idle);
  const atLine = worst ? worst.idle / devices : 0;
  const named = atLine > idle * worthNaming ? worst!.place : null;
  const ofThat = named ? `, ≥ ${micros(atLine)} of that in ${placeWords(app, named)}` : "";
  return [
    strong(`${shown}${who} for ${micros(idle)} of it (${percent(idle / (to - from))})${ofThat}`),
    code(named && source(named)),
  ];
}

/** workWords say in which line the time went and what the thread did, without lines which function had most. */
function workWords(app: App, shown: string): Child[] {
  const { model } = app;
  const [from, to] = rangeOf(app.state);
  const [most] = model.lines(from, to);
  const share = (us: number) => percent(us / (to - from));
  if (!most) return [strong(shown + "no line of yours")];
  const doing = shareWords(app, stateTimes(model.recording, model.main!, from, to), share);
  return [
    strong(`${shown}${micros(most.self)} of it (${share(most.self)}) in ${placeWords(app, most.place)}`),
    code(source(most.place)),
    small(doing),
  ];
}
