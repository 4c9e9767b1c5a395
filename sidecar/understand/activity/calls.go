package activity

import (
	"iter"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// Call is a function of a library that a line of the user's own called.
type Call struct {
	Package  string // as it is imported: "pandas", "json"; empty: none stands out
	Function string // qualified name
}

// stoodOut is the share of a place's time from which on a call is said to be what
// took it.
const stoodOut = 0.6

// EachSpan yields the lengths of a thread's spans with what ask returns for each, which
// is called once for a stack in a state.
func EachSpan[T any](t *Reading, ask func(stack []timeline.FrameID, cause Cause, at Place) T) iter.Seq2[timeline.Nanos, T] {
	type key struct {
		node  timeline.NodeID
		state timeline.State
		wait  timeline.Wait
	}
	return func(yield func(timeline.Nanos, T) bool) {
		known := make(map[key]T)
		for _, span := range t.Spans {
			k := key{span.Node, span.State, span.Wait}
			answer, asked := known[k]
			if !asked {
				stack := t.stacks.Stack(span.Node)
				cause, at := t.stacks.doing(t.Thread, stack, span.State, span.Wait)
				answer = ask(stack, cause, at)
				known[k] = answer
			}
			if !yield(span.End-span.Start, answer) {
				return
			}
		}
	}
}

// Called is what took a place's time, in states that fit: the library function
// that the line called, if one stands out, and the share of the time for which no library
// was called at all.
func (t *Reading) Called(at Place, fits func(Cause) bool) (call Call, own float64) {
	if t.Thread == nil {
		return Call{}, 0
	}
	type answer struct {
		here, own bool
		call      Call
	}
	sums := make(map[Call]timeline.Nanos)
	all, alone := timeline.Nanos(0), timeline.Nanos(0)
	for length, a := range EachSpan(t, func(stack []timeline.FrameID, cause Cause, place Place) (a answer) {
		if a.here = place == at && fits(cause); a.here {
			a.call, a.own = t.stacks.callFrom(stack, at)
		}
		return a
	}) {
		if !a.here {
			continue
		}
		all += length
		if a.own {
			alone += length
		} else {
			sums[a.call] += length
		}
	}
	if all == 0 {
		return Call{}, 0
	}
	own = float64(alone) / float64(all)
	if top := Most(sums, compareCalls); float64(sums[top]) >= stoodOut*float64(all) {
		return top, own
	}
	// Not one function; perhaps one package.
	packages := make(map[Call]timeline.Nanos)
	for c, n := range sums {
		packages[Call{Package: c.Package}] += n
	}
	if top := Most(packages, compareCalls); float64(packages[top]) >= stoodOut*float64(all) {
		return top, own
	}
	return Call{}, own
}

// InCall is how long a line was in what it called, whatever the thread did there; a call without a function is any of its package.
func (t *Reading) InCall(at Place, call Call) (sum timeline.Nanos) {
	if t.Thread == nil {
		return 0
	}
	for length, in := range EachSpan(t, func(stack []timeline.FrameID, _ Cause, place Place) bool {
		if place != at {
			return false
		}
		found, own := t.stacks.callFrom(stack, at)
		return !own && (found == call || call.Function == "" && found.Package == call.Package)
	}) {
		if in {
			sum += length
		}
	}
	return sum
}

// Meaning is the library with the most of a place's time in functions that mean one of these things: numba,
// where a function of another package has numba compile it. Empty: none.
func (t *Reading) Meaning(at Place, means origin.Meanings) (packageName string) {
	if t.Thread == nil {
		return ""
	}
	sums := make(map[string]timeline.Nanos)
	for length, name := range EachSpan(t, func(stack []timeline.FrameID, _ Cause, place Place) string {
		if place != at {
			return ""
		}
		for _, id := range stack {
			if t.stacks.facts[id].means&means != 0 {
				return t.stacks.Files.Of(t.stacks.Rec.Frames[id].File).Package
			}
		}
		return ""
	}) {
		if name != "" {
			sums[name] += length
		}
	}
	return Most(sums, strings.Compare)
}

// CallsOf reports whether a place called functions that mean one of these things for most of its time, itself: what they
// call in turn is not asked.
func (t *Reading) CallsOf(at Place, means origin.Meanings) bool {
	if t.Thread == nil {
		return false
	}
	all, called := timeline.Nanos(0), timeline.Nanos(0)
	type answer struct{ here, means bool }
	for length, a := range EachSpan(t, func(stack []timeline.FrameID, _ Cause, place Place) (a answer) {
		if a.here = place == at; a.here {
			own := t.stacks.ownest(stack)
			a.means = own > 0 && t.stacks.facts[stack[own-1]].means&means != 0
		}
		return a
	}) {
		if a.here {
			all += length
		}
		if a.means {
			called += length
		}
	}
	return called > 0 && float64(called) >= MostShare*float64(all)
}

func compareCalls(a, b Call) int {
	if c := strings.Compare(a.Package, b.Package); c != 0 {
		return c
	}
	return strings.Compare(a.Function, b.Function)
}

// callFrom is the library function that a line of the user's own called; own reports
// that it called none. A line that is on the stack several times, as that of a
// function handed to DataFrame.apply, called what its outermost frame called.
// Without a line of the user's own it is the outermost function of all.
func (s *Stacks) callFrom(stack []timeline.FrameID, at Place) (call Call, own bool) {
	caller := len(stack)
	for i, id := range stack {
		if f := s.Rec.Frames[id]; s.facts[id].own && (Place{f.File, f.Line}) == at {
			caller = i
		}
	}
	first := caller - 1
	if first < 0 {
		return Call{}, true
	}
	// The first public function of an importable package, else the first frame at all.
	chosen := first
	for i := first; i >= 0; i-- {
		f := s.Rec.Frames[stack[i]]
		if f.Phase == timeline.PhaseNone && s.Files.Of(f.File).Package != "" && !isInternal(f.Function) && s.facts[stack[i]].means&origin.Decorates == 0 {
			chosen = i
			break
		}
	}
	f := s.Rec.Frames[stack[chosen]]
	name := s.Files.Of(f.File).Package
	if name == "" || f.Function == "<module>" {
		return Call{Package: name}, false
	}
	return Call{Package: name, Function: publicName(strings.ReplaceAll(f.Function, ".<locals>", ""))}, false
}

// publicName leaves out the classes that a library keeps to itself: fit of
// "_BaseKMeans.fit". "_LockImpl.acquire" is Lock's.
func publicName(function string) string {
	parts := strings.Split(function, ".")
	last := len(parts) - 1
	for i, part := range parts[:last] {
		if name, ok := strings.CutSuffix(part, "Impl"); ok {
			parts[i] = strings.TrimPrefix(name, "_")
		}
	}
	kept := slices.DeleteFunc(parts[:last:last], func(part string) bool { return strings.HasPrefix(part, "_") })
	return strings.Join(append(kept, function[strings.LastIndexByte(function, '.')+1:]), ".")
}

// isInternal reports whether a function is called on the way to the one that was asked for: what a
// decorator made ("_fit_context.<locals>.decorator.<locals>.wrapper"), and what a
// library keeps to itself.
func isInternal(function string) bool {
	name := function[strings.LastIndexByte(function, '.')+1:]
	return strings.Contains(function, "<locals>") || strings.HasPrefix(name, "_") && !strings.HasPrefix(name, "__") || name == "<module>"
}
