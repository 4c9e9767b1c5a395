// How long the GPUs in use were idle in a stretch of time, and what they waited for.

import { states } from "./generated.ts";
import { floats, max, min, sum } from "./math.ts";
import { keyOf, type LineTime, type Recording, type Remark } from "./recording.ts";
import { overlap } from "./stretches.ts";
import { rateTimes } from "./sums.ts";

/**
 * idleTime is the time that the devices in use were idle, of all devices together, as in the report: windows that were
 * idle in part count with that part, so that busy and idle add up to what is known.
 */
export function idleTime(recording: Recording, from: number, to: number): number {
  const { activity, idle } = recording;
  if (!activity.length) return overlap(idle, from, to);
  return sum(
    activity.map((track) => {
      const [percents, known] = rateTimes(track, from, to);
      return max(known - percents / 100, 0);
    }),
  );
}

/** IdleShare is idle time by cause: at least so much. Without a cause it is of windows that were idle in part. */
export type IdleShare = [cause: Remark | null, us: number];

/**
 * idleShares divides a stretch's idle time by cause, most first. Evidence is windows that were idle from end to end;
 * what of the others was idle cannot be divided in a part of the recording.
 */
export function idleShares(recording: Recording, from: number, to: number): IdleShare[] {
  let left = idleTime(recording, from, to);
  return recording.causes
    .map((cause): IdleShare => [cause, overlap(cause.evidence, from, to)])
    .sort((a, b) => b[1] - a[1])
    .concat([[null, left]])
    .map(([cause, us]): IdleShare => {
      us = min(us, left);
      left -= us;
      return [cause, us];
    })
    .filter(([, us]) => us > 1);
}

/** withIdle charges idle time to the lines of its causes, as the report does. */
export function withIdle(lines: LineTime[], shares: IdleShare[]): LineTime[] {
  const known = new Map(lines.map((line) => [keyOf(line.place), line]));
  for (const [cause, us] of shares) {
    const place = cause && cause.place;
    if (!place) continue;
    const key = keyOf(place);
    const line = known.get(key) || { place, self: 0, idle: 0, shares: floats(states.length) };
    line.idle += us;
    known.set(key, line);
  }
  return [...known.values()];
}
