// What every lane shows in a window of time: one frame of the timeline, before it has colours.

import { instants, picksOf } from "./columns.ts";
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

/** frameOf fills the lanes between top and bottom (CSS pixels) with columns, scale of them per pixel, and last the overview. */
export function frameOf(m: Model, s: State, l: Layout, columns: number, scale: number, top: number, bottom: number): (Shown | null)[] {
  const { r } = m;
  const at = instants(s.from, s.to, columns);
  const known = new Map<Thread, Int32Array>();
  const found = m.found(s.query, s.folded);
  const t = m.tree(s.folded);
  const shown = l.lanes.map((placed): Shown | null => {
    const { lane, rows, limit } = placed;
    if (placed.y1 < top || placed.y0 > bottom) return null;
    const track = lane.kind === "track" && r.tracks[lane.nth];
    if (track) return { placed, track, levels: heights(track, s.from, s.to, columns) };
    const stream = FULL && lane.kind === "stream" && r.streams[lane.nth];
    if (stream) {
      const picks = picksOf(stream, 0, stream.end.length, at);
      return { placed, picks, grid: rowOf(picks, (i) => stream.node[i]! + 1) };
    }
    const thread = lane.kind === "lines" ? m.main : r.threads[lane.nth];
    if (!thread || lane.kind === "track" || lane.kind === "stream") return { placed };
    const picks = known.get(thread) || picksOf(r, thread.begin, thread.end, at);
    known.set(thread, picks);
    let grid: Grid;
    if (lane.kind === "lines") {
      const own = m.own(lane.nth).at;
      grid = rowOf(picks, (i) => own[r.node[i]!]! + 1);
    } else if (rows) {
      grid = flameGrid(t, r, picks, rows, limit);
      if (s.folded) foldShort(grid, scale, sameOf(t, r, picks));
    } else grid = lane.byCode ? codeRow(t, r, picks, found, true) : stateRow(r, picks);
    return { placed, thread, picks, grid };
  });
  // The overview: what the cell's thread called over the whole recording.
  if (m.main && isZoomed(s, m.whole)) shown.push({ placed: l.strip, grid: codeRow(t, r, picksOf(r, m.main.begin, m.main.end, instants(0, r.duration, columns)), found) });
  return shown;
}
