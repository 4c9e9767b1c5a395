// Short names for what is used everywhere: an output carries the whole program, uncompressed.

declare global {
  /**
   * FULL is set where the program is built: true for pages, false for the script that each output of a
   * notebook carries (the JupyterLab extension has that one, too), which does without lanes of GPU streams (no notebook records
   * them), other colours than by kind of code, the table of threads, the choice of one of them, and two fingers.
   */
  const FULL: boolean;
}

export const { min, max, round, floor, ceil, abs, imul } = Math;

/** ints and floats are columns of so many zeros, or of given numbers. */
export const ints = (v: number | number[]): Int32Array<ArrayBuffer> => new Int32Array(v as number);
export const floats = (v: number | number[]): Float64Array<ArrayBuffer> => new Float64Array(v as number);

/** on listens. */
export const on = <K extends keyof HTMLElementEventMap>(e: EventTarget, type: K, listener: (e: HTMLElementEventMap[K]) => void, options?: AddEventListenerOptions): void =>
  e.addEventListener(type, listener as EventListener, options);

/** sum adds up. */
export const sum = (v: Iterable<number>): number => {
  let all = 0;
  for (const x of v) all += x;
  return all;
};

/** clamp keeps v between low and high. */
export const clamp = (v: number, low: number, high: number): number => min(max(v, low), high);
