package synth

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/omni-perf/omni-perf/sidecar/show/output"
)

// Generate simulates the run and streams the trace of rank i to out[i], of
// which there must be Config.Ranks.
func Generate(cfg Config, out []io.Writer) (*Answers, error) {
	cfg = cfg.withDefaults()
	if cfg.Devices > 1 && cfg.Ranks > 1 {
		return nil, errors.New("generating traces: several devices are those of one rank")
	}
	if len(out) != cfg.Ranks {
		return nil, fmt.Errorf("generating traces: %d writers for %d ranks", len(out), cfg.Ranks)
	}
	run := newRun(cfg, out)
	for !run.done() {
		run.step()
	}
	return run.finish()
}

// WriteDir writes rank0.pt.trace.json.gz … into a folder, which it makes: all of
// them, or none. Without compress the names end in .json.
func WriteDir(cfg Config, dir string, compress bool) (*Answers, error) {
	cfg = cfg.withDefaults()
	if err := output.MakeFolder(dir); err != nil {
		return nil, err
	}
	var files traceFiles
	writers := make([]io.Writer, cfg.Ranks)
	for i := range writers {
		name := fmt.Sprintf("rank%d.pt.trace.json", i)
		if cfg.Cycle > 0 {
			name = fmt.Sprintf("rank%d.cycle%d.pt.trace.json", i, cfg.Cycle)
		}
		var err error
		if writers[i], err = files.create(filepath.Join(dir, name), compress); err != nil {
			files.discard()
			return nil, err
		}
	}
	answers, err := Generate(cfg, writers)
	if err != nil {
		files.discard()
		return nil, err
	}
	return answers, files.close()
}

// traceFiles are the files of a run's ranks.
type traceFiles struct {
	files []*output.File
	zips  []*gzip.Writer
}

func (t *traceFiles) create(path string, compress bool) (io.Writer, error) {
	if compress {
		path += ".gz"
	}
	f, err := output.Create(path)
	if err != nil {
		return nil, err
	}
	t.files = append(t.files, f)
	if !compress {
		return f, nil
	}
	z, _ := gzip.NewWriterLevel(f, gzip.BestSpeed) // a valid level
	t.zips = append(t.zips, z)
	return z, nil
}

func (t *traceFiles) discard() {
	for _, f := range t.files {
		f.Discard()
	}
}

func (t *traceFiles) close() error {
	var errs []error
	for _, z := range t.zips {
		errs = append(errs, z.Close())
	}
	if err := errors.Join(errs...); err != nil {
		t.discard()
		return err
	}
	for _, f := range t.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
