// A chart's views: what is on the stage in each, and what is read below it.

import type { App } from "./app.ts";
import { div, dot, fill, element, link, select, vars, type Child } from "./dom.ts";
import { findingsTable } from "./findings.ts";
import { flameView, foldButton, type FlameView } from "./flame.ts";
import { fits } from "./lanes.ts";
import { modelOf } from "./model.ts";
import type { Page } from "./page.ts";
import { poolTables } from "./poollines.ts";
import { session, type Content, type Session } from "./session.ts";
import { isZoomed, unzoomed } from "./state.ts";
import { linesTable } from "./linestable.ts";
import { functionsTable, idleTable, leadingLines, picturedTables, threadsTable } from "./tables.ts";
import { stepsTable } from "./steps.ts";
import { codePaints, statePaints } from "./theme.ts";
import { timeline } from "./timeline.ts";

/** openChart makes a session of a report's document; null where there is no picture to build on. */
export function openChart(document: unknown, page: Page): Session | null {
  const model = modelOf(document);
  return model && session(model, page, chartContent);
}

function chartContent(app: App, stage: HTMLElement): Content {
  const lanes = timeline(app);
  const { initial, chart } = app.model;
  const tools = div("o-tools");
  const legend = div("o-legend");
  let flame: FlameView | undefined;
  const sections: Record<string, (width: number) => Child[]> = {
    "timeline": () => [
      idleTable(app, 6),
      leadingLines(app),
      ...poolTables(app, true),
      functionsTable(app, 6),
      ...picturedTables(app),
    ],
    "flame": () => [],
    "lines": () => [...linesTable(app), ...poolTables(app, false), functionsTable(app, 15), threadsTable(app)],
    "idle": () => [idleTable(app, 40)],
    "steps": () => [stepsTable(app)],
    "findings": () => [findingsTable(app)],
  };
  return {
    lanes,
    suits: (width) => fits(chart.wide, width),
    covers: () => ((app.state.view === "flame" && flame) || lanes).covers(),
    draw(width) {
      const { view } = app.state;
      const inTime = view === "timeline";
      if (view === "flame") flame ||= flameView(app);
      const shown = inTime ? [lanes.stage, legend, tools] : view === "flame" ? [flame!.stage] : [];
      if (stage.firstChild !== (shown[0] || null)) fill(stage, shown);
      if (view === "flame") flame!.draw(width);
      if (!inTime) return;
      const layout = lanes.draw(width);
      vars(legend, { left: layout.x0 });
      return layout;
    },
    write(width) {
      const { state } = app;
      fill(
        legend,
        legendOf(app).map(([paint, means]) => element("span", null, dot(paint), means)),
      );
      fill(tools, [
        select(
          "Colour by",
          state.colour,
          ["code", "state", "module"].map((v) => [v, "colour: " + v]),
          (colour) => app.put({ colour }),
        ),
        foldButton(app),
      ]);
      const made = (sections[state.view]?.(width) || []).filter((v) => v);
      if (isZoomed(state, initial) || state.picked)
        (made.find((v) => (v as Element).tagName === "SECTION") as Element)?.firstChild!.appendChild(
          link("whole recording ⟲ Esc", () => app.put(unzoomed(app.state, initial))),
        );
      return made;
    },
  };
}

/** legendOf says what the colours mean that boxes have now; packages have too many. */
function legendOf({ model: { chart }, state }: App): [paint: string, means: string][] {
  if (state.colour === "code") return chart.legend;
  const others = chart.legend.filter(([paint]) => !codePaints.includes(paint));
  const ofStates = chart.states.map((word, i): [string, string] => [statePaints[i]!, word]);
  return state.colour === "state" ? ofStates.concat(others) : others;
}
