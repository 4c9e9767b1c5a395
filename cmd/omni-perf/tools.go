package main

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/gpu"
	"github.com/omni-perf/omni-perf/sidecar/host"
	"github.com/omni-perf/omni-perf/sidecar/recorder"
	"github.com/omni-perf/omni-perf/sidecar/report"
	"github.com/omni-perf/omni-perf/sidecar/server"
	"github.com/omni-perf/omni-perf/sidecar/surround"
	"github.com/omni-perf/omni-perf/sidecar/targetfs"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// openGPUs opens the driver once, at the first call.
var openGPUs = sync.OnceValue(func() *gpu.Driver { return gpu.Open(os.Getenv("OMNI_PERF_NVML_LIBRARY")) })

// analyser makes reports of a process's recordings, also after its end.
func analyser(pid int) func(*timeline.Recording) (*report.View, error) {
	home, _ := os.UserHomeDir() // none: paths stay as they are
	files := targetfs.New(pid)
	return func(rec *timeline.Recording) (*report.View, error) {
		rec = surround.Strip(rec)
		files.Refresh()
		lines := host.NewLines(files) // anew: modules are edited between cells
		found := diagnose.Options{Line: lines.Line}.Run(rec)
		return report.Build(rec, &found, report.Options{Version: version, Home: home, Line: lines.Line, Text: lines.Text})
	}
}

// kernelSession makes the session of a sidecar.
func kernelSession(start server.Start) server.Session {
	pid := start.KernelPID
	return server.NewSession(start, server.Tools{
		Version:  version,
		Recorder: recorder.ForProcess(timeline.Target{PID: pid}, "kernel", openGPUs),
		Analyse:  analyser(pid),
		Present:  server.Charts{},
		Doctor:   sessionDoctor,
		GPUs:     gpuNames,
		Follow:   follow,
	})
}

func gpuNames() (names []string, reason string) {
	driver := openGPUs()
	select {
	case <-driver.Ready():
	case <-time.After(time.Second):
		return nil, "The NVIDIA driver has not answered yet."
	}
	if err := driver.Err(); err != nil {
		return nil, server.Sentence(err)
	}
	for _, d := range driver.Devices() {
		names = append(names, d.Info().Name)
	}
	return names, ""
}

// follow observes a kernel's IOPub for what its cells print.
func follow(connectionFile string) (server.Output, error) {
	connection, err := jupyter.ReadConnection(connectionFile)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	observer, err := jupyter.Observe(ctx, connection.Connection)
	if err != nil {
		cancel()
		return nil, err
	}
	return iopub{observer, cancel}, nil
}

type iopub struct {
	observer *jupyter.Observer
	cancel   context.CancelFunc
}

func (i iopub) Close() { i.cancel() }

func (i iopub) Output(parentMsgID string) (timeline.Output, bool) {
	out, ok := i.observer.Output(parentMsgID)
	return timeline.Output(out), ok
}
