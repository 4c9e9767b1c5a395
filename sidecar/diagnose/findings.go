package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// rule is one finding as data: what is measured, from which figure on it is
// worth saying, and what to do about it. The figure is a share of the
// recording's duration unless the rule says otherwise.
type rule struct {
	id        string
	severity  Severity
	threshold float64
	fallback  bool // only where no rule before it fired
	measure   func(e *evidence) measured
	hint      string // where the measured has none
}

// measured is what a rule's figure is and what it rests on.
type measured struct {
	value    float64 // compared with the threshold; NaN = not known
	text     string  // one sentence with the figure
	at       line
	hint     string
	evidence []Interval
	cost     timeline.Nanos
}

// rules for programs that use a GPU come first, then those for any program.
var rules = append(gpuRules, cpuRules...)

// minDuration is the length below which shares of time are chance.
const minDuration = timeline.Nanos(50e6)

// findings applies the rules to a recording, the main finding first.
func findings(e *evidence) []Finding {
	if e.rec.Duration < minDuration {
		return nil
	}
	var list []Finding
	for _, r := range rules {
		if r.fallback && len(list) > 0 {
			continue
		}
		m := r.measure(e)
		if math.IsNaN(m.value) || m.value < r.threshold {
			continue
		}
		list = append(list, Finding{
			ID: r.id, Severity: r.severity, Text: m.text, File: m.at.file, Line: m.at.number,
			Hint: cmp.Or(m.hint, r.hint), Evidence: keepLongest(merged(m.evidence), maxEvidence), Cost: m.cost,
		})
	}
	slices.SortStableFunc(list, func(a, b Finding) int {
		if a.Severity != b.Severity {
			return cmp.Compare(b.Severity, a.Severity) // "warning" before "info"
		}
		return cmp.Compare(b.Cost, a.Cost)
	})
	return list
}

// evidence is what the rules look at.
type evidence struct {
	rec       *timeline.Recording
	stacks    *stacks
	diagnosis *Diagnosis
	devices   []*device
	main      *host // of the thread that runs the cell
}

var nothing = measured{value: math.NaN()}

func (e *evidence) share(n timeline.Nanos) float64 { return float64(n) / float64(e.rec.Duration) }

// used are the devices the program worked on.
func (e *evidence) used() []*device {
	var list []*device
	for _, d := range e.devices {
		if d.time.Used && d.shares != nil {
			list = append(list, d)
		}
	}
	return list
}

// idleWhere sums the used devices' idle causes that fit, as a mean over the
// devices, with the line that has most of it.
func (e *evidence) idleWhere(fits func(CauseIdle) bool) (total timeline.Nanos, top CauseIdle, where []Interval) {
	n := timeline.Nanos(len(e.used()))
	if n == 0 {
		return 0, CauseIdle{}, nil
	}
	for _, c := range e.diagnosis.Idle.Causes {
		if !fits(c) {
			continue
		}
		total += c.Nanos
		where = append(where, c.Evidence...)
		if c.Nanos > top.Nanos {
			top = c
		}
	}
	return total / n, top, where
}

// hostWhere sums the main thread's time in states that fit, with the line that
// has most of it and how often the thread came there.
func (e *evidence) hostWhere(fits func(hostState) bool) (total timeline.Nanos, top line, hint string, visits int, where []Interval) {
	byLine := make(map[line]timeline.Nanos)
	hints := make(map[line]string)
	inside := false
	for _, s := range e.main.stretches {
		st := e.main.states[s.state]
		if !fits(st) {
			inside = false
			continue
		}
		if !inside {
			visits++
		}
		inside = true
		total += s.end - s.start
		byLine[st.at] += s.end - s.start
		hints[st.at] = st.hint
		where = append(where, Interval{s.start, s.end})
	}
	for at, n := range byLine {
		if n > byLine[top] || (n == byLine[top] && (at.file < top.file || at.file == top.file && at.number < top.number)) {
			top = at
		}
	}
	return total, top, hints[top], visits, where
}

func (e *evidence) track(id string) *timeline.Track {
	for i := range e.rec.Tracks {
		if e.rec.Tracks[i].ID == id {
			return &e.rec.Tracks[i]
		}
	}
	return nil
}

// meanOf is a rate's mean over the time it is known.
func meanOf(t *timeline.Track) float64 {
	if t == nil {
		return math.NaN()
	}
	sum, length := 0.0, 0.0
	for _, p := range t.Points {
		if !math.IsNaN(p.Value) {
			sum += p.Value * float64(p.At-p.From)
			length += float64(p.At - p.From)
		}
	}
	return sum / length
}

// where names a line in a sentence: " in line 7 (`x.item()`)".
func (e *evidence) where(at line) string {
	if at.number == 0 {
		return ""
	}
	if s := e.stacks; s.source.isCell(at.file) {
		if text := s.source.Line(at.file, at.number); text != "" {
			return fmt.Sprintf(", most in %s (%s)", s.place(at), shorten(text))
		}
	}
	return fmt.Sprintf(", most in %s:%d", base(at.file), at.number)
}

func shorten(text string) string {
	const most = 60
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

func base(file string) string {
	for i := len(file) - 1; i >= 0; i-- {
		if file[i] == '/' || file[i] == '\\' {
			return file[i+1:]
		}
	}
	return file
}

// seconds writes a time with as many digits as it deserves.
func seconds(n timeline.Nanos) string {
	d := time.Duration(n)
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f ms", d.Seconds()*1000)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
