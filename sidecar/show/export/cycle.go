package export

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Thread ids of a cycle's rows that are no threads.
const dataRow = stepsRow - 1

// Cycle writes trace events of a stretch of a report: steps, how long each waited for data, and all figures of the
// machine as counters. With a pid other than 0 the steps are those of that process. Its times are since the report's origin, whose wall time is baseTimeNanoseconds, as Kineto has it.
func Cycle(r *report.View, from, to int64, pid int) ([]byte, error) {
	var out bytes.Buffer
	t := &traceWriter{w: &out, pid: r.Processes[r.Target().Process].PID}
	t.raw(fmt.Sprintf(`{"schemaVersion":1,"baseTimeNanoseconds":%d,"displayTimeUnit":"ms","otherData":`, r.Hosts[0].Clock.WallNS) + jsonOf(map[string]string{
		"generator": generator(r), "name": title(r),
	}) + `,"traceEvents":[`)
	for i, p := range r.Processes {
		name := clean(p.Text)
		if i == r.Target().Process {
			name = title(r)
		}
		t.event('M', `"process_name"`, p.PID, 0, 0, -1, `,"args":`+jsonOf(map[string]string{"name": name}))
	}
	within := *r.Document
	within.Steps, within.Tracks, within.Idle = numbered(r.Steps), nil, nil
	within.Steps = slices.DeleteFunc(within.Steps, func(s report.Step) bool {
		return s.EndNS <= from || s.StartNS >= to || pid != 0 && r.Processes[s.Process].PID != pid
	})
	for _, track := range r.Tracks {
		within.Tracks = append(within.Tracks, cut(track, from, to))
	}
	view := &report.View{Document: &within}
	t.rows(view)
	t.dataWaits(view)
	t.counters(view)
	t.raw("\n]}\n")
	if t.err != nil {
		return nil, fmt.Errorf("write the cycle: %w", t.err)
	}
	return out.Bytes(), nil
}

// dataWaits are a row of how long steps waited for data: each at the step's begin, where a loop takes its batch.
func (t *traceWriter) dataWaits(r *report.View) {
	for _, s := range r.Steps {
		if s.DataWaitNS <= 0 {
			continue
		}
		args := map[string]int64{"data_wait_ns": s.DataWaitNS}
		if s.Epoch != nil {
			args["epoch"] = int64(*s.Epoch)
		}
		t.event('X', `"waiting for data"`, r.Processes[s.Process].PID, dataRow, s.StartNS, s.DataWaitNS, `,"cat":"dataloader","args":`+jsonOf(args))
	}
}

// numbered are steps with a name each, by their number in their process.
func numbered(steps []report.Step) []report.Step {
	steps = slices.Clone(steps)
	count := make(map[int]int)
	for i := range steps {
		s := &steps[i]
		if s.Name == "" {
			s.Name = fmt.Sprintf("step %d", count[s.Process])
		}
		count[s.Process]++
	}
	return steps
}

// cut is a track's points of a stretch, with those that hold in it: a gauge is as at the point before, a rate as at the
// point at the end of its window.
func cut(t report.Track, from, to int64) report.Track {
	at, value := report.Column{}, report.Figures{}
	for i, us := range t.AtUS {
		switch ns := us * 1000; {
		case ns < from && t.Kind == report.Gauge:
			at, value = report.Column{us}, report.Figures{t.Value[i]}
		case ns < from: // only when it was
			at, value = report.Column{us}, report.Figures{math.NaN()}
		case ns <= to:
			at, value = append(at, us), append(value, t.Value[i])
		case t.Kind != report.Gauge:
			at, value = append(at, us), append(value, t.Value[i])
			t.AtUS, t.Value = at, value
			return t
		}
	}
	t.AtUS, t.Value = at, value
	return t
}
