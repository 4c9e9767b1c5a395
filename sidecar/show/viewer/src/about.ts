// What the tooltip says of a box of the timeline.

import { placeWords, shareWords, source, whereOf, type App } from "./app.ts";
import { picksOf, within } from "./columns.ts";
import type { Shown } from "./frame.ts";
import { index, us } from "./json.ts";
import { floats, max } from "./math.ts";
import { wordsOf } from "./paint.ts";
import { aboutCell, type Cell } from "./ranks.ts";
import type { Recording } from "./recording.ts";
import { rangeOf } from "./state.ts";
import { stateTimes } from "./sums.ts";
import { figure, micros, percent, plural } from "./words.ts";

/** So many names of a stack are given. */
const mostCallers = 6;

/** Target is a box, or a column of a lane without boxes. */
export interface Target {
  lane: Shown;
  row: number;
  column: number;
  id: number;
  begin: number; // columns of the box
  end: number;
  cell?: Cell | undefined; // of the strip of ranks
}

/** launchOf is when a kernel began, when the call began that queued it, by which thread and in which span of it. */
export function launchOf({ model: { recording } }: App, { lane, column, id }: Target) {
  const { kind, nth } = lane.placed.lane;
  const stream = recording.streams[nth];
  if (kind !== "stream" || !id || !stream) return;
  const i = lane.picks![column]!;
  const thread = recording.threads[index(stream.launcher[i], recording.threads.length)];
  const begin = stream.begin[i]!;
  const at = begin - us(stream.launch[i]);
  return (
    thread && { begin, at, thread, span: picksOf(recording, thread.begin, thread.end, floats(1).fill(at + 1))[0]! }
  );
}

/** growthOf is the line in which the resident memory grew there, and from when to when. */
export function growthOf(
  { model: { recording }, state: { from, to } }: App,
  { lane, column }: Target,
  columns: number,
) {
  const us = (to - from) / columns;
  const at = from + (column + 0.5) * us;
  for (const growth of lane.track?.resident ? recording.growth : [])
    for (let i = 0; i < growth.evidence.length; i += 2) {
      const [begin, end] = [growth.evidence[i]!, growth.evidence[i + 1]!];
      if (begin - us <= at && at <= max(end, begin + 4 * us)) return { ...growth, begin, end };
    }
  return null;
}

/** callersIn are the names of a span's stack, the innermost first. */
function callersIn({ node, above, fnOf, fns }: Recording, span: number): string {
  const names: string[] = [];
  for (let n = node[span] || 0; n && names.length < mostCallers; n = above[n]!) names.push(fns[fnOf[n]!]!.name);
  return names.join(" ‹ ");
}

/** about are a target's lines, in a window of so many columns: its name, where it is, figures. */
export function about(app: App, target: Target, columns: number): string[] {
  const { lane, row, column, id, begin, end } = target;
  const { model, state } = app;
  const { recording, chart } = model;
  const columnTime = (c: number) => state.from + (c / columns) * (state.to - state.from);
  const { placed, track, grid: cells, thread, picks } = lane;
  const { kind, name, nth } = placed.lane;
  const at = columnTime(column);
  const share = (us: number) => ` · ${micros(us)} (${percent(us / recording.duration)}) in all`;
  if (target.cell) return aboutCell(placed.lane.cells!, target.cell);
  if (track) {
    const growth = growthOf(app, target, columns);
    return [
      name,
      growth ? placeWords(app, growth.place) + "  " + source(growth.place) : "",
      (growth ? figure(growth.bytes, "B") + " of growth in all · " : "") +
        figure(lane.levels![column]!, track.unit) +
        " at " +
        micros(at),
    ];
  }
  if (!cells || !id) {
    const gap = thread && recording.gaps.find((v) => v.process === thread.process && v.begin <= at && at < v.end);
    return gap && cells ? [gap.text, "", micros(gap.end - gap.begin) + " from " + micros(gap.begin) + " on"] : [];
  }
  const here = micros(columnTime(end) - columnTime(begin)) + " here";
  if (kind === "stream") {
    const joined = recording.streams[nth]!.joined[picks![column]!] as number;
    const launch = launchOf(app, target);
    return [
      recording.streams[nth]!.kernels[id - 1]!,
      launch ? `launched ${micros(launch.begin - launch.at)} before: ${callersIn(recording, launch.span)}` : "",
      here + (joined > 1 ? `, the longest of ${plural(joined, "kernel")}` : ""),
    ];
  }
  if (kind === "lines") {
    const place = model.own(nth).places[id - 1]!;
    const line = model
      .lines(0, recording.duration)
      .find(({ place: { file, line } }) => file === place.file && line === place.line);
    return [
      placeWords(app, place),
      source(place),
      here + (line ? share(line.self) + (line.idle ? ", the GPU idle for " + micros(line.idle) : "") : ""),
    ];
  }
  const i = picks![column]!;
  const tree = model.tree(state.folded);
  const merged = within(recording, thread!.begin, thread!.end, at, columnTime(column + 1));
  const more =
    (cells.leaf?.[column] === row || !placed.rows ? " · " + chart.states[recording.state[i]!] : "") +
    (merged > 1 ? ` · merges ${plural(merged, "stack")}` : "");
  const fn = tree.fn[placed.rows ? id : tree.of[recording.node[i]!]!]!;
  const func = tree.fns[fn];
  const where = func ? whereOf(func) : "";
  if (!placed.rows)
    return [
      name,
      func ? func.name + "  " + where : "",
      here + more + " · " + shareWords(app, stateTimes(recording, thread!, ...rangeOf(state)), micros),
    ];
  const times = model.functions(0, recording.duration).get(fn);
  return [
    func?.name || wordsOf(tree, cells, id)[0]!,
    where,
    here +
      (times
        ? `${share(times.total)}, ${micros(times.self)} its own` +
          (times.self ? ` (${shareWords(app, times.shares, micros)})` : "")
        : "") +
      more,
  ];
}
