package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/testkit/specimen"
)

// studio is where recordings are taken.
type studio struct {
	self       string // this program
	repository string
	pythons    []string
	folder     string // temporary
	library    string // the fake NVML library; empty: it could not be built
}

func newStudio(repository string) (*studio, error) {
	s := &studio{}
	var err error
	if s.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if s.repository, err = filepath.Abs(repository); err != nil {
		return nil, err
	}
	for _, python := range strings.Split(os.Getenv("SPECIMEN_PYTHONS"), ":") {
		if python != "" {
			s.pythons = append(s.pythons, python)
		}
	}
	if len(s.pythons) == 0 {
		s.pythons = []string{filepath.Join(s.repository, ".venv/bin/python")}
	}
	if s.folder, err = os.MkdirTemp("", "specimen-"); err != nil {
		return nil, err
	}
	library := filepath.Join(s.folder, "libnvidia-ml.so.1")
	if exec.Command(filepath.Join(s.repository, "sidecar/measure/gpu/testdata/fakenvml/build.sh"), library).Run() == nil {
		s.library = library
	}
	return s, nil
}

func (s *studio) close() { os.RemoveAll(s.folder) }

// patience bounds one program.
const patience = 5 * time.Minute

// take runs one program and writes its recording to path.
func (s *studio) take(ctx context.Context, p *specimen.Program, path string) error {
	needs := p.Needs
	if !p.Script() {
		needs = append([]string{"ipykernel", "jupyter_client", "grpclib"}, needs...)
	}
	python := ""
	for _, candidate := range s.pythons {
		if python == "" && has(candidate, needs) {
			python = candidate
		}
	}
	if python == "" {
		return fmt.Errorf("no interpreter of %v has %v", s.pythons, needs)
	}
	work, err := os.MkdirTemp(s.folder, "work-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	// The simulated GPU is a library: its lines are nobody's own.
	site := filepath.Join(work, "site-packages")
	if err := os.Mkdir(site, 0o755); err != nil {
		return err
	}
	simulated, err := os.ReadFile(filepath.Join(s.repository, "examples/simulated_gpu.py"))
	if err == nil {
		err = os.WriteFile(filepath.Join(site, "simulated_gpu.py"), simulated, 0o644)
	}
	if err != nil {
		return err
	}
	project := filepath.Join(work, "project")
	if err := os.Mkdir(project, 0o755); err != nil {
		return err
	}
	for _, t := range p.Texts {
		for prefix, folder := range map[string]string{"file ": project, "library ": site} {
			if name, ok := strings.CutPrefix(t.Kind, prefix); ok {
				if err := os.WriteFile(filepath.Join(folder, name), []byte(t.Source), 0o644); err != nil {
					return err
				}
			}
		}
	}
	taken := filepath.Join(work, "taken.json.gz")
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if p.Script() {
		err = s.runScript(ctx, p, python, project, s.environment(p, python, site, work, taken))
	} else {
		err = s.runCells(ctx, p, python, project, s.environment(p, python, site, work, taken))
	}
	if err != nil {
		return err
	}
	packed, err := os.ReadFile(taken)
	if err != nil {
		return errors.New("nothing was recorded")
	}
	summary, err := specimen.Summary(packed)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(path, packed, 0o644), os.WriteFile(specimen.SummaryFile(path), []byte(summary), 0o644))
}

func (s *studio) environment(p *specimen.Program, python, site, work, taken string) []string {
	prefix, base := prefixes(python)
	extension := filepath.Join(s.repository, "magics")
	renames := [][2]string{
		{extension, prefixName + "/lib/python3/site-packages"}, {site, prefixName + "/lib/python3/site-packages"},
		{filepath.Join(work, "project"), "/home/ann/work"}, {prefix, prefixName}, {base, "/usr"},
	}
	// An environment may borrow the packages of another.
	for _, lender := range s.pythons {
		prefix, base := prefixes(lender)
		renames = append(renames, [2]string{prefix, prefixName}, [2]string{base, "/usr"})
		if resolved, err := filepath.EvalSymlinks(prefix); err == nil {
			renames = append(renames, [2]string{resolved, prefixName})
		}
	}
	var lines []string
	for _, r := range renames {
		lines = append(lines, r[0]+"="+r[1])
	}
	env := append(os.Environ(),
		"OMNI_PERF_BINARY="+s.self, "SPECIMEN_TAKEN="+taken, "SPECIMEN_RENAME="+strings.Join(lines, "\n"),
		"PYTHONPATH="+site+":"+extension, "OMNI_PERF_NVML_LIBRARY=/nonexistent", "OMP_NUM_THREADS=2", "TMPDIR="+os.TempDir(), "MPLBACKEND=",
	)
	if p.Whole {
		env = append(env, "SPECIMEN_WHOLE=1")
	}
	if p.GPU != "" {
		script := filepath.Join(work, "gpu.txt")
		_ = os.WriteFile(script, []byte(p.GPU), 0o600) // the run fails without it
		env = append(env, "OMNI_PERF_NVML_LIBRARY="+s.library, "OMNI_PERF_FAKE_NVML="+script, "OMNI_PERF_FAKE_NVML_FEED="+filepath.Join(work, "feed"))
	}
	return env
}

// prefixName is what an environment's folder is called in recordings.
const prefixName = "/home/ann/venv"

// prefixes are where an interpreter's packages and its standard library lie.
func prefixes(python string) (prefix, base string) {
	out, _ := exec.Command(python, "-c", "import sys; print(sys.prefix); print(sys.base_prefix)").Output()
	prefix, base, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	return prefix, base
}

func (s *studio) runScript(ctx context.Context, p *specimen.Program, python, project string, env []string) error {
	script := filepath.Join(project, "script.py")
	if err := os.WriteFile(script, []byte(p.Recorded().Source), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, s.self, append([]string{"run", python, "script.py"}, p.Arguments...)...)
	cmd.Dir, cmd.Env = project, env
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		if p.Input != "" {
			time.Sleep(inputAfter)
			io.WriteString(in, p.Input+"\n")
		}
		in.Close()
	}()
	if p.Interrupt > 0 {
		time.AfterFunc(p.Interrupt, func() { _ = cmd.Process.Signal(syscall.SIGINT) })
	}
	if err := cmd.Wait(); err != nil && p.Interrupt == 0 {
		return fmt.Errorf("%w: %s", err, tail(output.String()))
	}
	return nil
}

// inputAfter is when somebody answers a program that asks.
const inputAfter = 1500 * time.Millisecond

// runCells has a helper run the cells in a real kernel.
func (s *studio) runCells(ctx context.Context, p *specimen.Program, python, project string, env []string) error {
	var cells []string
	for _, t := range p.Texts {
		if t.Kind == "cell" {
			cells = append(cells, t.Source)
		}
	}
	order, err := json.Marshal(map[string]any{
		"cells": cells, "folder": project, "input": p.Input, "input_after": inputAfter.Seconds(), "interrupt": p.Interrupt.Seconds(),
	})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, python, filepath.Join(s.repository, "sidecar/testkit/specimen/take/notebook.py"))
	cmd.Env, cmd.Stdin = env, bytes.NewReader(order)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, tail(string(out)))
	}
	return nil
}

func tail(text string) string { return text[max(len(text)-1500, 0):] }
