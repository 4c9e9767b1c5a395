// How much of a document is read and shown. Whoever made the notebook made the document: it may be built to exhaust the
// page that shows it, together with the unsaved work in that page. What is beyond a limit is refused or left out, and
// the page says so. All limits are here.

/** Payloads of more characters are not decoded. A page with the report of a long recording has some ten million. */
export const mostPacked = 64e6;

/** What a payload unpacks to, in bytes: a day's report. The document, its text and its bytes are in memory at once. */
export const mostUnpacked = 128e6;

/**
 * So many bytes each byte of a payload may unpack to, beyond what any payload may. Reports come to 4 to 30; gzip
 * reaches 1032, so that a small notebook could ask for as much work as a large one.
 */
export const mostRatio = 100;
export const anyPayload = 8e6;

/** What is given to gzip at a time, in bytes: it unpacks each piece whole, up to a thousand times as much. */
export const piece = 8192;

// The text's shape, checked before JSON.parse makes objects of it. A document has eight levels. An object takes some
// hundred bytes of memory, a name in one some 50, a value 4 to 20.
export const mostLevels = 64;
export const mostObjects = 2e6; // lists are objects, too
export const mostNames = 6e6;
export const mostValues = 24e6; // four for each span

/** What of the document's lists is read. Their work adds up; each with each, where it is done, is within 25 million. */
export const mostRows = {
  files: 50_000,
  functions: 200_000,
  processes: 5000,
  pools: 5000,
  threads: 5000,
  devices: 128,
  tracks: 2000,
  causes: 1000,
  steps: 200_000,
  lines: 100_000,
  findings: 1000,
  gaps: 5000,
  streams: 500,
};
export type Rows = keyof typeof mostRows;

/** Nodes of the tree of stacks: for each, a stack of up to 400 calls is walked. */
export const mostNodes = 500_000;

/** Parts of a picture: lanes, phrases of a line, entries of the legend, notes, sources of a lane, views. */
export const mostLanes = 500;
export const mostParts = 40;

/** Cells of the strip of ranks' steps: an object each, and each is looked at in each frame. */
export const mostCells = 20_000;

/** Lanes of lines: each looks through all nodes for the lines of its file. */
export const mostLineLanes = 8;

/** Rows of one table, and tables of one kind: an element each, and more than anybody reads. */
export const mostTableRows = 300;
export const mostTables = 20;

/** TooMuch is thrown for what is beyond a limit; its text ends the sentence "The data … is not read:". */
export class TooMuch extends Error {}
