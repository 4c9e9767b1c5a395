// Colours: the static picture's own style sheet has them, as variables of its class.

import { ink, type Ink } from "./pixels.ts";

/** Theme is the page's colours right now. */
export interface Theme {
  sans: string;
  ink(paint: string): Ink;
}

/** codePaints are the paints of recording's codes, statePaints those of its states. */
export const codePaints = ["cell", "user", "data", "frame", "dev", "io", "pic", "other"];
export const statePaints = ["py", "nat", "wait", "io", "gil", "ba", "ba"];

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
        const hex = parseInt(style.getPropertyValue("--" + paint).trim().slice(1), 16);
        inks.set(paint, (i = ink(hex >> 16, (hex >> 8) & 255, hex & 255)));
      }
      return i;
    },
  };
}
