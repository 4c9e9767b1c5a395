// A stand-in for vitest where tests run in a page: the few words that the tests use. Results are in
// window.testResults when all have run.

type Body = () => void | Promise<void>;

const bodies: [name: string, body: Body][] = [];

export const test = (name: string, body: Body): void => void bodies.push([name, body]);

const show = (v: unknown): string =>
  JSON.stringify(v, (_, x) => (ArrayBuffer.isView(x) ? [...(x as unknown as number[])] : x))?.slice(0, 500) ??
  String(v);

export function expect(got: unknown, about = "") {
  const check = (ok: boolean, what: string, want: unknown) => {
    if (!ok) throw new Error(`${about} got ${show(got)}, want ${what} ${show(want)}`);
  };
  return {
    toBe: (want: unknown) => check(Object.is(got, want), "", want),
    toEqual: (want: unknown) => check(show(got) === show(want), "", want),
    toBeCloseTo: (want: number, digits = 2) =>
      check(Math.abs((got as number) - want) < 10 ** -digits / 2, "about", want),
    toBeLessThan: (want: number) => check((got as number) < want, "less than", want),
    toBeLessThanOrEqual: (want: number) => check((got as number) <= want, "at most", want),
    toBeGreaterThan: (want: number) => check((got as number) > want, "more than", want),
    toBeGreaterThanOrEqual: (want: number) => check((got as number) >= want, "at least", want),
    toContain: (want: unknown) => check((got as unknown[]).includes(want), "with", want),
  };
}

interface Results {
  passed: string[];
  failed: string[];
}

setTimeout(async () => {
  const results: Results = { passed: [], failed: [] };
  for (const [name, body] of bodies) {
    try {
      await body();
      results.passed.push(name);
    } catch (e) {
      results.failed.push(`${name}: ${(e as Error).message}`);
    }
  }
  (globalThis as unknown as { testResults: Results }).testResults = results;
}, 0);
