package chart

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/report"
	"github.com/omni-perf/omni-perf/sidecar/words"
)

// Paint is what a colour means. It is also a CSS class: never text from outside.
type Paint string

// The paints.
const (
	PaintCell      Paint = "cell" // kinds of code
	PaintUser      Paint = "user"
	PaintData      Paint = "data"
	PaintFramework Paint = "frame"
	PaintPicture   Paint = "pic"
	PaintDevice    Paint = "dev"
	PaintIO        Paint = "io"
	PaintOther     Paint = "other"

	PaintGPU       Paint = "gpu" // tracks
	PaintGPUMemory Paint = "gmem"
	PaintCPU       Paint = "cpu"
	PaintMemory    Paint = "mem"
	PaintTraffic   Paint = "disk"
	PaintGIL       Paint = "gil"

	PaintPython Paint = "py" // thread states
	PaintNative Paint = "nat"
	PaintWait   Paint = "wait"

	PaintLineMuch Paint = "l1" // the cell's lines, by their share of the time
	PaintLineSome Paint = "l2"
	PaintLineRare Paint = "l3"

	PaintBar Paint = "bar" // of tables
)

// paintOf is the colour of a kind of code; what is unknown is other.
func paintOf(k report.Kind) Paint {
	switch k {
	case report.KindCell:
		return PaintCell
	case report.KindUser:
		return PaintUser
	case report.KindData:
		return PaintData
	case report.KindFramework:
		return PaintFramework
	case report.KindPicture:
		return PaintPicture
	case report.KindDevice:
		return PaintDevice
	case report.KindIO:
		return PaintIO
	}
	return PaintOther
}

// kindNames is the legend, in its order; the first is digest.own.
var kindNames = []struct {
	paint Paint
	name  string
}{
	{PaintCell, ""}, {PaintUser, "your modules"}, {PaintData, "data loading"}, {PaintFramework, "framework"},
	{PaintPicture, "pictures"}, {PaintDevice, "device calls"}, {PaintIO, "input/output"}, {PaintOther, "other Python"},
}

// Tone is what the look of a text means; also a CSS class.
type Tone string

// The tones.
const (
	Plain Tone = "tp"
	Muted Tone = "tm"
	Good  Tone = "tg"
	Warn  Tone = "tw"
	Bad   Tone = "tb"
	OnBox Tone = "tx" // on a coloured box
)

// phrase is a piece of a line of text.
type phrase struct {
	text string
	tone Tone
	face face
}

// digest is what a chart has to say, before it is known where: all text clean,
// all figures finite.
type digest struct {
	identity uint64 // of the report's content, for element ids
	duration float64
	summary  string // one sentence
	title    []phrase
	badge    string // "simulated GPU"
	own      string // what the user's own code is called: "cell", "script"
	finding  []phrase

	tracks  []trackLane
	idle    []stretch // every used GPU idle: shades all lanes
	steps   stepsLane
	lines   *linesLane // nil: no line is known
	flame   *flameLane // nil: no thread
	threads []threadLane
	more    string // about the threads left out

	streams     []streamLane // of the GPUs, where a trace tells
	moreStreams int          // left out

	tables   []table
	findings []remark
	notes    []string
}

// stretch is a stretch of time in seconds.
type stretch struct{ start, end float64 }

// remark is a finding in the list, or a note.
type remark struct {
	text, hint string
	warning    bool
}

// digestOf says what there is to say about a report.
func digestOf(r *report.Report) *digest {
	d := &digest{duration: durationOf(r), identity: identityOf(r)}
	gpus := gpusOf(r)
	histories := historiesOf(r, d.duration)
	main := cellThread(r)

	d.title = titleOf(r, gpus, main, d.duration)
	d.finding = findingOf(r)
	d.badge = gpus.badge
	if d.own = "cell"; r.Target.Cell == nil {
		d.own = "script"
	}
	d.tracks = tracksOf(r, gpus, d.duration)
	d.idle = gpus.allIdle
	d.steps = stepsOf(r, d.duration)
	d.lines = linesOf(r, d.duration)
	if main >= 0 {
		d.flame = flameOf(r, main, histories[main])
	}
	d.streams, d.moreStreams = streamsOf(r, d.duration)
	d.threads, d.more = threadsOf(r, main, histories, d.duration)
	d.tables = tablesOf(r, gpus, d.duration)
	d.findings = remarksOf(r)
	d.notes = append(notesOf(r), endedNotes(d.tracks)...)
	d.summary = joinPhrases(d.title, ", ") + ". " + joinPhrases(d.finding, " · ")
	return d
}

func identityOf(r *report.Report) uint64 {
	h := fnv.New64a()
	for _, v := range []uint64{
		uint64(r.StartedAt.UnixNano()), math.Float64bits(r.DurationS), uint64(r.Target.PID),
		uint64(r.Sampling.Samples), uint64(len(r.Stacks.Nodes)), uint64(len(r.Stacks.Spans.Node)),
	} {
		_ = binary.Write(h, binary.LittleEndian, v) // a hash never fails
	}
	h.Write([]byte(r.Name))
	h.Write([]byte(r.Headline))
	return h.Sum64()
}

func joinPhrases(ps []phrase, between string) string {
	var b strings.Builder
	for i, p := range ps {
		if i > 0 {
			b.WriteString(between)
		}
		b.WriteString(p.text)
	}
	return b.String()
}

// cellThread finds the thread whose stacks are the flame chart; -1 if there is
// none.
func cellThread(r *report.Report) int {
	best := -1
	for i, t := range r.Threads {
		if t.RunsCell {
			return i
		}
		if t.IsMain && best < 0 && (t.PID == r.Target.PID || r.Target.PID == 0) {
			best = i
		}
	}
	if best < 0 && len(r.Threads) > 0 {
		return 0
	}
	return best
}

// remarksOf are the findings that are not the second line already.
func remarksOf(r *report.Report) []remark {
	told := append(slices.Clone(r.HeadlineLimits), mainFinding(r))
	var rs []remark
	for i := range r.Findings {
		if slices.Contains(told, i) {
			continue
		}
		f := &r.Findings[i]
		rs = append(rs, remark{words.Clean(f.Text, 300), words.Clean(f.Hint, 300), f.Severity != "info"})
	}
	slices.SortStableFunc(rs, func(a, b remark) int { return cmp.Compare(btoi(b.warning), btoi(a.warning)) })
	return rs[:min(len(rs), 6)]
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// endedNotes tell why lanes stop early; lanes that share a reason share a note.
func endedNotes(lanes []trackLane) []string {
	var reasons []string
	names := make(map[string]string)
	for _, l := range lanes {
		if l.ended == "" {
			continue
		}
		if names[l.ended] == "" {
			reasons = append(reasons, l.ended)
			names[l.ended] = l.id
		} else {
			names[l.ended] += ", " + l.id
		}
	}
	for i, reason := range reasons {
		reasons[i] = words.Clean(names[reason]+" "+reason, 300)
	}
	return reasons[:min(len(reasons), 4)]
}

// notesOf is the footer: how it was measured, and what could not be.
func notesOf(r *report.Report) []string {
	s := r.Sampling
	how := words.Clean(s.Method, 120)
	if how == "" {
		how = "stacks not sampled"
	}
	parts := []string{how}
	if s.Samples > 0 || s.IntervalS > 0 {
		every := words.Plural(int(min(s.Samples, math.MaxInt32)), "sample", "samples")
		if s.IntervalS > 0 {
			every += ", one every " + words.Resolution(finite(s.IntervalS))
		}
		parts = append(parts, every)
	}
	if s.ResolutionS > s.IntervalS*1.01 {
		parts = append(parts, "kept at "+words.Resolution(finite(s.ResolutionS)))
	}
	parts = append(parts, fmt.Sprintf("%s lost, %s truncated", words.Count(s.Lost), words.Count(s.Truncated)))
	if s.CPUS != nil {
		parts = append(parts, "sampling took "+words.Seconds(finite(*s.CPUS))+" of CPU")
	}
	if v := r.Target.PythonVersion; v != "" {
		parts = append(parts, "Python "+words.Clean(v, 20))
	}
	if children := len(r.Processes) - 1; children > 0 {
		parts = append(parts, words.Plural(children, "child process", "child processes"))
	}
	if o := r.Output; o != nil && o.Messages > 0 {
		least := ""
		if o.AtLeast {
			least = "at least "
		}
		parts = append(parts, fmt.Sprintf("printed %s%s in %s", least, words.Quantity(float64(o.Bytes), "B"),
			words.Plural(int(min(o.Messages, math.MaxInt32)), "message", "messages")))
	}
	notes := []string{strings.Join(parts, " · ")}
	if s.FallbackReason != "" {
		notes = append(notes, "Sampled from inside the kernel: "+words.Clean(s.FallbackReason, 300))
	}
	for i, n := range r.Notes {
		if i == 6 {
			notes = append(notes, words.Plural(len(r.Notes)-i, "more note", "more notes")+" in the report")
			break
		}
		notes = append(notes, words.Clean(n.What, 120)+": "+words.Clean(n.Reason, 300))
	}
	return notes
}
