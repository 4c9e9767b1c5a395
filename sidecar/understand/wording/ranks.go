package wording

import (
	"cmp"
	"fmt"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/straggler"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Collective is what ranks did together, in a table.
func Collective(c straggler.Collective) string {
	switch c {
	case straggler.SetUp:
		return "setting up"
	case straggler.TearDown:
		return "ending"
	case straggler.Backward:
		return "waiting in backward"
	}
	return words.Clean(string(c), 40)
}

// WaitedForRank marks the straggler in a table.
func WaitedForRank(waited timeline.Nanos) string {
	return "the others waited " + words.Seconds(waited.Seconds()) + " for it"
}

// OwnTimes names the rank whose own time was the longest of all in so many of its steps, by how much more than the
// median rank's; compared are those of its steps that can be compared, byLength: nobody was seen in a collective.
func OwnTimes(rank, longest, compared, steps int, more timeline.Nanos, byLength bool) string {
	what := "took longest of its own"
	if byLength {
		what = "was longest"
	}
	of := words.Plural(compared, "step", "steps")
	if compared < steps {
		of = fmt.Sprintf("its %s, of which %d can be compared", words.Plural(steps, "step", "steps"), compared)
	}
	return fmt.Sprintf("rank %d %s in %d of %s, %s more than the median rank", rank, what, longest, of, words.Seconds(more.Seconds()))
}

// LongerEachStep names the rank that was longer by a little in each step, as OwnTimes does one that was by much in some.
func LongerEachStep(rank, compared int, more timeline.Nanos, byLength bool) string {
	what := "took %s longer of its own per step than the median rank"
	if byLength {
		what = "was %s longer per step than the median rank"
	}
	return fmt.Sprintf("rank %d "+what+", on the mean of %s", rank, words.Seconds(more.Seconds()), words.Plural(compared, "step", "steps"))
}

// LikeOwnTimes is said where no rank's is.
func LikeOwnTimes(byLength bool) string {
	if byLength {
		return "in no step was a rank a twentieth of it longer than the median rank"
	}
	return "in no step did a rank take a twentieth of it longer of its own than the median rank"
}

// StepsTooShort is said where a rank's own time in a step is known to so much, which is more than would show.
func StepsTooShort(least timeline.Nanos) string {
	return "single steps are too short to be compared, by how often the stacks were read: what is less than " + words.Seconds(least.Seconds()) + " longer would not show"
}

// RankLine says how a rank differs from the others in a line: its time per step, theirs in the middle, how many of its
// steps show it, and by how much the difference is known.
func RankLine(rank int, most, median, low, high timeline.Nanos, above, steps int, more bool) string {
	text := fmt.Sprintf("rank %d %s per step, the median rank %s", rank, words.Seconds(most.Seconds()), words.Seconds(median.Seconds()))
	if !more {
		return text + ": may be chance"
	}
	return text + fmt.Sprintf(", seen in %d of %s: %s to %s more than the others", above, words.Plural(steps, "step", "steps"), words.Seconds(low.Seconds()), words.Seconds(high.Seconds()))
}

// straggler names the rank that the others waited for, and where it was longer than they.
func (s Scope) straggler(f diagnose.Finding) string {
	who, they := "the other rank", "the other"
	if f.Count > 2 {
		who, they = fmt.Sprintf("the other %d ranks", f.Count-1), "they were"
	}
	text := who + " waited " + words.PartOf(f.Time.Seconds(), f.Whole.Seconds()) + fmt.Sprintf(" for rank %d", f.Rank)
	in := " in collectives"
	switch f.Collective {
	case straggler.None:
	case straggler.Backward:
		in = " in backward"
	default:
		in = " in " + words.Clean(string(f.Collective), 40)
	}
	if f.Collective != straggler.None && float64(f.CollectiveTime) < nearlyAll*float64(f.Time) {
		in = ", " + words.Seconds(f.CollectiveTime.Seconds()) + " of it" + in
	}
	text += in + lateSteps(f)
	if place := s.Place(f.Place); place != "" && f.PlaceTime > 0 {
		text += fmt.Sprintf("; rank %d was ", f.Rank) + words.Seconds(f.PlaceTime.Seconds()) + " longer in " + place + " than " + they
	}
	return text
}

// lateSteps says in which of its steps a rank was waited for: ", in 3 of its 40 steps and after the last".
func lateSteps(f diagnose.Finding) string {
	after := ""
	if part := float64(f.AfterSteps); part > 0 && part >= worthAfter*float64(cmp.Or(f.CollectiveTime, f.Time)) {
		after = " and after the last"
	}
	switch {
	case f.Steps < 2 || f.LateSteps <= 0:
		return ""
	case f.LateSteps == f.Steps:
		return fmt.Sprintf(", in each of its %d steps", f.Steps) + after
	}
	return fmt.Sprintf(", in %d of its %d steps", f.LateSteps, f.Steps) + after
}

// worthAfter is the share of the time waited that must be after a rank's last step, to be said.
const worthAfter = 0.1
