package specimen_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/specimen"
	"github.com/omni-perf/omni-perf/sidecar/surround"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// verdict is what a diagnosis by windows says, beside what is true.
type verdict struct {
	named     diagnose.Kind // empty: none
	place     diagnose.Place
	undecided bool
	truth     []diagnose.KindIdle // most first
	places    map[diagnose.Place]timeline.Nanos
	idle      timeline.Nanos
	certainty diagnose.Certainty
	text      string
}

// judge diagnoses a training by one of its devices, and by what all of them did.
func judge(s *specimen.Specimen, device int) verdict {
	rec := surround.Strip(s.Recording)
	d := diagnose.Options{Line: s.Line}.Run(specimen.Only(rec, device, device))
	exact := diagnose.Options{Line: s.Line}.Run(specimen.Only(rec, specimen.Exact, device))
	v := verdict{places: make(map[diagnose.Place]timeline.Nanos)}
	if d.Idle == nil || exact.Idle == nil {
		return v
	}
	v.truth, v.idle, v.certainty = exact.Idle.Kinds, exact.Idle.Total, d.Idle.Certainty
	main, ok := d.Main()
	if !ok {
		return v
	}
	f := d.Findings[main]
	v.text = fmt.Sprintf("%s %s %v", f.ID, f.Cause, f.Place.Line)
	switch {
	case f.ID == diagnose.GPUIdleUndecided:
		v.undecided = true
	case f.ID == diagnose.GPUIdle, strings.HasPrefix(string(f.ID), "gpu-waits-"), f.ID == diagnose.GPUWaitsForData, f.ID == diagnose.GPUWaitsForLaunches,
		f.ID == diagnose.GPUWaitsForHost, f.ID == diagnose.GPUWaitsAtEnds:
		v.named, v.place = f.Cause.Kind(), f.Place
	}
	for _, c := range exact.Idle.Causes {
		if c.Cause.Kind() == v.named {
			v.places[c.Place] += c.Nanos
		}
	}
	return v
}

// share is a kind's part of the true idle time.
func (v verdict) share(kind diagnose.Kind) float64 {
	for _, k := range v.truth {
		if k.Kind == kind {
			return float64(k.Nanos) / float64(v.idle)
		}
	}
	return 0
}

// lead is by how much the first kind exceeds the second.
func (v verdict) lead() float64 {
	switch len(v.truth) {
	case 0:
		return 0
	case 1:
		return 1
	}
	return float64(v.truth[0].Nanos-v.truth[1].Nanos) / float64(v.idle)
}

// tie is how far two causes may be apart and neither be wrongly called the first:
// the windows are rounded to whole percents.
const tie = 0.01

// wrong says what is false about a verdict; empty if nothing.
func (v verdict) wrong() string {
	if v.named == "" || len(v.truth) == 0 {
		return ""
	}
	if first := v.truth[0].Kind; v.named != first && v.share(v.named) < v.share(first)-tie {
		return fmt.Sprintf("names %s with %.0f %% of the idle time, %s has %.0f %%", v.named, 100*v.share(v.named), first, 100*v.share(first))
	}
	if v.place != (diagnose.Place{}) {
		for at, n := range v.places {
			if float64(n-v.places[v.place]) > tie*float64(v.idle) {
				return fmt.Sprintf("names line %d with %v, line %d has %v", v.place.Line, v.places[v.place].Duration(), at.Line, n.Duration())
			}
		}
	}
	return ""
}

func TestShowTrainings(t *testing.T) {
	folder := os.Getenv("TRAININGS")
	if folder == "" {
		t.Skip("TRAININGS names no folder of recordings")
	}
	for _, variant := range specimen.Trainings {
		for _, step := range []int{10, 25, 100} {
			s, err := specimen.Read(filepath.Join(folder, fmt.Sprintf("%s-%d.json.gz", variant, step)))
			if err != nil {
				continue
			}
			for _, w := range specimen.Windows {
				started := time.Now()
				v := judge(s, w.Device)
				said := "named " + string(v.named)
				if v.undecided {
					said = "undecided"
				} else if v.named == "" {
					said = "says " + v.text
				}
				var truth []string
				for _, k := range v.truth[:min(len(v.truth), 4)] {
					truth = append(truth, fmt.Sprintf("%s %.0f", k.Kind, 100*float64(k.Nanos)/float64(v.idle)))
				}
				t.Logf("%-12s %3d ms %8v %-10s R² %5.2f/%5.2f  %-28s truth %s  %s  (%v)", variant, step, w.Length, v.certainty.Method, v.certainty.R2, v.certainty.HeldOut,
					said, strings.Join(truth, ", "), v.wrong(), time.Since(started).Round(time.Millisecond))
			}
		}
	}
}
