// Colours: the static picture's own style sheet has them, as variables of its class.

import { Code, State } from "./generated.ts";
import { ink, type Ink } from "./pixels.ts";

/** Theme is the page's colours right now. */
export interface Theme {
  sans: string;
  ink(paint: string): Ink;
}

/** The paints of codes and of states, by number; a strip leaves out what is neither work nor a known wait. */
const paintOfCode: Record<Code, string> = {
  [Code.cell]: "cell",
  [Code.user]: "user",
  [Code.data]: "data",
  [Code.framework]: "frame",
  [Code.device]: "dev",
  [Code.io]: "io",
  [Code.picture]: "pic",
  [Code.other]: "other",
};
const paintOfState: Record<State, string> = {
  [State.python]: "py",
  [State.native]: "nat",
  [State.waiting]: "wait",
  [State.io]: "io",
  [State.gil]: "gil",
  [State.off]: "ba",
  [State.unknown]: "ba",
};
export const codePaints = Object.values(paintOfCode);
export const statePaints = Object.values(paintOfState);

/** themeOf reads the colours that hold for an element of the picture's class, whose border has the page's ground. */
export function themeOf(e: HTMLElement): Theme {
  const style = getComputedStyle(e);
  const [red, green, blue] = (style.borderTopColor.match(/[\d.]+/g) || []).map(Number) as [number, number, number];
  const inks = new Map([["bg", ink(red, green, blue)]]);
  return {
    sans: style.fontFamily,
    ink(paint) {
      let i = inks.get(paint);
      if (i === undefined) {
        const hex = parseInt(
          style
            .getPropertyValue("--" + paint)
            .trim()
            .slice(1),
          16,
        );
        inks.set(paint, (i = ink(hex >> 16, (hex >> 8) & 255, hex & 255)));
      }
      return i;
    },
  };
}
