package pytasks

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"math"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// truthOf is what the program measured: [begin, end] of each wait by function, CLOCK_MONOTONIC.
type truthOf map[string][][2]int64

func (w truthOf) seconds(function string) (sum, some float64) {
	var changes []change
	for _, wait := range w[function] {
		sum += float64(wait[1]-wait[0]) / 1e9
		changes = append(changes, change{wait[0], 1}, change{wait[1], -1})
	}
	return sum, covered(changes)
}

// The seconds that tasks wait in a function, and how many do on average, are what the tasks measure.
func TestWaitingTimes(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		retry.Again(t, func(t *retry.Attempt) { compareClocks(t, python, "testdata/clocked.py") })
	})
}

// compareClocks records a program whose tasks note for each await when it begins and ends, by their own clock.
func compareClocks(t *retry.Attempt, python truth.Interpreter, program string) {
	t.Helper()
	rec, want := recordClocked(t, python, program)
	got := make(map[string]float64)
	some := make(map[string][]change)
	for _, a := range rec.Awaits {
		f := measuredBy(rec, a.Node, want)
		for _, w := range a.Windows {
			got[f] += w.Waiting.Seconds()
			some[f] = append(some[f], change{int64(w.Start), 1}, change{int64(w.End), -1})
		}
	}
	for f := range want {
		sum, covering := want.seconds(f)
		mean, wantMean := got[f]/covered(some[f]), sum/covering
		t.Logf("%s: %.3f s, mean %.2f; want %.3f s, mean %.2f", f, got[f], mean, sum, wantMean)
		if math.Abs(got[f]-sum) > 0.03*sum {
			t.Errorf("%s: tasks waited %.3f s, they say %.3f", f, got[f], sum)
		}
		if math.Abs(mean-wantMean) > 0.05*wantMean {
			t.Errorf("%s: %.2f tasks waited on average, they say %.2f", f, mean, wantMean)
		}
	}
}

// recordClocked records the program from before its loops begin to their end.
func recordClocked(t *retry.Attempt, python truth.Interpreter, program string) (*timeline.Recording, truthOf) {
	t.Helper()
	target := exec.Command(python.Path, program)
	in, _ := target.StdinPipe()
	out, _ := target.StdoutPipe()
	if err := target.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		_ = target.Process.Kill()
		_ = target.Wait()
	}()
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	p, err := pystack.Attach(target.Process.Pid, pystack.Options{Wait: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	b := timeline.NewBuilder(timeline.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		(&Collector{Sources: func() []Source { return []Source{{0, p}} }}).Collect(ctx, b)
		close(done)
	}()
	time.Sleep(100 * time.Millisecond)
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	var want truthOf
	if err := json.Unmarshal([]byte(line), &want); err != nil {
		t.Fatal(err)
	}
	return b.Snapshot(b.Since(timeline.Monotonic())), want
}

// measuredBy is the innermost function on a stack that the program has measured.
func measuredBy(rec *timeline.Recording, node timeline.NodeID, want truthOf) string {
	for n := node; n != timeline.RootNode; n = rec.Nodes[n].Parent {
		if f := rec.Frames[rec.Nodes[n].Frame].Function; want[f] != nil {
			return f
		}
	}
	return ""
}

// change is that a task begins (1) or ceases (-1) to wait.
type change struct {
	at   int64
	more int
}

// covered is for how many seconds at least one waits.
func covered(changes []change) (seconds float64) {
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.more, a.more)) })
	now, from := 0, int64(0)
	for _, c := range changes {
		if now == 0 {
			from = c.at
		}
		if now += c.more; now == 0 {
			seconds += float64(c.at-from) / 1e9
		}
	}
	return seconds
}

// An await of trio's goes on while its deadline passes, and another begins with the next turn.
func TestAwaitsOfTrioAreCountedByTurns(t *testing.T) {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	s := (&Collector{}).begin(b).begin(0)
	code := &cpython.Code{Function: "fetch", File: "app.py", FirstLine: 1}
	const ms = int64(time.Millisecond)
	for i, task := range []Task{{Turns: 1, Wake: 15 * ms}, {Turns: 1, Wake: 15 * ms}, {Turns: 1}, {Turns: 2, Wake: 35 * ms}, {Turns: 2, Wake: 35 * ms}} {
		task.Addr, task.Frames = 8, []Frame{{Code: code, Line: 2}}
		s.take(&Snapshot{Tasks: []Task{task}}, int64(1+5*i)*ms)
	}
	s.put(25 * ms)
	rec := b.Snapshot(timeline.Nanos(30 * ms))
	if len(rec.Awaits) != 1 || len(rec.Awaits[0].Windows) != 1 || rec.Awaits[0].Windows[0].Begun != 2 {
		t.Errorf("%+v, want two awaits", rec.Awaits)
	}
}

// What changed while there was no budget for a read did so when the process ran, not half-way from the last read.
func TestChangesAreWhereTheProcessRan(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, c := range []struct {
		name string
		cpu  []int64 // at looks every 5 ms, the last with the read
		want int64
	}{
		{"it ran once", []int64{0, 1, 1, 1, 1, 1}, 7*ms + ms/2},
		{"it ran at the end", []int64{0, 0, 0, 0, 0, 1}, 27*ms + ms/2},
		{"it ran twice", []int64{0, 1, 1, 1, 2, 2}, 15 * ms},
		{"it ran all the time", []int64{1, 2, 3, 4, 5, 6}, 15 * ms},
		{"its CPU time is not known", []int64{0, 0, 0, 0, 0, 0}, 15 * ms},
	} {
		s := spell{}
		for i, cpu := range c.cpu {
			s.look(cpu, int64(i+1)*5*ms)
		}
		if got := s.middle(0, 30*ms); got != c.want {
			t.Errorf("%s: at %v, want %v", c.name, time.Duration(got), time.Duration(c.want))
		}
	}
}

// A long recording has half of the budget.
func TestTheBudgetFallsWithTheLength(t *testing.T) {
	for _, c := range []struct {
		so   time.Duration
		want float64
	}{{0, budget}, {enoughFor, budget}, {4 * enoughFor / 3, 0.75 * budget}, {time.Hour, leastOfBudget * budget}} {
		r := &round{begun: timeline.Monotonic() - int64(c.so)}
		if got := r.budget(); math.Abs(got-c.want) > 0.01*c.want {
			t.Errorf("after %v it is %v, want %v", c.so, got, c.want)
		}
	}
}

// Reading costs the budget on average: what was saved is spent at once, what is owed is waited for.
func TestReadingKeepsItsBudget(t *testing.T) {
	p := &purse{}
	now, spent := int64(time.Hour), time.Duration(0)
	for _, cost := range []time.Duration{4 * time.Millisecond, 4 * time.Millisecond, 4 * time.Millisecond} {
		if p.spend(cost, now, budget); p.due(budget) > now {
			t.Errorf("the first reads wait for %v", time.Duration(p.due(budget)-now))
		}
		spent += cost
		now += int64(readEvery)
	}
	begun := now
	for range 200 {
		p.spend(20*time.Millisecond, now, budget)
		now = max(p.due(budget), now+int64(readEvery))
		spent += 20 * time.Millisecond
	}
	if most := burst + time.Duration(budget*float64(now-begun)) + 20*time.Millisecond; spent > most || spent < most*9/10 {
		t.Errorf("%v of CPU time in %v, want nearly %v", spent, time.Duration(now-begun), most)
	}
}
