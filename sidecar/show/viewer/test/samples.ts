// Documents for tests.

import geometry from "../testdata/geometry.json";
import { modelOf, type Model } from "../src/model.ts";

export interface FixtureBox {
  From: number;
  To: number;
  ID: number;
  Share?: number;
  Others?: number;
}

export interface Fixture {
  name: string;
  columns: number;
  instants: number[];
  boxes: (FixtureBox[] | null)[][];
  document: Record<string, unknown>;
}

export const fixtures = geometry as unknown as Fixture[];
export const training = fixtures.find((f) => f.name === "training")!;
export const workers = fixtures.find((f) => f.name === "workers")!;

export const modelIn = (f: Fixture): Model => modelOf(f.document)!;

/** Small is a document in a few words: stacks as "cell.f>lib.g", for so many milliseconds, in a state. */
export function small(
  ...runs: [thread: number, from: number, to: number, stack: string, state?: number][]
): Record<string, unknown> {
  const kinds = ["cell", "user", "data", "framework", "device", "io", "picture", "other"];
  const files: Record<string, unknown>[] = [];
  const functions: Record<string, unknown>[] = [];
  const frames = { function: [] as number[], line: [] as number[] };
  const nodes = { parent: [0], frame: [0] };
  const known = new Map<string, number>();
  const intern = <T>(key: string, make: () => T): T => {
    if (!known.has(key)) known.set(key, make() as number);
    return known.get(key) as T;
  };
  const node = (stack: string): number =>
    stack.split(/(?<!<[^<>]*)>/).reduce((at, call, depth) => {
      // FILE:KIND.FUNCTION@LINE; a file under lib/ belongs to the package of that name.
      const [, path, kind, name, line] = /^([^:]+):(\w+)\.(.+?)(?:@(\d+))?$/.exec(call)!;
      const pkg = /site-packages\/(\w+)/.exec(path!)?.[1] ?? null;
      const file = intern(
        "file" + path,
        () =>
          files.push({
            name: path,
            code: pkg ? 7 : kinds.indexOf(kind!),
            package: pkg,
            execution_count: path!.startsWith("Cell") ? 1 : null,
            lines: null,
          }) - 1,
      );
      const fn = intern(
        "fn" + path + name,
        () => functions.push({ file, name: name, first_line: 1, code: kinds.indexOf(kind!) }) - 1,
      );
      const frame = intern(
        `frame${fn}@${line}`,
        () => (frames.function.push(fn), frames.line.push(Number(line ?? 1)) - 1),
      );
      return intern(`node${at}/${frame}/${depth}`, () => (nodes.parent.push(at), nodes.frame.push(frame) - 1));
    }, 0);
  const threads = Math.max(...runs.map(([t]) => t)) + 1;
  const spans = {
    first: [] as number[],
    gap_us: [] as number[],
    length_us: [] as number[],
    node: [] as number[],
    state: [] as number[],
  };
  for (let t = 0; t < threads; t++) {
    spans.first.push(spans.node.length);
    let last = 0;
    for (const [thread, from, to, stack, state] of runs) {
      if (thread !== t) continue;
      spans.gap_us.push(from * 1000 - last);
      spans.length_us.push((to - from) * 1000);
      spans.node.push(node(stack));
      spans.state.push(state ?? 0);
      last = to * 1000;
    }
  }
  spans.first.push(spans.node.length);
  return {
    duration_ns: Math.max(...runs.map(([, , to]) => to)) * 1e6,
    enumerations: { state: ["python", "native", "waiting", "io", "gil", "off", "unknown"], code: kinds },
    files,
    functions,
    frames,
    nodes,
    spans,
    subject: { thread: 0, threads: [0] },
    threads: Array.from({ length: threads }, (_, t) => ({ name: "thread " + t, runs_cell: t === 0, main: t === 0 })),
    chart: {
      width: 1120,
      plot: [120, 100, 1020, 300],
      axis: 90,
      strip: 60,
      pitch: 17,
      states: ["Python", "native code", "waiting", "input/output", "waits for the GIL", "no free CPU", "unknown"],
      lanes: [{ kind: "flame", index: 0, y0: 110, y1: 195, rows: 5 }],
    },
  };
}
