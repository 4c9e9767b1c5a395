// From the text of a payload to the JSON in it.

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
  const [head, data] = text.trim().split("\n");
  const [name, of, ...views] = head!.trim().split(" ");
  return name === "omni_perf" && data ? { version: +of! || 0, views, data } : null;
}

/** bytesOf reads base64; what is none throws. */
export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const binary = atob(base64);
  return new Uint8Array(binary.length).map((_, i) => binary.charCodeAt(i));
}

/** documentOf unpacks a payload's data. It rejects for whatever is not base64 of gzip of JSON. */
export const documentOf = async (data: string): Promise<unknown> => new Response(new Blob([bytesOf(data)]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
