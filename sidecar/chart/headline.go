package chart

import (
	"fmt"
	"path"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/report"
)

// titleOf is the first line: what ran, how long, and how busy the GPU was, or
// the CPU.
func titleOf(r *report.Report, gpus gpuSummary, main int, duration float64) []phrase {
	ps := []phrase{{subjectOf(r), Plain, bold}}
	if r.Name != "" {
		ps = append(ps, phrase{clean(r.Name, 60), Plain, sans})
	}
	ps = append(ps, phrase{seconds(duration), Muted, sans})
	if c := r.Target.Cell; c != nil && c.Outcome != "" && c.Outcome != "ok" {
		ps = append(ps, phrase{clean(c.Outcome, 60), Bad, bold})
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
	ps = append(ps, phrase{"computing " + percent(computing/all), Good, bold})
	if queued/all >= 0.005 {
		ps = append(ps, phrase{"no free CPU " + percent(queued/all), Warn, bold})
	}
	if waits/all >= 0.005 {
		ps = append(ps, phrase{"waiting " + percent(waits/all), Warn, bold})
	}
	if unseen/all >= 0.005 {
		ps = append(ps, phrase{"unknown " + percent(unseen/all), Warn, bold})
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
			return clean("-m "+r.Target.Argv[i+1], 60)
		}
		if i == 0 && strings.HasPrefix(path.Base(arg), "python") {
			continue
		}
		if !strings.HasPrefix(arg, "-") {
			return clean(path.Base(arg), 60)
		}
	}
	return fmt.Sprintf("Process %d", r.Target.PID)
}

// findingOf is the second line: the main finding, its source line, what to do.
func findingOf(r *report.Report) []phrase {
	if f := mainFinding(r); f != nil {
		ps := []phrase{{clean(f.Text, 300), Plain, bold}}
		if place := linePlace(r, f.File, f.Line); place != "" && !strings.Contains(f.Text, place) {
			ps = append(ps, phrase{place, Muted, sans})
		}
		if text := codeOf(f.SourceText); text != "" && !strings.Contains(f.Text, text) {
			ps = append(ps, phrase{text, Plain, mono})
		}
		if f.Hint != "" {
			ps = append(ps, phrase{clean(f.Hint, 300), Muted, sans})
		}
		return ps
	}
	headline := clean(strings.TrimSpace(r.Headline), 300)
	if headline == "" {
		return nil
	}
	ps := []phrase{{headline, Plain, bold}}
	if len(r.CellLines) > 0 { // the headline may name the line that took most
		l := &r.CellLines[0]
		text := codeOf(l.Text)
		if text != "" && strings.Contains(headline, linePlace(r, l.File, l.Line)) && strings.Contains(headline, "time in") {
			ps = append(ps, phrase{text, Plain, mono})
		}
	}
	return ps
}

// mainFinding is the finding the headline is about, or nil.
func mainFinding(r *report.Report) *report.Finding {
	for i := range r.Findings {
		if r.Findings[i].Text == r.Headline {
			return &r.Findings[i]
		}
	}
	if len(r.Findings) > 0 && (r.Headline == "" || strings.HasPrefix(r.Headline, r.Findings[0].Text)) {
		return &r.Findings[0]
	}
	return nil
}

// codeOf is a source line as it is shown.
func codeOf(text string) string { return clean(strings.TrimSpace(text), maxName) }

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
	return fmt.Sprintf("%s:%d", shortFile(file), line)
}

// linePlace is placeOf where the figure alone would not be understood: "line 3".
func linePlace(r *report.Report, file string, line int) string {
	place := placeOf(r, file, line)
	if place != "" && (file == "" || isOwnFile(r, file)) {
		return "line " + place
	}
	return place
}
