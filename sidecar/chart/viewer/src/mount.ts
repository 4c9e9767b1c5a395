// The viewer in a page: it waits beside the static picture until someone asks for more.

import type { App } from "./app.ts";
import { abs, clamp, on } from "./brief.ts";
import { bytesOf, documentOf, payloadOf } from "./decode.ts";
import { button, div, dot, fill, h, link, select, vars, type Child } from "./dom.ts";
import { flameView, foldButton, type FlameView } from "./flame.ts";
import { modelOf, remember, type Model } from "./model.ts";
import { inksOf } from "./paint.ts";
import { phrase, sentence } from "./sentence.ts";
import { isPristine, isZoomed, keyed, unzoomed } from "./state.ts";
import { findingsTable, functionsTable, idleTable, linesTable, stepsTable, threadsTable } from "./tables.ts";
import { themeOf } from "./theme.ts";
import { dragThreshold, timeline, type Timeline } from "./timeline.ts";

const views: Record<string, string> = { "timeline": "Timeline", "flame": "Flame graph", "lines": "Lines", "idle": "GPU idle", "steps": "Steps", "findings": "Findings" };

/** The version of payloads this program reads. */
const version = 2;

/** What is read follows the lanes so many milliseconds after they came to rest. */
const settle = 120;

/**
 * mount puts the viewer into an output. host holds the picture, as an img with a data: URL or an svg, and
 * the payload in a script that is no program. Run again, it does nothing.
 */
export function mount(host: Element): void {
  const picture = host.querySelector(".opv") ? null : pictureOf(host);
  const payload = payloadOf(host.querySelector("script[type^=application\\/octet-stream]")?.textContent || "");
  if (picture && payload?.version === version) attach(picture, payload.views, payload.data);
}

/** pictureOf puts the picture inline, so that its tooltips and its colours are the page's. */
function pictureOf(host: Element): SVGElement | null {
  const image = host.querySelector("img");
  const [head, data] = (image?.src || "").split(",");
  if (data && head === "data:image/svg+xml;base64") {
    const text = new TextDecoder().decode(bytesOf(data));
    const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    if (parsed.nodeName === "svg") image!.replaceWith(document.importNode(parsed, true));
  }
  return host.querySelector("svg");
}

/** Session is a viewer whose data is unpacked. */
interface Session {
  app: App;
  /** lanes are shown from now on, in the picture's place. */
  lanes(): Timeline;
}

function attach(picture: SVGElement, names: string[], data: string): void {
  const box = div({ class: "opv " + picture.getAttribute("class"), role: "figure", tabindex: "0", "aria-label": picture.querySelector("desc")?.textContent, style: `max-width:${picture.getAttribute("width")}px` });
  const search = h("input", { type: "search", placeholder: "Search /", "aria-label": "Search functions", input: () => request(({ app }) => app.put({ query: search.value })) });
  const tabs = new Map(names.filter((v) => views[v]).map((v) => [v, button(views[v]!, () => request(({ app }) => app.put({ view: v })), v === "timeline")]));
  const help = () => request(({ app }) => hint(app.m.chart.help, "o-stay"));
  const key = (name: string) => request(({ app }) => app.put(keyed(app.s, app.m.whole, name) || {}));
  const body = div({ hidden: 1 });
  picture.replaceWith(box);
  fill(box, [div({ class: "o-head", role: "toolbar" }, ...tabs.values(), search, button("?", help)), picture, body]);

  let session: Session | undefined;
  let opening: Promise<void> | undefined;
  /** request does something with the open viewer; the first one unpacks the data. */
  function request(then: (s: Session) => void): void {
    opening ||= documentOf(data).then((d) => {
      const m = modelOf(d);
      session = m ? open(m) : session;
    });
    if (session) then(session);
    else opening.then(() => then(session!)).catch(() => hint("This chart's data cannot be read."));
  }
  const lanes = (then: (lanes: Timeline) => void) => request((s) => then(s.lanes()));

  function hint(text: string, stays = ""): void {
    box.querySelector(".o-hint")?.remove();
    box.append(div({ class: "o-hint " + stays, role: "status", click: () => hint("") }, text));
  }

  let zoomed = false;
  const wheel = (e: WheelEvent) => {
    if (!(e.target as Element).closest("svg,.o-lanes")) return;
    if (e.ctrlKey || e.shiftKey || e.metaKey) {
      e.preventDefault();
      lanes((l) => l.wheel(e));
    } else if (!zoomed) hint("ctrl, shift or ⌘ + wheel zooms · ? for more");
    zoomed = true;
  };
  on(box, "wheel", wheel, { passive: false });

  // A drag over the picture goes on over the lanes that take its place.
  let events: PointerEvent[] = [];
  for (const type of ["pointerdown", "pointermove", "pointerup"] as const) {
    on(picture, type, (e) => {
      if (type === "pointerdown") events = [];
      else if (!events[0] || e.pointerType === "touch") return;
      events.push(e);
      if (abs(e.clientX - events[0].clientX) < dragThreshold) return;
      lanes((l) => {
        for (const v of events) l.stage.dispatchEvent(new PointerEvent(v.type, v));
        events = [];
      });
    });
  }

  const steps: Record<string, [columns: number, rows: number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  on(box, "keydown", (e) => {
    const name = e.key.length < 2 ? e.key.toLowerCase() : e.key;
    const control = (e.target as Element).closest("input,select,button")?.tagName;
    const escape = name === "Escape";
    const typing = control && control !== "BUTTON" && !escape;
    const known = steps[name] || (escape ? session : name === "Enter" ? !control : /^[wasd0?/]$/.test(name));
    if (typing || !known || e.ctrlKey || e.altKey || e.metaKey) return;
    e.preventDefault();
    e.stopPropagation();
    if (name === "/") search.focus();
    else if (name === "?") help();
    else if (name === "Enter") lanes((l) => l.take());
    else if (steps[name]) lanes((l) => l.step(...steps[name]!));
    else key(name);
    if (escape) {
      hint("");
      box.focus({ preventScroll: true });
    }
  });

  function open(m: Model): Session {
    const { chart, whole } = m;
    const says = div({ class: "o-says", role: "status" });
    const head = div("o-top", div("o-title", ...chart.heading.map(phrase)), says);
    const stage = div();
    const below = div("o-below");
    const tools = div("o-tools");
    const tip = div({ class: "o-tip", "aria-live": "polite", hidden: 1 });
    const legend = div("o-legend", ...chart.legend.map(([paint, means]) => h("span", null, dot(paint), means)));
    fill(body, [head, stage, below, div("o-foot", ...chart.notes.map((n) => h("p", null, n))), tip]);

    let frame = 0;
    let timer = 0;
    let read: unknown[] = []; // what the part that is read was made for
    let watch: AbortController | null = null;
    let flame: FlameView | undefined;

    const inks = remember((folded: boolean, modules: boolean, query: string, _: number) => inksOf(m.tree(folded), app.theme, modules, m.found(query, folded)));
    const later = () => (frame ||= requestAnimationFrame(render));
    const app: App = {
      m,
      s: whole,
      theme: themeOf(box),
      inks: () => inks(app.s.folded, app.s.colour === "module", app.s.query, app.theme.ink("bg")),
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
    const lanes = timeline(app);

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
        if (width !== box.clientWidth || !(app.s.view === "flame" ? flame : lanes)?.covers()) later();
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
      const { from, to, view } = s;
      const pristine = isPristine(s, whole);
      const width = box.clientWidth;
      body.hidden = pristine;
      picture.style.display = pristine ? "" : "none";
      for (const [name, tab] of tabs) tab.setAttribute("aria-pressed", String(name === view));
      if (search.value !== s.query) search.value = s.query;
      if (pristine || !box.isConnected) {
        read = [];
        return leave();
      }
      listen();
      if (!width) return; // hidden: the observer tells when it is not
      let high = "";
      if (view === "timeline") {
        if (!lanes.stage.isConnected) fill(stage, [lanes.stage, tools]);
        const l = lanes.draw(width);
        box.style.setProperty("--k", l.k + "");
        if (!l.narrow) high = l.head + "px";
      }
      head.style.height = high;
      const now = [from, to, ...Object.values(unzoomed(s, whole)), s.picked, app.theme, width];
      clearTimeout(timer);
      if (now.some((v, i) => i > 1 && v !== read[i])) write();
      else if (from !== read[0] || to !== read[1]) timer = setTimeout(write, settle) as unknown as number;
      else if (view === "flame") flame!.draw(width);

      /** write brings up to date what is read: the sentence, tables, other views. */
      function write(): void {
        read = now;
        fill(says, sentence(app));
        const sections: Record<string, () => Child[]> = {
          "timeline": () => [legend, ...linesTable(app, true), idleTable(app, 6), functionsTable(app, 7)],
          "flame": () => {
            flame ||= flameView(app);
            fill(stage, [flame.stage]);
            flame.draw(width);
            return [];
          },
          "lines": () => [...linesTable(app, false), functionsTable(app, 15), FULL && threadsTable(app)],
          "idle": () => [idleTable(app, 40)],
          "steps": () => [stepsTable(app)],
          "findings": () => [findingsTable(app)],
        };
        if (view !== "timeline") fill(stage, []);
        below.className = "o-below o-" + view;
        fill(below, sections[view]!());
        fill(tools, [
          FULL && select("Colour by", s.colour, ["code", "state", "module"].map((v) => [v, "colour: " + v]), (colour) => app.put({ colour })),
          !FULL && button("colour by state", () => app.put({ colour: s.colour === "code" ? "state" : "code" }), s.colour !== "code"),
          foldButton(app),
        ]);
        if (isZoomed(s, whole) || s.picked) body.querySelector("h4")?.append(link("whole recording ⟲ Esc", () => app.put(unzoomed(app.s, whole))));
      }
    }

    // A page that changes its theme changes a colour of the box, and a transition tells.
    on(box, "transitionend", (e) => {
      if (e.target !== box) return;
      app.theme = themeOf(box);
      if (watch) later();
    });
    // An output that was away, in a page that keeps only what is in view, is brought up to date when it is used.
    on(box, "pointerenter", () => watch || app.s === whole || later());

    return {
      app,
      lanes() {
        if (app.s.view === "timeline" && !lanes.stage.isConnected) {
          picture.style.display = "none";
          body.hidden = false;
          fill(stage, [lanes.stage, tools]);
          lanes.draw(box.clientWidth);
        }
        return lanes;
      },
    };
  }
}
