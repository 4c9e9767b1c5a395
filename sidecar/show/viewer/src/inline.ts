// The script of an output and of a page. Before anything else, and before any await, it finds the element that it
// stands in: each picture there that has data beside it gets the viewer.

import { openChart } from "./chart.ts";
import { openComparison } from "./comparison.ts";
import { mount } from "./mount.ts";

const isPayload = "script[type^=application\\/octet-stream]";

for (const data of document.currentScript?.parentElement?.querySelectorAll(isPayload) || []) {
  try {
    mount(data.parentElement!, (document, page) => openComparison(document, page) || openChart(document, page));
  } catch {
    // The picture stays as it is.
  }
}
