package report

import (
	"fmt"
	"slices"
	"testing"
)

// stepsOf makes steps of these lengths in milliseconds, one after the other, from begin on.
func stepsOf(begin int64, samples *int64, lengths ...int64) (steps []Step) {
	at := begin * 1e6
	for _, ms := range lengths {
		steps = append(steps, Step{StartNS: at, EndNS: at + ms*1e6, Samples: samples})
		at += ms * 1e6
	}
	return steps
}

func TestPaceIsOfWholeSteps(t *testing.T) {
	const part = 100e6
	long := []int64{200, 200, 200, 200, 400, 400, 400, 400}
	for _, c := range []struct {
		name       string
		pace       pace
		steps      []Step
		unit       string
		mean, peak float64
		points     string // at in ms: value
	}{
		{"a step each", paces[0], stepsOf(1000, nil, long...), "steps/s", 8 / 2.4, 5,
			"1000:0 1200:5 1400:5 1600:5 1800:5 2200:2.5 2600:2.5 3000:2.5 3400:2.5"},
		{"short ones together", paces[0], stepsOf(0, nil, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 5), "steps/s", 12 / 0.115, 2 / 0.015,
			"100:100 115:133.33"},
		{"slow ones by the minute", paces[0], stepsOf(0, nil, 2000, 2000, 2000, 2000, 2000, 2000, 2000, 4000), "steps/min", 8 * 60 / 18.0, 30,
			"2000:30 4000:30 6000:30 8000:30 10000:30 12000:30 14000:30 18000:15"},
		{"samples", paces[1], stepsOf(0, pointer(int64(16)), long...), "samples/s", 8 * 16 / 2.4, 80,
			"200:80 400:80 600:80 800:80 1200:40 1600:40 2000:40 2400:40"},
		{"time without steps", paces[0], slices.Concat(stepsOf(0, nil, long[:4]...), stepsOf(2000, nil, long[:4]...)), "steps/s", 5, 5,
			"200:5 400:5 600:5 800:5 2000:0 2200:5 2400:5 2600:5 2800:5"},
	} {
		track, ok := c.pace.track(c.steps, part)
		points := ""
		for i, at := range track.AtUS {
			points += fmt.Sprintf(" %g:%.5g", float64(at)/1e3, track.Value[i])
		}
		if !ok || track.Unit != c.unit || points != " "+c.points || *track.Mean != single(c.mean) || *track.Peak != single(c.peak) {
			t.Errorf("%s: %t, %v %s %v, peak %v,%s", c.name, ok, *track.Mean, track.Unit, c.mean, *track.Peak, points)
		}
	}
	if _, ok := paces[0].track(stepsOf(0, nil, long[:7]...), part); ok {
		t.Error("seven steps have a course")
	}
	if _, ok := paces[1].track(stepsOf(0, nil, long...), part); ok {
		t.Error("samples that nobody counted have a course")
	}
}
