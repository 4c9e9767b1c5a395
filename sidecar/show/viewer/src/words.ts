// Figures as people say them: the same words as chart/words.go, held together by testdata/words.json.

import { abs, floor, max, round } from "./brief.ts";

// Below so many seconds a length is said in a unit, in so many decimals; longer ones in two units.
const small: [below: number, unit: string, scale: number, decimals: number][] = [
  [0.9995e-3, " µs", 1e6, 0],
  [0.00995, " ms", 1e3, 1],
  [0.0995, " ms", 1e3, 0],
  [0.995, " s", 1, 2],
  [99.95, " s", 1, 1],
  [119.5, " s", 1, 0],
];
const large: [below: number, big: number, bigUnit: string, little: number, littleUnit: string][] = [
  [3599.5, 60, " min", 1, " s"],
  [172770, 3600, " h", 60, " min"],
  [1e7, 86400, " d", 3600, " h"],
];

/** seconds says a length of time in few characters: 412 µs, 47 ms, 6.6 s, 2 min 5 s, 3 h 12 min. */
export function seconds(s: number): string {
  if (!isFinite(s)) return "?";
  if (!s) return "0 s";
  for (const [below, unit, scale, decimals] of small) if (abs(s) < below) return (s * scale).toFixed(decimals) + unit;
  for (const [below, big, bigUnit, little, littleUnit] of large) {
    const n = round(s / little);
    const rest = n % (big / little);
    if (s < below) return floor((n * little) / big) + bigUnit + (rest ? " " + rest + littleUnit : "");
  }
  return digits(s / 86400, 3) + " d";
}

/** micros says microseconds. */
export const micros = (us: number): string => seconds(us / 1e6);

/** digits says v with at most n significant digits. */
const digits = (v: number, n: number): number => +v.toPrecision(n);

/** percent says a share of 1. */
export function percent(share: number): string {
  const p = share * 100;
  const a = abs(p);
  if (!isFinite(p)) return "? %";
  if (p === 0) return "0 %";
  if (a < 0.1) return "<0.1 %";
  if (a < 0.95) return p.toFixed(1) + " %";
  if (a >= 1e5) return digits(p, 3) + " %";
  return (p > 99.5 && p < 100 ? "99" : p.toFixed(0)) + " %";
}

function scaled(v: number, base: number, prefixes: string[], unit: string): string {
  if (!isFinite(v)) return "?";
  let i = 0;
  while (abs(v) >= 999.5 && i < prefixes.length - 1) {
    v /= base;
    i++;
  }
  const a = abs(v);
  const prefix = prefixes[i]! + unit;
  if (a >= 1e5) return `${digits(v, 3)} ${prefix}`;
  const fine = a !== Math.trunc(a) && a < (i > 0 ? 99.95 : 9.95);
  return `${v.toFixed(fine ? 1 : 0)} ${prefix}`.trim();
}

const decimal = ["", "k", "M", "G", "T", "P"];

/** figure says a track's value: memory in binary units as torch and free do, rates in decimal ones. */
export function figure(v: number, unit: string): string {
  switch (unit) {
    case "B":
      return scaled(v, 1024, ["", "Ki", "Mi", "Gi", "Ti", "Pi"], "B");
    case "B/s":
      return scaled(v, 1000, decimal, "B/s");
    case "%":
      return percent(v / 100);
    case "cores":
      if (!isFinite(v)) return "?";
      return v === 1 ? "1 core" : (v < 9.95 ? +v.toFixed(2) : digits(v, 4)) + " cores";
  }
  return scaled(v, 1000, decimal, unit);
}

/** count says a number with thousands apart. */
export const count = (n: number): string => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

/** plural says "1 step", "2 steps". */
export const plural = (n: number, one: string, many = one + "s"): string => (n === 1 ? "1 " + one : count(n) + " " + many);

/** clean bounds text of the user's program: longer than any line, short enough for a tooltip. */
export const clean = (s: string, limit = 240): string => (s.length > limit ? s.slice(0, limit) + "…" : s);

/** shortFile is a file's name in a narrow column: "Cell [5]" stays, "~/project/train.py" becomes "train.py". */
export const shortFile = (file: string): string => (/^(Cell \[|<)/.test(file) ? file : file.slice(max(file.lastIndexOf("/"), file.lastIndexOf("\\")) + 1));
