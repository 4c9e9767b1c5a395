// Package viewer carries the interactive form of a chart: a script and its style
// sheet, which show a report in place of its static picture, in the same
// geometry, once someone zooms, selects, searches or changes the view.
//
// The sources are TypeScript in src, the carried files in assets; go generate
// builds them with tools/bundle and needs no Node. What flows in is the report's
// document (version 2), thinned for display, with one more member "chart": the
// static picture's geometry and words, in its pixels. So the lanes, which of
// them there are, where each is, how it is called and what it says of the
// whole recording, are decided once, by package chart; the viewer stretches,
// unfolds and narrows them (src/lanes.ts), and decides for itself only what
// depends on the window of time that is shown. Chart has the members with their
// units; what a column of pixels shows follows from the same rules in both
// languages (chart's raster.go, src/columns.ts).
//
// An output holds, in one element:
//
//	<style>viewer.css</style>
//	<img src="data:image/svg+xml;base64,…">      the static picture
//	<script type="application/octet-stream;base64">omni_perf 2 timeline:Timeline flame:Flame_graph …
//	H4sI…</script>                               the views, then the document as gzip and base64
//	<script>viewer.js</script>
//
// The script finds its place by itself, puts the picture inline and waits.
//
// Where scripts of outputs do not run, in a notebook that JupyterLab does not trust,
// an extension of JupyterLab (lab, labextension) takes image and data out of the same
// HTML and runs the same script, its own copy; extension.go has the contract.
package viewer

import _ "embed"

//go:generate go run ../../testkit/harness -style assets/picture.css
//go:generate go run ../../testkit/harness -enumerations src/generated.ts
//go:generate go -C ../../../tools/bundle run . -o ../../sidecar/show/viewer/assets ../../sidecar/show/viewer

// Script is the viewer, of charts and of comparisons alike: what each output of a notebook that has data carries, and
// each page after its pictures. An output keeps all of it, uncompressed, in the notebook's file: MaxScript bounds it.
// A comparison's document is {"before": report, "after": report, "lines", "functions", "causes": changes, "chart"};
// documents.Comparison has a change's members.
//
//go:embed assets/viewer.js
var Script string

// PictureScript puts an output's picture inline, and does no more: for outputs
// without data. Script does the same first.
//
//go:embed assets/picture.js
var PictureScript string

// Style is the style sheet of all.
//
//go:embed assets/viewer.css
var Style string

// MaxScript bounds Script, in bytes: with it an output of ten seconds stays within
// 160 kB (chart's TestSizesAreBounded).
const MaxScript = 64 << 10

// Help is what the viewer says of its keys and the mouse. Documents carry it in
// their chart, compressed, and not the script.
const Help = `ctrl, shift or ⌘ + wheel, w s: zoom
drag, a d: move, once zoomed
shift + drag, drag on the axis: select a stretch
click: select a box
arrows, Enter: go from box to box, select it
double click, 0: show all of it
/: search functions by regular expression; Enter, shift + Enter: the next place, the one before
Esc: one step back, at last to the picture`

// Version is that of the documents that the scripts read.
const Version = 2
