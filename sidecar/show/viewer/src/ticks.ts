// Round times on the axis; over a whole recording the same as chart/ticks.go.

import { ceil, floor, max, round } from "./math.ts";

const clockSteps = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800,
];

/** ticks chooses at most about n round times from … to, in seconds, and words for them. */
export function ticks(from: number, to: number, n: number): { at: number[]; label: (t: number) => string } {
  const least = max((to - from) / max(n, 2), 1e-9);
  let step = 0;
  if (least > 0.5) step = clockSteps.find((s) => s >= least) || 0;
  const clock = step > 0;
  if (!clock) {
    step = 10 ** floor(Math.log10(least));
    step *= [1, 2, 5, 10].find((m) => m * step >= least) || 10;
  }
  const at: number[] = [];
  for (let i = ceil(from / step - 1e-6); i * step <= to + step * 1e-6 && at.length < 99; i++) at.push(i * step);
  const decimals = max(-floor(Math.log10(step) + 1e-9), 0);
  const label = (t: number) => {
    if (clock) return clockLabel(t, step);
    if (to - from >= 86400) return +(t / 86400).toPrecision(4) + " d";
    if (to >= 60 && t >= 60) return floor(t / 60 + 1e-9) + ":" + (t % 60).toFixed(decimals).padStart(decimals + 3, "0");
    if (to >= 1) return +t.toFixed(decimals) + " s";
    if (to >= 0.001) return +(t * 1e3).toFixed(max(decimals - 3, 0)) + " ms";
    return +(t * 1e6).toFixed(max(decimals - 6, 0)) + " µs";
  };
  return { at, label };
}

function clockLabel(t: number, step: number): string {
  if (step >= 86400) return round(t / 86400) + " d";
  if (step >= 3600) return t < 172800 ? round(t / 3600) + " h" : (t / 86400).toFixed(1) + " d";
  const unit = step < 60 ? 1 : 60;
  const big = unit * 60;
  return t < big
    ? round(t / unit) + (unit > 1 ? " min" : " s")
    : floor(t / big + 1e-9) + ":" + String(round((t % big) / unit)).padStart(2, "0") + (unit > 1 ? " h" : "");
}
