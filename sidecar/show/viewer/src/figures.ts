// What a lane says in the right gutter: of the window or the selection, or of the instant under the pointer.

import { isWhole, type App } from "./app.ts";
import { State } from "./generated.ts";
import type { Lane } from "./lanes.ts";
import { abs } from "./math.ts";
import type { Track } from "./recording.ts";
import { rangeOf } from "./state.ts";
import { eachSpan, heights, stateTimes } from "./sums.ts";
import { figure, micros, percent } from "./words.ts";

/** laneFigure is a lane's figure, and what it is of; of the whole the picture's. at is an instant, or negative. */
export function laneFigure(app: App, lane: Lane, at: number): [value: string, aside: string] {
  const { model, state } = app;
  const { recording } = model;
  const { kind, nth } = lane;
  const [from, to] = rangeOf(state);
  const busyWords = (us: number): [string, string] => [percent(us / (to - from)) + " busy", lane.aside];
  const part = state.picked ? "in selection" : "in view";
  const track = kind === "track" && recording.tracks[nth];
  if (track && at >= 0) return [figure(levelOf(track, at, at + 1), track.unit), "at " + micros(at)];
  if (at >= 0 || isWhole(app)) return [lane.figure, lane.aside];
  if (track) return [figure(levelOf(track, from, to), track.unit), growthWords(track, from, to) || part];
  const stream = kind === "stream" && recording.streams[nth];
  if (stream) {
    let busy = 0;
    eachSpan(stream, { begin: 0, end: stream.end.length }, from, to, (_, us) => (busy += us));
    return busyWords(busy);
  }
  const thread = kind === "thread" && recording.threads[nth];
  if (thread) {
    const times = stateTimes(recording, thread, from, to);
    return busyWords(times[State.python]! + times[State.native]!);
  }
  return [lane.figure, lane.aside];
}

const levelOf = (track: Track, from: number, to: number): number => heights(track, from, to, 1)[0]!;

/** growthWords say how a gauge changed; empty for rates, and where it did not. */
function growthWords(track: Track, from: number, to: number): string {
  const growth = track.rate ? 0 : levelOf(track, to - 1, to) - levelOf(track, from, from + 1);
  return growth ? (growth > 0 ? "+" : "−") + figure(abs(growth), track.unit) : "";
}
