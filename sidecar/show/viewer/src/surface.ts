// A canvas of exactly the device pixels it covers, never much taller than the window.

import { ceil, floor, max, min, round } from "./math.ts";
import { boxOf, element, vars } from "./dom.ts";
import { css, type Ink, type Pixels } from "./pixels.ts";
import type { Theme } from "./theme.ts";

/** Pixels beyond the window that scrolling may use up before the next painting. */
const overscan = 128;

/** Pen writes a text on its baseline, in CSS pixels of the whole picture. */
export interface Pen {
  write(text: string, x: number, y: number, ink: Ink, size: number, align?: CanvasTextAlign, mono?: boolean): void;
  widthOf(text: string, size: number, mono?: boolean): number;
  /**
   * fit is the first of some ways that has room, else as many letters of the last as have room, with an ellipsis, and
   * nothing where that is fewer than two.
   */
  fit(ways: string[], room: number, size: number, mono?: boolean): string;
}

export interface Surface {
  canvas: HTMLCanvasElement;
  /**
   * paint shows the part of a picture that the window does. The picture begins in host at left and is
   * width × height; draw fills pixels from top on (CSS pixels), scale of them for one CSS pixel.
   */
  paint(
    left: number,
    width: number,
    height: number,
    theme: Theme,
    draw: (pixels: Pixels, scale: number, top: number) => void,
    write: (pen: Pen) => void,
  ): void;
  /** covers reports whether all that is visible was painted. */
  covers(): boolean;
}

export const deviceScale = (): number => min(devicePixelRatio || 1, 4);

/** surface makes a canvas in an element that is as tall as the whole picture. */
export function surface(host: HTMLElement): Surface {
  const canvas = element("canvas", { class: "o-over", "aria-hidden": "true" });
  host.prepend(canvas);
  const context = canvas.getContext("2d", { alpha: false, willReadFrequently: true })!;
  const widths = new Map<string, number>();
  let image: ImageData | null = null;
  let tile = [0, 0];
  let last: Theme | null = null;

  /** visible is the part of the host that the window shows: top and bottom. */
  const visible = () => {
    const { top, height } = boxOf(host);
    return [max(-top, 0), min(innerHeight - top, height)] as [number, number];
  };
  return {
    canvas,
    covers() {
      const [top, bottom] = visible();
      return bottom <= top || (top >= tile[0]! && bottom <= tile[1]!);
    },
    paint(left, width, height, theme, draw, write) {
      const [above, below] = visible();
      const top = floor(max(above - overscan, 0));
      const bottom = ceil(min(below + overscan, height));
      const scale = deviceScale();
      const w = round(width * scale);
      const rows = round((bottom - top) * scale);
      tile = [0, 0];
      if (below <= above || !(w > 0 && rows > 0)) return;
      tile = [top, bottom];
      if (!image || image.width !== w || image.height !== rows) {
        canvas.width = w;
        canvas.height = rows;
        image = context.createImageData(w, rows);
      }
      if (last !== theme) widths.clear();
      last = theme;
      vars(canvas, { x: left, y: top, w: w / scale, h: rows / scale });
      draw({ wide: w, high: rows, ink: new Uint32Array(image.data.buffer) }, scale, top);
      context.putImageData(image, 0, 0);
      context.setTransform(scale, 0, 0, scale, -left * scale, -top * scale);
      let font = "";
      let tone = -1;
      const use = (size: number, mono?: boolean) => {
        const next = `${size}px ${mono ? "ui-monospace,Menlo,Consolas,monospace" : theme.sans}`;
        if (next !== font) context.font = font = next;
      };
      const pen: Pen = {
        widthOf(text, size, mono) {
          const key = size + (mono ? "m" : "s") + text;
          if (!widths.has(key)) {
            use(size, mono);
            if (widths.size > 5000) widths.clear();
            widths.set(key, context.measureText(text).width);
          }
          return widths.get(key)!;
        },
        fit(ways, room, size, mono) {
          const fits = (text: string) => pen.widthOf(text, size, mono) <= room;
          const text = ways[ways.length - 1]!;
          let low = 0;
          for (let high = text.length; low < high;) {
            const middle = (low + high + 1) >> 1;
            if (fits(text.slice(0, middle) + "…")) low = middle;
            else high = middle - 1;
          }
          return ways.find(fits) ?? (low > 1 ? text.slice(0, low).trimEnd() + "…" : "");
        },
        write(text, x, y, ink, size, align = "left", mono) {
          use(size, mono);
          if (ink !== tone) context.fillStyle = css((tone = ink));
          context.textAlign = align;
          context.fillText(text, x, y);
        },
      };
      write(pen);
    },
  };
}
