package kineto

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/omni-perf/omni-perf/sidecar/understand/jsonstream"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Options: the zero value reads every rank with sensible limits.
type Options struct {
	// Ranks keeps only these ranks; empty keeps all.
	Ranks []int
	// Parallel is how many files are read at once; 0 means one per CPU.
	Parallel int
	// Inputs says of which operators the inputs' shapes are kept; nil: of none.
	Inputs func(operator string) bool
	// SkipPython drops python_function records (often most of a with_stack
	// trace) when Python stacks are not wanted.
	SkipPython bool
	// Frame keeps what HolisticTraceAnalysis's rules want, in Trace.Frame, and
	// takes every file for a rank of its own, as that program does.
	Frame bool
	// OneProcess: all files are known to be of one process, also where they do not state which.
	OneProcess bool
	// Formats knows the files of other tools than torch.profiler; nil: there are none.
	Formats *Formats
	// Progress, when set, is called a few times a second and once at the
	// end, never from two goroutines at the same time.
	Progress func(Progress)
}

// Set is what Load read: the traces by rank, those of one rank by time.
type Set struct {
	Traces   []*Trace
	Warnings []Warning
	found    []int // the ranks that the files are of, whichever were asked for
}

// Ranks lists the ranks, ascending, each once.
func (s *Set) Ranks() []int {
	var ranks []int
	for _, t := range s.Traces {
		ranks = append(ranks, t.Rank)
	}
	return slices.Compact(ranks)
}

// Load reads every trace under paths: files, folders (their *.json and
// *.json.gz) and globs. Damaged files give their readable part and a Warning;
// the error is non-nil only when no path gave a trace, or ctx ended.
func Load(ctx context.Context, paths []string, opts Options) (*Set, error) {
	return LoadEach(ctx, paths, opts, nil)
}

// LoadEach is Load that calls each, if not nil, as soon as a file is read, from
// that file's goroutine and before its rank is known. What it has done with the
// events it may let go (Trace.Release), so that memory holds those of
// Options.Parallel files at a time.
func LoadEach(ctx context.Context, paths []string, opts Options, each func(*Trace)) (*Set, error) {
	files, err := expand(paths, opts.Formats)
	if err != nil {
		return nil, err
	}
	parallel := opts.Parallel
	if parallel <= 0 {
		parallel = runtime.GOMAXPROCS(0)
	}
	meter := newMeter(files, opts.Progress)
	perFile := make([][]*parser, len(files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, file := range files {
		group.Go(func() (err error) {
			perFile[i], err = loadFile(ctx, file, &opts, meter)
			for _, p := range perFile[i] {
				if each != nil && p.wanted(opts.Ranks) {
					each(p.t)
				}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("loading traces: %w", err)
	}
	set := assemble(slices.Concat(perFile...), &opts)
	meter.finish()
	if len(set.Traces) == 0 {
		return nil, noTraces(files, set, opts.Ranks)
	}
	return set, nil
}

// alternatives says "0", "0 or 3".
func alternatives(ranks []int) string {
	var texts []string
	for _, r := range ranks {
		texts = append(texts, strconv.Itoa(r))
	}
	return words.Alternatives(texts)
}

// ranksOf says "rank 4", "ranks 0–3".
func ranksOf(ranks []int) string {
	if len(ranks) == 1 {
		return "rank " + words.Numbers(ranks)
	}
	return "ranks " + words.Numbers(ranks)
}

// noTraces is the error of a Load that read nothing.
func noTraces(files []string, set *Set, asked []int) error {
	warnings := set.Warnings
	switch {
	case len(set.found) > 0:
		return fmt.Errorf("none of the traces is of rank %s; they are of %s", alternatives(asked), ranksOf(set.found))
	case len(warnings) == 1, len(warnings) > 1 && len(files) == 1:
		return fmt.Errorf("no trace could be read: %s", warnings[0])
	case len(warnings) > 1:
		return fmt.Errorf("no trace could be read from %d files, the first: %s", len(files), warnings[0])
	}
	return errors.New("no trace could be read")
}

// Read reads one trace from a stream of plain JSON; name is what warnings call
// it. The error is non-nil only when ctx ended.
func Read(ctx context.Context, src io.Reader, name string, opts Options) (*Trace, []Warning, error) {
	p := newParser(ctx, src, name, &opts)
	if err := p.parse(); err != nil {
		return nil, nil, fmt.Errorf("reading a trace: %w", err)
	}
	return p.t, p.warnings, nil
}

func newParser(ctx context.Context, src io.Reader, name string, opts *Options) *parser {
	t := &Trace{File: name}
	return &parser{
		ctx: ctx, t: t, rank: None, w: jsonstream.NewWindow(src, windowSize, maxRecord), progress: func(int64) {},
		rows: newRows(t, opts, func(now int) int { return now + 16 }),
	}
}

// loadFile parses one file, which may have traces of several processes. A file that cannot be opened is a warning.
func loadFile(ctx context.Context, file string, opts *Options, meter *meter) ([]*parser, error) {
	src, err := openSource(file)
	if err != nil {
		p := &parser{t: &Trace{File: file}, rank: None}
		p.warn(-1, err.Error(), "nothing could be read")
		return []*parser{p}, nil
	}
	defer src.Close()
	if opts.Formats != nil {
		head, _ := src.Peek(headSize) // what a short file has; its error comes again
		if f := opts.Formats.Recognise(file, head); f != nil {
			return loadForeign(ctx, f, src, file, opts, meter)
		}
	}
	p := newParser(ctx, src, file, opts)
	var taken, events int64
	p.progress = func(n int64) {
		now := src.taken.Load()
		meter.add(file, now-taken, n-events)
		taken, events = now, n
	}
	p.rows.expected = func(now int) int { return int(float64(now)/src.fraction()*1.05) + 16 }
	if err := p.parse(); err != nil {
		return nil, err
	}
	p.progress(p.t.Records)
	p.rows, p.w = nil, nil
	meter.fileDone()
	return []*parser{p}, nil
}
