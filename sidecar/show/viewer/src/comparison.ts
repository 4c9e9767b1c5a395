// A comparison's view: what changed, by line, in the flame graph, by cause and by function.

import type { App } from "./app.ts";
import { abs, max, min } from "./brief.ts";
import { compared, comparisonOf, type Change, type Comparison } from "./compare.ts";
import { div, h, small, type Child } from "./dom.ts";
import { foldButton, graphView } from "./flame.ts";
import { remember } from "./model.ts";
import type { Page } from "./page.ts";
import { blend } from "./pixels.ts";
import { session, type Content, type Session } from "./session.ts";
import { section, table } from "./tables.ts";
import { mostTableRows } from "./limits.ts";
import { count, micros } from "./words.ts";

/** openComparison makes a session of a comparison's document; null where it is none. */
export function openComparison(document: unknown, page: Page): Session | null {
  const c = comparisonOf(document);
  return c && session(c.after, page, (app, stage) => comparisonContent(app, stage, c));
}

/** tone of a change, and the sign it is said with. */
const tone = (v: string): string => (v === "less" || v === "gone" ? "tg" : v ? "tw" : "tm");
const signed = (us: number): string => (us < 0 ? "−" : "+") + micros(abs(us));

/** bounds are "± 0.4 s", or both ends where the change is not in their middle. */
function bounds({ before, after, low, high }: Change): string {
  const half = (high - low) / 2;
  return abs(low + half - after + before) > half / 10 ? `(${signed(low)} to ${signed(high)})` : "± " + micros(half);
}

function changes(heading: string, note: string, list: Change[]): HTMLElement | null {
  const shown = list.slice(0, mostTableRows);
  if (list.length > shown.length) note += ` · ${count(list.length - shown.length)} more not shown`;
  const most = shown.reduce((most, c) => max(most, abs(c.low), abs(c.high), abs(c.after - c.before)), 0) || 1;
  const rows = shown.map((c): Child[] => {
    const by = c.after - c.before;
    const noise = !c.verdict;
    const words = c.verdict === "new" || c.verdict === "gone" ? c.verdict : noise ? "within noise" : `${signed(by)} ${bounds(c)}`;
    const style = `--from:${(noise ? 0 : min(by, 0)) / most};--by:${(noise ? 0 : abs(by)) / most};--low:${c.low / most};--span:${(c.high - c.low) / most};--paint:var(--${by < 0 ? "gpu" : "data"})`;
    return [c.called, c.before ? micros(c.before) : "", c.after ? micros(c.after) : "", div({ class: "o-change", style }, h("i"), !noise && h("b")), h("span", { style: `color:var(--${tone(c.verdict)})` }, words), small(c.place), h("code", null, c.code)];
  });
  return rows.length ? section(heading, note, table(["", "#before", "#after", "", "change", "", ""], rows)) : null;
}

function comparisonContent(app: App, stage: HTMLElement, c: Comparison): Content {
  const view = graphView(app, (box) => app.put({ root: box }));
  const tools = div("o-tools");
  const graphOf = remember((folded: boolean) => compared(c, folded));
  const verdict = new Map(c.functions.map((f) => [f.fn, f.verdict]));
  stage.className = "o-below";
  const draw = (width: number) => {
    const { s, theme } = app;
    const t = c.after.tree(s.folded);
    const g = graphOf(s.folded);
    const fns = c.after.found(s.query, s.folded)?.fns;
    view.draw(
      {
        g,
        root: s.root < g.above.length ? s.root : 0,
        inkOf(box) {
          const by = g.weight[box]! - g.was[box]!;
          const strength = 0.35 + (0.65 * abs(by)) / max(g.weight[box]!, g.was[box]!, 1);
          const ink = verdict.get(g.fn[box]!) ? blend(theme.ink(by < 0 ? "gpu" : "data"), theme.ink("bg"), strength) : blend(theme.ink("other"), theme.ink("bg"), 0.6);
          return fns && !fns[g.fn[box]!] ? blend(ink, theme.ink("bg"), 0.35) : ink;
        },
        edgeOf: (box) => (fns?.[g.fn[box]!] ? theme.ink("accent") : 0),
        words(box) {
          const f = t.fns[g.fn[box]!]!;
          return [f.called, f.file.path + ":" + f.line, `${micros(g.weight[box]!)} (was ${micros(g.was[box]!)}) · ${signed(g.weight[box]! - g.was[box]!)}`, ""];
        },
      },
      width - 32,
    );
  };
  return {
    covers: view.covers,
    draw(width) {
      if (!view.stage.isConnected) {
        stage.replaceChildren(section("Flame graph, after", "green: less than before · red: more · grey: no difference beyond noise", tools, view.stage));
      }
      draw(width);
      return undefined;
    },
    write() {
      tools.replaceChildren(foldButton(app));
      return [changes("As a whole", "", c.whole), changes("GPU idle by cause", "", c.causes), changes("Lines", "of your own", c.lines), changes("Steps", "means", c.steps), changes("Functions", "own time", c.functions)];
    },
  };
}
