package wording

import (
	"fmt"
	"math"

	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Change is how a time differs, as sentences say it: in seconds.
type Change struct {
	Before, After float64
	Low, High     float64 // of the difference
	Verdict       significance.Verdict
}

func (c Change) by() float64 { return c.After - c.Before }

// Words say in a few words what a change amounts to: "−4.2 s ± 0.4 s", "within noise
// (−47 ms to +0.1 s)".
func (c Change) Words() string {
	switch c.Verdict {
	case significance.Less, significance.More:
		return words.Signed(c.by()) + " " + c.interval()
	case significance.New:
		return "new"
	case significance.Gone:
		return "gone"
	}
	return "within noise (" + between(c) + ")"
}

// interval is "± 0.4 s", or both ends where the change is not in its middle.
func (c Change) interval() string {
	half := (c.High - c.Low) / 2
	if math.Abs(c.Low+half-c.by()) > 0.1*half {
		return "(" + between(c) + ")"
	}
	return "± " + words.Seconds(half)
}

// Compared is the answer of a comparison: how the whole differs, or that nothing does.
// parts are the numbers of lines and functions that differ.
func Compared(whole Change, parts string) string {
	before, after := words.Seconds(whole.Before), words.Seconds(whole.After)
	switch {
	case whole.Verdict == significance.WithinNoise && parts == "":
		return fmt.Sprintf("No difference beyond noise: %s before, %s after.", before, after)
	case whole.Verdict == significance.WithinNoise:
		return fmt.Sprintf("The whole time does not differ beyond noise (%s before, %s after); what does: %s.", before, after, parts)
	}
	much := words.Seconds(math.Abs(whole.by()))
	than := "longer"
	if whole.by() < 0 {
		than = "less"
	}
	share := ""
	if whole.Before > 0 {
		share = " (" + words.SignedPercent(whole.by()/whole.Before) + ")"
	}
	return fmt.Sprintf("Took %s %s than before%s: %s in place of %s; the difference is %s.", much, than, share, after, before, between(whole))
}

// between is the interval of a difference.
func between(c Change) string { return words.Signed(c.Low) + " to " + words.Signed(c.High) }

// ComparedParts counts what differs: "2 lines and 1 function".
func ComparedParts(lines, functions, causes, steps int) string {
	var parts []string
	for _, p := range []struct {
		n         int
		one, many string
	}{{lines, "line", "lines"}, {causes, "cause of GPU idle time", "causes of GPU idle time"}, {steps, "figure of the steps", "figures of the steps"}, {functions, "function", "functions"}} {
		if p.n > 0 {
			parts = append(parts, words.Plural(p.n, p.one, p.many))
		}
	}
	return words.List(parts)
}

// ComparedMost says which place made most of a difference.
func ComparedMost(place string, c Change) string {
	switch c.Verdict {
	case significance.New:
		return fmt.Sprintf("Most of it: %s is new, with %s.", place, words.Seconds(c.After))
	case significance.Gone:
		return fmt.Sprintf("Most of it: %s is gone, with %s.", place, words.Seconds(c.Before))
	}
	return fmt.Sprintf("Most of it: %s, %s.", place, words.Signed(c.by()))
}

// ComparedPeak says how the largest resident memory differs, in bytes; atLeast is of before and after.
func ComparedPeak(before, after int64, atLeast [2]bool) string {
	peaks := [2]string{words.Quantity(float64(before), "B"), words.Quantity(float64(after), "B")}
	for side, least := range atLeast {
		if least {
			peaks[side] = "at least " + peaks[side]
		}
	}
	return fmt.Sprintf("Peak memory: %s, before %s.", peaks[1], peaks[0])
}

// Sides says how often each side of a comparison was recorded.
type Sides struct {
	Before, After int     // runs
	Level         float64 // of the intervals
	Assumed       float64 // spread between runs; 0: none had to be assumed
	// Starved is by which share of the computing the machine was busy, of a single run.
	StarvedBefore, StarvedAfter float64
}

// worthTelling is the share of the computing from which on a busy machine is mentioned.
const worthTelling = 0.05

// ComparedBy says what the intervals of a comparison rest on, and what they cannot know.
func ComparedBy(s Sides) []string {
	level := words.Percent(s.Level)
	notes := []string{fmt.Sprintf("Intervals hold with %s: that of the whole time by itself, those of all tables together.", level)}
	switch {
	case s.Before == 1 && s.After == 1:
		notes = append(notes, fmt.Sprintf("One run of each side: intervals have the noise of sampling, and runs of an unchanged program are assumed to vary by %s; "+
			"record each side several times to have that measured.", words.Percent(s.Assumed)))
	case s.Before == 1 || s.After == 1:
		notes = append(notes, fmt.Sprintf("One run of one side, %d of the other: both are taken to vary as the latter do, at least by %s.",
			max(s.Before, s.After), words.Percent(s.Assumed)))
	default:
		notes = append(notes, fmt.Sprintf("Times are means of %d runs before and %d after; intervals from the spread between the runs (Welch's t).", s.Before, s.After))
	}
	var busy []string
	for _, side := range []struct {
		name    string
		runs    int
		starved float64
	}{{"before", s.Before, s.StarvedBefore}, {"after", s.After, s.StarvedAfter}} {
		if side.runs == 1 && side.starved >= worthTelling {
			busy = append(busy, words.Percent(side.starved)+" of the computing "+side.name)
		}
	}
	if len(busy) > 0 {
		notes = append(notes, "The machine was busy: no CPU was free for "+words.List(busy)+"; by so much times may be too long.")
	}
	return notes
}

// DifferentPrograms says what can be said of a comparison of two programs that have nothing to do with each other.
func DifferentPrograms(before, after string) string {
	return fmt.Sprintf("%s and %s are different programs: they share few functions and lines, and most rows are new or gone; what can be compared is each as a whole.",
		words.Clean(before, 80), words.Clean(after, 80))
}

// comparedFigures name what comparisons report of wholes and steps, by id.
var comparedFigures = map[string]string{
	"wall": "from begin to end", "gpu-busy": "GPU busy", "gpu-idle": "GPU idle",
	"step": "a step", "step-data-wait": "waiting for data in a step", "step-gpu-busy": "GPU busy in a step", "step-gpu-idle": "GPU idle in a step",
}

// ComparedFigure names a figure of package comparison by its id.
func ComparedFigure(id string) string { return comparedFigures[id] }
