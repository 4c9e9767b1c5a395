package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/bench/sampler/peer"
)

// document writes the page. It computes nothing but what it shows.
func document(r *Results) string {
	var p page
	p.text("# Benchmarks")
	p.text("omni-perf's stack sampler beside its peers, on the same targets, in the same run. " +
		"Written by `" + strings.TrimSpace(r.Command) + "`; do not edit.")
	p.text(fmt.Sprintf("%s; %s, %d cores, Linux %s, which others kept busy to %.0f %% before or after; "+
		"the hypervisor withheld %.1f %%. %s. Every sampler was asked for %.0f samples a second of all threads, idle ones too.",
		r.Date, r.Machine.CPU, r.Machine.Cores, r.Machine.Kernel, 100*r.Machine.Others, 100*r.Machine.Stolen, r.Plan, r.Rate))
	if r.Machine.Others > noisy {
		p.text("**The machine was not quiet. The times below say little.**")
	}
	var rows [][]string
	for _, s := range r.Samplers {
		rows = append(rows, []string{s.Name, s.Version, s.Python})
	}
	p.table([]string{"sampler", "version", "samples CPython"}, rows)
	p.goals(r)
	p.turns(r)
	p.slowdown(r)
	p.accuracy(r)
	p.linesAndShares(r)
	p.maxRate(r)
	p.byVersion(r)
	p.missing(r)
	return p.String()
}

// noisy is the share of all cores in others' hands from which times mean little.
const noisy = 0.1

// A page is Markdown in the making.
type page struct{ strings.Builder }

func (p *page) text(paragraph string) { fmt.Fprintf(p, "%s\n\n", paragraph) }

func (p *page) table(header []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	line := func(cells []string) { fmt.Fprintf(p, "| %s |\n", strings.Join(cells, " | ")) }
	line(header)
	line(slices.Repeat([]string{"---"}, len(header)))
	for _, row := range rows {
		line(row)
	}
	p.WriteString("\n")
}

// grid is a table of rows by samplers, one for each version of the targets.
func grid[T any](p *page, title string, measured []T, of func(T) (minor, row, sampler string), cell func(T) string) {
	var minors []string
	for _, m := range measured {
		if minor, _, _ := of(m); !slices.Contains(minors, minor) {
			minors = append(minors, minor)
		}
	}
	for _, minor := range minors {
		var names, samplers []string
		cells := map[[2]string]string{}
		for _, m := range measured {
			at, row, sampler := of(m)
			if at != minor {
				continue
			}
			if !slices.Contains(names, row) {
				names = append(names, row)
			}
			if !slices.Contains(samplers, sampler) {
				samplers = append(samplers, sampler)
			}
			cells[[2]string{row, sampler}] = cell(m)
		}
		var rows [][]string
		for _, name := range names {
			row := []string{name}
			for _, sampler := range samplers {
				row = append(row, cells[[2]string{name, sampler}])
			}
			rows = append(rows, row)
		}
		p.table(append([]string{title + ", CPython " + minor}, samplers...), rows)
	}
}

func (p *page) turns(r *Results) {
	if len(r.Turns) == 0 {
		return
	}
	p.text("## Slow-down in turns")
	p.text("omni-perf alone, in one run of each program: it is stopped and goes on in turn, and each turn is compared with the one beside it. " +
		"Neither how a process lies in memory nor the hour of the day comes in, which differ by more than a sampler costs. " +
		"Ratios of the time of a round, and of the CPU time that the program itself took for one: estimate and 95 % interval over the pairs, by signed ranks.")
	var rows [][]string
	for _, t := range r.Turns {
		row := []string{t.Program, t.Minor, "failed: " + t.Error, ""}
		if t.Error == "" {
			row = []string{t.Program, t.Minor, ratioText(t.Ratio), ratioText(t.Work)}
		}
		rows = append(rows, row)
	}
	p.table([]string{"program", "CPython", "time", "own CPU time"}, rows)
}

func ratioText(i Interval) string {
	return fmt.Sprintf("%.3f [%.3f, %s]", i.Mean, i.Low, upper(i.High, "%.3f"))
}

func (p *page) slowdown(r *Results) {
	if len(r.Slowdown) == 0 {
		return
	}
	of := func(s Slowdown) (string, string, string) { return s.Minor, s.Program, s.Sampler }
	p.text("## Slow-down of the target")
	p.text(fmt.Sprintf("The program's time with the sampler to that without, both from one block of runs in random order, %d pairs and more: ", fewestPairs(r)) +
		"estimate and 95 % interval over the blocks, by signed ranks. The program takes its time itself, without the sampler's start and end.")
	grid(p, "program", r.Slowdown, of, func(s Slowdown) string {
		if s.Error != "" {
			return "failed"
		}
		return ratioText(s.Ratio)
	})
	p.text("## CPU time of the target for the same work")
	p.text("As above, but of the CPU time that the program itself took: what else runs on the machine does not lengthen it.")
	worked := slices.DeleteFunc(slices.Clone(r.Slowdown), func(s Slowdown) bool { return s.Work == (Interval{}) && s.Error == "" })
	grid(p, "program", worked, of, func(s Slowdown) string {
		if s.Error != "" {
			return "failed"
		}
		return ratioText(s.Work)
	})
	p.text("## CPU of the sampler")
	p.text("In cores, while the program runs; in brackets the 95 % interval of its ratio to the bare C loop in the same block, " +
		"which sleeps and reads 2 × 8 KiB a tick. A sampler inside the target has no CPU time of its own: it is in the slow-down.")
	outside := slices.DeleteFunc(slices.Clone(r.Slowdown), func(s Slowdown) bool { return s.CPU == (Interval{}) && s.Error == "" })
	grid(p, "program", outside, of, func(s Slowdown) string {
		switch {
		case s.Error != "":
			return "failed"
		case s.Sampler == peer.Floor || s.OfFloor == (Interval{}):
			return fmt.Sprintf("%.3f", s.CPU.Mean)
		}
		return fmt.Sprintf("%.3f (%.2f× [%.2f, %s])", s.CPU.Mean, s.OfFloor.Mean, s.OfFloor.Low, upper(s.OfFloor.High, "%.2f"))
	})
}

// fewestPairs is the least number of pairs behind any figure of the slow-down.
func fewestPairs(r *Results) int {
	fewest := math.MaxInt
	for _, s := range r.Slowdown {
		if s.Error == "" {
			fewest = min(fewest, s.Pairs)
		}
	}
	return fewest
}

// upper is an upper bound; a few pairs on a busy machine give none worth the name.
func upper(bound float64, format string) string {
	if bound > 100 {
		return "∞"
	}
	return fmt.Sprintf(format, bound)
}

// firstBuilds are the figures that compare samplers: those of the interpreter that all were run with.
func firstBuilds(r *Results) []Accuracy {
	compared := map[string]bool{}
	for _, s := range r.Samplers {
		compared[s.Minor] = true
	}
	return slices.DeleteFunc(slices.Clone(r.Accuracy), func(a Accuracy) bool { return a.Build != "" || !compared[a.Minor] })
}

func (p *page) accuracy(r *Results) {
	compared := firstBuilds(r)
	if len(compared) == 0 {
		return
	}
	of := func(a Accuracy) (string, string, string) { return a.Minor, a.Workload, a.Sampler }
	p.text("## Right stacks")
	p.text("Share of the samples in %: **impossible** (a caller→callee pair that never occurs in the program) / **lost** (failed, or " +
		"without its root) / **truncated** (marked by the sampler as cut at the leaf; the peers mark nothing). Scalene leaves out frames of the " +
		"standard library, by default, and with them the roots of threads. The workloads are in `sidecar/testkit/truth/programs`.")
	grid(p, "workload", compared, of, func(a Accuracy) string {
		if a.Error != "" {
			return "failed"
		}
		return fmt.Sprintf("%s / %s / %s", percent(a.Impossible), percent(a.Lost), percent(a.Truncated))
	})
	p.text("Achieved rate, attempts a second for each thread:")
	rates := slices.DeleteFunc(slices.Clone(compared), func(a Accuracy) bool { return a.Distance != nil || a.Computing != nil })
	grid(p, "workload", rates, of, func(a Accuracy) string {
		if a.Error != "" {
			return "failed"
		}
		return fmt.Sprintf("%.0f", a.PerSecond)
	})
}

func (p *page) linesAndShares(r *Results) {
	compared := firstBuilds(r)
	var rows [][]string
	for _, id := range r.Samplers {
		mine := of(compared, id)
		if len(mine) == 0 {
			continue
		}
		row := []string{id.Name, id.Minor, "—", "—", "—", "—", "—"}
		worst := 0.0
		for _, a := range mine {
			if a.Error != "" {
				continue
			}
			worst = max(worst, a.WrongCallLines)
			row[2] = percent(worst)
			if a.Leaves > 0 {
				row[3] = percent(a.HotLeaf)
			}
			if a.Distance != nil && a.Workload == "parts" {
				row[4] = fmt.Sprintf("%.4f", *a.Distance)
			}
			if a.Distance != nil && a.Workload == "native" {
				row[5] = fmt.Sprintf("%.4f", *a.Distance)
			}
			if a.Computing != nil {
				row[6] = fmt.Sprintf("%.2f", *a.Computing)
			}
		}
		if id.Name == "pyinstrument" {
			row[2] = "names no line"
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return
	}
	p.text("## Right lines and time shares")
	p.text("Call lines: samples in % with a caller at a line that it does not call from, on the worst workload. Leaf lines: samples in % that name " +
		"another line than the one long instruction of the function (workload `lines`). Time shares: total variation distance " +
		"from the program's own clock, for five parts and for four kinds of C calls. Computing: the time of 80 µs of it after each sleep of 1 ms to that " +
		"by the program's own CPU clock; the states of the peers' samples are not weighed, omni-perf's have the CPU time that the scheduler counts.")
	p.table([]string{"sampler", "CPython", "wrong call lines", "wrong leaf lines", "distance, parts", "distance, C calls", "computing ÷ own CPU clock"}, rows)
}

func of(all []Accuracy, id SamplerID) []Accuracy {
	return slices.DeleteFunc(slices.Clone(all), func(a Accuracy) bool { return a.Sampler != id.Name || a.Minor != id.Minor })
}

func (p *page) maxRate(r *Results) {
	var rows [][]string
	for _, m := range r.MaxRate {
		row := []string{m.Sampler, m.Minor, "failed", ""}
		if m.Error == "" {
			row[2], row[3] = fmt.Sprintf("%.0f", m.PerSecond), percent(m.Impossible)
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		p.text("## Maximum rate")
		p.text("Asked to be as fast as it can, on one thread 12 calls deep (workload `work`), for 3 s.")
		p.table([]string{"sampler", "CPython", "samples/s", "impossible %"}, rows)
	}
}

// byVersion is omni-perf alone, on every interpreter.
func (p *page) byVersion(r *Results) {
	mine := slices.DeleteFunc(slices.Clone(r.Accuracy), func(a Accuracy) bool { return a.Sampler != Ours || a.Distance != nil || a.Computing != nil })
	var builds, workloads []string
	cells := map[[2]string]string{}
	for _, a := range mine {
		build := strings.TrimSuffix(a.Minor+"-"+a.Build, "-")
		if !slices.Contains(builds, build) {
			builds = append(builds, build)
		}
		if !slices.Contains(workloads, a.Workload) {
			workloads = append(workloads, a.Workload)
		}
		cells[[2]string{a.Workload, build}] = "failed"
		if a.Error == "" {
			cells[[2]string{a.Workload, build}] = fmt.Sprintf("%s / %s / %s", percent(a.Impossible), percent(a.Lost), percent(a.Truncated))
		}
	}
	slices.Sort(builds)
	if len(builds) < 3 {
		return
	}
	var rows [][]string
	for _, workload := range workloads {
		row := []string{workload}
		for _, build := range builds {
			row = append(row, cells[[2]string{workload, build}])
		}
		rows = append(rows, row)
	}
	p.text("## omni-perf on every interpreter")
	p.text("Impossible / lost / truncated in %, as above.")
	p.table(append([]string{"workload"}, builds...), rows)
}

func (p *page) missing(r *Results) {
	lines := map[string]bool{}
	var list []string
	add := func(line string) {
		if !lines[line] {
			lines[line] = true
			list = append(list, "- "+line)
		}
	}
	for _, m := range r.Missing {
		add(m.Name + ": " + m.Reason)
	}
	for _, s := range r.Slowdown {
		if s.Error != "" {
			add(fmt.Sprintf("%s on CPython %s, slow-down of %s: %s", s.Sampler, s.Minor, s.Program, s.Error))
		}
	}
	for _, a := range r.Accuracy {
		if a.Error != "" {
			add(fmt.Sprintf("%s on CPython %s, workload %s: %s", a.Sampler, a.Minor, a.Workload, a.Error))
		}
	}
	for _, m := range r.MaxRate {
		if m.Error != "" {
			add(fmt.Sprintf("%s on CPython %s, maximum rate: %s", m.Sampler, m.Minor, m.Error))
		}
	}
	p.text("## What could not be measured")
	if len(list) == 0 {
		list = []string{"Nothing is missing."}
	}
	p.text(strings.Join(list, "\n"))
}

// percent shows small shares with the digits that matter, and none as a plain 0.
func percent(share float64) string {
	switch {
	case share == 0:
		return "0"
	case share < 0.0001:
		return fmt.Sprintf("%.4f", 100*share)
	case share < 0.01:
		return fmt.Sprintf("%.3f", 100*share)
	}
	return fmt.Sprintf("%.*f", int(max(0, 1-math.Floor(share))), 100*share)
}
