package glance

import (
	"fmt"
	"html"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Shown bounds the rows of an output: what is above has no room in a notebook, and is on the page.
const Shown = 100

// shown are the rows of an output, the last ones, and how many were left out.
func (n Notebook) shown() (Notebook, int) {
	left := max(len(n.Cells)-Shown, 0)
	n.Cells = n.Cells[left:]
	return n, left
}

// HTML is the table as an output of the notebook: without a script and a style sheet, so that it looks
// the same in a notebook that is not trusted. A row leads to the output with the cell's chart.
func (n Notebook) HTML() []byte {
	shown, left := n.shown()
	columns, longest, titles := shown.columns(), shown.longest(), Titles(shown.Cells)
	var b strings.Builder
	b.WriteString(`<table style="font-variant-numeric:tabular-nums"><tr>`)
	for _, c := range columns {
		fmt.Fprintf(&b, `<th style="text-align:right">%s</th>`, c.heading)
	}
	b.WriteString(`<th style="text-align:left">what it ran, and where its time went</th></tr>`)
	for row, c := range shown.Cells {
		b.WriteString("<tr>")
		for i, column := range columns {
			text := esc(column.of(c))
			if i == 0 && c.Output != "" {
				text = `<a href="#` + esc(c.Output) + `">` + text + "</a>"
			}
			fmt.Fprintf(&b, `<td style="text-align:right;vertical-align:top;white-space:nowrap">%s</td>`, text)
		}
		b.WriteString(`<td style="text-align:left;vertical-align:top;overflow-wrap:anywhere">` + bar(c.share(longest)) + what(c, titles[row]) + "</td></tr>")
	}
	b.WriteString("<tr>")
	for i, column := range columns {
		text := "all"
		if i > 0 {
			text = esc(column.total(n.Cells))
		}
		fmt.Fprintf(&b, `<td style="text-align:right;white-space:nowrap"><b>%s</b></td>`, text)
	}
	fmt.Fprintf(&b, `<td style="text-align:left">%s</td></tr></table>`, esc(n.remarks(left)))
	return []byte(b.String())
}

// remarks are what is said below the rows.
func (n Notebook) remarks(left int) string {
	text := n.about()
	if left > 0 {
		text += fmt.Sprintf("; the first %d are not shown", left)
	}
	if n.Note != "" {
		text += ". " + words.Clean(n.Note, 4*words.MaxName)
	}
	return text
}

// bar is a cell's time beside the longest one's.
func bar(share float64) string {
	return fmt.Sprintf(`<div style="width:%s%%;height:3px;background:#8a8a92"></div>`, words.Fixed(100*min(max(share, 0), 1), 1))
}

// what is a cell's code, how it ended and its headline.
func what(c Cell, title string) string {
	text := "<code>" + esc(title) + "</code>"
	if t := c.trouble(); t != "" {
		text += " <b>" + esc(t) + "</b>"
	}
	if c.Headline != "" {
		text += "<br>" + esc(words.Clean(c.Headline, maxHeadline))
	}
	return text
}

func esc(s string) string { return html.EscapeString(s) }

// Text is the table for a terminal.
func (n Notebook) Text() string {
	shown, left := n.shown()
	columns, titles := shown.columns(), Titles(shown.Cells)
	rows := [][]string{{}}
	for _, c := range columns {
		rows[0] = append(rows[0], c.heading)
	}
	for _, c := range shown.Cells {
		var row []string
		for _, column := range columns {
			row = append(row, column.of(c))
		}
		rows = append(rows, row)
	}
	all := []string{"all"}
	for _, c := range columns[1:] {
		all = append(all, c.total(n.Cells))
	}
	rows = append(rows, all)
	widths := make([]int, len(columns))
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], words.Columns(text))
		}
	}
	var b strings.Builder
	for i, row := range rows {
		for k, text := range row {
			b.WriteString(words.PadLeft(text, widths[k]) + "  ")
		}
		switch {
		case i == 0:
		case i <= len(shown.Cells):
			b.WriteString(titles[i-1])
			if t := shown.Cells[i-1].trouble(); t != "" {
				b.WriteString("  (" + t + ")")
			}
		default:
			b.WriteString(n.remarks(left))
		}
		b.WriteString("\n")
	}
	return b.String()
}
