package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/criticalpath"
	"github.com/omni-perf/omni-perf/sidecar/traces/findings"
	"github.com/omni-perf/omni-perf/sidecar/traces/place"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// A sentence names the longest parts of a critical path until most of it is named.
const (
	leastPart = 0.05 // of the path: a shorter part is not named
	mostNamed = 4
	mostOfAll = 0.8
)

// pathParts are the parts of a critical path in a sentence, by name; what else there is has no name for a reader.
var pathParts = []struct{ name, text string }{
	{"host", "the host"}, {"computing", "computing"}, {"communicating", "communication"}, {"copying", "copies"},
	{criticalpath.Launching.String(), "launch latency"},
	{criticalpath.Queued.String(), "gaps between queued kernels"},
	{criticalpath.Waited.String(), "waiting of the device for what is not recorded"},
	{criticalpath.HandedOver.String(), "waiting of one thread for another"},
	{criticalpath.Earlier.String(), "the device's work for earlier steps"},
	{criticalpath.Unknown.String(), "time before launches that are not recorded"},
}

// delayNames are the delays of a critical path in words.
var delayNames = map[string]string{
	criticalpath.Launching.String():  "launch latency",
	criticalpath.Queued.String():     "between queued kernels",
	criticalpath.Waited.String():     "the device waited for what is not recorded",
	criticalpath.HandedOver.String(): "one thread waited for another",
	criticalpath.Earlier.String():    "the device worked for earlier steps",
	criticalpath.Unknown.String():    "before a launch that is not recorded",
}

// pathName is what a row is of, in words.
func pathName(t *table.Table, row int) string {
	return pathText(t.TextAt("where", row), t.TextAt("name", row))
}

func pathText(where, name string) string {
	switch {
	case where == analyses.InDelay:
		return cmp.Or(delayNames[name], name)
	case name == "":
		return "the host outside of what is recorded"
	case where == analyses.OnDevice:
		return kernelLabel(name)
	}
	if p, ok := place.Parse(name); ok {
		return placeText(p)
	}
	return plain(name)
}

// unnamed recognises the host's time in nothing that is recorded: that it could be saved says nothing to anybody.
func unnamed(t *table.Table, row int) bool {
	return t.TextAt("where", row) == analyses.OnHost && t.TextAt("name", row) == ""
}

// longestPath are the rows of the rank whose critical path is the longest.
func longestPath(t *table.Table) (rank int64, rows []int) {
	sums := map[int64]float64{}
	rank = table.None
	for r := range t.Len() {
		if of := t.IntAt("rank", r); t.TextAt("by", r) == analyses.PathPart {
			sums[of] += t.FloatAt("path_us", r)
		}
	}
	for of, us := range sums {
		if rank == table.None || us > sums[rank] || us == sums[rank] && of < rank {
			rank = of
		}
	}
	for r := range t.Len() {
		if t.IntAt("rank", r) == rank {
			rows = append(rows, r)
		}
	}
	return rank, rows
}

// condensedPath has the parts of the longest path and its first causes.
func condensedPath(t *table.Table) *table.Table {
	const most = 10
	rank, rows := longestPath(t)
	path := &table.Column{Name: "path", Kind: table.Micros}
	share := &table.Column{Name: "path_share", Kind: table.Ratio}
	step := &table.Column{Name: "per_step", Kind: table.Micros}
	saved := &table.Column{Name: "saved_without", Kind: table.Micros}
	part := &table.Column{Name: "saved_share", Kind: table.Ratio}
	by := &table.Column{Name: "by", Kind: table.Text}
	where := &table.Column{Name: "where", Kind: table.Text}
	name := &table.Column{Name: "name", Kind: table.Text}
	shown := map[string]int{}
	for _, r := range rows {
		of := t.TextAt("by", r)
		shown[of]++
		if of != analyses.PathPart && of != analyses.PathCause && of != analyses.PathCollective || shown[of] > most {
			continue
		}
		path.Floats, share.Floats = append(path.Floats, t.FloatAt("path_us", r)), append(share.Floats, t.FloatAt("path_share", r))
		without, ofAll := t.FloatAt("saved_us", r), t.FloatAt("saved_share", r)
		if unnamed(t, r) {
			without, ofAll = math.NaN(), math.NaN()
		}
		step.Floats, saved.Floats = append(step.Floats, t.FloatAt("step_us", r)), append(saved.Floats, without)
		part.Floats = append(part.Floats, ofAll)
		by.Text, where.Text, name.Text = append(by.Text, of), append(where.Text, t.TextAt("where", r)), append(name.Text, pathName(t, r))
	}
	title := "Critical path"
	if ranks, _ := byKey(t, func(r int) string { return fmt.Sprint(t.IntAt("rank", r)) }); len(ranks) > 1 {
		title = fmt.Sprintf("Critical path of rank %d, the longest", rank)
	}
	return condensed(t.Name, title, path, share, step, saved, part, by, where, name)
}

// criticalPath shows what the longest critical path consists of, and how much of each cause would be saved.
func (d drawing) criticalPath(t *table.Table) (Chart, bool) {
	rank, rows := longestPath(t)
	paints := map[string]paint{analyses.OnDevice: paintCompute, analyses.OnHost: paintHost, analyses.InDelay: paintQueue}
	rows = slices.DeleteFunc(rows, func(r int) bool { return t.TextAt("by", r) != analyses.PathCause })
	var list []bar
	for _, r := range rows[:min(len(rows), maxBars)] {
		us, saved, where := t.FloatAt("path_us", r), t.FloatAt("saved_us", r), t.TextAt("where", r)
		figure := share(t.FloatAt("path_share", r))
		about := fmt.Sprintf("%s: %s of the path", pathName(t, r), length(us))
		if !math.IsNaN(saved) && !unnamed(t, r) {
			about += fmt.Sprintf("; without it all would be %s shorter (%s)", length(saved), share(t.FloatAt("saved_share", r)))
			figure += " · " + share(t.FloatAt("saved_share", r)) + " saved"
		}
		list = append(list, bar{pathName(t, r), figure, []part{{us, paints[where], about}}, us})
	}
	aside := "share of the critical path; saved: by what all would be shorter without it"
	if d.severalRanks() {
		aside = fmt.Sprintf("rank %d; ", rank) + aside
	}
	return bars(d.theme, longNames, "critical-path", "What the length of the steps depends on", aside, []legend{
		{paintHost, "host"}, {paintCompute, "device"}, {paintQueue, "between them"},
	}, list, 0), len(list) > 0
}

// longestParts names the longest parts of a critical path with their shares.
func longestParts(f findings.Finding) string {
	parts := slices.Clone(pathParts)
	of := func(name string) float64 { return f.Evidence[name+"_share"] }
	slices.SortStableFunc(parts, func(a, b struct{ name, text string }) int { return cmp.Compare(of(b.name), of(a.name)) })
	var named []string
	sum := 0.0
	for _, p := range parts[:mostNamed] {
		if of(p.name) < leastPart || sum >= mostOfAll {
			break
		}
		text := share(of(p.name)) + " " + p.text
		if waiting := of("waiting"); p.name == "communicating" && waiting >= leastPart {
			text += fmt.Sprintf(" (%s waiting for other ranks)", share(waiting))
		}
		named = append(named, text)
		sum += of(p.name)
	}
	return strings.Join(named, ", ")
}

// criticalPath says what a step depends on, and what would shorten it most.
func criticalPath(f findings.Finding) string {
	what, it := "The critical path", "it"
	if f.Evidence["step_us"] > 0 {
		what, it = "The critical path of a step", "a step"
	}
	if w := whose(f); w != "" {
		what += " of " + w
	}
	text := fmt.Sprintf("%s is %s; without %s (%s) %s would be %s shorter", what, longestParts(f), pathText(f.On, f.Name), f.On, it, share(f.Value))
	if us := f.Evidence["step_saved_us"]; us > 0 {
		text += fmt.Sprintf(" (%s)", length(us))
	}
	return text + "."
}
