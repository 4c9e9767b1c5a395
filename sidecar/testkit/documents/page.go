package documents

import (
	"encoding/base64"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/chart"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/flame"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Payload is what an output carries for the viewer.
func Payload(d *Document) (string, error) {
	views := []viewer.View{viewer.Timeline, viewer.Flame, viewer.Lines}
	if d.Idle != nil {
		views = append(views, viewer.Idle)
	}
	if len(d.Steps) > 0 {
		views = append(views, viewer.Steps)
	}
	return viewer.Payload(append(views, viewer.Findings), d)
}

var (
	styles = regexp.MustCompile(`(?s)<style[^>]*>.*?</style>`)
	class  = regexp.MustCompile(`class="(op-[0-9a-f]+)"`)
)

// mostBoxes of a row are drawn: a picture is to be looked at.
const mostBoxes = 40

// Picture stands in for the static chart of a document: the lanes where the
// chart's geometry has them, in the chart's own colours, one instant per column.
func Picture(d *Document) (string, error) {
	empty, err := chart.SVG(&report.View{Document: &report.Document{Targets: make([]report.Target, 1), Processes: make([]report.Process, 1), Subject: &report.Subject{}}}, scene.Options{Inline: true})
	if err != nil {
		return "", err
	}
	style, name := styles.Find(empty), class.FindSubmatch(empty)
	c := d.Chart
	var b strings.Builder
	height := c.Plot[3] + 60
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" class="%s" role="img" style="max-width:100%%;height:auto">`,
		c.Width, height, c.Width, height, name[1])
	fmt.Fprintf(&b, "<desc>%s</desc>%s", html.EscapeString(phrases(c.Title)), style)
	b.WriteString(`<rect width="100%" height="100%" class="bg"/>`)
	text := func(x, y, size float64, tone, anchor, s string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" font-size="%.1f" class="%s" text-anchor="%s">%s</text>`, x, y, size, tone, anchor, html.EscapeString(strings.Map(printable, s)))
	}
	text(16, 24, 15, "tp bo", "start", phrases(c.Title))
	text(32, 48, 12.5, "tp bo", "start", phrases(c.Finding))
	x := func(us float64) float64 { return c.Plot[0] + us*1000/float64(d.DurationNS)*(c.Plot[2]-c.Plot[0]) }
	if d.Idle != nil {
		for _, i := range d.Idle.Devices[0].Intervals {
			fmt.Fprintf(&b, `<g class="f"><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="idle"/></g>`, x(float64(i[0])/1000), c.Plot[1], x(float64(i[1])/1000)-x(float64(i[0])/1000), c.Plot[3]-c.Plot[1])
		}
	}
	for i := 0; i <= 10; i++ {
		t := float64(d.DurationNS) / 1e9 * float64(i) / 10
		text(c.Plot[0]+float64(i)/10*(c.Plot[2]-c.Plot[0]), c.Axis, 10.5, "tm", "middle", fmt.Sprintf("%.3g s", t))
	}
	t := treeOf(d)
	for i, rows := range Geometry(d, int(c.Plot[2]-c.Plot[0])) {
		l := c.Lanes[i]
		text(c.Plot[0]-10, (l.Y0+min(l.Y1, l.Y0+26))/2+4, 11.5, "tp", "end", cut(l.Name, 18))
		text(c.Plot[2]+10, (l.Y0+l.Y1)/2+4, 11.5, "tp", "start", cut(l.Value, 12))
		for r, row := range rows {
			y, h := l.Y0+float64(r)*c.Pitch, c.Pitch-1
			if l.Rows == 0 {
				h = l.Y1 - l.Y0
			}
			for _, v := range row[:min(len(row), mostBoxes)] {
				fmt.Fprintf(&b, `<g class="f"><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s"/></g>`, c.Plot[0]+float64(v.From), y, float64(v.To-v.From), h, d.paintOf(t, l, v.ID))
			}
		}
		if l.Kind == "track" {
			fmt.Fprintf(&b, `<g class="f"><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s"/></g>`, c.Plot[0], (l.Y0+l.Y1)/2, c.Plot[2]-c.Plot[0], (l.Y1-l.Y0)/2, html.EscapeString(l.Paint))
		}
	}
	b.WriteString("</svg>")
	return b.String(), nil
}

func printable(r rune) rune {
	if r < ' ' || r == 0xfffe || r == 0xffff {
		return ' '
	}
	return r
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func phrases(ps [][3]string) string {
	var parts []string
	for _, p := range ps {
		parts = append(parts, cut(p[0], 200))
	}
	return strings.Join(parts, "   ")
}

func (d *Document) paintOf(t *flame.Tree, l Lane, id int) string {
	switch {
	case l.Kind == "lines":
		return "l2"
	case l.Kind == "flame" && id < 0:
		return "other"
	case l.Kind == "flame":
		return codePaints[d.codeOf(t, int32(id))]
	}
	return []string{"py", "nat", "ba", "io", "gil", "ba", "ba"}[(id-1)%7]
}

// Output is the HTML of a notebook's output: style, image, data, script.
func Output(d *Document, script, style string) (string, error) {
	payload, err := Payload(d)
	if err != nil {
		return "", err
	}
	return output(d, payload, script, style)
}

// ComparisonOutput is the same of a comparison.
func ComparisonOutput(c *Comparison, script, style string) (string, error) {
	payload, err := viewer.Payload([]viewer.View{{ID: "flame", Name: "Comparison"}}, c)
	if err != nil {
		return "", err
	}
	d := *c.After
	d.Chart = c.Chart
	return output(&d, payload, script, style)
}

func output(d *Document, payload, script, style string) (string, error) {
	picture, err := Picture(d)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`<div data-lm-suppress-shortcuts="true"><style>%s</style><img width="%.0f" style="max-width:100%%;height:auto" alt="%s" src="data:image/svg+xml;base64,%s">`+
		`<script type="application/octet-stream;base64">%s</script><script>%s</script></div>`,
		style, d.Chart.Width, html.EscapeString(phrases(d.Chart.Title)), base64.StdEncoding.EncodeToString([]byte(picture)), payload, script), nil
}

// Page hosts outputs as a notebook does, in a theme ("light" or "dark").
func Page(theme string, outputs ...string) string {
	ground := map[string]string{"light": "#fff", "dark": "#111113"}[theme]
	return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>viewer</title>` +
		`<style>body{margin:16px;background:` + ground + `;--jp-layout-color0:` + ground + `}</style></head>` +
		`<body data-jp-theme-light="` + fmt.Sprint(theme != "dark") + `">` + strings.Join(outputs, "<hr>") + `</body></html>`
}

func itoa(n int) string { return strconv.Itoa(n) }
