package kineto

import (
	"cmp"
	"context"
	"io"

	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Formats knows the files of other tools.
type Formats struct {
	// Recognise finds what a file is by its name and the beginning of its bytes, decompressed; nil: a trace of
	// torch.profiler, or what is read as one.
	Recognise func(name string, head []byte) *Foreign
	// Listed are the files of a folder that may be traces, given the names of all that are in it.
	Listed func(folder string, names []string) []string
}

// Foreign is what another tool than torch.profiler writes: how it is called, and how it is read.
type Foreign struct {
	// What names it, as in "a Chakra execution graph".
	What string
	// Advice is what to do instead, where it is not read.
	Advice string
	// Read reads it into a trace per process; nil where it is not read. Its error is non-nil only when ctx ended:
	// damage is a Warning, and so is that nothing could be read.
	Read func(ctx context.Context, in Input, opts Options) ([]*Trace, []Warning, error)
}

// Input is an opened file.
type Input struct {
	File      string
	io.Reader // its bytes, decompressed
	// At has the bytes as stored, and Size is how many these are.
	At         io.ReaderAt
	Size       int64
	Compressed bool // the bytes as stored are gzip
	// Step, called now and then, reports how many events have been read.
	Step func(events int64)
}

// Warn is a warning about the whole file.
func (in Input) Warn(what, lost string) Warning {
	return Warning{File: in.File, Byte: -1, What: what, Lost: lost}
}

// Note is a remark about the whole file that affects no figure.
func (in Input) Note(what, lost string) Warning {
	return Warning{File: in.File, Byte: -1, What: what, Lost: lost, Note: true}
}

// EventCount counts the events of a file as they are read, the damaged ones too.
type EventCount struct {
	Step func(events int64) // called now and then; nil: nobody asks
	Over bool               // the file has more than are read

	read, most int64 // most: 0 is MaxEvents
}

// Next counts the next event that the file has, and reports whether it is read.
func (c *EventCount) Next() bool {
	if c.Over = c.read >= c.limit(); c.Over {
		return false
	}
	if c.read++; c.read%progressEvents == 0 && c.Step != nil {
		c.Step(c.read)
	}
	return true
}

func (c *EventCount) limit() int64 { return cmp.Or(c.most, MaxEvents) }

// TooMany says that the file has more events than are read, and what that cost.
func (c *EventCount) TooMany() (what, lost string) {
	return "the file has more than " + words.Count(c.limit()) + " events", "the rest of it was not read"
}

// progressEvents is after how many events progress is reported.
const progressEvents = 4096

// headSize is how much of a file's beginning it is recognised by.
const headSize = 64 << 10

// loadForeign reads a file that another tool wrote. Each of its traces is a file of its own to what follows.
func loadForeign(ctx context.Context, f *Foreign, src *source, file string, opts *Options, meter *meter) ([]*parser, error) {
	defer meter.fileDone()
	if f.Read == nil {
		p := &parser{t: &Trace{File: file}, rank: None}
		p.note(f.What, f.Advice)
		return []*parser{p}, nil
	}
	var taken, events int64
	in := Input{File: file, Reader: src.Reader, At: countedAt{src}, Size: src.size, Compressed: src.stop != nil}
	in.Step = func(n int64) {
		now := min(src.taken.Load(), src.size)
		meter.add(file, now-taken, n-events)
		taken, events = now, n
	}
	traces, warnings, err := f.Read(ctx, in, *opts)
	if err != nil {
		return nil, err
	}
	if len(traces) == 0 {
		return []*parser{{t: &Trace{File: file}, rank: None, warnings: warnings}}, nil
	}
	var all []*parser
	total := int64(0)
	for _, t := range traces {
		total += t.Records
		all = append(all, &parser{t: t, rank: None, found: true})
	}
	in.Step(total)
	all[0].warnings = warnings
	return all, nil
}

// countedAt reads the stored bytes at places and counts them.
type countedAt struct{ *source }

func (c countedAt) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.file.ReadAt(p, at)
	c.taken.Add(int64(n))
	return n, err
}
