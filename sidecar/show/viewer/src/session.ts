// A viewer whose data is unpacked: the state, and how the screen follows it.

import type { App } from "./app.ts";
import { clamp } from "./math.ts";
import { boxOf, type Child, code, div, element, fill, listen, vars } from "./dom.ts";
import type { Layout } from "./lanes.ts";
import { remember, type Model } from "./model.ts";
import type { Page } from "./page.ts";
import { inksOf } from "./paint.ts";
import { phrase, sentence } from "./sentence.ts";
import { isPristine, unzoomed } from "./state.ts";
import { themeOf } from "./theme.ts";
import type { Timeline } from "./timeline.ts";

/** What is read follows the lanes so many milliseconds after they came to rest. */
const settle = 120;

export interface Session {
  app: App;
  /** lanes are shown from now on, in the picture's place; undefined where there are none. */
  lanes(): Timeline | undefined;
  /** show shows what the state is, in the picture's place where the picture cannot be read. */
  show(): void;
}

/** Content is what a session shows. */
export interface Content {
  /** draw shows what moves, in the picture's layout where there are lanes. */
  draw(width: number): Layout | undefined;
  /** write makes anew what is read, at a width; what it returns is shown below the stage. */
  write(width: number): Child[];
  covers(): boolean;
  lanes?: Timeline;
  /** suits reports whether the static picture shows as much at a width. */
  suits?(width: number): boolean;
}

/** appOf makes the parts that everything shown shares; later is called when the state changes. */
export function appOf(model: Model, { box, body }: Page, later: () => void): App {
  const tip = div({ class: "o-tip", "aria-live": "polite", hidden: 1 });
  body.append(tip);
  const inks = remember((folded: boolean, modules: boolean, query: string, _: number) =>
    inksOf(model.tree(folded), app.theme, modules, model.found(query, folded)),
  );
  const app: App = {
    model,
    state: model.initial,
    theme: themeOf(box),
    inks: () => inks(app.state.folded, app.state.colour === "module", app.state.query, app.theme.ink("bg")),
    put(change) {
      app.state = { ...app.state, ...change };
      later();
    },
    tip(x, y, [name, where, figures]) {
      tip.hidden = !name;
      if (!name) return;
      fill(tip, [element("b", null, name), code(where), figures && element("span", null, figures)]);
      const { left, top } = boxOf(box);
      const high = tip.offsetHeight;
      vars(tip, {
        x: clamp(x - left + 14, 0, box.clientWidth - tip.offsetWidth - 2),
        y: (y + high + 24 > innerHeight ? y - high - 12 : y + 18) - top,
      });
    },
  };
  return app;
}

/** session shows a model's content in a page; contentOf makes it, on a stage between head and what is read. */
export function session(model: Model, page: Page, contentOf: (app: App, stage: HTMLElement) => Content): Session {
  const { box, picture, body, tabs, search } = page;
  const line = div({ class: "o-says", role: "status" });
  const head = div("o-top", div("o-title", ...model.chart.heading.map(phrase)), line);
  const [stage, below] = [div(), div()];
  let frame = 0;
  let timer = 0;
  let read: unknown[] = []; // what the part that is read was made for
  let watch: AbortController | null = null;

  const later = () => (frame ||= requestAnimationFrame(render));
  fill(body, [
    head,
    stage,
    below,
    div(
      "o-foot",
      ...[...model.chart.notes, ...model.chart.leftOut, ...model.recording.leftOut].map((n) => element("p", null, n)),
    ),
  ]);
  const app = appOf(model, page, later);
  const content = contentOf(app, stage);

  /** leave ends all watching and waiting. */
  function leave(): void {
    watch?.abort();
    watch = null;
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    frame = timer = 0;
  }

  /** watchPage begins to watch the page; it ends when the picture is back, or the output is gone. */
  function watchPage(): void {
    if (watch) return;
    watch = new AbortController();
    const { signal } = watch;
    let width = box.clientWidth;
    const look = () => {
      if (!box.isConnected) return leave();
      if (width !== box.clientWidth || !content.covers()) later();
      width = box.clientWidth;
    };
    listen(document, "scroll", look, { capture: true, passive: true, signal });
    const size = new ResizeObserver(look);
    size.observe(box);
    signal.onabort = () => size.disconnect();
  }

  function render(): void {
    frame = 0;
    const { state } = app;
    const width = box.clientWidth;
    const pristine = isPristine(state, model.initial) && (!width || !content.suits || content.suits(width));
    body.hidden = pristine;
    picture.style.display = pristine ? "" : "none";
    for (const [name, tab] of tabs) tab.setAttribute("aria-pressed", (name === state.view) + "");
    if (search.value !== state.query) search.value = state.query;
    if (pristine || !box.isConnected) {
      read = [];
      return leave();
    }
    watchPage();
    if (!width) return; // hidden: the observer reports when it is not
    const layout = content.draw(width);
    head.style.minHeight = layout?.scaled ? layout.head + "px" : "";
    box.style.setProperty("--k", (layout ? layout.k : 1) as unknown as string);
    const now = [
      state.from,
      state.to,
      ...Object.values(unzoomed(state, model.initial)),
      state.picked,
      app.theme,
      width,
    ];
    const write = () => {
      read = now;
      fill(line, sentence(app));
      below.className = "o-below o-" + state.view;
      fill(below, content.write(width));
    };
    clearTimeout(timer);
    if (now.some((v, i) => i > 1 && v !== read[i])) write();
    else if (now[0] !== read[0] || now[1] !== read[1]) timer = setTimeout(write, settle) as unknown as number;
  }

  // A page that changes its theme changes a colour of the box, and a transition shows that.
  listen(box, "transitionend", (e) => {
    if (e.target !== box) return;
    app.theme = themeOf(box);
    if (watch) later();
  });
  // An output that was away, in a page that keeps only what is in view, is brought up to date when it is used.
  listen(box, "pointerenter", () => watch || app.state === model.initial || later());
  return {
    app,
    show: later,
    lanes() {
      if (body.hidden && content.lanes) {
        body.hidden = false;
        picture.style.display = "none";
        content.draw(box.clientWidth);
      }
      return content.lanes;
    },
  };
}
