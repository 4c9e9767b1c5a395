package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/omni-perf/omni-perf/bench/sampler/peer"
	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// ours is omni-perf's sampler as a process of its own, like the peers: this program, called with "sample".
func ours(self string, python truth.Interpreter) peer.Sampler {
	return peer.Sampler{
		Name: Ours, Version: "this commit", Target: python, Settle: 200 * time.Millisecond,
		Command: func(j peer.Job) *exec.Cmd {
			return exec.Command(self, "sample", "-pid", strconv.Itoa(j.Pid), "-rate", fmt.Sprint(j.Rate), "-o", j.Out, fmt.Sprintf("-by-state=%v", j.ByState))
		},
		Read: readOurs,
	}
}

// readOurs reads what sampleOurs has written and printed.
func readOurs(out, log string) (peer.Recording, error) {
	r, err := peer.ReadCollapsed(out)
	if found := regexp.MustCompile(`(\d+) samples in (\S+),`).FindStringSubmatch(log); found != nil {
		r.Ticks, _ = strconv.Atoi(found[1])
		r.Time, _ = time.ParseDuration(found[2])
	}
	return r, err
}

// sampleOurs samples a process into a timeline, as the sidecar does, and writes the samples when an
// interrupt comes or the process ends.
func sampleOurs(arguments []string) error {
	flags := flag.NewFlagSet("sample", flag.ContinueOnError)
	pid := flags.Int("pid", 0, "process to sample")
	rate := flags.Float64("rate", 1000, "samples per second; 0 is as fast as it can")
	out := flags.String("o", "", "file to write")
	byState := flags.Bool("by-state", false, "write the times of the timeline, not those of the samples")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	runtime.GOMAXPROCS(max(8, runtime.NumCPU())) // as the sidecar
	process, err := pystack.Attach(*pid, pystack.Options{Wait: 5 * time.Second})
	if err != nil {
		return err
	}
	defer process.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	options := pystack.SampleOptions{Interval: time.Nanosecond, Budget: -1}
	if *rate > 0 {
		options.Interval = time.Duration(1e9 / *rate)
	}
	tape := &tape{Builder: timeline.NewBuilder(timeline.Options{})}
	stats, err := process.Sample(ctx, tape, options)
	if err != nil && !errors.Is(err, pystack.ErrGone) {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d samples in %v, %d missed, %.1f µs of CPU and %.2f calls each, %.2f %% cut\n", stats.Samples, stats.Wall, stats.Missed,
		float64(stats.CPU.Microseconds())/float64(max(stats.Samples, 1)), float64(stats.Calls)/float64(max(stats.Samples, 1)), 100*float64(stats.Truncated)/float64(max(stats.Reads, 1)))
	return tape.write(*out, stats, *byState)
}

// A tape is a timeline that also keeps every change it is given, which the timeline would thin out.
type tape struct {
	*timeline.Builder
	changes []change
}

type change struct {
	thread    timeline.ThreadID
	node      timeline.NodeID
	at        timeline.Nanos
	off       bool
	truncated bool
}

func (t *tape) Set(thread timeline.ThreadID, at timeline.Nanos, node timeline.NodeID, state timeline.State, truncated bool) {
	t.changes = append(t.changes, change{thread, node, at, state == timeline.StateUnknown, truncated})
	t.Builder.Set(thread, at, node, state, truncated)
}

// write turns the time between two changes of a thread into as many samples as were taken in it, and
// writes them as collapsed stacks.
func (t *tape) write(path string, stats pystack.Stats, byState bool) error {
	end := t.Since(timeline.Monotonic())
	recording := t.Snapshot(end)
	interval := float64(stats.Wall.Nanoseconds()) / float64(max(stats.Samples, 1))
	type stack struct {
		node      timeline.NodeID
		truncated bool
	}
	counts := map[stack]float64{}
	last := map[timeline.ThreadID]change{}
	count := func(c change, until timeline.Nanos) {
		if c.off && c.node == timeline.RootNode {
			return // the thread has ended or was never seen
		}
		if byState { // a span may be a small part of an interval
			counts[stack{c.node, c.truncated}] += float64(until-c.at) / interval
			return
		}
		counts[stack{c.node, c.truncated}] += max(1, math.Round(float64(until-c.at)/interval))
	}
	changes := t.changes
	if byState {
		changes = changesOf(recording)
	}
	for _, c := range changes {
		if before, known := last[c.thread]; known {
			count(before, c.at)
		}
		last[c.thread] = c
	}
	for _, c := range last {
		count(c, end)
	}

	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	w := bufio.NewWriter(file)
	for s, n := range counts {
		writeStack(w, recording, s.node)
		if s.truncated {
			w.WriteString(peer.TruncatedFrame)
		}
		fmt.Fprintf(w, " %.0f\n", math.Round(n))
	}
	return errors.Join(w.Flush(), file.Close())
}

// changesOf are the changes that a timeline has kept, weighed by what the scheduler has counted.
func changesOf(r *timeline.Recording) (all []change) {
	for id, thread := range r.Threads {
		for _, s := range thread.Spans {
			off := s.State == timeline.StateUnknown
			all = append(all, change{timeline.ThreadID(id), s.Node, s.Start, off, s.Truncated})
		}
	}
	return all
}

func writeStack(w *bufio.Writer, r *timeline.Recording, node timeline.NodeID) {
	if node == timeline.RootNode {
		return
	}
	writeStack(w, r, r.Nodes[node].Parent)
	f := r.Frames[r.Nodes[node].Frame]
	if f.Suspended { // what an idle event loop waits for, which the peers do not show
		return
	}
	fmt.Fprintf(w, "%s:%s:%d;", filepath.Base(f.File), f.Function, f.Line)
}
