package chart

import (
	"fmt"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// titleOf is the first line: what ran, how long, and how busy the GPU was, or
// the CPU.
func titleOf(r *report.View, gpus gpuSummary, pools []pool, main int, duration float64) []scene.Phrase {
	ps := []scene.Phrase{{Text: words.Clean(r.Target().Name, 60), Tone: scene.Plain, Face: scene.Bold}}
	together := isOfWorkers(r, pools)
	if together && r.Name != "" {
		ps[0].Text = words.Clean(r.Name, 60) // a worker's own is the engine's
	} else if r.Name != "" {
		ps = append(ps, scene.Phrase{Text: words.Clean(r.Name, 60), Tone: scene.Plain, Face: scene.Sans})
	}
	ps = append(ps, scene.Phrase{Text: words.Seconds(duration), Tone: scene.Muted, Face: scene.Sans})
	if c := r.Target().Cell; c != nil && c.Outcome != report.OutcomeOK && c.Outcome != report.OutcomeUnknown {
		ps = append(ps, scene.Phrase{Text: outcomeOf(c), Tone: scene.Bad, Face: scene.Bold})
	}
	if c := r.Target().Cell; c == nil {
		how, message := r.HowItEnded()
		if how != "" {
			ps = append(ps, scene.Phrase{Text: words.Clean(how, 80), Tone: scene.Bad, Face: scene.Bold})
		}
		if message != "" { // the exception's
			ps = append(ps, scene.Phrase{Text: words.Clean(message, 100), Tone: scene.Muted, Face: scene.Sans})
		}
	}
	if gpus.used {
		return append(ps, gpus.title...)
	}
	if main >= 0 {
		shares := sharesOf(r.Threads[main].StateNS)
		if together {
			shares = sharesOf(workersTimes(r))
		}
		if process := r.Threads[main].Process; process != r.Target().Process && len(shares) > 0 {
			shares[0].Text = words.Clean(r.Processes[process].Text, 40) + " " + shares[0].Text
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

// workersTimes is how the threads that run an engine's tasks spent their time.
func workersTimes(r *report.View) (times report.StateTimes) {
	for i := range r.Threads {
		if t := &r.Threads[i]; runsTasks(r, t) {
			times = times.Plus(t.StateNS)
		}
	}
	return times
}

// Shares of the title: below worthSharing they are left out, and one of nothing is one, too.
const (
	worthSharing = 0.005
	leastShare   = 1e-9
)

// sharesOf is how the main thread spent its time, or all that ran tasks.
func sharesOf(times report.StateTimes) (ps []scene.Phrase) {
	computing, unseen := report.Seconds(times.Of(report.State.Computes)), report.Seconds(times[report.StateUnknown])
	all := report.Seconds(times.Sum())
	if !(all > 0) {
		return nil
	}
	queued := report.Seconds(times[report.StateOff])
	waits := all - computing - queued - unseen
	for _, part := range []struct {
		name   string
		time   float64
		tone   scene.Tone
		always bool
	}{{"computing", computing, scene.Good, true}, {"no free CPU", queued, scene.Warn, false}, {"waiting", waits, scene.Warn, false}, {"unknown", unseen, scene.Warn, false}} {
		if share := part.time / all; share >= worthSharing || part.always {
			ps = append(ps, scene.Phrase{Text: part.name + " " + words.Percent(share), Tone: part.tone, Face: scene.Bold, Share: max(share, leastShare)})
		}
	}
	return ps
}

// findingOf is the second line: the main finding, its source line, what to do, and
// what was not observed.
func findingOf(r *report.View) []scene.Phrase {
	var ps []scene.Phrase
	if f := r.MainFinding(); f != nil {
		ps = append(ps, scene.Phrase{Text: words.Clean(f.Text, 300), Tone: scene.Plain, Face: scene.Bold})
		if text := labels.Code(r.LineText(f.File, f.Line)); text != "" {
			ps = append(ps, scene.Phrase{Text: text, Tone: scene.Plain, Face: scene.Mono})
		}
		if f.Hint != "" {
			ps = append(ps, scene.Phrase{Text: words.Clean(f.Hint, 300), Tone: scene.Muted, Face: scene.Sans})
		}
	} else if headline := words.Clean(strings.TrimSpace(r.Headline.Text), 300); headline != "" {
		if r.Headline.Kind == report.HeadlineSummary && len(r.Headline.Limits) == 0 { // nothing stands out
			return []scene.Phrase{{Text: headline, Tone: scene.Muted, Face: scene.Sans}}
		}
		return []scene.Phrase{{Text: headline, Tone: scene.Plain, Face: scene.Bold}}
	}
	for _, i := range r.Headline.Limits {
		ps = append(ps, scene.Phrase{Text: words.Clean(r.Findings[i].Text, 300), Tone: scene.Warn, Face: scene.Bold})
	}
	return ps
}

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
