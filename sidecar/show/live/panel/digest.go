// Package panel shows a look at a recording in progress: as the HTML of a cell's output, as lines for a terminal,
// as one line for logs.
//
// In flows a live.Now, out flows text; nothing of a look is remembered.
package panel

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/live"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// digest is what a look at a recording in progress has to say: all text clean.
type digest struct {
	title    string // "Cell [5] · 35 s"
	progress string // of the steps; empty where none is known
	share    float64
	hasShare bool // of the steps are done; else their total is not known
	now      []position
	doing    string
	figures  []figure
	waiting  string // what the GPU waits for
	alarms   []string
	lines    []hotLine
}

// leastShare of the time makes a line one of the hottest.
const leastShare = 0.005

// position is where the program is.
type position struct{ place, function, text, since string }

// figure is a figure with its last minute; nil values are not known.
type figure struct {
	name, value string
	paint       scene.Paint
	history     []*float64 // shares
}

// hotLine is one of the hottest lines.
type hotLine struct {
	place, text, seconds, percent string
	share                         float64
}

func digestOf(n *live.Now) digest {
	d := digest{title: wholeSeconds(n.ElapsedNS)}
	name := ""
	if n.Cell > 0 {
		name = fmt.Sprintf("Cell [%d]", n.Cell)
	}
	if n.Name != "" {
		name = strings.TrimSpace(name + " " + words.Clean(n.Name, 80))
	}
	if name == "" {
		name = "watched"
	}
	d.title = name + " · " + d.title
	d.progress, d.share, d.hasShare = progressOf(n.Steps)
	for _, p := range []*live.Position{n.Line, n.Inner} {
		if p != nil {
			d.now = append(d.now, position{
				place: words.Clean(p.Place, words.MaxName), function: words.Clean(p.Function, words.MaxName), text: words.Clean(p.Text, words.MaxName), since: sinceOf(p.SinceNS),
			})
		}
	}
	if n.Doing != nil {
		d.doing = wording.Cause(n.Doing.Cause) + " " + words.Percent(n.Doing.Share)
	}
	d.figures = figuresOf(n)
	if i := n.Idle; i != nil {
		d.waiting = wording.Waiting(i.Cause, i.Share, words.Clean(i.Place, words.MaxName), i.Sure)
	}
	for _, a := range n.Alarms {
		d.alarms = append(d.alarms, alarmText(a))
	}
	for _, l := range n.Lines {
		if l.Share < leastShare {
			break
		}
		d.lines = append(d.lines, hotLine{
			place: words.Clean(l.Place, words.MaxName), text: words.Clean(l.Text, words.MaxName),
			seconds: words.Seconds(float64(l.SelfNS) / 1e9), percent: words.Percent(l.Share), share: l.Share,
		})
	}
	return d
}

func alarmText(a live.Alarm) string {
	switch a.ID {
	case live.PaceFalls:
		return wording.SlowerNow(a.Value, a.Usual)
	case live.GPUIdles:
		return wording.IdlerNow(a.Value, a.Usual)
	case live.WorkerDied:
		return wording.WorkerDied(words.Clean(a.Who, words.MaxName), a.Signal)
	}
	return wording.FullIn(a.ID == live.GPUMemoryFills, float64(a.LeftNS)/1e9, a.Value)
}

// wholeSeconds says a length of time that is shown anew each second.
func wholeSeconds(ns int64) string {
	if s := ns / 1e9; s < 100 {
		return fmt.Sprintf("%d s", s)
	}
	return words.Seconds(math.Floor(float64(ns) / 1e9))
}

// sinceOf says for how long a line has been there; what comes and goes within a second is
// not said.
func sinceOf(ns int64) string {
	if ns < 1e9 {
		return ""
	}
	return "for " + wholeSeconds(ns)
}

func progressOf(s *live.Steps) (text string, share float64, known bool) {
	if s == nil {
		return "", 0, false
	}
	var parts []string
	switch {
	case s.Count != nil && s.Total != nil:
		parts = append(parts, fmt.Sprintf("step %s of %s", words.Count(*s.Count), words.Count(*s.Total)))
		share, known = min(max(float64(*s.Count)/float64(*s.Total), 0), 1), true
	case s.Count != nil:
		parts = append(parts, words.Plural(int(*s.Count), "step", "steps"))
	}
	if r := s.PerSecond; r != nil && *r > 0 {
		parts = append(parts, paceText(*r))
	}
	if l := s.LeftNS; l != nil && *s.Count < *s.Total {
		parts = append(parts, "about "+wholeSeconds(*l+1e9-1)+" left")
	}
	return strings.Join(parts, " · "), share, known
}

// paceText says how fast steps follow each other, in the unit that has a number above 1.
func paceText(perSecond float64) string {
	if perSecond < 1 {
		return words.Seconds(1/perSecond) + " a step"
	}
	return words.Significant(perSecond, 3) + " steps/s"
}

func figuresOf(n *live.Now) (figures []figure) {
	if c := n.CPU; c != nil {
		figures = append(figures, figure{name: "CPU", value: words.CoresUsed(c.Value, c.Limit), paint: scene.PaintCPU, history: n.History.CPU})
	}
	if m := n.Memory; m != nil {
		figures = append(figures, figure{name: "memory", value: words.Quantity(m.Value, "B"), paint: scene.PaintMemory})
	}
	if len(n.Devices) == 0 {
		return figures
	}
	f := figure{name: "GPU", paint: scene.PaintGPU}
	var held, room float64
	used := 0
	for _, d := range n.Devices {
		if d.Used {
			used++
			if d.Memory != nil {
				held, room = held+d.Memory.Value, room+d.Memory.Limit
			}
		}
	}
	switch busy := n.Busy(); {
	case used == 0:
		f.value = "not used so far"
	case busy == nil:
		f.value = "not known now"
	default:
		f.value, f.history = words.Percent(*busy)+" busy", n.History.Busy
	}
	if slices.ContainsFunc(n.Devices, func(d live.Device) bool { return d.Simulated }) {
		f.value += " (simulated)"
	}
	if used > 1 {
		f.name = words.Plural(used, "GPU", "GPUs")
	}
	figures = append(figures, f)
	if room > 0 {
		figures = append(figures, figure{name: "GPU memory", value: shortPart(words.Quantity(held, "B"), words.Quantity(room, "B")), paint: scene.PaintGPUMemory})
	}
	return figures
}

// shortPart says two quantities with one unit where it is the same.
func shortPart(part, whole string) string {
	number, unit, _ := strings.Cut(part, " ")
	if _, other, _ := strings.Cut(whole, " "); other == unit {
		part = number
	}
	return part + " of " + whole
}
