package chart

import (
	"fmt"
	"path"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/report"
	"github.com/omni-perf/omni-perf/sidecar/words"
)

// titleOf is the first line: what ran, how long, and how busy the GPU was, or
// the CPU.
func titleOf(r *report.Report, gpus gpuSummary, main int, duration float64) []phrase {
	ps := []phrase{{subjectOf(r), Plain, bold}}
	if r.Name != "" {
		ps = append(ps, phrase{words.Clean(r.Name, 60), Plain, sans})
	}
	ps = append(ps, phrase{words.Seconds(duration), Muted, sans})
	if c := r.Target.Cell; c != nil && c.Outcome != "" && c.Outcome != "ok" {
		ps = append(ps, phrase{words.Clean(c.Outcome, 60), Bad, bold})
	}
	if gpus.used {
		return append(ps, gpus.title...)
	}
	if main >= 0 {
		ps = append(ps, sharesOf(&r.Threads[main])...)
	}
	return append(ps, gpus.title...)
}

// sharesOf is how the main thread spent its time. What the scheduler counted as
// time on a CPU bounds what is called computing: a thread that wants to run on a
// busy machine looks the same from outside as one that does.
func sharesOf(t *report.Thread) (ps []phrase) {
	var computing, waits, queued, unseen float64
	for name, s := range t.StateS {
		switch s = finite(s); {
		case stateOf(name) == unknown:
			unseen += s
		case stateOf(name).computes():
			computing += s
		default:
			waits += s
		}
	}
	all := computing + waits + unseen
	if !(all > 0) {
		return nil
	}
	if t.OnCPUS != nil && !t.OnCPUAtLeast {
		if onCPU := max(finite(*t.OnCPUS), 0); onCPU < computing*0.8 {
			computing, queued = onCPU, computing-onCPU
		}
	}
	ps = append(ps, phrase{"computing " + words.Percent(computing/all), Good, bold})
	if queued/all >= 0.005 {
		ps = append(ps, phrase{"no free CPU " + words.Percent(queued/all), Warn, bold})
	}
	if waits/all >= 0.005 {
		ps = append(ps, phrase{"waiting " + words.Percent(waits/all), Warn, bold})
	}
	if unseen/all >= 0.005 {
		ps = append(ps, phrase{"unknown " + words.Percent(unseen/all), Warn, bold})
	}
	return ps
}

// subjectOf names what was recorded.
func subjectOf(r *report.Report) string {
	if c := r.Target.Cell; c != nil {
		if c.ExecutionCount > 0 {
			return fmt.Sprintf("Cell [%d]", c.ExecutionCount)
		}
		return "Cell"
	}
	for i, arg := range r.Target.Argv {
		if arg == "-m" && i+1 < len(r.Target.Argv) {
			return words.Clean("-m "+r.Target.Argv[i+1], 60)
		}
		if arg == "-c" { // a whole program may follow
			return "python -c"
		}
		if i == 0 && strings.HasPrefix(path.Base(arg), "python") {
			continue
		}
		if !strings.HasPrefix(arg, "-") {
			return words.Clean(path.Base(arg), 60)
		}
	}
	return fmt.Sprintf("Process %d", r.Target.PID)
}

// findingOf is the second line: the main finding, its source line, what to do, and
// what was not observed.
func findingOf(r *report.Report) []phrase {
	var ps []phrase
	if f := findingAt(r, mainFinding(r)); f != nil {
		ps = append(ps, phrase{words.Clean(f.Text, 300), Plain, bold})
		if text := codeOf(f.SourceText); text != "" {
			ps = append(ps, phrase{text, Plain, mono})
		}
		if f.Hint != "" {
			ps = append(ps, phrase{words.Clean(f.Hint, 300), Muted, sans})
		}
	} else if headline := words.Clean(strings.TrimSpace(r.Headline), 300); headline != "" {
		return []phrase{{headline, Plain, bold}}
	}
	for _, i := range r.HeadlineLimits {
		if f := findingAt(r, i); f != nil {
			ps = append(ps, phrase{words.Clean(f.Text, 300), Warn, bold})
		}
	}
	return ps
}

// mainFinding is the index of the finding the headline tells; -1 where it tells none.
func mainFinding(r *report.Report) int {
	if r.HeadlineFinding == nil {
		return -1
	}
	return *r.HeadlineFinding
}

// findingAt is a finding by its index, nil where there is none: a report from a
// file may hold anything.
func findingAt(r *report.Report, i int) *report.Finding {
	if i < 0 || i >= len(r.Findings) {
		return nil
	}
	return &r.Findings[i]
}

// codeOf is a source line as it is shown.
func codeOf(text string) string { return words.Clean(strings.TrimSpace(text), words.MaxName) }

// isOwnFile tells whether a file is the recorded cell, or the script.
func isOwnFile(r *report.Report, file string) bool {
	if c := r.Target.Cell; c != nil {
		return file == fmt.Sprintf("Cell [%d]", c.ExecutionCount)
	}
	return false
}

// placeOf names a line in few characters: "3" in the cell itself, else
// "train.py:3".
func placeOf(r *report.Report, file string, line int) string {
	switch {
	case line <= 0:
		return ""
	case file == "" || isOwnFile(r, file):
		return fmt.Sprint(line)
	}
	return fmt.Sprintf("%s:%d", words.ShortFile(file), line)
}

// linePlace is placeOf where the figure alone would not be understood: "line 3".
func linePlace(r *report.Report, file string, line int) string {
	place := placeOf(r, file, line)
	if place != "" && (file == "" || isOwnFile(r, file)) {
		return "line " + place
	}
	return place
}
