// The flame graph: a range's time merged by stacks, from callers down or from what is hot up.

import { ceil, floor, max, min, round } from "./math.ts";
import { rangeWords, whereOf, type App } from "./app.ts";
import { boxOf, button, div, fill, link, listen, select, vars } from "./dom.ts";
import { callees, callers, graphGrid, type Graph } from "./graph.ts";
import { boxes, runAt, type Grid } from "./grid.ts";
import { cellThread, everyThread, remember } from "./model.ts";
import { blend, grid, ground, type Ink } from "./pixels.ts";
import { rangeOf } from "./state.ts";
import { cellThreads } from "./sums.ts";
import { deviceScale, surface } from "./surface.ts";
import { functionsTable, section } from "./tables.ts";
import { codePaints } from "./theme.ts";
import type { CallTree } from "./tree.ts";
import { micros, percent } from "./words.ts";

/** Rows of a flame graph. */
const pitch = 19;
const textSize = 11;
const mostRows = 400;

/** Picture is one graph with its colours and words. */
export interface Picture {
  graph: Graph;
  root: number;
  inkOf(box: number): Ink;
  edgeOf(box: number): Ink;
  /** words are a box's name, where it is, in full and in short, and its figures. */
  words(box: number): [name: string, where: string, figures: string, place: string];
}

/** graphView draws graphs; click gets boxes. */
export function graphView(
  app: App,
  click: (box: number) => void,
): { stage: HTMLElement; draw(p: Picture, width: number): void; covers(): boolean } {
  const outline = div({ class: "o-over o-outline", hidden: 1 });
  const stage = div("o-graph", outline);
  const s = surface(stage);
  let picture: Picture | null = null;
  let cells: Grid | null = null;

  const at = (e: MouseEvent): [box: number, row: number, column: number] => {
    const { left, top, width } = boxOf(stage);
    const [row, column] = [
      floor((e.clientY - top) / pitch),
      floor(((e.clientX - left) / width) * (cells?.columns || 0)),
    ];
    return [cells?.cells[row * cells.columns + column] || 0, row, column];
  };
  const hover = (e: MouseEvent) => {
    const [box, row, column] = e.type === "pointermove" ? at(e) : [0, 0, 0];
    outline.hidden = !box;
    app.tip(e.clientX, e.clientY, box ? picture!.words(box) : []);
    if (!box) return;
    const [from, to] = runAt(cells!, row, column);
    const wide = stage.clientWidth / cells!.columns;
    vars(outline, { x: from * wide - 1, y: row * pitch - 1, w: (to - from) * wide + 1, h: pitch + 1 });
  };
  listen(stage, "pointermove", hover);
  listen(stage, "pointerleave", hover);
  listen(stage, "click", (e) => click(at(e)[0]));
  return {
    stage,
    covers: s.covers,
    draw(p, width) {
      picture = p;
      outline.hidden = true;
      const g = (cells = graphGrid(p.graph, p.root, round(width * deviceScale()), mostRows));
      const height = max(g.rows, 1) * pitch;
      vars(stage, { high: height });
      let [first, end] = [0, 0];
      s.paint(
        0,
        width,
        height,
        app.theme,
        (pixels, scale, top) => {
          const under = new Uint32Array(pixels.wide).fill(app.theme.ink("bg"));
          [first, end] = [floor(top / pitch), ceil((top + pixels.high / scale) / pitch)];
          ground(pixels, under);
          grid(pixels, g, 0, -top * scale, pitch * scale, round(scale), scale, under, p);
        },
        (pen) => {
          const scale = g.columns / width;
          for (let row = first; row < min(end, g.rows); row++) {
            boxes(g, row, 24 * scale, (box, from, to) => {
              const [name, , figures, place] = p.words(box);
              const time = figures.split(" · ")[0];
              const text = pen.fit(
                [`${name}  ${place}  ${time}`, `${name}  ${time}`, name, name.slice(name.lastIndexOf(".") + 1)],
                (to - from) / scale - 8,
                textSize,
              );
              if (text) pen.write(text, from / scale + 4, row * pitch + 13, app.theme.ink("tx"), textSize);
            });
          }
        },
      );
    },
  };
}

export interface FlameView {
  stage: HTMLElement;
  draw(width: number): void;
  covers(): boolean;
}

export function flameView(app: App): FlameView {
  const { model } = app;
  const main = graphView(app, (box) => app.put({ root: box }));
  const below = graphView(app, () => {});
  const tools = div("o-tools");
  const tables = div("o-below");
  const graphOf = remember((from: number, to: number, who: number, folded: boolean, upward: boolean): Graph => {
    const tree = model.tree(folded);
    const sums = model.sums(folded, who, from, to);
    return upward ? callers(tree, sums) : callees(tree, sums);
  });
  const wordsOf =
    (calls: CallTree, graph: Graph) =>
    (box: number): [string, string, string, string] => {
      const func = calls.fns[graph.fn[box]!]!;
      return [
        func.name,
        whereOf(func),
        `${micros(graph.weight[box]!)} · ${percent(graph.weight[box]! / graph.weight[0]!)} ${rangeWords(app)}`,
        func.place,
      ];
    };
  const codeInk = (t: CallTree, g: Graph) => (box: number) => app.theme.ink(codePaints[t.fns[g.fn[box]!]!.code]!);

  return {
    stage: div("", tools, main.stage, tables),
    covers: () => main.covers() && (!below.stage.isConnected || below.covers()),
    draw(width) {
      const { state, theme } = app;
      fill(tools, [
        button("↓ callees", () => app.put({ upward: false, root: 0 }), !state.upward),
        button("↑ callers", () => app.put({ upward: true, root: 0 }), state.upward),
        threadSelect(app),
        foldButton(app),
        state.root > 0 && link("whole graph ⟲ Esc", () => app.put({ root: 0 })),
      ]);
      const t = model.tree(state.folded);
      const g = graphOf(...rangeOf(state), state.who, state.folded, state.upward);
      const plain = codeInk(t, g);
      const inks = app.inks();
      const fns = model.found(state.query, state.folded)?.fns;
      main.draw(
        {
          graph: g,
          root: state.root < g.above.length ? state.root : 0,
          inkOf: (box) =>
            !state.upward
              ? inks[box]!
              : fns && !fns[g.fn[box]!]
                ? blend(plain(box), theme.ink("bg"), 0.35)
                : plain(box),
          edgeOf: (box) => (fns?.[g.fn[box]!] ? theme.ink("accent") : 0),
          words: wordsOf(t, g),
        },
        width - 32,
      );
      fill(tables, [functionsTable(app, 10, (fn) => app.put({ callersOf: fn }))]);
      // Without a choice, of what was found that with most time.
      const matching = state.query
        ? [...model.functions(...rangeOf(state))]
            .filter(([fn]) => model.found(state.query, false)!.fns[fn])
            .sort((a, b) => b[1].total - a[1].total)
        : [];
      const hot = state.callersOf < 0 ? matching[0]?.[0] : state.callersOf;
      if (hot === undefined) return;
      const up = callers(model.tree(false), model.sums(false, everyThread, ...rangeOf(state)), hot);
      tables.append(
        section("Who calls " + model.recording.fns[hot]!.name, "upside down, " + micros(up.weight[0]!), below.stage),
      );
      below.draw(
        {
          graph: up,
          root: 0,
          inkOf: codeInk(model.tree(false), up),
          edgeOf: () => 0,
          words: wordsOf(model.tree(false), up),
        },
        width - 32,
      );
    },
  };
}

/** threadSelect chooses whose time the graph is of. */
function threadSelect({ model, state, put }: App): HTMLElement {
  const threads = model.recording.threads
    .map((thread, i): [number, string] => [i, thread.name])
    .filter(
      ([i]) =>
        model.recording.threads[i]!.end > model.recording.threads[i]!.begin && !model.recording.threads[i]!.internal,
    );
  return select(
    "Threads",
    state.who,
    [
      [cellThread, cellThreads(model.recording)[0]?.name || "main thread"],
      [everyThread, "all threads and processes"],
      ...threads.slice(0, 200),
    ],
    (v) => put({ who: +v, root: 0 }),
  );
}

/** foldButton folds libraries and imports, and joins what is too short to be told apart. */
export const foldButton = (app: App): HTMLElement =>
  button(
    "fold libraries",
    () => app.put({ folded: !app.state.folded, root: 0 }),
    app.state.folded,
    "one box for calls within a package or too short to see",
  );
