// Package wording is the catalogue: every sentence a user can read from a
// diagnosis is written here, from ids and figures.
//
// In flow the data of package diagnose and the names of places, out flow
// sentences for people. Nothing is decided here: what is worth saying, what is
// the main thing and which advice fits are facts of the diagnosis, and no code
// finds or compares anything by a sentence. testdata/page.md shows all of it as
// one page; it is to be read as a whole when a sentence changes.
package wording

import (
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// Scope is what sentences need to know of a recording beside the facts.
type Scope struct {
	Duration timeline.Nanos
	// Place names a line: "line 3", "Cell [5]:2", "train.py:40"; empty where it is
	// none.
	Place func(activity.Place) string
}
