// Package magics has the part of the Python extension that `omni-perf run` places in a program.
package magics

import (
	"archive/zip"
	"bytes"
	"embed"
	"errors"
)

//go:embed placed/sitecustomize.py omni_perf/placed.py omni_perf/raised.py omni_perf/runmarks.py omni_perf/torchsteps.py omni_perf/torchwatch.py
//go:embed omni_perf/contract.py omni_perf/deepspeedreports.py omni_perf/marks.py omni_perf/options.py omni_perf/runtorch.py omni_perf/schedule.py omni_perf/torchprofile.py omni_perf/tracefolder.py
var placed embed.FS

// HookModules are the modules of the package _omni_perf: those that find steps, and those that run torch.profiler, which
// are imported only where that was asked for.
var HookModules = []string{
	"placed.py", "raised.py", "runmarks.py", "torchsteps.py", "torchwatch.py",
	"contract.py", "deepspeedreports.py", "marks.py", "options.py", "runtorch.py", "schedule.py", "torchprofile.py", "tracefolder.py",
}

// StepHook is a zip archive for PYTHONPATH: a Python that finds it there sends the steps of torch's
// optimizers, by the socket that OMNI_PERF_RUN names. Its sitecustomize.py says how the program stays
// as it would be without.
func StepHook() ([]byte, error) {
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	add := func(name, source string) error {
		var text []byte
		if source != "" {
			var err error
			if text, err = placed.ReadFile(source); err != nil {
				return err
			}
		}
		entry, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store}) // a Python without zlib reads it
		if err != nil {
			return err
		}
		_, err = entry.Write(text)
		return err
	}
	errs := []error{add("sitecustomize.py", "placed/sitecustomize.py"), add("_omni_perf/__init__.py", "")}
	for _, name := range HookModules {
		errs = append(errs, add("_omni_perf/"+name, "omni_perf/"+name))
	}
	err := errors.Join(append(errs, w.Close())...)
	return archive.Bytes(), err
}
