// An output in JupyterLab, whoever made the notebook: of its bundle only what is looked at is taken, the image, the
// payload, the summary's text; all else is the extension's own.

import { bytesOf, payloadOf, version } from "../src/decode.ts";
import { div, element } from "../src/dom.ts";
import { object } from "../src/json.ts";
import { pictureOf } from "./picture.ts";

/** Bundle is an output's data by media type. */
export type Bundle = Record<string, unknown>;

/** mimeType marks the bundles that are shown here; what it holds says what the data in text/html is of. */
export const mimeType = "application/vnd.omni-perf.chart.v1+json";

/** SCRIPT is the file of the viewer; set where this is built. */
declare const SCRIPT: string;

/** What the viewer shows, by the mark of a bundle. */
const shownKinds: unknown[] = ["chart", "comparison"];

/** text is a value of a bundle, which may be a list of lines. */
const text = (v: unknown): string => (Array.isArray(v) ? v.join("") : typeof v === "string" ? v : "");

/**
 * show puts an output into an element: the image at once, the picture and what shows its data as soon as folder's files
 * are there.
 */
export async function show(node: Element, bundle: Bundle, folder: string): Promise<void> {
  // A document of its own: nothing in it runs or loads.
  const made = new DOMParser().parseFromString(text(bundle["text/html"]), "text/html");
  const image = imageOf(made.querySelector<HTMLImageElement>('img[src^="data:image/svg+xml;base64,"]'));
  if (!image) return node.replaceChildren(element("pre", null, text(bundle["text/plain"])));
  const summary = made.querySelector("details > summary");
  const id = idOf(made);
  const host = div({ "data-lm-suppress-shortcuts": "true", "id": summary ? null : id }, image);
  const data = made.querySelector("script[type^=application\\/octet-stream]")?.textContent?.trim() || "";
  const grow = () => inlined(image, data, bundle[mimeType], folder);
  if (!summary) {
    node.replaceChildren(host);
    return grow();
  }
  const folded = element("details", { id, toggle: () => grown || (grown = grow()) }, summaryOf(summary), host);
  let grown: Promise<void> | undefined;
  node.replaceChildren(folded);
}

/** idOf is the name that links of the notebook have for this output; null where it has none. */
const idOf = (made: Document): string | null => {
  const id = made.querySelector("a[id]")?.id || "";
  return /^omni-perf-[\da-f]{16}$/.test(id) ? id : null;
};

/** imageOf is an image of ours, without what else an img may have. */
const imageOf = (image: HTMLImageElement | null): HTMLImageElement | null =>
  image &&
  element("img", {
    src: image.src,
    alt: image.alt,
    width: parseFloat(image.getAttribute("width")!) || null,
    style: "max-width:100%;height:auto",
  });

/** summaryOf is a summary's text, as bold as it was. */
const summaryOf = (summary: Element): HTMLElement =>
  element(
    "summary",
    { style: "cursor:pointer" },
    ...[...summary.childNodes].map((n) => (n.nodeName === "B" ? element("b", null, n.textContent) : n.textContent)),
  );

/** inlined puts the picture in the image's place, and has a script show the data beside it. */
async function inlined(image: HTMLImageElement, data: string, mark: unknown, folder: string): Promise<void> {
  let picture: SVGElement | null;
  try {
    await styled(folder);
    picture = pictureOf(new TextDecoder().decode(bytesOf(image.src.split(",")[1]!)));
  } catch {
    return; // the image stays
  }
  if (!picture) return;
  image.replaceWith(picture);
  if (!data) return;
  const payload = payloadOf(data);
  const known = shownKinds.includes(object(mark)["kind"]);
  if (!payload || !wellFormed.test(data))
    note(picture, "The data beside this picture is damaged, so that it cannot be looked at closer.");
  else if (payload.version !== version || !known)
    note(
      picture,
      "To look at this chart closer, this JupyterLab needs another omni_perf: " +
        `the chart's data is of version ${payload.version}, this one reads version ${version}.`,
    );
  else
    picture.after(
      element("script", { type: "application/octet-stream;base64" }, data),
      element("script", { src: folder + SCRIPT }),
    );
}

/** wellFormed are payloads as ours are; the names of views become classes. */
const wellFormed = /^omni_perf \d+( [a-z]+:\w*)*\n[A-Za-z\d+/=]+$/;

const note = (picture: Element, says: string): void =>
  picture.after(element("p", { style: "margin:4px 16px;font-size:12px", role: "note" }, says));

let styles: Promise<unknown> | undefined;

/** styled waits for the style sheets of pictures and of the viewer, which the page keeps. */
async function styled(folder: string): Promise<void> {
  styles ||= Promise.all(
    ["picture.css", "viewer.css"].map(
      (file) =>
        new Promise((load, error) =>
          document.head.append(element("link", { rel: "stylesheet", href: folder + file, load, error })),
        ),
    ),
  );
  try {
    await styles;
  } catch (e) {
    styles = undefined; // the next output tries again
    throw e;
  }
}
