package timeline

import (
	"math"
	"slices"
)

// Scheduled is what the scheduler has counted of a thread up to a time. It is exact wherever
// the sampler ran, but for what a thread that is on a CPU has used since the last clock tick.
type Scheduled struct {
	At      Nanos
	Ran     Nanos // on a CPU
	Delayed Nanos // runnable, without a CPU
}

// Sampling from outside shows which stacks a thread has; how long it computes it shows with a
// bias, as the scheduler lets the sampler run when the target stops. The scheduler's count has
// none. So within a window between two readings, computing gets the CPU time, off the time
// without a CPU, and waiting the rest; among spans of one state their shares stay.
const (
	leastWindow = Nanos(100e6)
	// fairWindow is long enough to be kept as it was seen where that agrees with the count.
	fairWindow = Nanos(1e9)
	// mostWindow bounds the wait for a sample of what took little time.
	mostWindow = Nanos(5e9)
	mostSpans  = 1 << 13
	// tickError is what a reading may lack of a thread that is on a CPU: two ticks at 250 Hz.
	tickError = Nanos(8e6)
	restError = Nanos(200e3)
	// leastPiece is the shortest piece that a span is divided into.
	leastPiece = Nanos(200e3)
	// foundLate is the part of a window from which on CPU time without a sample of it is of a
	// thread that is seldom asked about; of less, a longer window may have a sample.
	foundLate = 4
	// blocked is how many times the CPU time a thread that computes and waits may seem to
	// compute by chance; beyond, it was blocked where it seemed to.
	blocked = 2
)

// window is of one thread what has not been weighed yet.
type window struct {
	known       bool
	start, last Scheduled // start: less what was not placed of it before
	spans       []Span    // since start, but for the open one
	inexact     Nanos     // of the reading at the start
	// pending is for how long the thread waits for a CPU at the last reading: the scheduler counts that when it
	// has got one.
	pending  Nanos
	runnable bool // it was at the last reading
}

// waits recognises the states in which a thread waits for something else than a CPU.
func (s State) waits() bool { return !s.Runnable() && s != StateUnknown }

// sums of the spans in the kinds of states.
type sums struct{ computing, off, waiting, unknown Nanos }

func (t sums) known() Nanos { return t.computing + t.off + t.waiting }

func sumsOf(spans []Span) (t sums) {
	for _, s := range spans {
		switch length := s.End - s.Start; {
		case s.State.Computes():
			t.computing += length
		case s.State == StateOff:
			t.off += length
		case s.State.waits():
			t.waiting += length
		default:
			t.unknown += length
		}
	}
	return t
}

// weigh returns spans that follow each other without a hole with the time in each kind of state
// that the scheduler has counted. It is false where they show nothing of what took time, or
// agree with the count within an error.
func weigh(spans []Span, ran, delayed, inexact Nanos) ([]Span, bool) {
	seen := sumsOf(spans)
	all := seen.known()
	ran = min(max(ran, 0), all)
	delayed = min(max(delayed, 0), all-ran)
	if all == 0 || distance(seen.computing, ran) <= inexact && distance(seen.off, delayed) <= inexact {
		return spans, false
	}
	spans = slices.Clone(spans)
	// Who was found runnable where it had waited wakes up, is on its way to sleep, or sleeps again.
	if more := seen.off - delayed; more > 0 {
		runs := min(more, max(ran-seen.computing, 0))
		spans = relabel(spans, isOff, runs, StateNative)
		spans = relabel(spans, isOff, more-runs, StateWaiting)
	} else if less := -more; less > 0 {
		preempted := min(less, max(seen.computing-ran, 0))
		spans = relabel(spans, State.Computes, preempted, StateOff)
		spans = relabel(spans, State.waits, less-preempted, StateOff)
	}
	seen = sumsOf(spans)
	switch {
	case seen.computing == 0 && ran > all/foundLate: // in C, since it was last asked about
		return relabel(spans, State.waits, ran, StateNative), true
	case seen.computing == 0 && ran > 0:
		return spans, false
	case seen.waiting == 0 && seen.computing-ran <= inexact: // carried into the next window
		return spans, true
	case seen.waiting == 0 || seen.computing > blocked*ran: // within what seems to compute
		return relabel(spans, State.Computes, seen.computing-ran, StateWaiting), true
	}
	return stretch(spans, float64(ran)/float64(seen.computing), float64(seen.computing+seen.waiting-ran)/float64(seen.waiting)), true
}

func isOff(s State) bool { return s == StateOff }

func distance(a, b Nanos) Nanos { return max(a-b, b-a) }

// relabel gives an amount of the time of the spans in some states another state, to each
// the same share; short pieces are put together.
func relabel(spans []Span, of func(State) bool, amount Nanos, to State) []Span {
	var all Nanos
	for _, s := range spans {
		if of(s.State) {
			all += s.End - s.Start
		}
	}
	if amount <= 0 || all <= 0 {
		return spans
	}
	share := float64(min(amount, all)) / float64(all)
	out := make([]Span, 0, len(spans)+8)
	owed, left := 0.0, all
	var waited Span // the last one that waits
	for _, s := range spans {
		if s.State.waits() {
			waited = s
		}
		if !of(s.State) {
			out = append(out, s)
			continue
		}
		length := s.End - s.Start
		left -= length
		owed += share * float64(length)
		piece := min(Nanos(math.Round(owed)), length)
		if piece < min(leastPiece, length) && left > 0 || piece <= 0 {
			out = append(out, s)
			continue
		}
		owed -= float64(piece)
		if rest := s; piece < length {
			rest.End -= piece
			out = append(out, rest)
		}
		s.Start, s.State, s.Wait, s.On = s.End-piece, to, WaitUnknown, 0
		if to.waits() && waited.State.waits() && waited.Node == s.Node { // as it did just before
			s.State, s.Wait, s.On = waited.State, waited.Wait, waited.On
		}
		out = append(out, s)
	}
	return out
}

// stretch multiplies the lengths of spans by the factors of their states, in place. What is
// unknown stays where it is: of what is between, the factors' ratio counts.
func stretch(spans []Span, computing, waiting float64) []Span {
	out := spans[:0]
	for from := 0; from < len(spans); {
		to := from
		for to < len(spans) && spans[to].State != StateUnknown {
			to++
		}
		out = stretchBetween(out, spans[from:to], computing, waiting)
		if to < len(spans) {
			out = append(out, spans[to])
			to++
		}
		from = to
	}
	return out
}

// stretchBetween appends spans without an unknown one, which begin and end together as before.
func stretchBetween(out, spans []Span, computing, waiting float64) []Span {
	if len(spans) == 0 {
		return out
	}
	seen := sumsOf(spans)
	if scale := float64(seen.computing+seen.waiting) / (computing*float64(seen.computing) + waiting*float64(seen.waiting)); scale > 0 && !math.IsInf(scale, 1) {
		computing, waiting = computing*scale, waiting*scale
	}
	if seen.computing == 0 || seen.waiting == 0 {
		return append(out, spans...)
	}
	at, end := spans[0].Start, spans[len(spans)-1].End
	exact := float64(at)
	for i, s := range spans {
		length := float64(s.End - s.Start)
		switch {
		case s.State.Computes():
			length *= computing
		case s.State.waits():
			length *= waiting
		}
		exact += length
		s.Start, s.End = at, min(max(Nanos(math.Round(exact)), at), end)
		if i == len(spans)-1 {
			s.End = end
		}
		if at = s.End; s.End > s.Start {
			out = append(out, s)
		}
	}
	return out
}

// add takes a span that has ended.
func (w *window) add(s Span) { w.spans = grid{}.append(w.spans, s) }

// read takes a reading of the scheduler's count at a time at which the spans end, and the thread is in a state.
// It returns those that have their time, if any have.
func (w *window) read(now Scheduled, state State) (spans []Span) {
	computes, pending := state.Computes(), w.waitsForCPU(now, state)
	inexact := errorOf(computes)
	if !w.known {
		return w.restart(now, now, state)
	}
	length := now.At - w.start.At
	seen := sumsOf(w.spans)
	if seen.unknown > length/2 && !w.wasRunnable(now, seen, pending) {
		// It was stopped, say: the count is not of the time that is known.
		spans = w.end()
		w.restart(now, now, state)
		return spans
	}
	w.last, w.pending, w.runnable = now, pending, state.Runnable()
	ran, delayed := w.count(seen)
	if ran <= 0 && delayed <= 0 && seen.computing+seen.off == 0 {
		return w.restart(now, now, state)
	}
	full := length >= mostWindow || len(w.spans) >= mostSpans
	if length < leastWindow && !full {
		return nil
	}
	if uncounted := seen.known() - ran - delayed; computes && !full && length < fairWindow && uncounted > seen.waiting+w.inexact+inexact {
		return nil // it waits for a CPU, probably: the scheduler counts that when it has got one
	}
	weighed, changed := weigh(w.spans, ran, delayed, w.inexact+inexact)
	if !changed && !full && (length < fairWindow || seen.computing == 0) {
		return nil
	}
	if changed {
		w.spans = weighed
	}
	// What was not placed of the count is of the next window.
	placed, start := sumsOf(w.spans), now
	start.Ran -= carried(ran - placed.computing)
	start.Delayed -= carried(delayed - placed.off)
	start.Delayed += pending // which is placed, and counted later
	spans = w.restart(start, now, state)
	w.pending = pending
	return spans
}

// runnableAll is the part of a window that the scheduler must have counted of a thread that was runnable all the time.
const runnableAll = 0.8

// wasRunnable reports whether a thread was runnable all the time since the start, also while nothing was known of it:
// it was the sampler that had no CPU, and the count is of what is known as of what is not.
func (w *window) wasRunnable(now Scheduled, seen sums, pending Nanos) bool {
	counted := now.Ran - w.start.Ran + now.Delayed + pending - w.start.Delayed
	return seen.waiting == 0 && seen.computing+seen.off > 0 && float64(counted) >= runnableAll*float64(now.At-w.start.At)
}

// waitsForCPU is for how long a thread has waited for a CPU at a reading, and not got one: what was not counted of
// the time since the reading before, if it was seen to be runnable.
func (w *window) waitsForCPU(now Scheduled, state State) Nanos {
	if !w.known || !w.runnable || !state.Runnable() {
		return 0
	}
	passed, ran, delayed := now.At-w.last.At, now.Ran-w.last.Ran, now.Delayed-w.last.Delayed
	seen, always := w.runnableFor(now.At, passed)
	switch {
	case always && ran <= 0 && delayed <= 0:
		return w.pending + passed
	case delayed <= 0: // it ran, and was not waiting then
		return max(min(passed-ran, seen), 0)
	}
	return max(min(w.pending+passed-ran-delayed, passed-ran, seen), 0)
}

// runnableFor is for how long until now a thread was seen to be runnable, of a time, and whether that is all of it.
func (w *window) runnableFor(now, passed Nanos) (seen Nanos, always bool) {
	for i := len(w.spans) - 1; i >= 0 && w.spans[i].End > now-passed; i-- {
		if !w.spans[i].State.Runnable() {
			return now - w.spans[i].End, false
		}
	}
	return passed, true
}

// count is what of the count since the start is of the time that is known, in which the thread
// has these sums. A wait for a CPU that is not over is in it.
func (w *window) count(seen sums) (ran, delayed Nanos) {
	ran, delayed = w.last.Ran-w.start.Ran, w.last.Delayed+w.pending-w.start.Delayed
	if seen.unknown > 0 {
		known := float64(seen.known()) / float64(max(seen.known()+seen.unknown, 1))
		ran, delayed = Nanos(known*float64(ran)), Nanos(known*float64(delayed))
	}
	return ran, delayed
}

func carried(n Nanos) Nanos { return min(max(n, -2*tickError), 2*tickError) }

// errorOf is what a reading may lack.
func errorOf(computes bool) Nanos {
	if computes {
		return tickError
	}
	return restError
}

func (w *window) restart(start, now Scheduled, state State) (spans []Span) {
	spans = w.spans
	*w = window{known: true, start: start, last: now, inexact: errorOf(state.Computes()), runnable: state.Runnable()}
	return spans
}

// sofar are the spans of the window with the time that is known of them.
func (w *window) sofar() []Span {
	if !w.known {
		return w.spans
	}
	counted := len(w.spans)
	for counted > 0 && w.spans[counted-1].Start >= w.last.At {
		counted--
	}
	ran, delayed := w.count(sumsOf(w.spans[:counted]))
	spans, _ := weigh(w.spans[:counted], ran, delayed, w.inexact+tickError)
	return append(slices.Clone(spans), w.spans[counted:]...)
}

// end ends the window: the count says nothing about what follows.
func (w *window) end() (spans []Span) {
	spans = w.sofar()
	*w = window{}
	return spans
}
