// The viewer in an output: it waits beside the static picture until someone asks for more.

import { abs, on } from "./brief.ts";
import { documentOf, payloadOf, version } from "./decode.ts";
import { TooMuch } from "./limits.ts";
import { pageOf, type Page } from "./page.ts";
import { inlined } from "./picture.ts";
import type { Session } from "./session.ts";
import { keyed } from "./state.ts";
import { dragThreshold, type Timeline } from "./timeline.ts";

/** Opener makes a session of a document; undefined where there is nothing to show. */
export type Opener = (document: unknown, page: Page) => Session | null;

/**
 * mount puts the viewer into an output. host holds a payload, in a script that is no program, and right before it
 * the picture, as an img with a data: URL or an svg. Run again, it does nothing.
 */
export function mount(host: Element, open: Opener): void {
  const data = host.querySelector("script[type^=application\\/octet-stream]");
  const picture = inlined(data?.previousElementSibling);
  const payload = picture && payloadOf(data!.textContent!);
  if (payload?.version === version) attach(picture!, payload.views, payload.data, open);
}

/** Request does something with the open viewer; the first one unpacks the data. */
type Request = (then: (s: Session) => void) => void;

function attach(picture: SVGElement, names: string[], data: string, open: Opener): void {
  let session: Session | null = null;
  let opening: Promise<void> | undefined;
  const request: Request = (then) => {
    opening ||= documentOf(data).then((d) => {
      session = open(d, page);
    });
    if (session) then(session);
    else opening.then(() => then(session!)).catch((e) => page.hint(e instanceof TooMuch ? `The data beside this picture is not read: ${e.message}.` : "The data is damaged."));
  };
  const page = pageOf(picture, names, (view, query) => request(({ app }) => (view ? app.put({ view }) : query === undefined ? page.hint(app.m.chart.help, "o-stay") : app.put({ query }))));
  /** lanes does something with the lanes, which are shown for it. */
  const lanes: Lanes = (then) =>
    request((s) => {
      const l = s.lanes();
      if (l) then(l);
    });
  listenToWheel(page, lanes);
  listenToDrags(picture, lanes);
  listenToKeys(page, request, lanes, () => session);
}

type Lanes = (then: (lanes: Timeline) => void) => void;

/** listenToWheel zooms with a modifier; without, the page scrolls, and once it is told how to zoom. */
function listenToWheel({ box, hint }: Page, lanes: Lanes): void {
  let told = false;
  const wheel = (e: WheelEvent) => {
    if (!(e.target as Element).closest("svg,.o-lanes")) return;
    if (e.ctrlKey || e.shiftKey || e.metaKey) {
      e.preventDefault();
      lanes((l) => l.wheel(e));
    } else if (!told) hint("ctrl, shift or ⌘ + wheel zooms · ? for more");
    told = true;
  };
  on(box, "wheel", wheel, { passive: false });
}

/** listenToDrags has a drag over the picture go on over the lanes that take its place. */
function listenToDrags(picture: SVGElement, lanes: Lanes): void {
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
}

/** listenToKeys takes the viewer's keys, while it has the focus, and leaves all others to the page. */
function listenToKeys({ box, search, hint }: Page, request: Request, lanes: Lanes, opened: () => unknown): void {
  on(box, "keydown", (e) => {
    const name = e.key.length < 2 ? e.key.toLowerCase() : e.key;
    const control = (e.target as Element).closest("input,select,button")?.tagName;
    const escape = name === "Escape";
    const typing = control && control !== "BUTTON" && !escape;
    const arrow = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].indexOf(name);
    const known = arrow >= 0 || (escape ? opened() : name === "Enter" ? !control : /^[wasd0?/]$/.test(name));
    if (typing || !known || e.ctrlKey || e.altKey || e.metaKey) return;
    e.preventDefault();
    e.stopPropagation();
    if (name === "/") search.focus();
    else if (name === "Enter") lanes((l) => l.take());
    else if (arrow >= 0) lanes((l) => l.step([-1, 1, 0, 0][arrow]!, [0, 0, -1, 1][arrow]!));
    else request(({ app }) => (name === "?" ? hint(app.m.chart.help, "o-stay") : app.put(keyed(app.s, app.m.whole, name)!)));
    if (escape) {
      hint("");
      box.focus({ preventScroll: true });
    }
  });
}
