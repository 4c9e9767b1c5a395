package wording

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// TaskTime is the time of an engine's tasks of one name.
type TaskTime struct {
	Name string
	Time timeline.Nanos
}

// MostTasks is how many names a sentence has.
const MostTasks = 3

// Tasks says how much of the time of an engine's workers was tasks, and which took most.
func Tasks(workers string, tasks []TaskTime, all, whole timeline.Nanos) string {
	var most []string
	for _, t := range tasks[:min(len(tasks), MostTasks)] {
		most = append(most, words.Clean(t.Name, 60)+" "+words.Seconds(t.Time.Seconds()))
	}
	return words.Sentence("tasks took " + words.Seconds(all.Seconds()) + " of the " + words.Seconds(whole.Seconds()) + " of " + workers + ": " + strings.Join(most, ", "))
}
