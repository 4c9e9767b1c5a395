// Making elements. Text only ever becomes text nodes.

export type Child = Node | string | number | null | undefined | false | 0;

/** listen calls back for an event. */
export const listen = <K extends keyof HTMLElementEventMap>(
  e: EventTarget,
  type: K,
  listener: (e: HTMLElementEventMap[K]) => void,
  options?: AddEventListenerOptions,
): void => e.addEventListener(type, listener as EventListener, options);

/**
 * element makes an element. A string of attributes is its class; functions among them listen; nothing (false, null, "")
 * is left out.
 */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes?: Record<string, unknown> | string | false | null,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [name, v] of Object.entries(typeof attributes === "string" ? { class: attributes } : attributes || {})) {
    if (typeof v === "function") listen(e, name as "click", v as () => void);
    else if (name === "style")
      e.style.cssText = v as string; // a page's policy may forbid the attribute
    else if (v || v === 0) e.setAttribute(name, v as string);
  }
  fill(e, children);
  return e;
}

export const div = (attributes?: Record<string, unknown> | string, ...children: Child[]): HTMLElement =>
  element("div", attributes, ...children);

/** fill replaces what is in an element. */
export const fill = (e: Element, children: Child[]): void =>
  e.replaceChildren(...(children.filter((c) => c) as Node[]));

/** small is text of less weight. */
export const small = (text: Child): HTMLElement => element("small", null, text);

/** code is text of a program. */
export const code = (text: Child, strong?: unknown): HTMLElement | "" =>
  text ? element("code", strong ? "o-strong" : null, text) : "";

/** boxOf is where an element is on the screen. */
export const boxOf = (e: Element): DOMRect => e.getBoundingClientRect();

/** dot is a patch of a paint. */
export const dot = (paint: string): HTMLElement =>
  element("i", { class: paint === "wait" ? "o-dot o-wait" : "o-dot", style: `background:var(--${paint})` });

/** button does something; pressed makes it one of several states. */
export const button = (text: string, click: () => void, pressed?: boolean, title?: string): HTMLElement =>
  element("button", { click, title, "aria-pressed": pressed === undefined ? null : String(pressed) }, text);

/** link is a button that reads as a link. */
export const link = (text: string, click: () => void): HTMLElement =>
  element("button", { click, class: "o-link" }, text);

/** select chooses one of some values. */
export const select = (
  label: string,
  now: string | number,
  options: [value: string | number, text: string][],
  change: (value: string) => void,
): HTMLElement =>
  element(
    "select",
    { "aria-label": label, change: (e: Event) => change((e.target as HTMLSelectElement).value) },
    ...options.map(([value, text]) => element("option", { value, selected: value === now }, text)),
  );

/** vars sets variables of an element, lengths in CSS pixels. */
export const vars = (e: HTMLElement, px: Record<string, number>): void => {
  for (const name in px) e.style.setProperty("--" + name, px[name] + "px");
};
