package page

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

func TestClocksAreAligned(t *testing.T) {
	r, answers := training(t)
	for i, c := range AlignClocks(r.Analysis) {
		want := answers.Ranks[0].Skew - answers.Ranks[i].Skew
		if c.Offset != want || !c.Matched {
			t.Errorf("rank %d: offset %d (matched %t), want %d", c.Rank, c.Offset, c.Matched, want)
		}
	}
}

// mergedEvent is an event of a merged trace.
type mergedEvent struct {
	Ph, Name, Cat string
	Pid           int
	Tid           any
	Ts, Dur       float64
	ID            any
	Args          map[string]any
}

// merge analyses and merges, and reads the result as strict JSON.
func merge(t *testing.T, paths ...string) []mergedEvent {
	t.Helper()
	a, err := traces.Run(context.Background(), paths, kineto.Options{}, analyses.Options{Tables: []string{analyses.TableTemporal}})
	if err != nil {
		t.Fatal(err)
	}
	return mergeOf(t, a)
}

func mergeOf(t *testing.T, a *traces.Analysis) []mergedEvent {
	t.Helper()
	path := filepath.Join(t.TempDir(), "merged_trace.json")
	if _, err := WriteMergedFile(context.Background(), path, a); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var merged struct{ TraceEvents []mergedEvent }
	if err := json.Unmarshal(text, &merged); err != nil {
		t.Fatalf("%v in\n%.2000s", err, text)
	}
	return merged.TraceEvents
}

func TestMergedTraceIsOneTraceOnOneClock(t *testing.T) {
	r, answers := training(t)
	events := mergeOf(t, r.Analysis)
	// The last collective ends at the same time on all ranks.
	ends := map[int]float64{}
	first := math.Inf(1)
	flows := map[any]map[string]int{}
	names := map[string]bool{}
	counters := 0
	for _, e := range events {
		switch e.Ph {
		case "X":
			first = min(first, e.Ts)
			if strings.HasPrefix(e.Name, "nccl") {
				ends[e.Pid] = max(ends[e.Pid], e.Ts+e.Dur)
				if e.Args["Collective name"] != "allreduce" || e.Args["Group size"] != 4.0 {
					t.Fatalf("a collective's args are %v, want all that the profiler wrote", e.Args)
				}
			}
		case "s", "f":
			if flows[e.ID] == nil {
				flows[e.ID] = map[string]int{}
			}
			flows[e.ID][e.Ph]++
		case "C":
			counters++
		case "M":
			if e.Name == "process_name" {
				names[e.Args["name"].(string)] = true
			}
		}
	}
	if len(ends) != len(answers.Ranks) {
		t.Fatalf("collectives of %d ranks, want %d", len(ends), len(answers.Ranks))
	}
	for pid, end := range ends {
		for other, want := range ends {
			if math.Abs(end-want) > 0.002 {
				t.Errorf("process %d: the last collective ends at %f, of process %d at %f", pid, end, other, want)
			}
		}
	}
	if first < 0 || first > 1 {
		t.Errorf("the first event starts at %f µs, want 0", first)
	}
	// Every arrow has one end of each kind, and none leads to another rank.
	launches := 0
	for _, rank := range answers.Ranks {
		launches += rank.All.Launches
	}
	arrows := 0
	for id, ends := range flows {
		if ends["f"] > 0 {
			arrows++
		}
		if ends["s"] != 1 || ends["f"] > 1 {
			t.Fatalf("flow %v has the ends %v", id, ends)
		}
	}
	if arrows != launches {
		t.Errorf("%d arrows, want one of each of %d launches", arrows, launches)
	}
	for _, want := range []string{"rank 0 python train.py", "rank 3 GPU 3"} {
		if !names[want] {
			t.Errorf("no process %q among %v", want, names)
		}
	}
	if counters == 0 {
		t.Error("no counters of memory")
	}
}

// What is in no Chrome trace of a healthy profiler is passed on as strict JSON.
func TestMergedTraceOfDamagedFileIsValid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rank0.json")
	text := "\xef\xbb\xbf{\"traceEvents\": [" +
		`{"ph":"X","cat":"cpu_op","name":"a "b" c","pid":1,"tid":"stream 7","ts":1,"dur":2,"args":{"x":NaN,"y":"C:\dir","z":[1,]}},` +
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"bad \xff byte, control \x01\",\"pid\":\"Spans\",\"tid\":1,\"ts\":\"3.5\",\"dur\":1,\"args\":{}}," +
		`{"ph":"X","cat":"cpu_op","na` + "\n" + `{"ph":"s","id":"0xff","pid":1,"tid":1,"ts":2,"cat":"ac2g","name":"ac2g"},` +
		`{"ph":"s","id":18446744073709551615,"pid":1,"tid":1,"ts":2,"cat":"ac2g","name":"ac2g"},]`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	events := merge(t, path)
	byName := map[string]mergedEvent{}
	for _, e := range events {
		byName[e.Name] = e
	}
	quoted := byName[`a "b" c`]
	if quoted.Tid != "stream 7" || quoted.Args["x"] != nil || quoted.Args["y"] != `C:\dir` {
		t.Errorf("got %+v", quoted)
	}
	if spoilt, ok := byName["bad \uFFFD byte, control \x01"]; !ok || spoilt.Ts != 2.5 {
		t.Errorf("got %v", byName)
	}
	if n := len(events); n < 4 {
		t.Errorf("%d events", n)
	}
}
