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
