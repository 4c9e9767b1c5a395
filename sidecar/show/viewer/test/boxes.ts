// A grid's boxes, as Go writes them.

import { boxes, type Grid } from "../src/grid.ts";
import type { FixtureBox } from "./samples.ts";

/** rowsOf are a grid's boxes as the fixtures have them: of several short calls what most are, of deeper ones minus their number. */
export const rowsOf = (g: Grid, name: (id: number) => number): (FixtureBox[] | null)[] =>
  Array.from({ length: g.rows }, (_, row) => {
    const out: FixtureBox[] = [];
    boxes(g, row, 1, (id, From, To) => {
      const mark = g.marks[-1 - id];
      if (!mark) out.push({ From, To, ID: name(id) });
      else if (!mark.node) out.push({ From, To, ID: -mark.others });
      else out.push({ From, To, ID: mark.node, Share: mark.share, ...(mark.others && { Others: mark.others }) });
    });
    return out.length ? out : null;
  });
