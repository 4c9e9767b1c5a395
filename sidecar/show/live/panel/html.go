package panel

import (
	"fmt"
	"html"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/live"
)

// class is the class that all rules of the panel hang on. One panel is shown at a
// time, and the chart takes its place: versions do not meet on a page.
const class = "op-live"

const style = `.op-live{font:13px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;color:var(--tp);max-width:1100px;overflow:hidden}
.op-live *{box-sizing:border-box}
.op-live .r{display:flex;gap:12px;align-items:baseline;white-space:nowrap;overflow:hidden;min-height:20px}
.op-live .g{flex:1;overflow:hidden;text-overflow:ellipsis}
.op-live.op-live .r code{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;color:inherit;background:none;padding:0;overflow:hidden;text-overflow:ellipsis}
.op-live i{font-style:normal;color:var(--tm)}
.op-live .w{color:var(--tw);white-space:normal}
.op-live .p{height:4px;border-radius:2px;background:var(--ba);margin:4px 0}
.op-live .p b,.op-live .q b{display:block;height:100%;border-radius:2px;background:var(--bar)}
.op-live .q{flex:0 0 90px;height:8px;align-self:center;background:var(--ba);border-radius:2px}
.op-live .f{gap:4px 28px;flex-wrap:wrap;margin:4px 0}
.op-live .f span{display:inline-flex;gap:8px;align-items:center}
.op-live .n{flex:0 0 64px;text-align:right;font-variant-numeric:tabular-nums}
.op-live .l{flex:0 0 150px;overflow:hidden;text-overflow:ellipsis}
.op-live .d{width:8px;height:8px;border-radius:50%;background:var(--gpu);align-self:center;flex:none}
`

// HTML is a look at a recording in progress, for the output of its cell: a few lines
// without a script, of a height that does not jump from one look to the next.
func HTML(n *live.Now, theme scene.Theme) []byte {
	d := digestOf(n)
	var b strings.Builder
	b.WriteString(`<div class="` + class + `"><style>` + style + scene.Themed("."+class, theme) + `</style>`)
	fmt.Fprintf(&b, `<div class="r"><span class="d"></span><b>%s</b><span class="g">%s</span><i>live, omni_perf</i></div>`, esc(d.title), esc(d.progress))
	if d.hasShare {
		fmt.Fprintf(&b, `<div class="p"><b style="width:%.1f%%"></b></div>`, 100*d.share)
	}
	for i := range 2 {
		b.WriteString(`<div class="r">`)
		if i < len(d.now) {
			p := d.now[i]
			fmt.Fprintf(&b, `<i class="l">%s</i><code class="g" title="%[2]s">%[2]s</code><i>%s</i>`,
				esc(strings.TrimSpace(p.place+" "+p.function)), esc(p.text), esc(p.since))
		}
		b.WriteString(`</div>`)
	}
	b.WriteString(`<div class="r f">`)
	if d.doing != "" {
		fmt.Fprintf(&b, `<span>%s</span>`, esc(d.doing))
	}
	for _, f := range d.figures {
		fmt.Fprintf(&b, `<span><i>%s</i>%s%s</span>`, esc(f.name), curve(f), esc(f.value))
	}
	b.WriteString(`</div>`)
	if d.waiting != "" {
		fmt.Fprintf(&b, `<div class="r w"><span class="g">%s</span></div>`, esc("GPU: "+d.waiting))
	}
	for _, alarm := range d.alarms {
		fmt.Fprintf(&b, `<div class="r w" role="alert"><b class="g">%s</b></div>`, esc(alarm))
	}
	for _, l := range d.lines {
		fmt.Fprintf(&b, `<div class="r"><span class="n">%s</span><span class="q"><b style="width:%.1f%%"></b></span><i class="l">%s</i><code class="g">%s</code></div>`,
			esc(l.seconds), 100*min(max(l.share, 0), 1), esc(l.place), esc(l.text))
	}
	b.WriteString(`</div>`)
	return []byte(b.String())
}

func esc(s string) string { return html.EscapeString(s) }

// curve draws a figure's last minute, newest at the right.
func curve(f figure) string {
	const width, height, slots = 120.0, 18.0, 60
	if len(f.history) < 2 {
		return ""
	}
	step := width / (slots - 1)
	var path strings.Builder
	pen := "M"
	for i, v := range f.history {
		if v == nil {
			pen = "M"
			continue
		}
		x := width - float64(len(f.history)-1-i)*step
		fmt.Fprintf(&path, "%s%.1f %.1f", pen, x, 1+(height-2)*(1-min(max(*v, 0), 1)))
		pen = "L"
	}
	return fmt.Sprintf(`<svg width="%.0f" height="%.0f" style="background:var(--ba);color:var(--%s)" aria-hidden="true"><path d="%s" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>`,
		width, height, f.paint, path.String())
}
