package wording

import (
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Waiting says what the GPUs in use have waited for in the last seconds: for which share
// of them, at which place ("": none). sure means that no other cause can be the main one.
func Waiting(cause activity.Cause, share float64, place string, sure bool) string {
	text := "waited " + words.Percent(share) + " of the last seconds, "
	switch {
	case !sure:
		text += "probably "
	case share < nearlyAll:
		text += "most of it "
	}
	text += causes[cause].waited
	if place != "" {
		text += " in " + place
	}
	return text
}

// SlowerNow says that steps follow each other more slowly than usual, both in steps per second.
func SlowerNow(now, usual float64) string {
	return "steps are slower: " + words.Significant(now, 3) + "/s, before " + words.Significant(usual, 3) + "/s"
}

// IdlerNow says that the GPUs in use idle more than usual, both as shares.
func IdlerNow(now, usual float64) string {
	return "the GPU idles " + words.Percent(now) + " of the time, before " + words.Percent(usual)
}

// FullIn says when memory that grows steadily will be full, and by how many bytes it grows in a second.
func FullIn(ofGPU bool, seconds, perSecond float64) string {
	what := "memory"
	if ofGPU {
		what = "GPU memory"
	}
	return what + " grows by " + words.Quantity(60*perSecond, "B") + " a minute: full in " + words.Seconds(seconds) + " at this pace"
}

// WorkerDied names a worker that a signal has ended.
func WorkerDied(who string, signal int) string { return who + " was ended by " + Signal(signal) }
