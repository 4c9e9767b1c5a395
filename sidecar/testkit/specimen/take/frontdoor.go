package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/doors/profiler"
	"github.com/omni-perf/omni-perf/sidecar/doors/program"
	"github.com/omni-perf/omni-perf/sidecar/doors/server"
	"github.com/omni-perf/omni-perf/sidecar/measure/gpu"
	"github.com/omni-perf/omni-perf/sidecar/measure/host"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/targetfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/specimen"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// frontDoor is omni-perf as the programs meet it, but that each recording is kept.
func frontDoor(name string, args []string) int {
	var err error
	switch name {
	case "serve":
		err = serve(args)
	case "run":
		err = run(args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "take:", err)
		return 1
	}
	return 0
}

var openGPUs = sync.OnceValue(func() *gpu.Driver { return gpu.Open(os.Getenv("OMNI_PERF_NVML_LIBRARY")) })

// keeper analyses recordings and writes the latest one to a file.
func keeper(pid int) func(*timeline.Recording) (*report.View, error) {
	path, rename := os.Getenv("SPECIMEN_TAKEN"), renamer(os.Getenv("SPECIMEN_RENAME"))
	files := targetfs.New(pid)
	return func(rec *timeline.Recording) (*report.View, error) {
		rec = interpret.Identify(rec)
		files.Refresh()
		lines := host.NewLines(files)
		asked := make(map[string]string)
		line := func(file string, number int) string {
			text := lines.Line(file, number)
			if text = strings.TrimSpace(text); text != "" {
				asked[fmt.Sprintf("%s:%d", rename(file), number)] = text
			}
			return text
		}
		reported := interpret.Of(rec)
		found := diagnose.Options{Line: line}.Run(reported)
		limits := specimen.DefaultLimits
		if os.Getenv("SPECIMEN_WHOLE") != "" { // a training: its short steps matter, and what the device truly did
			limits = specimen.TrainingLimits
			if feed, err := os.ReadFile(os.Getenv("OMNI_PERF_FAKE_NVML_FEED")); err == nil {
				specimen.AddExact(rec, feed)
			}
		}
		kept := specimen.Specimen{Recording: specimen.Reduce(rec, limits, rename), Lines: asked}
		if packed, err := kept.Encode(); err == nil {
			err = os.WriteFile(path, packed, 0o600)
			if err != nil {
				fmt.Fprintln(os.Stderr, "take:", err)
			}
		}
		return report.Build(reported, &found, report.Options{Line: lines.Line})
	}
}

// renamer gives folders the names they have in recordings: lines of FROM=TO.
func renamer(rules string) func(string) string {
	return func(name string) string {
		for _, rule := range strings.Split(rules, "\n") {
			if from, to, ok := strings.Cut(rule, "="); ok && from != "" && (name == from || strings.HasPrefix(name, from+"/")) {
				return to + name[len(from):]
			}
		}
		return name
	}
}

func serve(args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	detach := flags.Bool("detach", false, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *detach {
		return server.StartDetached("serve")
	}
	return server.Serve(context.Background(), server.Config{
		Version: "0", Stdin: os.Stdin, Stdout: os.Stdout, LogFile: os.Getenv("OMNI_PERF_LOG"), Detach: true,
		Session: func(start server.Start) server.Session {
			pid := start.KernelPID
			return server.NewSession(start, server.Tools{
				Version: "0", Recorder: profiler.Recorder(timeline.Target{PID: pid}, "kernel", openGPUs), Analyse: keeper(pid), Follow: server.FollowKernel,
			})
		},
	})
}

func run(args []string) error {
	results, err := program.Name([]program.Format{{Name: "none", Extension: ".none", Encode: func(*report.View) ([]byte, error) { return nil, nil }}},
		os.DevNull, []string{"none"})
	if err != nil {
		return err
	}
	tools := program.Tools{
		Recorder: func(target timeline.Target) *recorder.Recorder {
			return profiler.Recorder(target, "script", openGPUs)
		},
		Analyse: keeper(os.Getpid()),
		Summary: func(r *report.View) []byte { return []byte(r.Headline.Text + "\n") },
	}
	exit, err := program.Run(context.Background(), tools, program.Script{Interpreter: args[0], Args: args[1:]}, program.Options{
		Results: results, Interval: time.Millisecond, FigureInterval: 100 * time.Millisecond, Messages: io.Discard,
	})
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("exit code %d", exit.Code)
	}
	return err
}
