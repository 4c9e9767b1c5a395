// A chart's views: what stands on the stage in each, and what is read below it.

import type { App } from "./app.ts";
import { div, dot, fill, h, link, select, type Child } from "./dom.ts";
import { flameView, foldButton, type FlameView } from "./flame.ts";
import { modelOf } from "./model.ts";
import type { Page } from "./page.ts";
import { crewTables } from "./crews.ts";
import { session, type Content, type Session } from "./session.ts";
import { isZoomed, unzoomed } from "./state.ts";
import { findingsTable, functionsTable, idleTable, linesTable, stepsTable, threadsTable } from "./tables.ts";
import { timeline } from "./timeline.ts";

/** openChart makes a session of a report's document; null where there is no picture to stand on. */
export function openChart(document: unknown, page: Page): Session | null {
  const m = modelOf(document);
  return m && session(m, page, chartContent);
}

function chartContent(app: App, stage: HTMLElement): Content {
  const lanes = timeline(app);
  const { whole, chart } = app.m;
  const tools = div("o-tools");
  const legend = div("o-legend", ...chart.legend.map(([paint, means]) => h("span", null, dot(paint), means)));
  let flame: FlameView | undefined;
  const sections: Record<string, (width: number) => Child[]> = {
    "timeline": () => [legend, ...linesTable(app, true), ...(FULL ? crewTables(app, true) : []), idleTable(app, 6), functionsTable(app, 7)],
    "flame": () => [],
    "lines": () => [...linesTable(app, false), ...(FULL ? crewTables(app, false) : []), functionsTable(app, 15), threadsTable(app)],
    "idle": () => [idleTable(app, 40)],
    "steps": () => [stepsTable(app)],
    "findings": () => [findingsTable(app)],
  };
  return {
    lanes,
    covers: () => ((app.s.view === "flame" && flame) || lanes).covers(),
    draw(width) {
      const { view } = app.s;
      const inTime = view === "timeline";
      if (view === "flame") flame ||= flameView(app);
      const shown = inTime ? [lanes.stage, tools] : view === "flame" ? [flame!.stage] : [];
      if (stage.firstChild !== (shown[0] || null)) fill(stage, shown);
      if (view === "flame") flame!.draw(width);
      return inTime ? lanes.draw(width) : undefined;
    },
    write(width) {
      const { s } = app;
      fill(tools, [
        FULL && select("Colour by", s.colour, ["code", "state", "module"].map((v) => [v, "colour: " + v]), (colour) => app.put({ colour })),
        foldButton(app),
      ]);
      const made = (sections[s.view]?.(width) || []).filter((v) => v);
      if (isZoomed(s, whole) || s.picked) (made.find((v) => (v as Element).tagName === "SECTION") as Element)?.firstChild!.appendChild(link("whole recording ⟲ Esc", () => app.put(unzoomed(app.s, whole))));
      return made;
    },
  };
}
