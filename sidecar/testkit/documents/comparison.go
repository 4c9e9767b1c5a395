package documents

import "slices"

// Comparison is the document of two recordings.
type Comparison struct {
	Before    *Document `json:"before"`
	After     *Document `json:"after"`
	Lines     []Change  `json:"lines"`
	Functions []Change  `json:"functions"`
	Causes    []Change  `json:"causes"`
	Chart     *Chart    `json:"chart"`
}

// Change is how something differs; low and high bound the change with its sign.
// The verdict is "less", "more", "new" or "gone"; empty is within noise.
type Change struct {
	Name     string `json:"name"`
	BeforeNS int64  `json:"before_ns"`
	AfterNS  int64  `json:"after_ns"`
	LowNS    int64  `json:"low_ns"`
	HighNS   int64  `json:"high_ns"`
	Verdict  string `json:"verdict"`
	Function *int   `json:"function"` // of After's list
	Place    string `json:"place"`
	Code     string `json:"code"`
}

// Compared is a cell before and after its loader became faster.
func Compared() *Comparison {
	before, after := Training(), trainingFor(10.1, 0.4)
	before.Chart, after.Chart = nil, nil
	c := &Comparison{Before: before, After: after}
	for _, l := range after.Lines {
		for _, old := range before.Lines {
			if old.File == l.File && old.Line == l.Line {
				c.Lines = append(c.Lines, changed(Change{
					Name: before.Files[l.File].Name, Place: itoa(l.Line), Code: before.Files[l.File].Lines[l.Line-1],
					BeforeNS: old.SelfNS, AfterNS: l.SelfNS * 7 / 10, // as many steps
				}))
			}
		}
	}
	own := func(d *Document) []int64 {
		out := make([]int64, len(d.Functions))
		for i, n := range d.Spans.Node {
			for ; n > 0; n = d.Nodes.Parent[n] {
				out[d.Frames.Function[d.Nodes.Frame[n]]] += d.Spans.Length[i] * 1000
			}
		}
		return out
	}
	was, is := own(before), own(after)
	for f := range after.Functions {
		id := f
		c.Functions = append(c.Functions, changed(Change{Name: after.Functions[f].Name, Function: &id, BeforeNS: was[f], AfterNS: is[f] * 7 / 10, Place: after.Files[after.Functions[f].File].Name}))
	}
	for i, cause := range after.Idle.Causes {
		c.Causes = append(c.Causes, changed(Change{Name: cause.Text, BeforeNS: before.Idle.Causes[i].NS, AfterNS: []int64{2.9e9, 0.46e9, 0.37e9, 0.35e9}[i]}))
	}
	slices.SortFunc(c.Functions, func(a, b Change) int { return int((b.BeforeNS - a.BeforeNS) / 1000) })
	c.Functions = c.Functions[:min(len(c.Functions), 12)]
	c.Chart = lay(1120, &Chart{
		Title:   [][3]string{{"Cell [9] beside Cell [7]", "tp", "b"}, {"10.1 s", "tm", ""}, {"3.3 s less (−25 %)", "tg", "b"}, {"GPU 0 busy 36 → 61 %", "tg", "b"}},
		Finding: [][3]string{{"Waiting for the loader fell from 7.1 to 2.9 s (−4.2 ± 0.2 s); the rest is within noise.", "tp", "b"}},
		Notes:   []string{"before: 13,390 stacks, after: 10,080, both at 1 ms; intervals are 95 %, from the recordings themselves: one run each. Repeat both for the variation between runs."},
	})
	return c
}

// changed says what a change amounts to, with an interval of 5 %.
func changed(c Change) Change {
	noise := max(c.BeforeNS, c.AfterNS) / 20
	by := c.AfterNS - c.BeforeNS
	c.LowNS, c.HighNS = by-noise, by+noise
	switch {
	case by < -2*noise:
		c.Verdict = "less"
	case by > 2*noise:
		c.Verdict = "more"
	}
	return c
}
