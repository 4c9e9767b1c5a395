// What every lane shows in a window of time: one frame of the timeline, before it has colours.

import { firstAfter, instants, picksOf } from "./columns.ts";
import { codeRow, flameGrid, foldShort, rowOf, sameOf, stateRow, type Grid } from "./grid.ts";
import type { Layout, Placed } from "./lanes.ts";
import type { Model } from "./model.ts";
import type { Thread, Track } from "./recording.ts";
import { isZoomed, type State } from "./state.ts";
import { heights } from "./sums.ts";

/** Shown is a lane of a frame. */
export interface Shown {
  placed: Placed;
  grid?: Grid; // of lanes with boxes
  picks?: Int32Array; // by column: the span that is shown, -1 for none
  thread?: Thread;
  track?: Track;
  levels?: Float32Array; // of a track: by column, in its unit
}

/**
 * emptyLanes are the flame charts, by their place in the list, of other threads than the main one that have no box in
 * from … to.
 */
export const emptyLanes = ({ recording, chart, main }: Model, from: number, to: number): number[] =>
  chart.lanes.flatMap(({ rows, nth }, i) => {
    const thread = recording.threads[nth];
    if (!rows || !thread || thread === main) return [];
    const first = firstAfter(recording.end, thread.begin, thread.end, from);
    return first < thread.end && recording.begin[first]! < to ? [] : [i];
  });

/**
 * frameOf fills the lanes between top and bottom (CSS pixels) with columns, scale of them per pixel; last the overview.
 */
export function frameOf(
  model: Model,
  state: State,
  layout: Layout,
  columns: number,
  scale: number,
  top: number,
  bottom: number,
): (Shown | null)[] {
  const { recording } = model;
  const at = instants(state.from, state.to, columns);
  const known = new Map<Thread, Int32Array>();
  const found = model.found(state.query, state.folded);
  const tree = model.tree(state.folded);
  const shown = layout.lanes.map((placed): Shown | null => {
    const { lane, rows, limit } = placed;
    if (placed.y1 < top || placed.y0 > bottom) return null;
    const track = lane.kind === "track" && recording.tracks[lane.nth];
    if (track) return { placed, track, levels: heights(track, state.from, state.to, columns) };
    const stream = lane.kind === "stream" && recording.streams[lane.nth];
    if (stream) {
      const picks = picksOf(stream, 0, stream.end.length, at);
      return { placed, picks, grid: rowOf(picks, (i) => stream.node[i]! + 1) };
    }
    const thread = lane.kind === "lines" ? model.main : recording.threads[lane.nth];
    if (!thread || lane.kind === "track" || lane.kind === "stream") return { placed };
    const picks = known.get(thread) || picksOf(recording, thread.begin, thread.end, at);
    known.set(thread, picks);
    let grid: Grid;
    if (lane.kind === "lines") {
      const own = model.own(lane.nth).at;
      grid = rowOf(picks, (i) => own[recording.node[i]!]! + 1);
    } else if (rows) {
      grid = flameGrid(tree, recording, picks, rows, limit);
      if (state.folded) foldShort(grid, scale, sameOf(tree, recording, picks));
    } else grid = lane.byCode ? codeRow(tree, recording, picks, found, true) : stateRow(recording, picks);
    return { placed, thread, picks, grid };
  });
  // The overview: what the cell's thread called over the whole recording.
  if (model.main && isZoomed(state, model.initial))
    shown.push({
      placed: layout.strip,
      grid: codeRow(
        tree,
        recording,
        picksOf(recording, model.main.begin, model.main.end, instants(0, recording.duration, columns)),
        found,
      ),
    });
  return shown;
}
