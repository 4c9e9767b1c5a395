// Stretches of time.

import { list, us } from "./json.ts";
import { max, min } from "./math.ts";

/** Stretches are pairs of start and end, in order, none over another. */
export type Stretches = number[];

/** stretchesOf reads pairs of nanoseconds, in order and joined where they touch. */
export function stretchesOf(v: unknown, duration: number): Stretches {
  const out: number[] = [];
  list(v)
    .map((p) => list(p).map((at) => min(us(at), duration)) as [number, number])
    .filter(([a, b]) => b > a)
    .sort((a, b) => a[0] - b[0])
    .forEach(([a, b]) => {
      const n = out.length;
      if (n && a <= out[n - 1]!) out[n - 1] = max(out[n - 1]!, b);
      else out.push(a, b);
    });
  return out;
}

/** intersection is what two lists have in common. */
export function intersection(stretches: Stretches, b: Stretches): Stretches {
  const out: number[] = [];
  for (let i = 0, j = 0; i < stretches.length && j < b.length;) {
    const from = max(stretches[i]!, b[j]!);
    const to = min(stretches[i + 1]!, b[j + 1]!);
    if (from < to) out.push(from, to);
    if (stretches[i + 1]! < b[j + 1]!) i += 2;
    else j += 2;
  }
  return out;
}

/** overlap is how much of from … to lies in stretches. */
export function overlap(stretches: Stretches, from: number, to: number): number {
  let sum = 0;
  for (let i = 0; i < stretches.length; i += 2) sum += max(min(stretches[i + 1]!, to) - max(stretches[i]!, from), 0);
  return sum;
}
