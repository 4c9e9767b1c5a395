// A comparison's view: what changed, by line, in the flame graph, by cause and by function.

import type { App } from "./app.ts";
import { abs, max, min } from "./math.ts";
import { compared, comparisonOf, type Change, type Comparison } from "./compare.ts";
import { code, div, element, small } from "./dom.ts";
import { foldButton, graphView } from "./flame.ts";
import { remember } from "./model.ts";
import type { Page } from "./page.ts";
import { blend } from "./pixels.ts";
import { session, type Content, type Session } from "./session.ts";
import { moreWords, section, table, type Cell } from "./tables.ts";
import { mostTableRows } from "./limits.ts";
import { micros } from "./words.ts";

/** openComparison makes a session of a comparison's document; null where it is none. */
export function openComparison(document: unknown, page: Page): Session | null {
  const comparison = comparisonOf(document);
  return comparison && session(comparison.after, page, (app, stage) => comparisonContent(app, stage, comparison));
}

/** signed is a change with its sign. */
const signed = (us: number): string => (us < 0 ? "−" : "+") + micros(abs(us));

/** bounds are "± 0.4 s", or both ends where the change is not in their middle. */
function bounds({ before, after, low, high }: Change): string {
  const half = (high - low) / 2;
  return abs(low + half - after + before) > half / 10 ? `(${signed(low)} to ${signed(high)})` : "± " + micros(half);
}

function changes(heading: string, note: string, list: Change[]): HTMLElement | null {
  const shown = list.slice(0, mostTableRows);
  const most =
    shown.reduce(
      (most, change) => max(most, abs(change.low), abs(change.high), abs(change.after - change.before)),
      0,
    ) || 1;
  const rows = shown.map((c): Cell[] => {
    const by = c.after - c.before;
    const certain = c.verdict ? by : 0;
    const words = !c.verdict ? "within noise" : /^[ng]/.test(c.verdict) ? c.verdict : `${signed(by)} ${bounds(c)}`;
    const style = [
      `--from:${min(certain, 0) / most}`,
      `--by:${abs(certain) / most}`,
      `--low:${c.low / most}`,
      `--span:${(c.high - c.low) / most}`,
      `--paint:var(--${by < 0 ? "gpu" : "data"})`,
    ].join(";");
    return [
      c.name,
      c.before,
      c.after,
      div({ class: "o-change", style }, element("i"), certain && element("b")),
      element("span", { style: `color:var(--${certain < 0 ? "tg" : certain ? "tw" : "tm"})` }, words),
      small(c.place),
      code(c.code),
    ];
  });
  note += moreWords(list.length - shown.length, "row");
  return rows[0] ? section(heading, note, table(["", "#before", "#after", "", "change", "", ""], rows)) : null;
}

function comparisonContent(app: App, stage: HTMLElement, comparison: Comparison): Content {
  const view = graphView(app, (box) => app.put({ root: box }));
  const tools = div("o-tools");
  const graphOf = remember((folded: boolean) => compared(comparison, folded));
  const verdict = new Map(comparison.functions.map((change) => [change.fn, change.verdict]));
  stage.className = "o-below";
  const draw = (width: number) => {
    const { state, theme } = app;
    const tree = comparison.after.tree(state.folded);
    const graph = graphOf(state.folded);
    const fns = comparison.after.found(state.query, state.folded)?.fns;
    view.draw(
      {
        graph,
        root: state.root < graph.above.length ? state.root : 0,
        inkOf(box) {
          const by = graph.weight[box]! - graph.was[box]!;
          const strength = 0.35 + (0.65 * abs(by)) / max(graph.weight[box]!, graph.was[box]!, 1);
          const pale = (ink: number, strength: number) => blend(ink, theme.ink("bg"), strength);
          const fn = graph.fn[box]!;
          const ink = verdict.get(fn)
            ? pale(theme.ink(by < 0 ? "gpu" : "data"), strength)
            : pale(theme.ink("other"), 0.6);
          return fns && !fns[fn] ? pale(ink, 0.35) : ink;
        },
        edgeOf: (box) => (fns?.[graph.fn[box]!] ? theme.ink("accent") : 0),
        words(box) {
          const func = tree.fns[graph.fn[box]!]!;
          const [before, now] = [graph.was[box]!, graph.weight[box]!];
          return [
            func.name,
            func.file.path + ":" + func.line,
            `${micros(now)} (was ${micros(before)}) · ${signed(now - before)}`,
            "",
          ];
        },
      },
      width - 32,
    );
  };
  return {
    covers: view.covers,
    draw(width) {
      if (!view.stage.isConnected) {
        stage.replaceChildren(
          section("Flame graph, after", "green: less · red: more · grey: within noise", tools, view.stage),
        );
      }
      draw(width);
      return undefined;
    },
    write() {
      tools.replaceChildren(foldButton(app));
      return [
        changes("As a whole", "", comparison.whole),
        changes("GPU idle by cause", "", comparison.causes),
        changes("Lines", "of your own", comparison.lines),
        changes("Steps", "means", comparison.steps),
        changes("Functions", "own time", comparison.functions),
      ];
    },
  };
}
