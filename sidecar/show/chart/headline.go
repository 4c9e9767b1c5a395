package chart

import (
	"fmt"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// titleOf is the first line: what ran, how long, and how busy the GPU was, or
// the CPU.
func titleOf(r *report.View, gpus gpuSummary, main int, duration float64) []phrase {
	ps := []phrase{{words.Clean(r.Target().Name, 60), Plain, bold}}
	if r.Name != "" {
		ps = append(ps, phrase{words.Clean(r.Name, 60), Plain, sans})
	}
	ps = append(ps, phrase{words.Seconds(duration), Muted, sans})
	if c := r.Target().Cell; c != nil && c.Outcome != report.OutcomeOK && c.Outcome != report.OutcomeUnknown {
		ps = append(ps, phrase{outcomeOf(c), Bad, bold})
	}
	if c := r.Target().Cell; c == nil {
		if ended := r.Processes[r.Target().Process].Ended(); ended != "" {
			ps = append(ps, phrase{ended, Bad, bold})
		}
	}
	if gpus.used {
		return append(ps, gpus.title...)
	}
	if main >= 0 {
		shares := sharesOf(&r.Threads[main])
		if process := r.Threads[main].Process; process != r.Target().Process && len(shares) > 0 {
			shares[0].text = words.Clean(r.Processes[process].Text, 40) + " " + shares[0].text
		}
		ps = append(ps, shares...)
	}
	return append(ps, gpus.title...)
}

// outcomeOf says how a cell ended.
func outcomeOf(c *report.Cell) string {
	if c.Exception != nil {
		return words.Clean("error: "+*c.Exception, 60)
	}
	return words.Clean(strings.ReplaceAll(string(c.Outcome), "-", " "), 60)
}

// sharesOf is how the main thread spent its time.
func sharesOf(t *report.Thread) (ps []phrase) {
	computing, unseen := report.Seconds(t.StateNS.Of(report.State.Computes)), report.Seconds(t.StateNS[report.StateUnknown])
	all := report.Seconds(t.StateNS.Sum())
	if !(all > 0) {
		return nil
	}
	queued := report.Seconds(t.StateNS[report.StateOff])
	waits := all - computing - queued - unseen
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

// findingOf is the second line: the main finding, its source line, what to do, and
// what was not observed.
func findingOf(r *report.View) []phrase {
	var ps []phrase
	if f := r.MainFinding(); f != nil {
		ps = append(ps, phrase{words.Clean(f.Text, 300), Plain, bold})
		if text := codeOf(r.LineText(f.File, f.Line)); text != "" {
			ps = append(ps, phrase{text, Plain, mono})
		}
		if f.Hint != "" {
			ps = append(ps, phrase{words.Clean(f.Hint, 300), Muted, sans})
		}
	} else if headline := words.Clean(strings.TrimSpace(r.Headline.Text), 300); headline != "" {
		if r.Headline.Kind == report.HeadlineSummary && len(r.Headline.Limits) == 0 { // nothing stands out
			return []phrase{{headline, Muted, sans}}
		}
		return []phrase{{headline, Plain, bold}}
	}
	for _, i := range r.Headline.Limits {
		ps = append(ps, phrase{words.Clean(r.Findings[i].Text, 300), Warn, bold})
	}
	return ps
}

// codeOf is a source line as it is shown.
func codeOf(text string) string { return words.Clean(text, words.MaxName) }

// placeOf names a line in few characters: "3" in the cell itself, else
// "train.py:3".
func placeOf(r *report.View, file, line *int) string {
	switch {
	case line == nil:
		return ""
	case file == nil || r.IsCell(*file):
		return fmt.Sprint(*line)
	}
	return fmt.Sprintf("%s:%d", words.ShortFile(r.FileName(file)), *line)
}

// linePlace is placeOf where the figure alone would not be understood: "line 3".
func linePlace(r *report.View, file, line int) string {
	if r.IsCell(file) {
		return "line " + fmt.Sprint(line)
	}
	return placeOf(r, &file, &line)
}
