package torchtrace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Load reads every trace under paths: files, folders (their *.json and
// *.json.gz) and globs. Damaged files give their readable part and a Warning;
// the error is non-nil only when no path gave a trace, or ctx ended.
func Load(ctx context.Context, paths []string, opts LoadOptions) (*TraceSet, error) {
	return loadEach(ctx, paths, &opts, func(*parser) {})
}

// Run is Load and Analyze in one, for any number of ranks: a file's events are
// let go as soon as its tables are computed, so that memory holds the events of
// LoadOptions.Parallel files at a time. (HTA's modes need all ranks at once:
// there it is Load, then Analyze.)
func Run(ctx context.Context, paths []string, load LoadOptions, opts AnalyzeOptions) (*Analysis, error) {
	opts = opts.withDefaults()
	if opts.Mode != Exact {
		set, err := Load(ctx, paths, load)
		if err != nil {
			return nil, err
		}
		return Analyze(set, opts), nil
	}
	results := map[*Trace]*rankResult{}
	var mu sync.Mutex
	set, err := loadEach(ctx, paths, &load, func(p *parser) {
		if p.found && (!p.ranked() || len(load.Ranks) == 0 || slices.Contains(load.Ranks, int(p.rank))) {
			r := analyzeRank(p.t, &opts, 0)
			mu.Lock()
			results[p.t] = r
			mu.Unlock()
		}
		*p.t = Trace{File: p.t.File, Meta: p.t.Meta, Records: p.t.Records}
	})
	if err != nil {
		return nil, err
	}
	inOrder := make([]*rankResult, len(set.Traces))
	for i, t := range set.Traces {
		inOrder[i] = results[t]
		inOrder[i].stamp(t.Rank) // which is known only now
	}
	return together(set, &opts, inOrder), nil
}

// loadEach loads the files in parallel and calls each as soon as one is
// parsed, from that file's goroutine.
func loadEach(ctx context.Context, paths []string, opts *LoadOptions, each func(*parser)) (*TraceSet, error) {
	files, err := expand(paths)
	if err != nil {
		return nil, err
	}
	parallel := opts.Parallel
	if parallel <= 0 {
		parallel = runtime.GOMAXPROCS(0)
	}
	meter := newMeter(files, opts.Progress)
	parsed := make([]*parser, len(files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, file := range files {
		group.Go(func() (err error) {
			if parsed[i], err = loadFile(ctx, file, opts, meter); err == nil {
				each(parsed[i])
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("loading traces: %w", err)
	}
	set := assemble(parsed, opts.Ranks)
	meter.finish()
	if len(set.Traces) == 0 {
		return nil, noTraces(files, set.Warnings)
	}
	return set, nil
}

// noTraces is the error of a Load that read nothing.
func noTraces(files []string, warnings []Warning) error {
	switch {
	case len(warnings) == 1:
		return fmt.Errorf("no trace could be read: %s", warnings[0])
	case len(warnings) > 1:
		return fmt.Errorf("no trace could be read from %d files, the first: %s", len(files), warnings[0])
	}
	return errors.New("no trace of the ranks asked for")
}

// expand lists the files that paths name, each once, sorted inside a folder.
func expand(paths []string) ([]string, error) {
	var files []string
	seen := map[string]bool{}
	add := func(file string) {
		if !seen[filepath.Clean(file)] {
			seen[filepath.Clean(file)] = true
			files = append(files, file)
		}
	}
	for _, path := range paths {
		matches := []string{path}
		if _, err := os.Stat(path); err != nil {
			if matches, _ = filepath.Glob(path); len(matches) == 0 {
				return nil, fmt.Errorf("%s: no such file or folder", path)
			}
		}
		for _, match := range matches {
			inside, err := listFolder(match)
			if err != nil {
				return nil, err
			}
			for _, file := range inside {
				add(file)
			}
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no *.json or *.json.gz inside", strings.Join(paths, ", "))
	}
	return files, nil
}

// isTraceName reports whether a folder's file may be a trace.
func isTraceName(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".json.gz")
}

// listFolder lists a folder's traces; a file lists itself.
func listFolder(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		if info, e := os.Stat(path); e == nil && !info.IsDir() {
			return []string{path}, nil
		}
		return nil, fmt.Errorf("listing traces: %w", err)
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && isTraceName(e.Name()) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files, nil
}

// loadFile parses one file. A file that cannot be opened is a warning.
func loadFile(ctx context.Context, file string, opts *LoadOptions, meter *meter) (*parser, error) {
	t := &Trace{File: file}
	p := &parser{ctx: ctx, t: t, rank: None}
	src, err := openSource(file)
	if err != nil {
		p.warn(-1, err.Error(), "nothing could be read")
		return p, nil
	}
	defer src.Close()
	var taken, events int64
	p.progress = func(n int64) {
		now := src.taken.Load()
		meter.add(file, now-taken, n-events)
		taken, events = now, n
	}
	p.w = newWindow(src)
	p.s.shapes = opts.Shapes
	p.rows = newRows(t, opts, func(now int) int { return int(float64(now)/src.fraction()*1.05) + 16 })
	if err := p.parse(); err != nil {
		return nil, err
	}
	p.progress(t.Records)
	p.rows, p.w = nil, nil
	meter.fileDone()
	return p, nil
}

// ranked reports whether the file states a rank that can be one.
func (p *parser) ranked() bool { return p.rank >= 0 && p.rank <= 1<<24 }

// nameRank finds the rank in a file name: rank3, rank_3, worker3.
var nameRank = regexp.MustCompile(`(?i)(?:rank|worker|gpu)[-_.]?(\d{1,6})(?:\D|$)`)

// assemble gives every file its rank and sorts by it. Only distributedInfo is
// believed without a word.
func assemble(parsed []*parser, only []int) *TraceSet {
	set := &TraceSet{}
	taken := map[int]*Trace{}
	var unranked []*parser
	for _, p := range parsed {
		if !p.found {
			set.Warnings = append(set.Warnings, p.warnings...)
			continue
		}
		if !p.ranked() {
			unranked = append(unranked, p)
			continue
		}
		p.t.Rank, p.t.RankFrom = int(p.rank), RankStated
		if other := taken[p.t.Rank]; other != nil {
			p.warn(-1, fmt.Sprintf("the file states rank %d, as %s does", p.t.Rank, other.File),
				"this file was left out: analyse it on its own")
		} else {
			taken[p.t.Rank] = p.t
		}
		set.Warnings = append(set.Warnings, p.warnings...)
	}
	for _, p := range unranked {
		p.guessRank(taken, len(parsed) > 1)
		taken[p.t.Rank] = p.t
		set.Warnings = append(set.Warnings, p.warnings...)
	}
	for rank, t := range taken {
		if len(only) == 0 || slices.Contains(only, rank) {
			set.Traces = append(set.Traces, t)
		}
	}
	for _, rank := range only {
		if taken[rank] == nil {
			set.Warnings = append(set.Warnings, Warning{Byte: -1, What: fmt.Sprintf("rank %d was asked for, but no file is of it", rank)})
		}
	}
	slices.SortFunc(set.Traces, func(a, b *Trace) int { return cmp.Compare(a.Rank, b.Rank) })
	return set
}

// guessRank takes the rank from the file name, else the lowest free number.
func (p *parser) guessRank(taken map[int]*Trace, several bool) {
	if m := nameRank.FindStringSubmatch(filepath.Base(p.t.File)); m != nil {
		rank, _ := strconv.Atoi(m[1]) // six digits at most
		if taken[rank] == nil {
			p.t.Rank, p.t.RankFrom = rank, RankFromName
			p.warn(-1, "the file has no distributedInfo.rank",
				fmt.Sprintf("rank %d is taken from its name", rank))
			return
		}
	}
	for taken[p.t.Rank] != nil {
		p.t.Rank++
	}
	p.t.RankFrom = RankAssumed
	if several {
		p.warn(-1, "the file has no distributedInfo.rank",
			fmt.Sprintf("it is called rank %d here", p.t.Rank))
	}
}

// meter counts the progress of several files and reports it at most ten times
// a second, one call at a time.
type meter struct {
	mu     sync.Mutex
	report func(Progress)
	state  Progress
	last   time.Time
}

func newMeter(files []string, report func(Progress)) *meter {
	m := &meter{report: report, state: Progress{Files: len(files)}}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			m.state.AllBytes += info.Size()
		}
	}
	return m
}

func (m *meter) add(file string, bytes, events int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.File = file
	m.state.Bytes += bytes
	m.state.Events += events
	if now := time.Now(); m.report != nil && now.Sub(m.last) >= 100*time.Millisecond {
		m.last = now
		m.report(m.state)
	}
}

func (m *meter) fileDone() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.FilesDone++
}

func (m *meter) finish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.Done = true
	if m.report != nil {
		m.report(m.state)
	}
}
