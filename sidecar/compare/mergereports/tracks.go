package mergereports

import (
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// summed are the figures of a target that add up to those of all.
var summed = []string{"cpu", "cpu.children", "rss", "own.children", "rss.children", "disk.read", "disk.write"}

// tracks takes over the figures; those of the machine, and of a device, are taken once.
func (p *part) tracks() {
	for _, t := range p.r.Tracks {
		t.Host = p.host
		switch {
		case t.Device != nil:
			at, ours := p.device(*t.Device)
			if !ours {
				continue
			}
			t.Device = &at
		case t.Process == nil && t.Thread == nil && p.at != p.longest(p.host):
			continue
		case t.Process != nil && !p.described[*t.Process], t.Thread != nil && p.thread[*t.Thread] < 0:
			continue
		case slices.Contains(summed, t.ID):
			t.ID = "process." + t.ID
		}
		t.Process, t.Thread = moved(t.Process, p.process), moved(t.Thread, p.thread)
		t.AtUS, t.Value = p.points(&t)
		p.doc.Tracks = append(p.doc.Tracks, t)
	}
}

// points moves a track's points. Before its first one nothing is known.
func (p *part) points(t *report.Track) (report.Column, report.Figures) {
	at, value := make(report.Column, 0, len(t.AtUS)+1), make(report.Figures, 0, len(t.Value)+1)
	if p.shiftUS > 0 && len(t.AtUS) > 0 && t.AtUS[0] > 0 {
		at, value = append(at, p.shiftUS), append(value, math.NaN())
	}
	for i, us := range t.AtUS {
		at, value = append(at, us+p.shiftUS), append(value, t.Value[i])
	}
	return at, value
}

const (
	sumPoints = 1000 // of a summed track, at most
	source    = "sum over the reports"
)

// sums adds up the figures of all targets, on one grid.
func (m *merging) sums() (tracks []report.Track) {
	for _, id := range summed {
		var parts []*report.Track
		for i := range m.doc.Tracks {
			t := &m.doc.Tracks[i]
			if t.ID == "process."+id && t.Process != nil && m.isRoot(*t.Process) && len(t.AtUS) > 0 {
				parts = append(parts, t)
			}
		}
		if len(parts) > 0 {
			tracks = append(tracks, m.sum(id, parts))
		}
	}
	return tracks
}

// isRoot recognises the targets that descend from no other one.
func (m *merging) isRoot(process int) bool {
	for i, r := range m.reports {
		if m.places[i][r.Target().Process] == process {
			return !m.within(i)
		}
	}
	return false
}

// longest is the report from which a machine's figures are.
func (m *merging) longest(host int) int {
	at := -1
	for i, r := range m.reports {
		if m.clocks.host[i] == host && (at < 0 || r.DurationNS > m.reports[at].DurationNS) {
			at = i
		}
	}
	return at
}

func (m *merging) sum(id string, parts []*report.Track) report.Track {
	step := max(m.doc.DurationNS/1000/sumPoints, 1)
	for _, t := range parts {
		if t.ResolutionNS != nil {
			step = max(step, *t.ResolutionNS/1000)
		}
	}
	out := report.Track{ID: id, Kind: parts[0].Kind, Unit: parts[0].Unit, Source: source, Limit: parts[0].Limit, AtUS: report.Column{}, Value: report.Figures{}}
	resolution := step * 1000
	out.ResolutionNS = &resolution
	end := (m.doc.DurationNS + 999) / 1000
	peak, total, known := 0.0, 0.0, 0.0
	at := make([]int, len(parts)) // of each, the first point that ends behind from
	for from := int64(0); from < end; from += step {
		to := min(from+step, end)
		all, any := 0.0, false
		for k, t := range parts {
			for at[k] < len(t.AtUS) && t.AtUS[at[k]] <= from {
				at[k]++
			}
			if v, ok := meanOf(t, at[k], from, to); ok {
				all, any = all+v, true
			}
		}
		if !any {
			all = math.NaN()
		} else {
			peak, total, known = max(peak, all), total+all*float64(to-from), known+float64(to-from)
		}
		out.AtUS, out.Value = append(out.AtUS, to), append(out.Value, all)
	}
	if known > 0 {
		mean := total / known
		if id == "rss" {
			peak = max(peak, m.largestOf(parts))
		}
		out.Mean, out.Peak = &mean, &peak
	}
	return out
}

// largestOf is the most that was resident in one of the processes whose tracks these are: it may lie between two readings of its
// track, and the sum was no less then.
func (m *merging) largestOf(parts []*report.Track) (most float64) {
	for _, t := range parts {
		if peak, _ := m.doc.Processes[*t.Process].PeakMemory(); peak != nil {
			most = max(most, float64(*peak))
		}
	}
	return most
}

// meanOf is a track's mean between two times, as far as it is known there; first is its first point that ends behind from.
func meanOf(t *report.Track, first int, from, to int64) (mean float64, known bool) {
	sum, length := 0.0, 0.0
	before := from
	for i := first; i < len(t.AtUS) && before < to; i++ {
		at := min(t.AtUS[i], to)
		if !math.IsNaN(t.Value[i]) {
			sum += t.Value[i] * float64(at-before)
			length += float64(at - before)
		}
		before = at
	}
	return sum / max(length, 1), length > 0
}
