// The viewer's elements in an output: they are beside the static picture, and take its place when asked to.

import { button, div, fill, element } from "./dom.ts";
import { clean } from "./words.ts";

/** Page is the elements of one output. */
export interface Page {
  box: HTMLElement; // all of it
  picture: SVGElement;
  body: HTMLElement; // what takes the picture's place
  tabs: Map<string, HTMLElement>; // by view
  search: HTMLInputElement;
  /** hint says something over the picture; it goes by itself, unless it stays until the next or a click. */
  hint(text: string, stays?: string): void;
}

/**
 * pageOf builds the elements around a picture, with views to choose from ("flame:Flame_graph"). It calls ask with the
 * view that is chosen, with "" and the text that is searched for, at Enter with how many places to go on, and without
 * arguments for help.
 */
export function pageOf(
  picture: SVGElement,
  names: string[],
  ask: (view?: string, query?: string, by?: number) => void,
): Page {
  const box = div({
    class: "opv " + picture.getAttribute("class"),
    role: "figure",
    tabindex: "0",
    "aria-label": picture.querySelector("desc")?.textContent,
    style: `max-width:${picture.getAttribute("width")}px`,
  });
  const search = element("input", {
    type: "search",
    placeholder: "Search /",
    "aria-label": "Search functions",
    input: () => ask("", search.value),
    keydown: ({ key, shiftKey }: KeyboardEvent) => key === "Enter" && ask("", search.value, shiftKey ? -1 : 1),
  });
  const tabs = new Map(
    names.map((v) => {
      const [view, name] = clean(v, 60).replace(/_/g, " ").split(":") as [string, string];
      return [view, button(name, () => ask(view), view === "timeline")];
    }),
  );
  const body = div({ hidden: 1 });
  const page: Page = {
    box,
    picture,
    body,
    tabs,
    search,
    hint(text, stays = "") {
      box.querySelector(".o-hint")?.remove();
      box.append(div({ class: "o-hint " + stays, role: "status", click: () => page.hint("") }, text));
    },
  };
  picture.replaceWith(box);
  fill(box, [
    div(
      { class: "o-head", role: "toolbar" },
      ...tabs.values(),
      search,
      button("?", () => ask()),
    ),
    picture,
    body,
  ]);
  return page;
}
