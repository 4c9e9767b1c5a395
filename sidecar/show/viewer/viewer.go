// Package viewer carries the interactive form of a chart: a script and its style
// sheet, which show a report where its static picture stands, in the same
// geometry, once someone zooms, selects, searches or changes the view.
//
// The sources are TypeScript in src, the carried files in assets; go generate
// builds them with tools/bundle and needs no Node. What flows in is the report's
// document (version 2), thinned for display, with one more member "chart": the
// static picture's geometry and words, in its pixels. So the lanes, which of
// them there are, where each stands, how it is called and what it says of the
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
//go:generate go -C ../../../tools/bundle run . -o ../../sidecar/show/viewer/assets ../../sidecar/show/viewer

// Script is what each output of a notebook carries. An output keeps all of it,
// uncompressed, in the notebook's file: MaxScript bounds it.
//
//go:embed assets/viewer.js
var Script string

// FullScript has also what no notebook's output needs, and stands after all pictures of
// the element it is in, of which there may be several: for pages of their own.
//
//go:embed assets/viewer.full.js
var FullScript string

// PictureScript puts an output's picture inline, and does no more: for outputs
// without data. The scripts that have more to show do the same first.
//
//go:embed assets/picture.js
var PictureScript string

// CompareScript is that of an output that compares two recordings. Its document
// is {"before": report, "after": report, "lines", "functions", "causes": changes,
// "chart"}; synthetic.Comparison has a change's members.
//
//go:embed assets/viewer.compare.js
var CompareScript string

// Style is the style sheet of all.
//
//go:embed assets/viewer.css
var Style string

// MaxScript bounds Script and CompareScript, in bytes: with it an output of ten seconds stays within
// 160 kB (chart's TestSizesAreBounded).
const MaxScript = 56 << 10

// Help is what the viewer says of its keys and the mouse. Documents carry it in
// their chart, compressed, and not the script.
const Help = `ctrl, shift or ⌘ + wheel, w s: zoom
drag, a d: move, once zoomed
shift + drag, drag on the axis: select a stretch
click: select a box
arrows, Enter: go from box to box, select it
double click, 0: show all of it
/: search functions by regular expression
Esc: one step back, at last to the picture`

// Version is that of the documents that the scripts read.
const Version = 2
