// Figures as people say them: the same words as Go's package words, held together by testdata/figures.json.

import { abs, floor, max, round } from "./math.ts";

// The one rule of figures: a number is taken as the decimal fraction of at most 15 digits that it is nearest to (the
// noise of binary fractions is beyond those), a change of unit moves its point, and it is rounded once, half away from
// zero. So 2.35 ms is 2.4 ms, 12.5 % are 13 %, in every language.

/** scaled10 is v × 10^power, by its decimal digits. */
function scaled10(v: number, power: number): number {
  const [mantissa, exponent] = v.toExponential(14).split("e");
  return isFinite(v) ? +(mantissa + "e" + (+exponent! + power)) : v;
}

/** fixed writes v with so many decimals; zero has no sign. */
function fixed(v: number, decimals: number): string {
  const n = round(scaled10(abs(v), decimals));
  return (v < 0 && n ? "-" : "") + scaled10(n, -decimals).toFixed(decimals);
}

/** short is fixed without the zeros at its end. */
const short = (v: number, decimals: number): string => String(+fixed(v, decimals));

/** large writes a number too large for its unit: 1.16e10. */
function large(v: number): string {
  let e = +v.toExponential(14).split("e")[1]!;
  let mantissa = round(scaled10(abs(v), 2 - e));
  if (mantissa >= 1000) {
    mantissa /= 10;
    e++;
  }
  return (v < 0 ? "-" : "") + short(mantissa / 100, 2) + "e" + e;
}

// Below so many seconds a length is said in a unit, which moves the point by so many digits, in so many decimals;
// longer ones in two units.
const small: [below: number, unit: string, power: number, decimals: number, write: typeof fixed][] = [
  [0.0995e-6, " ns", 9, 0, fixed],
  [9.95e-6, " µs", 6, 1, short],
  [0.9995e-3, " µs", 6, 0, fixed],
  [0.00995, " ms", 3, 1, fixed],
  [0.0995, " ms", 3, 0, fixed],
  [0.995, " s", 0, 2, fixed],
  [99.95, " s", 0, 1, fixed],
  [119.5, " s", 0, 0, fixed],
];
const pairs: [below: number, big: number, bigUnit: string, little: number, littleUnit: string][] = [
  [3599.5, 60, " min", 1, " s"],
  [172770, 3600, " h", 60, " min"],
  [1e7, 86400, " d", 3600, " h"],
];

/** seconds says a length of time in few characters: 0.5 µs, 412 µs, 47 ms, 6.6 s, 2 min 5 s, 3 h 12 min, 6 d 4 h. */
export const seconds = (s: number): string => micros(scaled10(s, 6));

/** micros says microseconds. */
export function micros(us: number): string {
  const s = scaled10(us, -6);
  if (!isFinite(s)) return "?";
  if (!s) return "0 s";
  if (s < 0) return "-" + micros(-us);
  for (const [below, unit, power, decimals, write] of small)
    if (s < below) return write(scaled10(s, power), decimals) + unit;
  for (const [below, big, bigUnit, little, littleUnit] of pairs) {
    const n = round(s / little);
    const rest = n % (big / little);
    if (s < below) return floor((n * little) / big) + bigUnit + (rest ? " " + rest + littleUnit : "");
  }
  return (s < 1e12 ? count(round(s / 86400)) : large(s / 86400)) + " d";
}

/** percent says a share of 1. What is not quite all of it is 99 %. */
export const percent = (share: number): string => hundredths(scaled10(share, 2));

function hundredths(p: number): string {
  const a = abs(p);
  if (!isFinite(p)) return "? %";
  if (!p) return "0 %";
  if (a < 0.1) return "<0.1 %";
  if (a < 0.95) return fixed(p, 1) + " %";
  if (a >= 1e5) return large(p) + " %";
  return (p >= 99.5 && p < 100 ? "99" : fixed(p, 0)) + " %";
}

function scaled(v: number, base: number, prefixes: string[], unit: string): string {
  let i = 0;
  while (abs(v) >= 999.5 && i < prefixes.length - 1) {
    v /= base;
    i++;
  }
  v = scaled10(v, 0);
  const a = abs(v);
  const prefix = prefixes[i]! + unit;
  if (a >= 1e5) return `${large(v)} ${prefix}`;
  const fine = a !== floor(a) && a < (i > 0 ? 99.95 : 9.95);
  return `${fixed(v, fine ? 1 : 0)} ${prefix}`.trim();
}

function cores(v: number): string {
  v = scaled10(v, 0);
  const a = abs(v);
  if (v === 1) return "1 core";
  return (a < 99.995 ? short(v, 2) : a < 1e5 ? short(v, 1) : large(v)) + " cores";
}

/** figure says a track's value: memory in binary units as torch and free do, rates in decimal ones. */
export function figure(v: number, unit: string): string {
  if (unit === "%") return hundredths(scaled10(v, 0));
  if (!isFinite(v)) return "?";
  if (unit === "cores") return cores(v);
  return unit === "B"
    ? scaled(v, 1024, ["", "Ki", "Mi", "Gi", "Ti", "Pi"], unit)
    : scaled(v, 1000, ["", "k", "M", "G", "T", "P"], unit);
}

/** count says a number with thousands apart. */
export const count = (n: number): string => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

/** plural says "1 step", "2 steps". */
export const plural = (n: number, one: string): string => count(n) + " " + one + (n === 1 ? "" : "s");

/** clean bounds text of the user's program: longer than any line, short enough for a tooltip. */
export const clean = (s: string, limit = 240): string => (s.length > limit ? s.slice(0, limit) + "…" : s);

/** shortFile is a file's name in a narrow column: "Cell [5]" stays, "~/project/train.py" becomes "train.py". */
export const shortFile = (file: string): string =>
  /^(Cell \[|<)/.test(file) ? file : file.slice(max(file.lastIndexOf("/"), file.lastIndexOf("\\")) + 1);
