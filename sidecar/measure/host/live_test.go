package host

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// find returns the track of that id; nil when there is none.
func find(rec *timeline.Recording, id string) *timeline.Track {
	for i := range rec.Tracks {
		if rec.Tracks[i].ID == id {
			return &rec.Tracks[i]
		}
	}
	return nil
}

// integral sums up a rate over its windows: seconds of CPU, bytes.
func integral(t *timeline.Track) float64 {
	if t == nil {
		return 0
	}
	var sum float64
	for _, p := range t.Points {
		if !math.IsNaN(p.Value) {
			sum += p.Value * (p.At - p.From).Seconds()
		}
	}
	return sum
}

// record collects while work runs, which begins after the first reading: what went
// before it is not counted.
func record(t *testing.T, c *Collector, interval time.Duration, work func()) *timeline.Recording {
	t.Helper()
	b := timeline.NewBuilder(timeline.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Collect(ctx, b, timeline.FigurePace{Interval: interval}, nil) }()
	for r := b.Snapshot(0); len(r.Processes) == 0 && len(r.Notes) == 0; r = b.Snapshot(0) {
		time.Sleep(time.Millisecond)
	}
	work()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return b.Snapshot(b.Since(timeline.Monotonic()))
}

// shell starts a shell that runs script after a line on its stdin.
func shell(t *testing.T, script string) (pid int, run func()) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "read go; "+script+"; read end")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("no shell to watch: %v", err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid, func() {
		fmt.Fprintln(in)
		buf := make([]byte, 16)
		if n, _ := out.Read(buf); n == 0 {
			t.Error("the shell ended early")
		}
	}
}

const burn = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done"

func TestCollectTellsTheTargetsCPU(t *testing.T) {
	pid, run := shell(t, burn+"; echo done")
	rec := record(t, New(pid, Options{}), 20*time.Millisecond, run)
	want, err := procfs.CPUTime(pid)
	if err != nil {
		t.Fatal(err)
	}
	got := integral(find(rec, "cpu"))
	if math.Abs(got-want.Seconds()) > 0.1*want.Seconds()+0.005 {
		t.Errorf("cpu adds up to %.3f s, the process used %.3f s", got, want.Seconds())
	}
	if th := integral(find(rec, fmt.Sprintf("thread.%d.cpu", pid))); math.Abs(th-got) > 0.2*got+0.01 {
		t.Errorf("its one thread's track adds up to %.3f s, the process's to %.3f s", th, got)
	}
	for _, id := range []string{"rss", "mem.system", "cpu.system", "faults.minor", "threads", "rss.peak", "ctx.voluntary"} {
		if tr := find(rec, id); tr == nil || len(tr.Points) == 0 {
			t.Errorf("no points of %s", id)
		}
	}
	if rec.Processes[0].PID != pid || rec.Processes[0].Role != "script" {
		t.Errorf("processes %v, want the target first", rec.Processes)
	}
}

func TestCollectCountsChildrenOnceTheLivingAndTheDead(t *testing.T) {
	pid, run := shell(t, "("+burn+"); ("+burn+"); echo done")
	rec := record(t, New(pid, Options{}), 10*time.Millisecond, run)
	fs := newFiles("/proc", "/sys")
	st, err := fs.Stat(pid)
	if err != nil {
		t.Fatal(err)
	}
	got, want := integral(find(rec, "cpu.children")), st.Reaped.Seconds()
	if math.Abs(got-want) > 0.1*want+0.03 {
		t.Errorf("cpu.children adds up to %.3f s; the shell waited for children with %.3f s", got, want)
	}
	if len(rec.Processes) < 2 {
		t.Errorf("processes %v, want the children among them", rec.Processes)
	}
	for _, p := range find(rec, "cpu.children").Points {
		if p.Value > float64(4*numCPU()) {
			t.Errorf("%.1f cores in a window: a dead child was counted again", p.Value)
		}
	}
}

func TestCollectTellsWrittenBytes(t *testing.T) {
	dir := t.TempDir()
	pid, run := shell(t, "dd if=/dev/zero of="+dir+"/f bs=65536 count=64 2>/dev/null; echo done")
	rec := record(t, New(pid, Options{}), 10*time.Millisecond, run)
	if find(rec, "disk.write") == nil {
		t.Skipf("/proc/PID/io is not readable here: %v", rec.Notes)
	}
	if _, err := os.Stat(dir + "/f"); err != nil {
		t.Skipf("no dd here: %v", err)
	}
	if got := math.Round(integral(find(rec, "disk.write"))); got == 0 { // a sum of rates
		t.Skip("the temporary folder is on a file system that counts no bytes")
	} else if got < 4<<20-1 || got > 5<<20 {
		t.Errorf("%.0f bytes written, want those 4 MiB", got)
	}
}

func TestCollectSaysThatTheTargetIsGone(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "exit 0")
	if err := cmd.Run(); err != nil {
		t.Skip(err)
	}
	rec := record(t, New(cmd.Process.Pid, Options{}), 10*time.Millisecond, func() {})
	if len(rec.Tracks) != 0 || len(rec.Notes) == 0 {
		t.Errorf("tracks %v, notes %v; want a note and no track", rec.Tracks, rec.Notes)
	}
}

func BenchmarkReadUsual(b *testing.B) {
	c := New(os.Getpid(), Options{})
	s := newSampler(c, timeline.NewBuilder(timeline.Options{}), 100*time.Millisecond)
	s.read(timeline.Monotonic(), everything)
	for b.Loop() {
		s.read(timeline.Monotonic(), usual)
	}
	perRead := b.Elapsed() / time.Duration(b.N)
	b.ReportMetric(100*perRead.Seconds()/0.1, "%core@100ms")
}

func numCPU() int { return int(cores()) }
