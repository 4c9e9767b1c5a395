package traces

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// manyNames writes a trace of operators with names of their own, over 2,000 threads.
func manyNames(t *testing.T, events int) string {
	name := filepath.Join(t.TempDir(), "names.json")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text := []byte(`{"traceEvents":[`)
	for i := range events {
		if i > 0 {
			text = append(text, ',', '\n')
		}
		text = fmt.Appendf(text, `{"ph":"X","cat":"cpu_op","name":"aten::op_%d","pid":1,"tid":%d,"ts":%d,"dur":5,"args":{"External id":%d}}`, i, i%2000, 1000+i/2000*20, i)
	}
	if _, err := file.Write(append(text, "]}"...)); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestReadManyNames is the process of TestManyNamesOnManyThreads.
func TestReadManyNames(t *testing.T) {
	name := os.Getenv("OMNI_PERF_NAMES")
	if name == "" {
		t.Skip("part of TestManyNamesOnManyThreads")
	}
	set, err := kineto.Load(t.Context(), []string{name}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a := Analyze(set, analyses.Options{}); len(a.Tables) == 0 {
		t.Error("no tables")
	}
}

// Reading and analysing a trace takes time and memory in proportion to it, however many names and
// threads it has: of 14 MB, 2 s of CPU time and 150 MB at most.
func TestManyNamesOnManyThreads(t *testing.T) {
	child := exec.Command(os.Args[0], "-test.run", "^TestReadManyNames$")
	child.Env = append(os.Environ(), "OMNI_PERF_NAMES="+manyNames(t, 125_000))
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	state := child.ProcessState
	spent, peak := state.UserTime()+state.SystemTime(), state.SysUsage().(*syscall.Rusage).Maxrss>>10
	t.Logf("%d MB, %v", peak, spent)
	if !raceDetector && (spent > 2*time.Second || peak > 150) {
		t.Errorf("took %d MB and %v, want at most 150 MB and 2 s", peak, spent)
	}
}
