// Arithmetic that is used everywhere.

export const { min, max, round, floor, ceil, abs, imul } = Math;

/** ints and floats are columns of so many zeros, or of given numbers. */
export const ints = (v: number | number[]): Int32Array<ArrayBuffer> => new Int32Array(v as number);
export const floats = (v: number | number[]): Float64Array<ArrayBuffer> => new Float64Array(v as number);

/** sum adds up. */
export const sum = (v: Iterable<number>): number => {
  let all = 0;
  for (const x of v) all += x;
  return all;
};

/** clamp keeps v between low and high. */
export const clamp = (v: number, low: number, high: number): number => min(max(v, low), high);
