package wording

import (
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
// median rank's; byLength where nobody was seen in a collective.
func OwnTimes(rank, longest, steps int, more timeline.Nanos, byLength bool) string {
	what := "took longest of its own"
	if byLength {
		what = "was longest"
	}
	return fmt.Sprintf("rank %d %s in %d of %s, %s more than the median rank", rank, what, longest, words.Plural(steps, "step", "steps"), words.Seconds(more.Seconds()))
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
	switch f.Collective {
	case straggler.None:
	case straggler.Backward:
		text += " in backward"
	default:
		text += " in " + words.Clean(string(f.Collective), 40)
	}
	switch {
	case f.Steps < 2 || f.LateSteps <= 0:
	case f.LateSteps == f.Steps:
		text += fmt.Sprintf(", in each of its %d steps", f.Steps)
	default:
		text += fmt.Sprintf(", in %d of its %d steps", f.LateSteps, f.Steps)
	}
	if place := s.Place(f.Place); place != "" && f.PlaceTime > 0 {
		text += fmt.Sprintf("; rank %d was ", f.Rank) + words.Seconds(f.PlaceTime.Seconds()) + " longer in " + place + " than " + they
	}
	return text
}
