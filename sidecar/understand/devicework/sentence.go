package devicework

import (
	"fmt"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// What is what delivered work makes exact, the subject of a note.
const What = "GPU activity"

// maxStretches is how many stretches a sentence names.
const maxStretches = 4

// Sentence says what is exact and how far; empty where nothing is.
func Sentence(rec *timeline.Recording) string {
	if reason := exact(rec); reason != "" {
		return What + ": " + reason
	}
	return ""
}

func exact(rec *timeline.Recording) string {
	var complete []timeline.Interval
	error := time.Duration(0)
	for _, w := range rec.Work {
		complete = append(complete, timeline.Clip(timeline.Joined(w.Complete), timeline.Between(0, rec.Duration))...)
		error = max(error, w.Error)
	}
	complete = timeline.Joined(complete)
	if len(complete) == 0 {
		return ""
	}
	var stretches []string
	for i, c := range complete {
		if i == maxStretches && len(complete) > maxStretches+1 {
			stretches = append(stretches, words.Plural(len(complete)-i, "other stretch", "other stretches"))
			break
		}
		stretches = append(stretches, "from "+words.Fixed(c.Start.Seconds(), 3)+" to "+words.Fixed(c.End.Seconds(), 3)+" s")
	}
	return fmt.Sprintf("exact %s (%s), its place in the recording known to %s", words.List(stretches), words.List(sources(rec)), words.Duration(error))
}

// sources are those of the work, each once.
func sources(rec *timeline.Recording) (list []string) {
	for _, w := range rec.Work {
		if !slices.Contains(list, w.Source) {
			list = append(list, w.Source)
		}
	}
	return list
}
