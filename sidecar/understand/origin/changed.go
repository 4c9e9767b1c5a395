package origin

import (
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// slack is by how much the times compared may be apart: a process's start is counted in ticks of 10 ms,
// a file's time in the kernel's of 4 ms.
const slack = 100 * time.Millisecond

// Text is what is known of a file's text: whether the running code was made of it.
type Text uint8

const (
	TextProven   Text = iota // it was
	TextUnproven             // nothing shows that it was, nor that it was not
	TextChanged              // it was not
)

// Texts returns what is known of the texts of files that are not proven. A file's text is taken for the code's
//
//   - if the target reported the time of the text that it loaded, and that is its time;
//   - else if it is where it is since before the target started;
//   - else if the file's module level was seen to begin later;
//   - else, of a notebook's modules, if the bytecode that Python keeps beside it was made of it, unless code
//     was seen before that was written or begins where the text has no definition. A program without cells
//     loads its modules once, mostly at its start: later bytecode may well be another process's.
//
// It is changed where the target has another time, where the file was written after its module level began,
// or where code begins in a line in which the text has no definition. Else it is not proven.
func Texts(rec *timeline.Recording) map[string]Text {
	texts := make(map[string]Text)
	set := func(file string, is Text) {
		if is != TextProven {
			texts[file] = is
		}
	}
	late := make(map[string]*sighting) // files written since the target started
	for _, f := range rec.CodeFiles {
		switch {
		case f.Modified.IsZero():
		case !f.Loaded.IsZero():
			set(f.Name, provenUnless(!f.Modified.Equal(f.Loaded), TextChanged))
		case !rec.Target.Started.IsZero() && contentTime(f).After(rec.Target.Started.Add(slack)):
			late[f.Name] = &sighting{}
		}
	}
	if len(late) == 0 {
		return texts
	}
	markSightings(rec, late)
	after := func(t time.Time, n timeline.Nanos) bool { return t.After(rec.StartedAt.Add(n.Duration() + slack)) }
	for _, f := range rec.CodeFiles {
		switch s := late[f.Name]; {
		case s == nil:
		case s.begins:
			set(f.Name, provenUnless(after(contentTime(f), s.begin), TextChanged))
		case f.Contradicts:
			set(f.Name, TextChanged)
		case rec.Target.Cell == nil, f.Compiled == nil, !f.Compiled.Matches:
			set(f.Name, TextUnproven)
		default:
			set(f.Name, provenUnless(s.any && after(f.Compiled.Written, s.first), TextUnproven))
		}
	}
	return texts
}

// Outdated returns the functions, by file, whose lines are those of a text that was there before: the file's
// text is that of the code loaded last, but has no definition where they begin. After a reload functions of
// both texts run; IPython's %autoreload leaves one as it was that somebody else refers to.
func Outdated(rec *timeline.Recording) map[string][]timeline.FunctionStart {
	var outdated map[string][]timeline.FunctionStart
	var texts map[string]Text
	for _, f := range rec.CodeFiles {
		if len(f.Elsewhere) == 0 {
			continue
		}
		if outdated == nil {
			outdated, texts = make(map[string][]timeline.FunctionStart), Texts(rec)
		}
		if texts[f.Name] == TextProven {
			outdated[f.Name] = f.Elsewhere
		}
	}
	return outdated
}

func provenUnless(not bool, then Text) Text {
	if not {
		return then
	}
	return TextProven
}

// contentTime is when a file got the text that it has, at the latest. A copy or an archive's member has the time
// of its original, and a file that is moved here may be older than the one it takes the place of; but text
// that bytecode was made of before has only been given other names or rights since.
func contentTime(f timeline.CodeFile) time.Time {
	if f.Placed.Before(f.Modified) || f.Compiled != nil && f.Compiled.Matches && f.Compiled.Written.Before(f.Placed) {
		return f.Modified
	}
	return f.Placed
}

// sighting is when code of a file was on a stack.
type sighting struct {
	any    bool
	first  timeline.Nanos
	begins bool           // its module level began within the recording
	begin  timeline.Nanos // the last time that it did
}

// sightedFrame is a frame of a file whose sightings are wanted.
type sightedFrame struct {
	file   *sighting
	module bool
}

// framesOf are the frames of files that are on each stack, by node.
func framesOf(rec *timeline.Recording, files map[string]*sighting) [][]sightedFrame {
	on := make([][]sightedFrame, len(rec.Nodes))
	for i := 1; i < len(rec.Nodes); i++ {
		n := rec.Nodes[i]
		if int(n.Parent) >= i || int(n.Frame) >= len(rec.Frames) { // a damaged file
			continue
		}
		on[i] = on[n.Parent]
		if f := rec.Frames[n.Frame]; files[f.File] != nil {
			on[i] = append(on[i][:len(on[i]):len(on[i])], sightedFrame{files[f.File], f.Function == "<module>"})
		}
	}
	return on
}

// markSightings fills in when the files' code was on a stack.
func markSightings(rec *timeline.Recording, files map[string]*sighting) {
	on := framesOf(rec, files)
	for _, t := range rec.Threads {
		var before []sightedFrame
		known := t.RunsCell && rec.Target.Cell != nil // a cell's recording begins before its code
		for _, span := range t.Spans {
			if int(span.Node) >= len(on) {
				continue
			}
			for _, f := range on[span.Node] {
				if !f.file.any || span.Start < f.file.first {
					f.file.any, f.file.first = true, span.Start
				}
				// Where nothing is known of the time before, it may have run for long.
				// Another process loads it for itself.
				if f.module && known && t.Process == 0 && !slices.Contains(before, f) {
					f.file.begins, f.file.begin = true, max(f.file.begin, span.Start)
				}
			}
			before = on[span.Node]
			known = known || span.Node != timeline.RootNode
		}
	}
}
