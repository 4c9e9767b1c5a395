// The sentence below the head: the answer for what is shown.

import { isWhole, placeWords, shareWords, source, type App } from "./app.ts";
import { h, small, type Child } from "./dom.ts";
import type { Phrase } from "./lanes.ts";
import { cellThread } from "./model.ts";
import { overlap } from "./recording.ts";
import { matchedTime } from "./search.ts";
import { rangeOf } from "./state.ts";
import { stateTimes } from "./sums.ts";
import { micros, percent, plural } from "./words.ts";

/** phrase is a piece of a line in its tone. */
export const phrase = ([says, tone, tag]: Phrase): HTMLElement => h(tag as "b", { style: tone && `color:var(--${tone})` }, says);

/** sentence answers for the whole recording, what is shown of it, the selection, or the search. */
export function sentence(app: App): Child[] {
  const { m, s } = app;
  const { r } = m;
  const [from, to] = rangeOf(s);
  const strong = (text: string) => h("b", null, text);
  if (s.query) {
    const found = m.found(s.query, false)!;
    const { self, total } = m.sums(false, s.view === "flame" ? s.who : cellThread, from, to);
    const us = matchedTime(found, self);
    const functions = [...m.functions(from, to).keys()].filter((fn) => found.fns[fn]).length;
    return [strong(`“${s.query}”: ${micros(us)} of ${micros(total[0]!)} (${percent(us / (total[0] || 1))}) in ${plural(functions, "function")}`), small("matches are framed")];
  }
  if (isWhole(app)) return m.chart.finding.map(phrase);
  const lines = m.lines(from, to);
  const share = (us: number) => `${micros(us)} of it (${percent(us / (to - from))})`;
  const shown = `${s.picked ? "Selected" : "Shown"} ${micros(to - from)}: `;
  if (r.gpu) {
    const idle = overlap(r.idle, from, to);
    const worst = [...lines].sort((a, b) => b.idle - a.idle)[0];
    const where = worst && worst.idle > idle / 20 ? worst.place : null;
    return [strong(`${shown}the GPU was idle for ${share(idle)}${where ? `, ${micros(worst!.idle)} of that in ${placeWords(app, where)}` : ""}`), where && h("code", null, source(where))];
  }
  const [most] = lines;
  const doing = m.main ? shareWords(app, stateTimes(r, m.main, from, to), (us) => percent(us / (to - from))) : "";
  return [strong(shown + (most ? `${share(most.self)} in ${placeWords(app, most.place)}` : "")), most && h("code", null, source(most.place)), small(doing)];
}
