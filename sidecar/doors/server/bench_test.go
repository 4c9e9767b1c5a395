package server

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/api"
	"github.com/omni-perf/omni-perf/sidecar/doors/display"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/usercode"
)

// recording is a cell of the given length at 1 kHz: the main thread's stack
// changes at every sample, two others' now and then.
func recording(length time.Duration) *timeline.Recording {
	random := rand.New(rand.NewPCG(1, 2))
	b := timeline.NewBuilder(timeline.Options{})
	var nodes []timeline.NodeID
	node := timeline.RootNode
	for i := range 400 {
		if i%20 == 0 {
			node = b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: "/tmp/ipykernel_1/42.py", Line: 1 + i/20}))
		}
		node = b.Child(node, b.Frame(timeline.Frame{Function: fmt.Sprintf("Layer%d.forward", i), File: "/home/u/train.py", Line: 3 * i, FirstLine: 3*i - 2}))
		nodes = append(nodes, node)
	}
	for tid := range 3 {
		t := b.Thread(timeline.Thread{PID: 1, NativeID: 1 + tid, Name: "thread", Main: tid == 0, RunsCell: tid == 0})
		every := timeline.Nanos(time.Millisecond) << (3 * tid)
		for at := timeline.Nanos(0); at < timeline.Nanos(length); at += every {
			b.Set(t, at, nodes[random.IntN(len(nodes))], timeline.State(random.IntN(3)), false)
		}
	}
	for i := range 20 {
		w := b.Track(timeline.TrackSpec{ID: fmt.Sprintf("track%d", i), Kind: timeline.KindRate, Unit: "B/s", Device: -1})
		for at := timeline.Nanos(1e8); at < timeline.Nanos(length); at += 1e8 {
			w.Add(at, random.Float64()*1e6)
		}
	}
	rec := b.Snapshot(timeline.Nanos(length))
	rec.Target = timeline.Target{PID: 1, Cell: &timeline.Cell{ExecutionCount: 42, File: "/tmp/ipykernel_1/42.py", Text: "a\nb\nc\n"}}
	rec.Sampling = timeline.Sampling{Method: "m", Interval: time.Millisecond, Samples: int64(length / time.Millisecond)}
	return rec
}

func benchSession() *kernelSession {
	return NewSession(Start{KernelPID: 1, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, Tools{
		Version:  "1.2.3",
		Recorder: recorder.New(recorder.Options{}),
		Analyse: func(rec *timeline.Recording) (*report.View, error) {
			rec = usercode.Strip(rec)
			d := diagnose.Run(rec)
			return report.Build(rec, &d, report.Options{})
		},
		Present: display.Charts{},
	}).(*kernelSession)
}

// BenchmarkEnd is the way from a finished recording to the answer of End.
func BenchmarkEnd(b *testing.B) {
	for _, length := range []time.Duration{time.Second, time.Minute, time.Hour} {
		rec := recording(length)
		b.Run(length.String(), func(b *testing.B) {
			debug.SetGCPercent(50)
			debug.SetMemoryLimit(memoryLimit)
			s := benchSession()
			for b.Loop() {
				resp, err := s.finish(rec, &cellState{begin: &api.BeginRequest{}}, entry{}, &api.EndRequest{Form: "notebook"}, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(resp.ReportGzip))/1e6, "MB-gzip")
				b.ReportMetric(float64(len(resp.Bundle.DataJson))/1e3, "kB-bundle")
			}
		})
	}
}

// BenchmarkResident prints what a sidecar has resident after the longest cell.
func BenchmarkResident(b *testing.B) {
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(memoryLimit)
	s := benchSession()
	for b.Loop() {
		rec := recording(time.Hour)
		_, err := s.finish(rec, &cellState{begin: &api.BeginRequest{}}, entry{}, &api.EndRequest{Form: "notebook"}, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(ownMemory())/1e6, "MB-resident")
		giveBack()
		b.ReportMetric(float64(ownMemory())/1e6, "MB-resident-after")
		if text, err := os.ReadFile("/proc/self/status"); err == nil {
			var peak int
			for _, line := range strings.Split(string(text), "\n") {
				if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &peak); n == 1 {
					b.ReportMetric(float64(peak)/1e3, "MB-peak")
				}
			}
		}
	}
	runtime.KeepAlive(s)
}
