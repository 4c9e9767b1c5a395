// Package inhtml puts a picture and the data of its viewer into HTML: an output of a notebook, or a page.
//
// In flow an SVG and a payload; out flows HTML within the bounds that are here, which loads nothing and
// whose policy allows only its own scripts and styles.
package inhtml

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"html"
	"regexp"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Image shows a picture as an image, with its summary for those who cannot see it.
func Image(svg []byte, width float64, summary string) string {
	return fmt.Sprintf(`<img width="%.0f" style="max-width:100%%;height:auto" alt="%s" src="data:image/svg+xml;base64,%s">`,
		width, html.EscapeString(words.Clean(summary, 600)), base64.StdEncoding.EncodeToString(svg))
}

// Data holds a payload beside the picture; no browser takes it for a program.
func Data(payload string) string {
	return `<script type="application/octet-stream;base64">` + payload + "</script>"
}

// Fragment is an output: content, and the script that makes more of it.
func Fragment(content, script string) []byte {
	return []byte(`<div data-lm-suppress-shortcuts="true">` + content + "<script>" + script + "</script></div>")
}

// Output is a picture with the data of its viewer, and the viewer.
func Output(image, payload string) []byte {
	return Fragment("<style>"+viewer.Style+"</style>"+image+Data(payload), viewer.Script)
}

// Page is a file of its own around an inline picture and what its viewer reads.
func Page(title string, svg []byte, payload, text string, o scene.Options) []byte {
	style := pageStyle(o)
	styles := append([]string{style, viewer.Style}, Styles(svg)...)
	var b strings.Builder
	b.Grow(len(svg) + len(payload) + len(viewer.Script) + len(viewer.Style) + 64<<10)
	fmt.Fprintf(&b, "<!doctype html>\n<html lang=\"en\"%s><head><meta charset=\"utf-8\">\n", map[scene.Theme]string{scene.Light: ` theme="light"`, scene.Dark: ` theme="dark"`}[o.Theme])
	fmt.Fprintf(&b, `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src %s; style-src %s; base-uri 'none'; form-action 'none'">`+"\n",
		viewer.Allow(viewer.Script), viewer.Allow(styles...))
	b.WriteString(`<meta name="viewport" content="width=device-width">` + "\n")
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(words.Clean(title, 200)))
	b.WriteString("<style>" + style + "</style><style>" + viewer.Style + "</style></head><body>\n<div>")
	b.Write(svg)
	b.WriteString(Data(payload) + "<script>" + viewer.Script + "</script></div>\n")
	b.WriteString("<details><summary>As text</summary><pre>")
	b.WriteString(html.EscapeString(text))
	b.WriteString("</pre></details>\n</body></html>\n")
	return []byte(b.String())
}

// Styles are the style sheets of a picture as the hashes of a page's policy count them:
// the text without the marks around it.
func Styles(svg []byte) (styles []string) {
	for _, m := range styleElement.FindAllSubmatch(svg, -1) {
		styles = append(styles, cdata.Replace(string(m[1])))
	}
	return styles
}

var (
	styleElement = regexp.MustCompile(`(?s)<style[^>]*>(.*?)</style>`)
	cdata        = strings.NewReplacer("<![CDATA[", "", "]]>", "")
)

// pageStyle is the page around the picture.
func pageStyle(o scene.Options) string {
	const light, dark = "color-scheme:light;background:#ffffff", "color-scheme:dark;background:#111113"
	root := ":root{" + light + "}@media screen and (prefers-color-scheme:dark){:root{" + dark + "}}"
	switch o.Theme {
	case scene.Light:
		root = ":root{" + light + "}"
	case scene.Dark:
		root = ":root{" + dark + "}"
	}
	// The picture has a width; from where that leaves much of a window empty, the viewer takes all of it.
	return root + fmt.Sprintf("body{margin:0 auto;max-width:%.0fpx;padding:8px;font-family:system-ui,sans-serif}", o.Width) +
		fmt.Sprintf("@media screen and (min-width:%.0fpx){body{max-width:none}.opv{max-width:none!important}}", o.Width*9/8) +
		"details{padding:8px 16px;font-size:13px}pre{overflow:auto;font-size:12px}@media print{details{display:none}}"
}

// Phrases are text, tone and element of each piece of a line.
func Phrases(ps []scene.Phrase) [][3]string {
	out := make([][3]string, len(ps))
	for i, p := range ps {
		out[i] = [3]string{p.Text, string(p.Tone), [...]string{scene.Sans: "", scene.Bold: "b", scene.Mono: "code"}[p.Face]}
	}
	return out
}

// Overview is how far above the baseline of the ticks' labels the viewer's overview
// begins: below the finding, its height and a little air above the labels.
const Overview = 24.0

const (
	PageBytes  = 200 << 10 // of a page's picture, and of a picture alone
	ImageBytes = 44_000    // of an output's picture: 59 kB as base64

	// Of what HTML carries to look closer, as gzip: ten seconds of ordinary Python at
	// 1 kHz have room in the least. Longer cells may take more by the second.
	leastData     = 32 << 10
	dataPerSecond = 3 << 10
	mostData      = 220 << 10
)

// DataBytes bounds the report in a notebook's output, as gzip.
func DataBytes(durationNS int64) int {
	return min(max(int(float64(durationNS)/1e9*dataPerSecond), leastData), mostData)
}

// Identity is a number of the report's content, for the ids of elements: one page may have several pictures.
func Identity(r *report.View) uint64 {
	h := fnv.New64a()
	for _, v := range []uint64{
		uint64(r.StartedAt.UnixNano()), uint64(r.DurationNS), uint64(r.Processes[r.Target().Process].PID),
		uint64(r.Target().Sampling.Ticks), uint64(len(r.Nodes.Parent)), uint64(len(r.Spans.Node)),
	} {
		_ = binary.Write(h, binary.LittleEndian, v) // a hash never fails
	}
	h.Write([]byte(r.Name))
	h.Write([]byte(r.Headline.Text))
	return h.Sum64()
}
