// From the text of a payload to the JSON in it, within limits.

import { min } from "./math.ts";
import {
  anyPayload,
  mostLevels,
  mostNames,
  mostObjects,
  mostPacked,
  mostParts,
  mostRatio,
  mostUnpacked,
  mostValues,
  piece,
  TooMuch,
} from "./limits.ts";

/**
 * Payload is what an output carries beside its picture: a line of words, and the document as gzip and
 * base64. The words are "omni_perf", the version, and the views there is something to see in with their
 * names ("flame:Flame_graph"); they are plain so that a chart that is only looked at costs no decoding.
 */
export interface Payload {
  version: number;
  views: string[];
  data: string;
}

/** The version of payloads that are read. */
export const version = 2;

/** payloadOf splits a payload's text; null when it is none. */
export function payloadOf(text: string): Payload | null {
  const [head, data] = text.trim().split("\n", 2);
  const [name, of, ...views] = head!.slice(0, 4000).trim().split(" ");
  return name === "omni_perf" && data ? { version: +of! || 0, views: views.slice(0, mostParts), data } : null;
}

/** bytesOf reads base64; what is none throws. */
export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const binary = atob(base64);
  return new Uint8Array(binary.length).map((_, i) => binary.charCodeAt(i));
}

/** documentOf unpacks a payload's data. It rejects for whatever is not base64 of gzip of JSON, or too much of it. */
export async function documentOf(data: string): Promise<unknown> {
  if (data.length > mostPacked) throw new TooMuch(`it is longer than ${mostPacked / 1e6} MB`);
  const packed = bytesOf(data);
  const most = min(anyPayload + mostRatio * packed.length, mostUnpacked);
  let at = 0;
  const pieces = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(to) {
      to.enqueue(packed.subarray(at, (at += piece)));
      if (at >= packed.length) to.close();
    },
  });
  const unpacked = pieces.pipeThrough(new DecompressionStream("gzip")).getReader();
  const check = shapeCheck();
  const decoder = new TextDecoder();
  let size = 0;
  let text = "";
  try {
    for (;;) {
      const { done, value } = await unpacked.read();
      if (done) return JSON.parse(text + decoder.decode());
      size += value.length;
      if (size > most) throw new TooMuch(`it unpacks to more than ${(most / 1e6).toFixed()} MB`);
      check(value);
      text += decoder.decode(value, { stream: true });
    }
  } catch (e) {
    unpacked.cancel().catch(() => {}); // else what is left is unpacked for nobody
    throw e;
  }
}

/**
 * shapeCheck throws as soon as the bytes of a JSON text, handed over piece by piece, nest deeper or hold more than is
 * read. What is no JSON is left to JSON.parse.
 */
export function shapeCheck(): (bytes: Uint8Array) => void {
  let levels = 0;
  let objects = 0;
  let names = 0;
  let values = 0;
  let quoted = false;
  let escaped = false;
  return (bytes) => {
    for (let i = 0; i < bytes.length; i++) {
      const c = bytes[i];
      if (quoted) {
        if (escaped) escaped = false;
        else if (c === 0x5c)
          escaped = true; // \
        else if (c === 0x22) quoted = false;
      } else if (c === 0x22)
        quoted = true; // "
      else if (c === 0x2c)
        values++; // ,
      else if (c === 0x3a)
        names++; // :
      else if (c === 0x5b || c === 0x7b) {
        objects++; // [ {
        if (++levels > mostLevels) throw new TooMuch(`it has more than ${mostLevels} levels`);
      } else if (c === 0x5d || c === 0x7d) levels--; // ] }
    }
    for (const [count, most] of [
      [objects, mostObjects],
      [names, mostNames],
      [values, mostValues],
    ] as const)
      if (count > most) throw new TooMuch(`it has more than ${most / 1e6} million parts`);
  };
}
