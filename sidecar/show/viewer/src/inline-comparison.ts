// The script of a comparison's output.

import { openComparison } from "./comparison.ts";
import { mount } from "./mount.ts";

const host = document.currentScript?.parentElement;
if (host) {
  try {
    mount(host, openComparison);
  } catch {
    // The picture stays as it is.
  }
}
