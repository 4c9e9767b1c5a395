// The static picture, in the page in place of the image that shows it.

import { bytesOf } from "./decode.ts";

/**
 * inlined replaces an image by the picture in it, so that its tooltips and its colours are the page's. It takes
 * what draws: no script, no handler, no link, nothing of another language than SVG, whoever put the image there.
 * What is a picture already is returned; null for anything else.
 */
export function inlined(image: Element | null | undefined): SVGElement | null {
  if (image instanceof SVGSVGElement) return image;
  const [head, data] = (image instanceof HTMLImageElement ? image.src : "").split(",");
  if (head !== "data:image/svg+xml;base64") return null;
  // The pattern gets a name of its own: the output may be shown twice, and where the page finds a name first may be
  // hidden, which hides the pattern for both.
  const text = new TextDecoder().decode(bytesOf(data!)).replace(/omni-perf-\w+-hatch/g, "$&" + Math.random());
  const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (!(svg instanceof SVGSVGElement)) return null;
  for (const e of [svg, ...svg.querySelectorAll("*")]) {
    if (e.namespaceURI !== svg.namespaceURI || /^(script|foreignobject|set|animate.*)$/i.test(e.localName)) e.remove();
    for (const { name, value } of [...e.attributes])
      if (/^on/i.test(name) || (/href$/i.test(name) && value[0] !== "#")) e.removeAttribute(name);
  }
  const picture = document.importNode(svg, true);
  image!.replaceWith(picture);
  return picture;
}
