package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/omni-perf/omni-perf/bench/sampler/peer"
)

// A goal is a figure that omni-perf's sampler has set itself, the worst case of what was measured.
type goal struct {
	what    string
	limit   float64
	atLeast bool
	format  string // of the figure
	measure func(*Results) worst
}

// worst is a figure in its worst case; where is empty if it was not measured.
type worst struct {
	figure float64
	where  string
	unsure bool // too few pairs or too busy a machine to say
}

// An interval of that width and more says nothing: of a slow-down, of the target's CPU time.
const (
	widest     = 0.1
	widestWork = 0.02
)

var goals = []goal{
	{what: "slow-down of the target, lower end of the 95 % interval", limit: 1.01, format: "%.3f", measure: worstSlowdown},
	{what: "CPU time of the target for the same work, lower end of the 95 % interval", limit: 1.01, format: "%.3f", measure: worstWork},
	{what: "CPU to that of the bare C loop, one thread", limit: 1.5, format: "%.2f", measure: worstCPU(false)},
	{what: "CPU to that of the bare C loop, 160 threads", limit: 1.7, format: "%.2f", measure: worstCPU(true)},
	{what: "impossible stacks, %, every workload", limit: 0.05, format: "%.3f",
		measure: worstAccuracy(func(a Accuracy) float64 { return 100 * a.Impossible }, "")},
	{what: "lost or rootless, %, but for fast generators", limit: 0.1, format: "%.3f",
		measure: worstAccuracy(func(a Accuracy) float64 {
			if a.Workload == "generators" {
				return 0
			}
			return 100 * a.Lost
		}, "")},
	{what: "lost or rootless, %, fast generators", limit: 1, format: "%.3f",
		measure: worstAccuracy(func(a Accuracy) float64 { return 100 * a.Lost }, "generators")},
	{what: "leaf cut, %, 12 calls deep", limit: 0.1, format: "%.3f", measure: worstAccuracy(truncated, "work")},
	{what: "leaf cut, %, tasks of 100 µs", limit: 2, format: "%.2f", measure: worstAccuracy(truncated, "tasks 100 µs")},
	{what: "leaf cut, %, generators of 20 µs an item", limit: 20, format: "%.1f", measure: worstAccuracy(truncated, "generators 20 µs")},
	{what: "wrong call lines, %", limit: 0, format: "%.4f",
		measure: worstAccuracy(func(a Accuracy) float64 { return 100 * a.WrongCallLines }, "")},
	{what: "total variation distance from the true time shares", limit: 0.015, format: "%.4f", measure: worstAccuracy(func(a Accuracy) float64 {
		if a.Distance == nil {
			return 0
		}
		return *a.Distance
	}, "parts")},
	{what: "maximum rate to that of the best peer", limit: 1.4, atLeast: true, format: "%.2f", measure: rateToBestPeer},
}

func truncated(a Accuracy) float64 { return 100 * a.Truncated }

func (p *page) goals(r *Results) {
	var rows [][]string
	for _, g := range goals {
		w := g.measure(r)
		if w.where == "" {
			continue
		}
		sign, reached := "≤", w.figure <= g.limit
		if g.atLeast {
			sign, reached = "≥", w.figure >= g.limit
		}
		verdict := "**not reached**"
		switch {
		case w.unsure:
			verdict = "interval too wide to say"
		case reached:
			verdict = "reached"
		}
		rows = append(rows, []string{g.what, fmt.Sprintf("%s %v", sign, g.limit), fmt.Sprintf(g.format, w.figure), w.where, verdict})
	}
	if len(rows) == 0 {
		return
	}
	p.text("## Goals")
	p.text("omni-perf's worst case of each.")
	p.table([]string{"figure", "goal", "measured", "worst on", ""}, rows)
	better := betterPeers(r)
	if len(better) == 0 && len(r.Slowdown) > 0 {
		better = []string{fmt.Sprintf(
			"No peer slows its target significantly less (its interval, of at least %d pairs, below omni-perf's) on any program.", fewestRanked)}
	}
	p.text(strings.Join(better, "\n"))
}

func worstSlowdown(r *Results) worst {
	return worstRatio(r, func(t Turns) Interval { return t.Ratio }, widest)
}

func worstWork(r *Results) worst {
	return worstRatio(r, func(t Turns) Interval { return t.Work }, widestWork)
}

// ownTurns are ours, or what was measured by runs where nothing was in turns.
func ownTurns(r *Results) []Turns {
	if len(r.Turns) > 0 {
		return r.Turns
	}
	var own []Turns
	for _, s := range r.Slowdown {
		if s.Sampler == Ours {
			own = append(own, Turns{s.Program, s.Minor, s.Pairs, s.Ratio, s.Work, s.Error})
		}
	}
	return own
}

// worstRatio is the highest lower end. It is sure where each interval is narrower than widest.
func worstRatio(r *Results, of func(Turns) Interval, widest float64) worst {
	var w worst
	for _, s := range ownTurns(r) {
		ratio := of(s)
		if s.Error != "" || ratio == (Interval{}) {
			continue
		}
		if ratio.Low > w.figure {
			w.figure = ratio.Low
			w.where = fmt.Sprintf("%s on %s [%.3f, %.3f]", s.Program, s.Minor, ratio.Low, ratio.High)
		}
		w.unsure = w.unsure || s.Pairs < fewestRanked || ratio.High-ratio.Low > widest
	}
	return w
}

func worstCPU(manyThreads bool) func(*Results) worst {
	return func(r *Results) worst {
		var w worst
		for _, s := range r.Slowdown {
			if s.Sampler == Ours && s.Error == "" && (s.Program == "160 threads") == manyThreads && s.OfFloor.Mean > w.figure {
				w.figure = s.OfFloor.Mean
				w.where = fmt.Sprintf("%s on %s (%.1f %% of a core)", s.Program, s.Minor, 100*s.CPU.Mean)
			}
		}
		return w
	}
}

// worstAccuracy looks at all workloads if workload is empty.
func worstAccuracy(figure func(Accuracy) float64, workload string) func(*Results) worst {
	return func(r *Results) worst {
		w := worst{figure: math.Inf(-1)}
		for _, a := range r.Accuracy {
			if a.Sampler != Ours || a.Error != "" || workload != "" && a.Workload != workload {
				continue
			}
			if f := figure(a); f > w.figure {
				w.figure, w.where = f, a.Workload+" on "+strings.TrimSuffix(a.Minor+"-"+a.Build, "-")
			}
		}
		return w
	}
}

func rateToBestPeer(r *Results) worst {
	ours, best := map[string]float64{}, MaxRate{}
	for _, m := range r.MaxRate {
		switch {
		case m.Error != "" || m.Sampler == peer.Floor:
		case m.Sampler == Ours:
			ours[m.Minor] = m.PerSecond
		case m.PerSecond > best.PerSecond:
			best = m
		}
	}
	if ours[peer.Minor] == 0 || best.PerSecond == 0 {
		return worst{}
	}
	return worst{
		figure: ours[peer.Minor] / best.PerSecond,
		where:  fmt.Sprintf("%.0f/s; %s %.0f/s", ours[peer.Minor], best.Sampler, best.PerSecond),
	}
}

// betterPeers lists where a peer's interval of the slow-down lies below ours.
func betterPeers(r *Results) []string {
	var list []string
	for _, mine := range r.Slowdown {
		if mine.Sampler != Ours || mine.Error != "" {
			continue
		}
		for _, s := range r.Slowdown {
			if s.Program == mine.Program && s.Minor == mine.Minor && s.Error == "" && s.Pairs >= fewestRanked &&
				s.Sampler != Ours && s.Sampler != peer.Floor && s.Ratio.High < mine.Ratio.Low {
				list = append(list, fmt.Sprintf("- %s slows %s on %s less: [%.3f, %.3f], omni-perf [%.3f, %.3f].",
					s.Sampler, s.Program, s.Minor, s.Ratio.Low, s.Ratio.High, mine.Ratio.Low, mine.Ratio.High))
			}
		}
	}
	return list
}
