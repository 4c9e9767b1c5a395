// The JupyterLab extension: a container of module federation, written by hand, with one module in it.
//
// JupyterLab runs this file (package.json names it), finds the container in _JUPYTERLAB under the package's name,
// hands it the modules that all extensions share, and asks for "./mimeExtension". Of what is shared it takes
// Lumino's Widget, which outputs are. Notebook 7 does the same.

import { mimeType, show, type Bundle } from "./output.ts";

const name = "omni-perf";

interface WidgetClass {
  new (): { node: HTMLElement; addClass(name: string): void };
}

/** Scope is what extensions share: by module and version, how to get it. */
type Scope = Record<string, Record<string, { get(): unknown; loaded?: unknown }>>;

/** The files beside this one, which are loaded when a chart is shown for the first time. */
const folder = (document.currentScript as HTMLScriptElement).src.replace(/[^/]*$/, "");

const mimeExtension = (Widget: WidgetClass) => ({
  id: name + ":chart",
  dataType: "json",
  rank: 40, // before text/html, which has 50
  rendererFactory: {
    safe: true, // output.ts takes nothing of an output that could do or style anything
    mimeTypes: [mimeType],
    defaultRank: 40,
    createRenderer: () =>
      new (class extends Widget {
        renderModel(model: { data: Bundle }): Promise<void> {
          this.addClass("jp-RenderedHTMLCommon");
          return show(this.node, model.data, folder);
        }
      })(),
  },
});

let scope: Scope;
const container = {
  init(shared: Scope): void {
    scope = shared;
  },
  async get(): Promise<() => unknown> {
    const versions = Object.values(scope["@lumino/widgets"]!);
    const module = (await (versions.find((v) => v.loaded) || versions[0]!).get()) as () => { Widget: WidgetClass };
    const { Widget } = module();
    return () => ({ __esModule: true, default: mimeExtension(Widget) });
  },
};
const page = globalThis as { _JUPYTERLAB?: Record<string, unknown> };
(page._JUPYTERLAB ||= {})[name] = container;
