package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/doors/display"
	"github.com/omni-perf/omni-perf/sidecar/doors/profiler"
	"github.com/omni-perf/omni-perf/sidecar/doors/program"
	"github.com/omni-perf/omni-perf/sidecar/doors/server"
	"github.com/omni-perf/omni-perf/sidecar/measure/gpu"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/targetfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/chart"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/export"
	"github.com/omni-perf/omni-perf/sidecar/show/glance"
	"github.com/omni-perf/omni-perf/sidecar/show/live"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// openGPUs opens the driver once, at the first call.
var openGPUs = sync.OnceValue(func() *gpu.Driver { return gpu.Open(os.Getenv("OMNI_PERF_NVML_LIBRARY")) })

// kernelSession makes the session of a sidecar.
func kernelSession(start server.Start) server.Session {
	pid := start.KernelPID
	files := targetfs.New(pid)
	return server.NewSession(start, server.Tools{
		Version:       version,
		Recorder:      profiler.Recorder(timeline.Target{PID: pid}, timeline.RoleKernel, openGPUs),
		Analyse:       profiler.Analyser(files, version),
		AnalyseTraced: profiler.TracedAnalyser(files, version),
		Present:       display.Charts{},
		Doctor:        sessionDoctor,
		GPUs:          gpuNames,
		Follow:        server.FollowKernel,
		Follower:      func() *live.Follower { return profiler.Follower(files) },
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
		return nil, words.Sentence(err.Error())
	}
	for _, d := range driver.Devices() {
		names = append(names, d.Info().Name)
	}
	return names, ""
}

// programTools makes the recordings of programs outside a notebook; pid is the process
// whose rights files are opened with.
func programTools(role timeline.Role, pid int) program.Tools {
	files := targetfs.New(pid)
	return program.Tools{
		Recorder: func(target timeline.Target) *recorder.Recorder {
			return profiler.Recorder(target, role, openGPUs)
		},
		Analyse:       profiler.Analyser(files, version),
		AnalyseTraced: profiler.TracedAnalyser(files, version),
		Version:       version,
		Stack:         profiler.MainStack,
		Follower:      func() *live.Follower { return profiler.Follower(files) },
		Cell:          profiler.NotebookCell,
		Folder:        privateFolder,
		Summary:       func(r *report.View) []byte { return []byte(chart.Text(r, 100)) },
	}
}

// privateFolder makes a folder for the socket by which a program reports its steps.
func privateFolder() (program.Private, error) {
	folder, err := server.NewFolder()
	if err != nil {
		return program.Private{}, err
	}
	return program.Private{Socket: folder.Socket(), StepHook: folder.StepHook(), Rings: folder.Path, Remove: func() { _ = folder.Remove() }}, nil
}

// exactLibrary finds the library that records GPUs within a process: installed beside the program.
func exactLibrary() (string, error) {
	path := os.Getenv("OMNI_PERF_EXACT_LIBRARY")
	if path == "" {
		program, err := os.Executable()
		if err == nil {
			program, err = filepath.EvalSymlinks(program)
		}
		if err != nil {
			return "", err
		}
		path = filepath.Join(filepath.Dir(filepath.Dir(program)), "lib", "omni_perf", "exact.so")
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the library that --exact needs is not where omni_perf was installed: %w", err)
	}
	return path, nil
}

// formats are the result files, in the order of the usage.
func formats() []program.Format {
	return []program.Format{
		{Name: "svg", Extension: ".svg", Encode: func(r *report.View) ([]byte, error) { return chart.SVG(r, scene.Options{}) }},
		{Name: "html", Extension: ".html", Encode: func(r *report.View) ([]byte, error) { return chart.Page(r, scene.Options{}) }},
		{Name: "speedscope", Extension: ".speedscope.json", Encode: export.Speedscope},
		{Name: "chrome", Extension: ".trace.json.gz", Encode: export.ChromeTrace},
		{Name: "pprof", Extension: ".pb.gz", Encode: export.Pprof},
		{Name: "otlp", Extension: ".otlp.pb", Encode: export.OTLP},
		{Name: "collapsed", Extension: ".collapsed.txt", Encode: export.Collapsed},
		{Name: "figures", Extension: ".figures.json", Encode: glance.PlainJSON},
		{Name: "json", Extension: ".json", Encode: func(r *report.View) ([]byte, error) { return json.Marshal(r.Document) }},
	}
}
