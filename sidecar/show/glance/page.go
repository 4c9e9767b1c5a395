package glance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/inhtml"
	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

const style = `:root{color-scheme:light dark;--text:#1c1c1e;--dim:#6e6e73;--line:#e2e2e7;--ground:#fff;--bad:#b3261e;--bar:#8a8a92}
@media screen and (prefers-color-scheme:dark){:root{--text:#f2f2f5;--dim:#9a9aa2;--line:#35353b;--ground:#111113;--bad:#ff8a80}}
body{font:14px/1.45 system-ui,"Segoe UI","DejaVu Sans",sans-serif;color:var(--text);background:var(--ground);max-width:1100px;margin:24px auto;padding:0 16px}
h1{font-size:20px;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:15px;margin:32px 0 4px;overflow-wrap:anywhere}p{margin:4px 0}.dim{color:var(--dim)}.bad{color:var(--bad)}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}
td,th{padding:5px 14px 5px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}th{color:var(--dim);font-weight:400}
.n{text-align:right;white-space:nowrap}.w{overflow-wrap:anywhere;min-width:18em}code{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:12px}
a{color:inherit}progress{display:block;width:100%;height:3px;appearance:none;border:0;background:none}progress::-webkit-progress-bar{background:none}progress::-webkit-progress-value{background:var(--bar)}progress::-moz-progress-bar{background:var(--bar)}
section{content-visibility:auto;contain-intrinsic-size:auto 500px}h2 a{font-size:13px;font-weight:400;margin-left:10px}section:target h2{text-decoration:underline}svg{max-width:100%;height:auto}`

// Page is the table as a page of its own, each row of which leads to the cell's picture below.
func (n Notebook) Page() []byte {
	styles := []string{style}
	for _, c := range n.Cells {
		for _, s := range inhtml.Styles(c.Chart) {
			if !slices.Contains(styles, s) {
				styles = append(styles, s)
			}
		}
	}
	title := words.Clean(n.Name, words.MaxName)
	if title == "" {
		title = "Notebook"
	}
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n")
	fmt.Fprintf(&b, `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src %s; base-uri 'none'; form-action 'none'">`+"\n", viewer.Allow(styles...))
	fmt.Fprintf(&b, "<meta name=\"viewport\" content=\"width=device-width\"><title>%s – omni_perf</title>\n<style>%s</style></head><body>\n", esc(title), style)
	fmt.Fprintf(&b, "<h1 id=\"cells\">%s</h1><p class=\"dim\">%s</p>\n", esc(title), esc(n.remarks(0)))
	titles := Titles(n.Cells)
	n.table(&b, titles)
	for i, c := range n.Cells {
		section(&b, i, c, titles[i])
	}
	b.WriteString("</body></html>\n")
	return []byte(b.String())
}

func (n Notebook) table(b *strings.Builder, titles []string) {
	if len(n.Cells) == 0 {
		return
	}
	columns, longest := n.columns(), n.longest()
	b.WriteString(`<div class="scroll"><table><tr>`)
	for _, c := range columns {
		fmt.Fprintf(b, `<th class="n">%s</th>`, c.heading)
	}
	b.WriteString("<th>What it ran, and where its time went</th></tr>\n")
	for i, c := range n.Cells {
		b.WriteString("<tr>")
		for k, column := range columns {
			text := esc(column.of(c))
			if k == 0 {
				text = fmt.Sprintf(`<a href="#%s">%s</a>`, anchor(i), text)
			}
			fmt.Fprintf(b, `<td class="n">%s</td>`, text)
		}
		fmt.Fprintf(b, `<td class="w"><progress value="%s" max="1"></progress><a href="#%s"><code>%s</code></a>%s</td></tr>`+"\n",
			words.Fixed(c.share(longest), 3), anchor(i), esc(titles[i]), c.remark())
	}
	b.WriteString("<tr>")
	for i, c := range columns {
		text := "all"
		if i > 0 {
			text = esc(c.total(n.Cells))
		}
		fmt.Fprintf(b, `<td class="n"><b>%s</b></td>`, text)
	}
	b.WriteString("<td></td></tr></table></div>\n")
}

// remark is how a cell ended, and its headline.
func (c Cell) remark() (text string) {
	if t := c.trouble(); t != "" {
		text += ` <span class="bad">` + esc(t) + "</span>"
	}
	if c.Headline != "" {
		text += `<div class="dim">` + esc(words.Clean(c.Headline, 2*maxHeadline)) + "</div>"
	}
	return text
}

// anchor names the section of a cell: numbers may repeat, after a restart.
func anchor(i int) string { return fmt.Sprintf("cell-%d", i+1) }

func section(b *strings.Builder, i int, c Cell, title string) {
	fmt.Fprintf(b, "<section id=\"%s\"><h2>%s <code>%s</code> <a href=\"#cells\" class=\"dim\">to the table</a></h2>\n", anchor(i), esc(number(c)), esc(title))
	switch {
	case c.Chart != nil:
		b.Write(c.Chart)
	case c.Missing != "":
		fmt.Fprintf(b, `<p class="dim">No picture: %s.</p>`, esc(words.Clean(c.Missing, 2*words.MaxName)))
	}
	b.WriteString("</section>\n")
}
