// Training steps: how long each was and what of, and how many were how long.

import type { App } from "./app.ts";
import { div, dot, element, link, small } from "./dom.ts";
import { us } from "./json.ts";
import { floor, max, min, sum } from "./math.ts";
import type { Step } from "./recording.ts";
import { show } from "./state.ts";
import { bar, joined, moreWords, section, table, type Cell } from "./tables.ts";
import { micros, plural } from "./words.ts";

/** So many steps are shown. */
const mostSteps = 60;

const waiting = "waiting for data";
const working = "GPU busy";

const length = (step: Step) => step.end - step.begin;

/** slowestFirst are the steps, the longest first. */
export const slowestFirst = (steps: Step[]): Step[] => [...steps].sort((a, b) => length(b) - length(a));

/** quantile says the length of one of the steps, of which the longest is the first; of none nothing. */
export const quantile = (slowest: Step[], q: number): string =>
  slowest[0] ? micros(length(slowest[floor((1 - q) * (slowest.length - 1))]!)) : "";

/** histogram is how many steps were how long, from the shortest to the longest. */
function histogram(slowest: Step[]): HTMLElement | false {
  const bins = new Array<number>(40).fill(0);
  const [most, least] = [length(slowest[0]!), length(slowest[slowest.length - 1]!)];
  const scale = bins.length / (most - least || 1);
  for (const step of slowest) bins[min(floor((length(step) - least) * scale), bins.length - 1)]!++;
  const highest = max(...bins);
  const title = (i: number) => plural(bins[i]!, "step") + " of about " + micros(least + (i + 0.5) / scale);
  return (
    most > least &&
    div(
      { class: "o-steps-by", role: "img", title: `${plural(slowest.length, "step")} by length` },
      micros(least),
      div(
        "",
        ...bins.map((n, i) => element("i", { title: title(i), style: `height:${n && 4 + (n / highest) * 96}%` })),
      ),
      micros(most),
    )
  );
}

/** stepsTable shows how long steps were, and what the slowest were made of. */
export function stepsTable(app: App): HTMLElement {
  const { steps, stepsCut } = app.model.recording;
  const { phases } = app.model.chart;
  const slowest = slowestFirst(steps);
  const most = slowest[0] ? length(slowest[0]) : 1;
  const known = phases[0] || steps.some((step) => step.loading || step.busy);
  const rows = slowest.slice(0, mostSteps).map((step): Cell[] => {
    const nth = steps.indexOf(step) + 1;
    const all = length(step);
    const loading = min(step.loading, all);
    const busy = min(step.busy || 0, all);
    const parts: [paint: string, us: number, means: string][] = phases[0]
      ? phases.map(([id, means, paint]) => [paint, us(step.phases[id]), means])
      : [
          ["data", loading, waiting],
          ["gpu", min(busy, all - loading), working],
        ];
    const says = (us: number, means: string) => us > all / 20 && `${means} ${micros(us)}`;
    const go = () => app.put(show(app.state, app.model.initial, step.begin, step.end));
    return [
      [nth, link(step.name || "step " + nth, go)],
      all,
      bar(all / most, "", [
        ...parts.map(([paint, us]): [string, number] => [paint, us]),
        [known ? "ba" : "bar", all - sum(parts.map((p) => p[1]))],
      ]),
      small(joined(...parts.map(([, us, means]) => says(us, means)), phases[0] && says(busy, working))),
    ];
  });
  const note = joined(
    (stepsCut ? "only of the first " : "") + plural(steps.length, "step"),
    "median " + quantile(slowest, 0.5),
    "95 % within " + quantile(slowest, 0.95),
    "slowest first",
    moreWords(steps.length - rows.length, "step").slice(3),
  );
  const legend = phases[0]
    ? phases.map(([, means, paint]) => [paint, means])
    : [
        ["data", waiting],
        ["gpu", working],
        ["ba", "neither"],
      ];
  return section(
    "Steps",
    note,
    slowest[0] && histogram(slowest),
    known && div("o-legend", ...legend.map(([paint, means]) => element("span", null, dot(paint!), means))),
    table(["#step", "#time", "", ""], rows),
  );
}
