// The script of a page, after all of its pictures: each that has data beside it gets the viewer.

import { openChart } from "./chart.ts";
import { mount } from "./mount.ts";

for (const data of document.currentScript?.parentElement?.querySelectorAll("script[type^=application\\/octet-stream]") || []) {
  try {
    mount(data.parentElement!, openChart);
  } catch {
    // The picture stays as it is.
  }
}
