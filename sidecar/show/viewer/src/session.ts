// A viewer whose data is unpacked: the state, and how the screen follows it.

import type { App } from "./app.ts";
import { clamp, on } from "./brief.ts";
import { div, fill, h, vars, type Child } from "./dom.ts";
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
}

/** Content is what a session shows. */
export interface Content {
  /** draw shows what moves, in the picture's layout where there are lanes. */
  draw(width: number): Layout | undefined;
  /** write makes anew what is read, at a width; what it returns stands below the stage. */
  write(width: number): Child[];
  covers(): boolean;
  lanes?: Timeline;
}

/** appOf makes the parts that everything shown shares; later is told when the state changes. */
export function appOf(m: Model, { box, body }: Page, later: () => void): App {
  const tip = div({ class: "o-tip", "aria-live": "polite", hidden: 1 });
  body.append(tip);
  const inks = remember((folded: boolean, modules: boolean, query: string, _: number) => inksOf(m.tree(folded), app.theme, modules, m.found(query, folded)));
  const app: App = {
    m,
    s: m.whole,
    theme: themeOf(box),
    inks: () => inks(app.s.folded, FULL && app.s.colour === "module", app.s.query, app.theme.ink("bg")),
    put(change) {
      app.s = { ...app.s, ...change };
      later();
    },
    tip(x, y, [called, where, figures]) {
      tip.hidden = !called;
      if (!called) return;
      fill(tip, [h("b", null, called), where && h("code", null, where), figures && h("span", null, figures)]);
      const { left, top } = box.getBoundingClientRect();
      const high = tip.offsetHeight;
      vars(tip, { x: clamp(x - left + 14, 0, box.clientWidth - tip.offsetWidth - 2), y: (y + high + 24 > innerHeight ? y - high - 12 : y + 18) - top });
    },
  };
  return app;
}

/** session shows a model's content in a page; contentOf makes it, on a stage between head and what is read. */
export function session(m: Model, page: Page, contentOf: (app: App, stage: HTMLElement) => Content): Session {
  const { box, picture, body, tabs, search } = page;
  const says = div({ class: "o-says", role: "status" });
  const head = div("o-top", div("o-title", ...m.chart.heading.map(phrase)), says);
  const [stage, below] = [div(), div()];
  let frame = 0;
  let timer = 0;
  let read: unknown[] = []; // what the part that is read was made for
  let watch: AbortController | null = null;

  const later = () => (frame ||= requestAnimationFrame(render));
  fill(body, [head, stage, below, div("o-foot", ...[...m.chart.notes, ...m.chart.leftOut, ...m.r.leftOut].map((n) => h("p", null, n)))]);
  const app = appOf(m, page, later);
  const content = contentOf(app, stage);

  /** leave ends all watching and waiting. */
  function leave(): void {
    watch?.abort();
    watch = null;
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    frame = timer = 0;
  }

  /** listen begins to watch the page; it ends when the picture is back, or the output is gone. */
  function listen(): void {
    if (watch) return;
    watch = new AbortController();
    const { signal } = watch;
    let width = box.clientWidth;
    const look = () => {
      if (!box.isConnected) return leave();
      if (width !== box.clientWidth || !content.covers()) later();
      width = box.clientWidth;
    };
    on(document, "scroll", look, { capture: true, passive: true, signal });
    const size = new ResizeObserver(look);
    size.observe(box);
    signal.onabort = () => size.disconnect();
  }

  function render(): void {
    frame = 0;
    const { s } = app;
    const pristine = isPristine(s, m.whole);
    const width = box.clientWidth;
    body.hidden = pristine;
    picture.style.display = pristine ? "" : "none";
    for (const [name, tab] of tabs) tab.setAttribute("aria-pressed", (name === s.view) + "");
    if (search.value !== s.query) search.value = s.query;
    if (pristine || !box.isConnected) {
      read = [];
      return leave();
    }
    listen();
    if (!width) return; // hidden: the observer tells when it is not
    const l = content.draw(width);
    head.style.height = l && !l.narrow ? l.head + "px" : "";
    box.style.setProperty("--k", (l ? l.k : 1) as unknown as string);
    const now = [s.from, s.to, ...Object.values(unzoomed(s, m.whole)), s.picked, app.theme, width];
    const write = () => {
      read = now;
      fill(says, sentence(app));
      below.className = "o-below o-" + s.view;
      fill(below, content.write(width));
    };
    clearTimeout(timer);
    if (now.some((v, i) => i > 1 && v !== read[i])) write();
    else if (now[0] !== read[0] || now[1] !== read[1]) timer = setTimeout(write, settle) as unknown as number;
  }

  // A page that changes its theme changes a colour of the box, and a transition tells.
  on(box, "transitionend", (e) => {
    if (e.target !== box) return;
    app.theme = themeOf(box);
    if (watch) later();
  });
  // An output that was away, in a page that keeps only what is in view, is brought up to date when it is used.
  on(box, "pointerenter", () => watch || app.s === m.whole || later());
  return {
    app,
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
