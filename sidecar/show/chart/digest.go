package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/inhtml"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// kindNames is the legend, in its order; the first is digest.own.
var kindNames = []struct {
	paint scene.Paint
	name  string
}{
	{scene.PaintCell, ""}, {scene.PaintUser, "your modules"}, {scene.PaintData, "data loading"}, {scene.PaintFramework, "framework"},
	{scene.PaintPicture, "pictures"}, {scene.PaintDevice, "device calls"}, {scene.PaintIO, "input/output"}, {scene.PaintOther, "other Python"},
}

// digest is what a chart has to say, before it is known where: all text clean,
// all figures finite.
type digest struct {
	identity uint64 // of the report's content, for element ids
	duration float64
	summary  string // one sentence
	title    []scene.Phrase
	badge    string // "simulated GPU"
	own      string // what the user's own code is called: "cell", "script"
	finding  []scene.Phrase

	tracks  []trackLane
	idle    []timeline.Interval // every used GPU idle: shades all lanes
	steps   stepsLane
	lines   *linesLane   // nil: no line is known
	flames  []*flameLane // none: no thread
	ranks   *rankLanes   // nil: fewer than two ranks have steps
	threads []threadLane
	more    string // about the threads left out

	streams     []streamLane // of the GPUs, where a trace has them
	moreStreams int          // left out

	lanesOnly bool                   // the page around it shows the rest: see Caption
	kinds     map[scene.Paint]string // words of the legend that differ from kindNames

	tables   []table
	findings []remark
	notes    []string // but for what this machine has none of
}

// remark is a finding in the list, or a note.
type remark struct {
	text, hint string
	warning    bool
}

// digestOf says what there is to say about a report.
func digestOf(r *report.View) *digest {
	d := &digest{duration: durationOf(r), identity: inhtml.Identity(r)}
	gpus := gpusOf(r)
	histories := historiesOf(r)
	main := r.MainThread()

	pools := poolsOf(r)
	d.title = titleOf(r, gpus, pools, main, d.duration)
	d.finding = findingOf(r)
	d.badge = gpus.badge
	if d.own = "cell"; r.Target().Cell == nil {
		d.own = "script"
	}
	d.tracks = tracksOf(r, gpus, d.duration)
	d.idle = gpus.allIdle
	d.steps = stepsOf(r)
	d.lines = linesOf(r)
	if main >= 0 {
		d.flames = flamesOf(r, main, histories)
	}
	d.streams, d.moreStreams = streamsOf(r, d.duration)
	d.ranks = rankLanesOf(r)
	d.threads, d.more = lanesOf(r, main, histories, pools, d.duration)
	d.threads = slices.DeleteFunc(d.threads, d.hasFlame)
	d.tables = tablesOf(r, gpus, pools, d.duration)
	d.findings = remarksOf(r)
	ended := endedNotes(d.tracks)
	d.notes = append(notesOf(r, slices.DeleteFunc(slices.Clone(r.Notes), isAbsence)), ended...)
	if d.ranks != nil {
		d.notes = append(d.notes, d.ranks.note())
		if d.ranks.ByLength {
			d.kinds = map[scene.Paint]string{scene.PaintAlike: "rank's step as long as the median rank's"}
		}
	}
	d.summary = scene.Join(d.title, ", ") + ". " + scene.Join(d.finding, " · ")
	return d
}

// hasFlame reports whether a thread is a flame chart already.
func (d *digest) hasFlame(l threadLane) bool {
	return l.strip == nil && slices.ContainsFunc(d.flames, func(f *flameLane) bool { return f.thread == l.index })
}

// remarksOf are the findings that are not the second line already.
func remarksOf(r *report.View) []remark {
	shown := slices.Clone(r.Headline.Limits)
	if r.Headline.Finding != nil {
		shown = append(shown, *r.Headline.Finding)
	}
	var rs []remark
	for i := range r.Findings {
		if slices.Contains(shown, i) {
			continue
		}
		f := &r.Findings[i]
		if h := r.Headline.Finding; h != nil && repeats(f, &r.Findings[*h]) {
			continue
		}
		rs = append(rs, remark{words.Clean(f.Text, 300), words.Clean(f.Hint, 300), f.Severity != "info"})
	}
	slices.SortStableFunc(rs, func(a, b remark) int { return cmp.Compare(btoi(b.warning), btoi(a.warning)) })
	return rs[:min(len(rs), 6)]
}

// repeats reports whether a finding has nothing to add to another: a plain remark on the
// same cause at the same place.
func repeats(f, other *report.Finding) bool {
	cause := f.Args["cause"]
	return f.Severity == "info" && cause != nil && cause == other.Args["cause"] && same(f.File, other.File) && same(f.Line, other.Line)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// endedNotes say why lanes stop early; lanes that share a reason share a note.
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

// isAbsence reports whether a note is of what the machine has none of: nobody misses it, and
// the document, doctor and status say so.
func isAbsence(n report.Note) bool { return n.ID == string(timeline.NoteAbsent) }

// notesOf is the footer: how it was measured, and what could not be.
func notesOf(r *report.View, said []report.Note) []string {
	target := r.Target()
	parts := append([]string{words.Clean(target.Sampling.Text, 120)}, samplingParts(&target.Sampling, r.DurationNS)...)
	if r.Program() != target.Process && target.Sampling.Ticks == 0 { // the target runs no Python
		program := &r.Processes[r.Program()]
		parts = []string{words.Clean(program.Text, 40) + ": " + stacksText(program)}
	}
	if v := target.PythonVersion; v != "" {
		parts = append(parts, "Python "+words.Clean(v, 20))
	}
	if children := childrenOf(r); children > 0 {
		parts = append(parts, words.Plural(children, "child process", "child processes"))
	}
	if o := target.Output; o != nil && o.Messages > 0 {
		least := ""
		if o.AtLeast {
			least = "at least "
		}
		parts = append(parts, fmt.Sprintf("printed %s%s in %s", least, words.Quantity(float64(o.Bytes), "B"),
			words.Plural(int(min(o.Messages, math.MaxInt32)), "message", "messages")))
	}
	notes := []string{strings.Join(parts, " · ")}
	if f := target.Sampling.Fallback; f != nil {
		notes = append(notes, "Sampled from inside the kernel: "+words.Clean(f.Text, 300))
	}
	for i, n := range said {
		if i == 6 {
			notes = append(notes, words.Plural(len(said)-i, "more note", "more notes")+" in the report")
			break
		}
		notes = append(notes, words.Clean(n.Text, 420))
	}
	return notes
}

// childrenOf is how many processes there were beside the target, without those that are recorded as it is: other workers
// of its engine, other ranks.
func childrenOf(r *report.View) (n int) {
	target := r.Target().Process
	for i := range r.Processes {
		p := &r.Processes[i]
		if i != target && !isOurs(p) && !(isOneOfMany(p) && isOneOfMany(&r.Processes[target])) {
			n++
		}
	}
	return n
}

// leastRated is the least length of a recording whose sampling has a rate: in a shorter one the first looks at a
// process, which are made once, are most of what it took.
const leastRated = int64(time.Second)

// samplingParts say how often and how well the stacks were read, by what was kept. What was asked for beyond the limits
// a note says.
func samplingParts(s *report.Sampling, duration int64) (parts []string) {
	interval := s.Interval(duration)
	if s.Ticks > 0 || interval > 0 {
		every := words.Plural(int(min(s.Ticks, math.MaxInt32)), "sample", "samples")
		if interval > 0 {
			every += ", one every " + words.Resolution(report.Seconds(interval))
		}
		parts = append(parts, every)
	}
	if float64(s.ResolutionNS) > float64(interval)*1.01 {
		parts = append(parts, "stored at "+words.Resolution(report.Seconds(s.ResolutionNS)))
	}
	if s.Reads != nil {
		parts = append(parts, fmt.Sprintf("of %s stacks read, %s incomplete, %s unreadable", words.Count(*s.Reads), words.Count(s.Incomplete), words.Count(s.Unreadable)))
	} else {
		parts = append(parts, fmt.Sprintf("%s incomplete, %s unreadable", words.Count(s.Incomplete), words.Count(s.Unreadable)))
	}
	if s.MissedTicks != nil && *s.MissedTicks > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s ticks missed", words.Count(*s.MissedTicks), words.Count(s.Ticks+*s.MissedTicks)))
	}
	if s.CPUNS != nil {
		cost := "sampling took " + words.Seconds(report.Seconds(*s.CPUNS)) + " of CPU"
		if duration >= leastRated {
			cost += " (" + words.Percent(float64(*s.CPUNS)/float64(duration)) + " of a core)"
		}
		parts = append(parts, cost)
	}
	return parts
}
