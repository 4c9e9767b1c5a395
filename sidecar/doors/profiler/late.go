package profiler

import (
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// A recording may begin a little later than its cell without a word: under "on" it always begins 5 ms later.
// More is said, from lateBegin on or where it is lateShare of the cell.
const (
	lateBegin = 50 * time.Millisecond
	somewhat  = 15 * time.Millisecond
	lateShare = 0.03
)

// BeganLate reports whether a recording began so late after its cell that its duration is not the cell's.
func BeganLate(late, length time.Duration) bool {
	return late >= lateBegin || late >= somewhat && late.Seconds() >= lateShare*length.Seconds()
}

// MarkLate says in a cell's recording that it began late, if it did to speak of.
func MarkLate(rec *timeline.Recording, late, length time.Duration) {
	if late = min(late, length); !BeganLate(late, length) {
		return
	}
	rec.Late = timeline.Nanos(late)
	rec.Notes = append(slices.Clone(rec.Notes), timeline.Note{
		ID: timeline.NoteBegunLate, What: "cell",
		Reason: "recorded from " + words.Seconds(late.Seconds()) + " on, of " + words.Seconds(length.Seconds()) + ": the profiler was not ready before",
	})
}
