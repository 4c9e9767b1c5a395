// Which lines of a file a table shows.

import { mostTableRows } from "./limits.ts";

/**
 * listing is the numbers of the lines to show, 0 for a gap: those that took time, with two lines around where there is
 * room; and how many that took time there is no room for.
 */
export function listing(source: string[] | null, hot: number[]): { shown: number[]; more: number } {
  hot.sort((a, b) => a - b);
  const around = 2;
  const shown: number[] = [];
  let next = 0; // of hot: the first whose neighbourhood was not passed
  for (let k = 0; k < (source ? source.length : hot.length) && next < hot.length && shown.length < mostTableRows; k++) {
    const line = source ? k + 1 : hot[k]!;
    while (hot[next]! + around < line) next++;
    if (hot[next]! - around <= line) {
      if (!source || source[k]!.trim()) shown.push(line);
    } else if (shown[shown.length - 1] && next < hot.length) shown.push(0);
  }
  const last = shown[shown.length - 1] || 0;
  return { shown, more: shown.length < mostTableRows ? 0 : hot.filter((n) => n > last).length };
}
