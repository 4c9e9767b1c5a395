package pystack

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// The time of the garbage collector is above the line in which it set in, as long as its own callbacks say.
func TestGarbageCollection(t *testing.T) {
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		retry.Again(t, func(t *retry.Attempt) {
			rec, want := recordCollections(t, python.Path)
			var got timeline.Nanos
			for _, thread := range rec.Threads {
				for _, s := range thread.Spans {
					node := rec.Nodes[s.Node]
					if s.Node == timeline.RootNode || rec.Frames[node.Frame] != timeline.GarbageCollection {
						continue
					}
					got += s.End - s.Start
					if node.Parent == timeline.RootNode || s.State != timeline.StatePython {
						t.Errorf("a collection of no line, in state %v", s.State)
					}
				}
			}
			t.Logf("%.3f s of collections, it says %.3f", got.Seconds(), want)
			if off := math.Abs(got.Seconds() - want); off > 0.01+0.1*want {
				t.Errorf("%.3f s of collections, it says %.3f", got.Seconds(), want)
			}
		})
	})
}

func recordCollections(t *retry.Attempt, python string) (rec *timeline.Recording, seconds float64) {
	t.Helper()
	source, err := os.ReadFile("testdata/collects.py")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", string(source)) // an interpreter in a container has its own files
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
	var said struct{ Seconds float64 }
	if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
		t.Fatal(err)
	}
	return b.Snapshot(b.Since(timeline.Monotonic())), said.Seconds
}
