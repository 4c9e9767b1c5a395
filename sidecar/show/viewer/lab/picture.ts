// The picture in a page that does not trust it: it is made anew of the elements and attributes that our pictures have.
// Style sheets are not among them, since those hold for the whole page: the extension has its own (picture.css).

/**
 * Names of patterns get a number: an output may be shown twice, and where the page finds a name first may be hidden,
 * which hides the pattern for both.
 */
const own = /^(url\(#)?omni-perf-[\w-]+/;

/** The class that picture.css speaks of. */
const lookOf = "op-lab";

const svg = "http://www.w3.org/2000/svg";
const elements = /^(svg|desc|title|defs|pattern|g|path|rect|circle|text)$/;

const number = /^-?\d*\.?\d+%?$/;
const paint = /^(none|currentColor|url\(#omni-perf-[\w-]+\))$/;
const attributes: Record<string, RegExp> = {
  "class": /^[a-z\d]{1,12}( [a-z\d]{1,12})*$/,
  "d": /^[\w\s.,-]*$/,
  "viewBox": /^[\d\s.]+$/,
  "id": /^omni-perf-[\w-]+$/,
  "fill": paint,
  "stroke": paint,
  "pointer-events": /^none$/,
  "patternUnits": /^userSpaceOnUse$/,
  "role": /^img$/,
  "aria-label": /^/,
};
for (const name of ["x", "y", "width", "height", "r", "cx", "cy", "rx", "ry", "font-size", "stroke-width"])
  attributes[name] = number;

let pictures = 0;

/** pictureOf reads a picture; null when it is none. */
export function pictureOf(text: string): SVGElement | null {
  pictures++;
  const picture = copyOf(new DOMParser().parseFromString(text, "image/svg+xml").documentElement);
  if (!(picture instanceof SVGSVGElement)) return null;
  picture.setAttribute("class", lookOf);
  return picture;
}

function copyOf(e: Element): Element | null {
  if (e.namespaceURI !== svg || !elements.test(e.localName)) return null;
  const copy = document.createElementNS(svg, e.localName);
  for (const { name, value } of e.attributes)
    if (Object.hasOwn(attributes, name) && attributes[name]!.test(value))
      copy.setAttribute(name, value.replace(own, "$&-" + pictures));
  for (const child of e.childNodes) {
    const of = child instanceof Element ? copyOf(child) : child.nodeType === Node.TEXT_NODE && child.textContent;
    if (of) copy.append(of);
  }
  return copy;
}
