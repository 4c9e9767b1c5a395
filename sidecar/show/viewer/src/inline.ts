// The script of an output. Before anything else, and before any await: where it stands.

import { openChart } from "./chart.ts";
import { mount } from "./mount.ts";

const host = document.currentScript?.parentElement;
if (host) {
  try {
    mount(host, openChart);
  } catch {
    // The picture stays as it is.
  }
}
