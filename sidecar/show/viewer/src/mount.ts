// The viewer in an output: it waits beside the static picture until someone asks for more.

import { goOn } from "./app.ts";
import { listen } from "./dom.ts";
import { abs } from "./math.ts";
import { documentOf, payloadOf, version } from "./decode.ts";
import { TooMuch } from "./limits.ts";
import { fits } from "./lanes.ts";
import { pageOf, type Page } from "./page.ts";
import { inlined } from "./picture.ts";
import type { Session } from "./session.ts";
import { keyed } from "./state.ts";
import { dragThreshold } from "./drags.ts";
import type { Timeline } from "./timeline.ts";

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
type Request = (then: (session: Session) => void) => void;

function attach(picture: SVGElement, names: string[], data: string, open: Opener): void {
  let session: Session | null = null;
  let opening: Promise<void> | undefined;
  let waiting: IntersectionObserver | undefined;
  const request: Request = (then) => {
    waiting?.disconnect();
    opening ||= documentOf(data).then((d) => {
      session = open(d, page);
    });
    if (session) then(session);
    else
      opening
        .then(() => then(session!))
        .catch((e) =>
          page.hint(
            e instanceof TooMuch ? `The data beside this picture is not read: ${e.message}.` : "The data is damaged.",
          ),
        );
  };
  const page = pageOf(picture, names, (view, query, by) =>
    request(({ app }) =>
      view
        ? app.put({ view })
        : query === undefined
          ? page.hint(app.model.chart.help, "o-stay")
          : by
            ? goOn(app, by)
            : app.put({ query, nth: 0 }),
    ),
  );
  /** lanes does something with the lanes, which are shown for it. */
  const lanes: Lanes = (then) =>
    request((opened) => {
      const timeline = opened.lanes();
      if (timeline) then(timeline);
    });
  listenToWheel(page, lanes);
  listenToDrags(picture, lanes);
  listenToKeys(page, request, lanes, () => session);
  waiting = whenUnreadable(page, () => request((opened) => opened.show()));
}

/**
 * whenUnreadable asks for the viewer where the picture is scaled so far that its text cannot be read, or leaves half
 * of a page empty: once it is seen, as a notebook may have hundreds.
 */
function whenUnreadable({ box, picture }: Page, then: () => void): IntersectionObserver | undefined {
  const wide = Number(picture.getAttribute("width"));
  if (fits(wide, box.clientWidth)) return;
  const seen = new IntersectionObserver((entries) => {
    const { width } = entries[entries.length - 1]!.boundingClientRect;
    if (!box.isConnected) seen.disconnect();
    else if (width && entries.some((e) => e.isIntersecting)) {
      seen.disconnect();
      if (!fits(wide, width)) then();
    }
  });
  seen.observe(box);
  return seen;
}

type Lanes = (then: (lanes: Timeline) => void) => void;

/** listenToWheel zooms with a modifier; without, the page scrolls, and once it is shown how to zoom. */
function listenToWheel({ box, hint }: Page, lanes: Lanes): void {
  let hinted = false;
  const wheel = (e: WheelEvent) => {
    if (!(e.target as Element).closest("svg,.o-lanes")) return;
    if (e.ctrlKey || e.shiftKey || e.metaKey) {
      e.preventDefault();
      box.focus({ preventScroll: true }); // for Esc
      lanes((timeline) => timeline.wheel(e));
    } else if (!hinted) hint("ctrl, shift or ⌘ + wheel zooms · ? for more");
    hinted = true;
  };
  listen(box, "wheel", wheel, { passive: false });
}

/** listenToDrags has a drag over the picture go on over the lanes that take its place. */
function listenToDrags(picture: SVGElement, lanes: Lanes): void {
  let events: PointerEvent[] = [];
  for (const type of ["pointerdown", "pointermove", "pointerup"] as const) {
    listen(picture, type, (e) => {
      if (type === "pointerdown") events = [];
      else if (!events[0] || e.pointerType === "touch") return;
      events.push(e);
      if (abs(e.clientX - events[0].clientX) < dragThreshold) return;
      lanes((timeline) => {
        for (const v of events) timeline.stage.dispatchEvent(new PointerEvent(v.type, v));
        events = [];
      });
    });
  }
}

/** listenToKeys takes the viewer's keys, while it has the focus, and leaves all others to the page. */
function listenToKeys({ box, search, hint }: Page, request: Request, lanes: Lanes, opened: () => unknown): void {
  listen(box, "keydown", (e) => {
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
    else if (name === "Enter") lanes((timeline) => timeline.take());
    else if (arrow >= 0) lanes((l) => l.step([-1, 1, 0, 0][arrow]!, [0, 0, -1, 1][arrow]!));
    else
      request(({ app }) =>
        name === "?" ? hint(app.model.chart.help, "o-stay") : app.put(keyed(app.state, app.model.initial, name)!),
      );
    if (escape) {
      hint("");
      box.focus({ preventScroll: true });
    }
  });
}
