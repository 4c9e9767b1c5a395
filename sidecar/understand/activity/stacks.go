package activity

import (
	"regexp"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// Stacks reads a recording's stack tree the way causes and places need it.
type Stacks struct {
	Rec    *timeline.Recording
	source *Source
	Files  *origin.Files
	facts  []frameFacts // by FrameID
	// UsesGPU reports that a GPU was used: without one, .numpy(), .tolist() and
	// np.save() are ordinary work.
	UsesGPU bool
	// OthersTakeCPUs reports that it is not the program that keeps the CPUs busy, where one had to be waited for.
	OthersTakeCPUs bool
	hasRanks       bool
	About          timeline.Subject
	said           map[saying]bool
	histories      map[*timeline.Thread]*History // of threads beside the main one
	phases         []origin.Phase                // by node, once they were asked for
	byTurns        bool                          // likewise: a loop trains and validates by turns
	coroutines     map[Place]bool                // functions that were suspended, by their first line; likewise
}

// frameFacts is what one frame says, whatever is above and below it.
type frameFacts struct {
	rules uint64          // causeRules whose conditions on a frame it meets
	means origin.Meanings // what it means, of a library's
	own   bool            // the user wrote it
}

// NewStacks reads the stacks of a recording; source has the text of its lines.
func NewStacks(rec *timeline.Recording, source *Source) *Stacks {
	s := &Stacks{Rec: rec, source: source, Files: origin.New(rec), About: interpret.SubjectOf(rec), facts: make([]frameFacts, len(rec.Frames)), said: make(map[saying]bool), histories: make(map[*timeline.Thread]*History)}
	for i, f := range rec.Frames {
		isOwn := f.Phase == timeline.PhaseNone && s.Files.Own(f.File)
		means := s.Files.Means(f)
		facts := frameFacts{own: isOwn, means: means}
		for r := range causeRules {
			if causeRules[r].fits(f, means, isOwn) {
				facts.rules |= 1 << r
			}
		}
		s.facts[i] = facts
	}
	s.OthersTakeCPUs, s.hasRanks = s.othersTakeCPUs(), hasRanks(rec)
	return s
}

// programTakesCPUs is the share of the CPUs from which on the program itself is the reason that none is free.
const programTakesCPUs = 0.8

func (s *Stacks) othersTakeCPUs() bool {
	cpu := s.Track("cpu")
	whole := []timeline.Interval{timeline.Between(0, s.Rec.Duration)}
	return cpu != nil && cpu.Limit > 0 && meanDuring(cpu, whole) < programTakesCPUs*cpu.Limit
}

// Stack returns a node's frames from its leaf to its root.
func (s *Stacks) Stack(node timeline.NodeID) []timeline.FrameID {
	var list []timeline.FrameID
	for node != timeline.RootNode && int(node) < len(s.Rec.Nodes) {
		n := s.Rec.Nodes[node]
		if int(n.Frame) < len(s.Rec.Frames) {
			list = append(list, n.Frame)
		}
		if n.Parent >= node { // a damaged file: parents come first
			break
		}
		node = n.Parent
	}
	return list
}

// ownest is the index of the deepest frame of the user's own code; -1 = none.
func (s *Stacks) ownest(stack []timeline.FrameID) int {
	for i, id := range stack {
		if s.facts[id].own {
			return i
		}
	}
	return -1
}

// Charged returns the place a stack is charged to: the deepest line of the user's
// own code, else the leaf; in a notebook, where that is the kernel's own work, none.
func (s *Stacks) Charged(stack []timeline.FrameID) Place {
	at := s.ownest(stack)
	if at < 0 {
		if len(stack) == 0 || s.Rec.Target.Cell != nil {
			return Place{}
		}
		at = 0
	}
	f := s.Rec.Frames[stack[at]]
	return Place{f.File, f.Line}
}

// phase is what the notebook was doing outside of the cell's code, by the outermost
// frame.
func (s *Stacks) phase(stack []timeline.FrameID) timeline.Phase {
	if len(stack) == 0 {
		return timeline.PhaseNone
	}
	return s.Rec.Frames[stack[len(stack)-1]].Phase
}

// importing reports whether the innermost line of the user's own is an import: the
// import system is between it and the leaf, so that whatever runs there runs
// to make a module. Own code that a module runs while it is imported is own code.
func (s *Stacks) importing(stack []timeline.FrameID) bool {
	for _, id := range stack {
		if s.facts[id].own {
			return false
		}
		if s.facts[id].means&origin.Imports != 0 {
			return true
		}
	}
	return false
}

// Track returns a track of the recording; nil when there is none.
func (s *Stacks) Track(id string) *timeline.Track {
	for i := range s.Rec.Tracks {
		if s.Rec.Tracks[i].ID == id {
			return &s.Rec.Tracks[i]
		}
	}
	return nil
}

// Loops are the first lines of the for loops around a place, the innermost first.
func (s *Stacks) Loops(at Place) []string { return s.source.Loops(at.File, at.Line) }

// Line is the text of a place.
func (s *Stacks) Line(at Place) string { return s.source.Line(at.File, at.Line) }

// saying is a question that many stacks have in common.
type saying struct {
	at      Place
	pattern *regexp.Regexp
}

// Says reports whether a line's text has a pattern.
func (s *Stacks) Says(at Place, pattern *regexp.Regexp) bool {
	k := saying{at, pattern}
	found, known := s.said[k]
	if !known {
		found = pattern.MatchString(s.source.Line(at.File, at.Line))
		s.said[k] = found
	}
	return found
}

// Means reports whether a frame is a library's function with a meaning.
func (s *Stacks) Means(frame timeline.FrameID, meaning origin.Meanings) bool {
	return s.facts[frame].means&meaning != 0
}

// Own reports whether the user wrote a file.
func (s *Stacks) Own(file string) bool { return s.Files.Own(file) }

// ReadEvery is the time between two samples of a process's stacks: of processes that are read by
// turns it is longer than the recording's interval.
func (s *Stacks) ReadEvery(process int) time.Duration {
	rec := s.Rec
	every := max(rec.Resolution, rec.Sampling.Interval, time.Microsecond)
	if process >= 0 && process < len(rec.Processes) {
		every = max(every, rec.Processes[process].Stacks.Interval)
	}
	return every
}
