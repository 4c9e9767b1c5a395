package pystack

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"math"
	"os/exec"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// What the resident memory grows by is charged to the function that touched it: the program reads
// its own figures. Of one thread 4 % are misplaced where a CPU is free, of two with huge and small
// pages less; a busy machine is allowed more. What is given back and taken anew between two readings has grown, too.
func TestGrowthOfResidentMemory(t *testing.T) {
	for _, kind := range []string{"alone", "together", "anew"} {
		t.Run(kind, func(t *testing.T) {
			python := truth.Any(t).Path
			retry.Again(t, func(t *retry.Attempt) { growthOf(t, python, kind, 0.10) })
		})
	}
}

func growthOf(t *retry.Attempt, python, kind string, most float64) {
	t.Helper()
	rec, want := recordGrowth(t, python, kind)
	got, uncertain := make(map[string]float64), 0.0
	for _, g := range rec.Growth {
		if g.Bytes < 0 {
			continue
		}
		before, after := grower(rec, g.Before, want), grower(rec, g.After, want)
		got[before] += float64(g.Bytes) / 2
		got[after] += float64(g.Bytes) / 2
		if before != after {
			uncertain += float64(g.Bytes)
		}
	}
	total, misplaced := 0.0, 0.0
	for f, bytes := range want {
		total += bytes
		misplaced += math.Abs(got[f]-bytes) / 2
		t.Logf("%s: %.1f MB, it says %.1f", f, got[f]/1e6, bytes/1e6)
	}
	misplaced += got[""] / 2
	t.Logf("misplaced %.1f %% of %.0f MB, of no function %.1f MB, uncertain %.1f %%", 100*misplaced/total, total/1e6, got[""]/1e6, 100*uncertain/total)
	if misplaced > most*total {
		t.Errorf("%.1f %% of the growth is charged to others, at most %.0f %% may be", 100*misplaced/total, 100*most)
	}
	r := rec.Processes[0].Memory.Growth
	t.Logf("%d readings, one each %v, in all %.1f %% of a core", r.Reads, r.Interval.Duration(), 100*float64(rec.Sampling.CPU)/float64(rec.Duration))
	sum := r.First
	for _, g := range rec.Growth {
		sum += g.Bytes
	}
	if off := sum - r.Last; off > leastGrowth || off < -leastGrowth {
		t.Errorf("what it grew by adds up to %d bytes, it has %d", sum, r.Last)
	}
}

// recordGrowth records the program from before it grows to after.
func recordGrowth(t *retry.Attempt, python, kind string) (*timeline.Recording, map[string]float64) {
	t.Helper()
	want := make(map[string]float64)
	return recordAnswer(t, exec.Command(python, "testdata/grows.py", kind), &want), want
}

// recordAnswer records a program from when it says that it is ready, and then is asked to go on, to when it answers in
// JSON what it measured itself.
func recordAnswer(t *retry.Attempt, cmd *exec.Cmd, answer any) *timeline.Recording {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	lines := bufio.NewScanner(out)
	lines.Scan()
	p, err := Attach(cmd.Process.Pid, Options{Wait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	b := timeline.NewBuilder(timeline.Options{})
	b.Describe(func(r *timeline.Recording) { r.Processes = make([]timeline.Process, 1) })
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { _, err := p.Sample(ctx, b, SampleOptions{Budget: -1}); stopped <- err }()
	io.WriteString(in, "\n")
	lines.Scan()
	cancel()
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(lines.Bytes(), answer); err != nil {
		t.Fatal(err)
	}
	return b.Snapshot(b.Since(timeline.Monotonic()))
}

// grower is the innermost function of a stack that the program measured; empty if there is none.
func grower(rec *timeline.Recording, node timeline.NodeID, measured map[string]float64) string {
	for ; node != timeline.RootNode; node = rec.Nodes[node].Parent {
		if f := rec.Frames[rec.Nodes[node].Frame].Function; measured[f] > 0 {
			return f
		}
	}
	return ""
}

// Threads get the pages that they have faulted, and one that gets huge pages what is over.
func TestGrowthIsDividedByFaults(t *testing.T) {
	const mb = 1 << 20
	faulted := func(rose int64, huge bool) *thread {
		t := &thread{}
		t.session.growth = threadGrowth{faults: faultCount{rose: rose}, huge: huge}
		return t
	}
	small, huge, idle := faulted(256, false), faulted(2, true), faulted(0, false)
	for name, c := range map[string]struct {
		grown  int64
		risers []*thread
		native int64
		want   map[*thread]int64
	}{
		"one":                 {4 * mb, []*thread{small}, 0, map[*thread]int64{small: 4 * mb}},
		"huge pages":          {5 * mb, []*thread{small, huge}, 0, map[*thread]int64{small: mb, huge: 4 * mb}},
		"of no thread":        {2 * mb, nil, 512, map[*thread]int64{nil: 2 * mb}},
		"shared with others":  {2 * mb, []*thread{small}, 256, map[*thread]int64{small: 2 * mb}},
		"hardly shared":       {20 * mb, []*thread{small}, 19 * 256, map[*thread]int64{small: mb, nil: 19 * mb}},
		"more faults":         {mb / 2, []*thread{small}, 256, map[*thread]int64{small: mb / 2}},
		"who did not, is out": {mb, []*thread{idle, small}, 0, map[*thread]int64{small: mb}},
	} {
		small.session.growth.huge = false // a case may have shown that it gets huge pages
		got := divide(c.grown, c.risers, c.native)
		sum := int64(0)
		for th, part := range got {
			sum += part
			if part != c.want[th] {
				t.Errorf("%s: %d bytes, want %d", name, part, c.want[th])
			}
		}
		if sum != c.grown {
			t.Errorf("%s: %d bytes of %d are divided", name, sum, c.grown)
		}
	}
}

// Faults while memory shrank are growth only where they were counted at the reading before.
func TestFaultsWhileMemoryShrank(t *testing.T) {
	for name, c := range map[string]struct {
		counts []int64 // at the readings 1, 2, …
		last   int64   // the reading before the one that shrank
		want   int64   // pages
	}{
		"counted at both":          {[]int64{100, 1100}, 1, 1000},
		"too few":                  {[]int64{100, 110}, 1, 0},
		"counted longer before":    {[]int64{100, 1100}, 2, 0},
		"not known before":         {[]int64{-1, 1100}, 1, 0},
		"not known now":            {[]int64{100, -1}, 1, 0},
		"not known for a moment":   {[]int64{100, -1, 1100}, 2, 0},
		"counted at three of them": {[]int64{100, 600, 1600}, 2, 1000},
	} {
		var faults faultCount
		for i, all := range c.counts {
			faults.count(all, int64(i)+1)
		}
		if got := (&growth{previous: c.last}).anew(&faults); got != c.want*faultSize {
			t.Errorf("%s: %d pages, want %d", name, got/faultSize, c.want)
		}
	}
}

func TestParseFaults(t *testing.T) {
	for text, want := range map[string]int64{"7 (a b) c) S 1 7 7 0 -1 0 91 0 0": 91, "7 (py) S 1": -1, "": -1, "7 (py) S 1 7 7 0 -1 0 x 0": -1} {
		if got := parseFaults([]byte(text)); got != want {
			t.Errorf("%q: %d faults, want %d", text, got, want)
		}
	}
}
