package timeline

import "iter"

// spanList is one thread's history: closed spans, those that are not yet weighed, and the
// state it is in now.
type spanList struct {
	closed []Span
	window window
	open   Span // End is not yet known; meaningless unless alive
	alive  bool
	lost   bool // nothing is known of it since open began
}

// set makes s the thread's state from s.Start on and returns the span that
// ended by it; changed is false when the state is the one the thread was in.
func (l *spanList) set(s Span) (ended Span, changed bool) {
	if l.alive && l.open.Node == s.Node && l.open.State == s.State && l.open.Truncated == s.Truncated {
		return Span{}, false
	}
	ended, changed = l.end(s.Start)
	l.open, l.alive = s, true
	return ended, changed
}

// wait says what the thread waits in from at on, while nothing else changes; it
// returns the span that ended by it.
func (l *spanList) wait(at Nanos, w Wait, on ObjectID) (ended Span, changed bool) {
	if !l.alive || l.open.Wait == w && l.open.On == on {
		return Span{}, false
	}
	if at > l.open.Start {
		ended, changed = l.open, true
		ended.End = at
		l.open.Start = at
	}
	l.open.Wait, l.open.On = w, on
	return ended, changed
}

// end closes the open span at the given time.
func (l *spanList) end(at Nanos) (ended Span, changed bool) {
	if !l.alive {
		return Span{}, false
	}
	l.alive = false
	ended = l.open
	ended.End = at
	return ended, ended.End > ended.Start
}

// cutAfter returns the part of spans before a time, in the same memory.
func cutAfter(spans []Span, at Nanos) []Span {
	n := len(spans)
	for n > 0 && spans[n-1].Start >= at {
		n--
	}
	if n > 0 {
		spans[n-1].End = min(spans[n-1].End, at)
	}
	return spans[:n]
}

// grid resamples spans at one pseudo-random instant per step, which keeps every
// share of time unbiased where "the longest of each step" would not.
type grid struct{ step Nanos } // 0 = keep spans as they are

// instant is the moment of bucket b whose state stands for the whole bucket.
func (g grid) instant(b Nanos) Nanos {
	x := uint64(b)*0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019 // splitmix64
	x ^= x >> 30
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 27
	return b*g.step + Nanos(x%uint64(g.step))
}

// append adds s to spans, resampled, joined with its predecessor where equal.
func (g grid) append(spans []Span, s Span) []Span {
	if g.step > 0 {
		first, last := s.Start/g.step, (s.End-1)/g.step
		if g.instant(first) < s.Start {
			first++
		}
		if g.instant(last) >= s.End {
			last--
		}
		if first > last {
			return spans
		}
		s.Start, s.End = first*g.step, (last+1)*g.step
	}
	if n := len(spans); n > 0 {
		p := &spans[n-1]
		if s.Start < p.End { // the grid starts inside a span kept exactly before
			s.Start = p.End
			if s.Start >= s.End {
				return spans
			}
		}
		if s.GoesOn(p) {
			p.End = s.End
			return spans
		}
	}
	return append(spans, s)
}

// resample returns spans on the grid, in the same memory.
func (g grid) resample(spans []Span) []Span {
	out := spans[:0]
	for _, s := range spans {
		out = g.append(out, s)
	}
	return out
}

// Resample puts a thread's spans on a coarser grid, as a Builder does when it has too
// many: the shares of time stay unbiased.
func Resample(spans iter.Seq[Span], step Nanos) []Span {
	var out []Span
	for s := range spans {
		out = grid{step}.append(out, s)
	}
	return out
}
