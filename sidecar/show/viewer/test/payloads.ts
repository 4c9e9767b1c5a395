// Payloads to feed the viewer with: whole ones, and ones that something happened to.

/** pack makes a text what a payload's data is. */
export async function pack(text: string): Promise<string> {
  const packed = await new Response(new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer();
  return btoa(String.fromCharCode(...new Uint8Array(packed)));
}

/** Random numbers that are the same each time (mulberry32). */
export function randomOf(seed: number): (below: number) => number {
  return (below) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * below);
  };
}

const odd: unknown[] = [
  null,
  true,
  "",
  "x",
  "__proto__",
  -1,
  0,
  0.5,
  NaN,
  1e308,
  2 ** 53,
  -(2 ** 31),
  [],
  {},
  [[]],
  [null, {}],
  { length: -1 },
  "\u202e<script>",
];

/** mutate changes a few places of a document: values to others of any kind, lists and objects cut, doubled or mixed up. */
export function mutate(document: unknown, random: (below: number) => number): unknown {
  const copy = structuredClone(document);
  const places: [holder: Record<string, unknown>, key: string][] = [];
  const visit = (v: unknown) => {
    if (typeof v !== "object" || v === null) return;
    const keys = Object.keys(v);
    // Of long columns a few places are enough.
    for (const key of keys.length > 40 ? Array.from({ length: 10 }, () => keys[random(keys.length)]!) : keys) {
      places.push([v as Record<string, unknown>, key]);
      visit((v as Record<string, unknown>)[key]);
    }
  };
  visit(copy);
  for (let n = 1 + random(4); n > 0; n--) {
    const [holder, key] = places[random(places.length)]!;
    const v = holder[key];
    const change = random(6);
    if (change === 0) delete holder[key];
    else if (change === 1 && Array.isArray(v)) v.splice(random(v.length + 1), random(v.length + 1));
    else if (change === 2 && Array.isArray(v)) v.push(...v.slice(0, 50));
    else if (change === 3 && typeof v === "number")
      holder[key] = [v * -1, v * 1000, v + 0.5, v * 1e12, v - 1][random(5)];
    else if (change === 4) {
      const [other, its] = places[random(places.length)]!;
      holder[key] = other[its] === copy ? null : structuredClone(other[its]);
    } else holder[key] = odd[random(odd.length)];
  }
  return JSON.parse(JSON.stringify(copy));
}

/** scramble changes a few letters of a text. */
export function scramble(text: string, random: (below: number) => number): string {
  const letters = [...text];
  for (let n = 1 + random(5); n > 0; n--) {
    const at = random(letters.length);
    const change = random(4);
    if (change === 0) letters.splice(at, 1 + random(20));
    else if (change === 1) letters.splice(at, 0, ...letters.slice(at, at + random(20)));
    else if (change === 2) letters[at] = '0123456789[]{},:-"e.nultrfasAZ+/='[random(34)]!;
    else letters[at] = letters[random(letters.length)]!;
  }
  return letters.join("");
}
