// Findings: what was found, why, where, and what it could save.

import { placeWords, source, type App } from "./app.ts";
import { code, div, dot, small } from "./dom.ts";
import { mostTableRows } from "./limits.ts";
import { evident, moreWords, section, table, type Cell } from "./tables.ts";
import { micros } from "./words.ts";

/** findingsTable lists them, with links to their evidence. */
export function findingsTable(app: App): HTMLElement {
  const { findings } = app.model.recording;
  return section(
    "Findings",
    findings.length ? moreWords(findings.length - mostTableRows, "finding") : "nothing stood out",
    table(
      ["", "", "#could save"],
      findings
        .slice(0, mostTableRows)
        .map((remark): Cell[] => [
          dot(remark.serious ? "bar" : "other"),
          div(
            "o-wrap",
            evident(app, remark.text, remark),
            small(" " + placeWords(app, remark.place) + " "),
            code(source(remark.place)),
            div("", small(remark.hint)),
          ),
          remark.us > 0 && [remark.us, "up to " + micros(remark.us)],
        ]),
    ),
  );
}
