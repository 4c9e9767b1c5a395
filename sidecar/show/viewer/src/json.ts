// Reading JSON that may be anything: what is not of the asked type is empty, never an exception.

export type Json = Record<string, unknown>;

export const object = (v: unknown): Json => (typeof v === "object" && v && !Array.isArray(v) ? (v as Json) : {});
export const list = (v: unknown): unknown[] => (Array.isArray(v) ? v : []);
/** first is a list, of a longer one its beginning. */
export const first = (v: unknown, most: number): unknown[] =>
  list(v).length > most ? list(v).slice(0, most) : list(v);
export const objects = (v: unknown): Json[] => list(v).map(object);
/** amount is a number of at least 0; 0 where there is none. */
export const amount = (v: unknown): number => ((v as number) > 0 && (v as number) < Infinity ? +(v as number) : 0);
/** known is an amount, or NaN where there is none. */
export const known = (v: unknown): number => (typeof v === "number" ? amount(v) : NaN);
/** index is a whole number below size; -1 where it is none. */
export const index = (v: unknown, size: number): number =>
  typeof v === "number" && v >= 0 && v < size && v % 1 === 0 ? v : -1;
/** us is microseconds, of nanoseconds. */
export const us = (v: unknown): number => amount(v) / 1000;
export const string = (v: unknown): string => (typeof v === "string" ? v : "");
