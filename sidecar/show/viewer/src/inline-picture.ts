// The script of an output without data: it puts the picture inline, no more.

import { inlined } from "./picture.ts";

try {
  inlined(document.currentScript?.parentElement?.querySelector("img"));
} catch {
  // The image stays as it is.
}
