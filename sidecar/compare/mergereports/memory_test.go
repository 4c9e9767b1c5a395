package mergereports

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// mergeIn names the folder whose reports this process merges, instead of running tests: its memory is then a merge's alone.
const mergeIn = "OMNI_PERF_TEST_MERGE"

// manyReports is how many reports of 1 MB make bench merges.
const manyReports = "OMNI_PERF_REPORTS"

func TestMain(m *testing.M) {
	folder := os.Getenv(mergeIn)
	if folder == "" {
		os.Exit(m.Run())
	}
	names, _ := filepath.Glob(filepath.Join(folder, "*.json"))
	began := time.Now()
	merged, unread, err := Read(names, Choice{}, func(at int) (*report.View, error) {
		f, err := os.Open(names[at])
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return report.ReadFrom(f)
	})
	if err != nil || unread != nil {
		fmt.Println(err, unread)
		os.Exit(1)
	}
	took := time.Since(began)
	status, _ := os.ReadFile("/proc/self/status")
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	cpu := time.Duration(used.Utime.Nano() + used.Stime.Nano())
	fmt.Println(len(merged.Ranks), took.Seconds(), cpu.Seconds(), strings.Fields(peak)[0])
}

// longReport is a report of 1 MB: a rank that calls many functions of its own between collectives.
func longReport(t testing.TB) *report.Document {
	t.Helper()
	rnd := rand.New(rand.NewPCG(27, 2))
	b := timeline.NewBuilder(timeline.Options{Origin: 1e9, StartedAt: time.Unix(1000, 0)})
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 50, Argv: []string{"python", "/u/train.py"}, Rank: &timeline.Rank{World: 1000}}
		r.Processes = []timeline.Process{{PID: 50, ParentIndex: -1, Role: timeline.RoleScript, Command: "train.py"}}
		r.Host.BootID = "boot"
	})
	id := b.Thread(timeline.Thread{PID: 50, NativeID: 50, Name: "MainThread", Main: true, RunsCell: true, OnCPU: -1})
	var nodes []timeline.NodeID
	for i := range 500 {
		at := timeline.RootNode
		if i > 0 {
			at = nodes[rnd.IntN(len(nodes))]
		}
		nodes = append(nodes, b.Child(at, b.Frame(timeline.Frame{Function: fmt.Sprintf("function_%d", i%300), File: fmt.Sprintf("/u/module_%d.py", i%40), Line: 1 + i, FirstLine: 1 + i})))
	}
	reduce := b.Child(nodes[0], b.Frame(timeline.Frame{Function: "all_reduce", File: "/v/site-packages/torch/distributed/distributed_c10d.py", Line: 3}))
	at := timeline.Nanos(0)
	for range 385 {
		begin := at
		for range 150 {
			b.Set(id, at, nodes[rnd.IntN(len(nodes))], timeline.StatePython, false)
			at += timeline.Nanos(1e6 + rnd.Int64N(4e6))
		}
		b.Set(id, at, reduce, timeline.StateWaiting, false)
		at += timeline.Nanos(20e6)
		b.Mark(timeline.Mark{Kind: "step", Start: begin, End: at, Source: timeline.StepMarked})
	}
	return viewOf(t, b.Snapshot(at)).Document
}

// written are so many reports of 1 MB in a folder, of the ranks of one run.
func written(t testing.TB, document *report.Document, count int) (folder string, size int) {
	t.Helper()
	folder = t.TempDir()
	d := *document
	for rank := range count {
		target, process := d.Targets[0], d.Processes[0]
		target.Rank, process.PID = &rank, 50+rank
		d.Targets, d.Processes = []report.Target{target}, []report.Process{process}
		ranks := append([]report.Rank(nil), d.Ranks...)
		for i := range ranks {
			ranks[i].Rank = rank
		}
		d.Ranks = ranks
		text, err := json.Marshal(&d)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, fmt.Sprintf("r.rank%04d.json", rank)), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		size += len(text)
	}
	return folder, size
}

// mergedAlone merges the reports of a folder in a process of its own: how long that took, of which CPU time, and its peak of resident memory.
func mergedAlone(t testing.TB, folder string, count int) (seconds, cpu float64, peak int) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), mergeIn+"="+folder)
	said, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	ranks := 0
	if _, err := fmt.Sscan(string(said), &ranks, &seconds, &cpu, &peak); err != nil || ranks != count {
		t.Fatalf("%d of %d ranks: %v: %s", ranks, count, err, said)
	}
	return seconds, cpu, peak << 10
}

// Many reports are read one at a time: a thousand of 1 MB fit into 512 MB. With OMNI_PERF_REPORTS=1000, as in make bench,
// that is what is merged; else two smaller numbers show what one more report takes.
func TestMemoryOfManyReports(t *testing.T) {
	document := longReport(t)
	if n, _ := strconv.Atoi(os.Getenv(manyReports)); n > 0 {
		folder, size := written(t, document, n)
		seconds, cpu, peak := mergedAlone(t, folder, n)
		t.Logf("%d reports of %.2f MB: %.1f s with %.1f s of CPU time, %d MB at its peak", n, float64(size)/float64(n)/1e6, seconds, cpu, peak/1e6)
		if peak > 512e6 {
			t.Errorf("%d MB, want 512 at most", peak/1e6)
		}
		return
	}
	few, more := 30, 90
	folder, size := written(t, document, few)
	if mean := size / few; mean < 900e3 || mean > 1100e3 {
		t.Fatalf("reports of %d bytes, want 1 MB", mean)
	}
	_, _, least := mergedAlone(t, folder, few)
	folder, _ = written(t, document, more)
	_, _, most := mergedAlone(t, folder, more)
	each := float64(most-least) / float64(more-few)
	t.Logf("%d reports: %d MB, %d: %d MB, %.0f kB each", few, least/1e6, more, most/1e6, each/1e3)
	if each > 800e3 { // garbage included, which is collected at once from memoryLimit on
		t.Errorf("one more report takes %.0f kB, want less than its size", each/1e3)
	}
}
