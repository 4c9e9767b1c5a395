package synth

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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

// WriteDir writes rank0.pt.trace.json.gz … into a folder, which it makes.
// Without compress the names end in .json.
func WriteDir(cfg Config, dir string, compress bool) (answers *Answers, err error) {
	cfg = cfg.withDefaults()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("generating traces: %w", err)
	}
	writers := make([]io.Writer, cfg.Ranks)
	var closers []io.Closer
	defer func() {
		for _, c := range closers {
			if e := c.Close(); e != nil && err == nil {
				answers, err = nil, fmt.Errorf("generating traces: %w", e)
			}
		}
	}()
	for i := range writers {
		name := fmt.Sprintf("rank%d.pt.trace.json", i)
		if cfg.Cycle > 0 {
			name = fmt.Sprintf("rank%d.cycle%d.pt.trace.json", i, cfg.Cycle)
		}
		if compress {
			name += ".gz"
		}
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("generating traces: %w", err)
		}
		writers[i] = f
		if compress {
			z, _ := gzip.NewWriterLevel(f, gzip.BestSpeed) // a valid level
			writers[i] = z
			closers = append(closers, z)
		}
		closers = append(closers, f)
	}
	return Generate(cfg, writers)
}
