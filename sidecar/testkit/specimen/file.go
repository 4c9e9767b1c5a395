package specimen

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
)

// Specimen is a recording with the source lines that its diagnosis asked for.
type Specimen struct {
	Recording *timeline.Recording
	Lines     map[string]string // by "FILE:LINE"
}

// Line is what diagnose.Options.Line asks for.
func (s *Specimen) Line(file string, line int) string { return s.Lines[key(file, line)] }

func key(file string, line int) string { return fmt.Sprintf("%s:%d", file, line) }

// document is the file's form. Files are named once, spans and points are columns,
// and unknown figures null.
type document struct {
	Duration     timeline.Nanos
	Resolution   time.Duration
	Target       timeline.Target
	Installation timeline.Installation
	CodeFiles    []timeline.CodeFile `json:",omitempty"`
	Sampling     timeline.Sampling
	Processes    []timeline.Process `json:",omitempty"`
	Threads      []thread
	Gaps         []timeline.Gap `json:",omitempty"`
	Files        []string
	Frames       []frame
	Nodes        [][2]uint32           // parent, frame; the root is left out
	Tracks       []track               `json:",omitempty"`
	Marks        []timeline.Mark       `json:",omitempty"`
	Sources      []timeline.Source     `json:",omitempty"`
	GPUs         []timeline.GPU        `json:",omitempty"`
	Output       *timeline.Output      `json:",omitempty"`
	Awaits       []timeline.Await      `json:",omitempty"`
	Tasks        *timeline.TaskReading `json:",omitempty"`
	Lines        map[string]string     `json:",omitempty"`
}

type frame struct {
	Function  string
	File      int
	Line      int            `json:",omitempty"`
	FirstLine int            `json:",omitempty"`
	Phase     timeline.Phase `json:",omitempty"`
	Suspended bool           `json:",omitempty"`
}

type thread struct {
	timeline.Thread
	Spans struct {
		// Start is counted from the end of the span before.
		Start, Length []timeline.Nanos
		Node          []timeline.NodeID
		State         []int
		Wait          []int
	}
}

type track struct {
	timeline.TrackSpec
	From, At []timeline.Nanos
	Value    []*float64
	Peak     *float64
	Ended    string `json:",omitempty"`
}

// Encode writes a specimen.
func (s *Specimen) Encode() ([]byte, error) {
	rec := s.Recording
	d := document{
		Duration: rec.Duration, Resolution: rec.Resolution, Target: rec.Target, Installation: rec.Installation, CodeFiles: rec.CodeFiles,
		Sampling: rec.Sampling, Processes: rec.Processes, Gaps: rec.Gaps, Marks: rec.Marks, Sources: rec.Sources, GPUs: rec.GPUs, Output: rec.Output, Lines: s.Lines, Awaits: rec.Awaits,
	}
	if rec.Tasks.Reads > 0 {
		d.Tasks = &rec.Tasks
	}
	files := make(map[string]int)
	for _, f := range rec.Frames {
		i, known := files[f.File]
		if !known {
			i = len(d.Files)
			files[f.File] = i
			d.Files = append(d.Files, f.File)
		}
		d.Frames = append(d.Frames, frame{f.Function, i, f.Line, f.FirstLine, f.Phase, f.Suspended})
	}
	for _, n := range rec.Nodes[min(1, len(rec.Nodes)):] {
		d.Nodes = append(d.Nodes, [2]uint32{uint32(n.Parent), uint32(n.Frame)})
	}
	for _, t := range rec.Threads {
		out := thread{Thread: t}
		out.Thread.Spans = nil
		last := timeline.Nanos(0)
		for _, span := range t.Spans {
			out.Spans.Start = append(out.Spans.Start, span.Start-last)
			out.Spans.Length = append(out.Spans.Length, span.End-span.Start)
			out.Spans.Node = append(out.Spans.Node, span.Node)
			out.Spans.State = append(out.Spans.State, int(span.State))
			out.Spans.Wait = append(out.Spans.Wait, int(span.Wait))
			last = span.End
		}
		d.Threads = append(d.Threads, out)
	}
	for _, t := range rec.Tracks {
		out := track{TrackSpec: t.TrackSpec, Peak: known(t.Peak), Ended: t.Ended}
		for _, p := range t.Points {
			out.From, out.At, out.Value = append(out.From, p.From), append(out.At, p.At), append(out.Value, known(p.Value))
		}
		d.Tracks = append(d.Tracks, out)
	}
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func value(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// maxDocument bounds what a file may unpack to.
const maxDocument = 64 << 20

// unpack reads the document that Encode wrote; a frame's file and a node's frame are there.
func unpack(packed []byte) (*document, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack the recording: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxDocument))
	if err != nil {
		return nil, fmt.Errorf("unpack the recording: %w", err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	for _, f := range d.Frames {
		if f.File < 0 || f.File >= len(d.Files) {
			return nil, fmt.Errorf("read the recording: a frame of file %d of %d", f.File, len(d.Files))
		}
	}
	for _, n := range d.Nodes {
		if int(n[1]) >= len(d.Frames) {
			return nil, fmt.Errorf("read the recording: a node of frame %d of %d", n[1], len(d.Frames))
		}
	}
	return &d, nil
}

// Decode reads what Encode wrote.
func Decode(packed []byte) (*Specimen, error) {
	d, err := unpack(packed)
	if err != nil {
		return nil, err
	}
	rec := &timeline.Recording{
		Duration: d.Duration, Resolution: d.Resolution, Target: d.Target, Installation: d.Installation, CodeFiles: d.CodeFiles,
		Sampling: d.Sampling, Processes: d.Processes, Gaps: d.Gaps, Nodes: make([]timeline.Node, 1), Marks: d.Marks, Sources: d.Sources, GPUs: d.GPUs, Output: d.Output, Awaits: d.Awaits,
	}
	if d.Tasks != nil {
		rec.Tasks = *d.Tasks
	}
	for _, f := range d.Frames {
		rec.Frames = append(rec.Frames, timeline.Frame{Function: f.Function, File: d.Files[f.File], Line: f.Line, FirstLine: f.FirstLine, Phase: f.Phase, Suspended: f.Suspended})
	}
	for _, n := range d.Nodes {
		rec.Nodes = append(rec.Nodes, timeline.Node{Parent: timeline.NodeID(n[0]), Frame: timeline.FrameID(n[1])})
	}
	for _, t := range d.Threads {
		out := t.Thread
		last := timeline.Nanos(0)
		for i := range min(len(t.Spans.Start), len(t.Spans.Length), len(t.Spans.Node), len(t.Spans.State)) {
			start := last + t.Spans.Start[i]
			last = start + t.Spans.Length[i]
			span := timeline.Span{Start: start, End: last, Node: t.Spans.Node[i], State: timeline.State(t.Spans.State[i])}
			if i < len(t.Spans.Wait) {
				span.Wait = timeline.Wait(t.Spans.Wait[i])
			}
			out.Spans = append(out.Spans, span)
		}
		rec.Threads = append(rec.Threads, out)
	}
	for _, t := range d.Tracks {
		out := timeline.Track{TrackSpec: t.TrackSpec, Peak: value(t.Peak), Ended: t.Ended}
		for i := range min(len(t.From), len(t.At), len(t.Value)) {
			out.Points = append(out.Points, timeline.Point{From: t.From[i], At: t.At[i], Value: value(t.Value[i])})
		}
		rec.Tracks = append(rec.Tracks, out)
	}
	return &Specimen{Recording: interpret.Identify(rec), Lines: d.Lines}, nil // roles as a recording of today has them
}

// Read reads a recording from a file.
func Read(path string) (*Specimen, error) {
	packed, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := Decode(packed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}
