package timeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

const msec = Nanos(1e6)

// seen is one of the spans that follow each other.
type seen struct {
	ms    float64
	state State
	node  NodeID
}

func spansOf(list ...seen) (spans []Span) {
	at := Nanos(0)
	for _, s := range list {
		end := at + Nanos(s.ms*float64(msec))
		spans = append(spans, Span{Start: at, End: end, Node: s.node, State: s.state})
		at = end
	}
	return spans
}

func repeated(n int, list ...seen) (out []seen) {
	for range n {
		out = append(out, list...)
	}
	return out
}

func stateSums(spans []Span) (sums [NumStates]float64) {
	for _, s := range spans {
		sums[s.State] += float64(s.End-s.Start) / float64(msec)
	}
	return sums
}

// Whatever the sampler saw of it, a thread computed for as long as the scheduler counted, and
// waited for a CPU for as long; what it did besides is waiting.
func TestComputingIsWhatTheSchedulerCounted(t *testing.T) {
	const line, sleep = 1, 2
	for _, c := range []struct {
		name         string
		spans        []seen
		ran, delayed float64
		want         map[State]float64
	}{
		{"short computing was missed: shorter waits",
			repeated(10, seen{.5, StatePython, line}, seen{19.5, StateWaiting, sleep}), 20, 0,
			map[State]float64{StatePython: 20, StateWaiting: 180}},
		{"short waits were missed: shorter computing",
			repeated(10, seen{15, StatePython, line}, seen{5, StateWaiting, sleep}), 100, 0,
			map[State]float64{StatePython: 100, StateWaiting: 100}},
		{"Python and native code keep their shares",
			repeated(10, seen{1, StatePython, line}, seen{3, StateNative, line}, seen{16, StateWaiting, sleep}), 80, 0,
			map[State]float64{StatePython: 20, StateNative: 60, StateWaiting: 120}},
		{"no CPU was free for a part of what seemed to compute",
			repeated(1, seen{200, StatePython, line}), 120, 80,
			map[State]float64{StatePython: 120, StateOff: 80}},
		{"it was blocked where it seemed to compute, and not for a CPU",
			repeated(1, seen{200, StatePython, line}), 120, 10,
			map[State]float64{StatePython: 120, StateOff: 10, StateWaiting: 70}},
		{"who woke up waited for a CPU",
			repeated(10, seen{11, StateWaiting, sleep}, seen{4, StateOff, sleep}, seen{5, StatePython, line}), 50, 50,
			map[State]float64{StatePython: 50, StateOff: 50, StateWaiting: 100}},
		{"who was runnable where it waits computed, in part",
			repeated(10, seen{10, StateWaiting, sleep}, seen{5, StateOff, sleep}, seen{5, StatePython, line}), 80, 20,
			map[State]float64{StatePython: 50, StateNative: 30, StateOff: 20, StateWaiting: 100}},
		{"who was runnable where it waits slept again",
			repeated(10, seen{10, StateWaiting, sleep}, seen{5, StateOff, sleep}, seen{5, StatePython, line}), 50, 10,
			map[State]float64{StatePython: 50, StateOff: 10, StateWaiting: 140}},
		{"it was found computing late", repeated(1, seen{200, StateWaiting, line}), 150, 0,
			map[State]float64{StateNative: 150, StateWaiting: 50}},
		{"the count exceeds the time", repeated(1, seen{100, StatePython, line}, seen{100, StateOff, line}), 900, 900,
			map[State]float64{StatePython: 100, StateNative: 100}},
	} {
		t.Run(c.name, func(t *testing.T) {
			spans := spansOf(c.spans...)
			got, ok := weigh(spans, Nanos(c.ran*float64(msec)), Nanos(c.delayed*float64(msec)), restError)
			if !ok {
				t.Fatal("it is left as it was seen")
			}
			for state, sum := range stateSums(got) {
				if want := c.want[State(state)]; math.Abs(sum-want) > .01 {
					t.Errorf("%v: %.2f ms, want %.2f", State(state), sum, want)
				}
			}
			checkWhole(t, got, 0, spans[len(spans)-1].End)
		})
	}
}

// checkWhole requires that spans follow each other from a time to another.
func checkWhole(t *testing.T, spans []Span, from, to Nanos) {
	t.Helper()
	at := from
	for _, s := range spans {
		if s.Start != at || s.End <= s.Start {
			t.Fatalf("a span is from %d to %d, the one before ends at %d", s.Start, s.End, at)
		}
		at = s.End
	}
	if at != to {
		t.Errorf("they end at %d, want %d", at, to)
	}
}

// Who slept again did what it did before it was found runnable.
func TestWhoSleptAgainWaitsForTheSame(t *testing.T) {
	spans := spansOf(seen{100, StateWaiting, 1}, seen{100, StateOff, 1})
	spans[0].Wait = WaitSleep
	got, _ := weigh(spans, 0, 10*msec, restError)
	if len(got) != 3 || got[2].State != StateWaiting || got[2].Wait != WaitSleep {
		t.Errorf("it did %+v", got)
	}
}

// What was not seen cannot be given a line: a longer window may show it.
func TestCPUTimeWithoutASampleWaits(t *testing.T) {
	spans := spansOf(seen{200, StateWaiting, 1})
	if got, ok := weigh(spans, 5*msec, 0, restError); ok {
		t.Errorf("CPU time was placed: %v", got)
	}
}

func TestWhatAgreesWithTheCountStays(t *testing.T) {
	spans := spansOf(seen{100, StatePython, 1}, seen{100, StateWaiting, 2})
	if got, ok := weigh(spans, 97*msec, msec, tickError); ok || fmt.Sprint(got) != fmt.Sprint(spans) {
		t.Errorf("it was changed to %v", got)
	}
}

// Over a recording the sums are right, whatever the sampler sees of the computing: at a
// tenth of it, too, and each line keeps its share of it.
func TestComputingAddsUpOverARecording(t *testing.T) {
	for _, part := range []float64{.1, .5, 1, 2} {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(part*10)))
			b := NewBuilder(Options{Origin: 1})
			id := b.Thread(Thread{NativeID: 1})
			nodes := [3]NodeID{}
			for i := range nodes {
				nodes[i] = b.Child(RootNode, b.Frame(Frame{Function: fmt.Sprint(i)}))
			}
			const share = .08 // of the time it computes, two thirds of that in one line
			last, end := Nanos(0), 20*Nanos(1e9)
			b.Set(id, 0, nodes[0], StateWaiting, false)
			for at := msec; at < end; at += msec {
				switch x := random.Float64(); {
				case x < part*share*2/3:
					b.Set(id, at, nodes[1], StatePython, false)
				case x < part*share:
					b.Set(id, at, nodes[2], StatePython, false)
				default:
					b.Set(id, at, nodes[0], StateWaiting, false)
				}
				if at-last >= 20*msec {
					last = at
					b.Account(id, Scheduled{At: at, Ran: Nanos(share * float64(at))})
				}
			}
			spans := b.Snapshot(end).Threads[id].Spans
			checkWhole(t, spans, 0, end)
			sum := stateSums(spans)
			if got, want := sum[StatePython], share*20000; math.Abs(got/want-1) > .02 {
				t.Errorf("computing %.0f ms, want %.0f", got, want)
			}
			var first float64
			for _, s := range spans {
				if s.Node == nodes[1] && s.State == StatePython {
					first += float64(s.End-s.Start) / float64(msec)
				}
			}
			if got := first / sum[StatePython]; math.Abs(got-2./3) > .12 {
				t.Errorf("the line has %.2f of it, want 0.67", got)
			}
		})
	}
}

// A thread that computes has used up to a tick more than was counted.
func TestAReadingThatLagsIsNoWait(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	id := b.Thread(Thread{NativeID: 1})
	node := b.Child(RootNode, b.Frame(Frame{Function: "f"}))
	b.Set(id, 0, node, StatePython, false)
	for at := 20 * msec; at <= 10000*msec; at += 20 * msec {
		b.Account(id, Scheduled{At: at, Ran: at - at%(4*msec) - 3*msec*(at/msec/20%2)})
	}
	if got := b.Snapshot(10000 * msec).Threads[id].Spans; len(got) != 1 {
		t.Errorf("%d spans, want one", len(got))
	}
}

// A wait for a CPU is counted when it ends. A thread that is never seen waiting for anything else, on a
// machine with many threads for a CPU, does not wait for anything else.
func TestAWaitForACPUThatLastsIsNoOtherWait(t *testing.T) {
	const second = 1000 * msec
	for _, longest := range []int{20, 60, 120, 240} {
		random := rand.New(rand.NewPCG(1, uint64(longest)))
		b := NewBuilder(Options{Origin: 1})
		id := b.Thread(Thread{NativeID: 1})
		node := b.Child(RootNode, b.Frame(Frame{Function: "f"}))
		b.Set(id, 0, node, StatePython, false)
		var ran, delayed Nanos // as the scheduler counts them
		end := 20 * second
		for at, read := Nanos(0), Nanos(0); at < end; {
			runs, queues := Nanos(4+random.IntN(16))*msec, Nanos(1+random.IntN(longest))*msec
			for ; read < at+runs+queues; read += 20 * msec {
				b.Account(id, Scheduled{At: read, Ran: ran + min(read-at, runs), Delayed: delayed})
			}
			at, ran, delayed = at+runs+queues, ran+runs, delayed+queues
		}
		sum := stateSums(b.Snapshot(end).Threads[id].Spans)
		if got := sum[StateWaiting]; got > 200 {
			t.Errorf("queued for up to %d ms: waits for %.0f of 20,000 ms", longest, got)
		}
		if got, want := sum[StateOff], float64(delayed)/float64(msec); math.Abs(got-want) > 400 {
			t.Errorf("queued for up to %d ms: no CPU for %.0f ms, want %.0f", longest, got, want)
		}
	}
}

// Where the sampler had no CPU for moments, the count is of what is known as of what is not, and
// what is not known stays where it is.
func TestMomentsThatAreUnknownHaveTheirShareOfTheCount(t *testing.T) {
	spans := spansOf(repeated(5, seen{10, StatePython, 1}, seen{50, StateWaiting, 2}, seen{40, StateUnknown, RootNode})...)
	w := window{known: true, last: Scheduled{At: 500 * msec}, spans: spans}
	got := w.read(Scheduled{At: 500 * msec, Ran: 100 * msec}, StateWaiting)
	sums := stateSums(got)
	if math.Abs(sums[StatePython]-60) > .01 || math.Abs(sums[StateUnknown]-200) > .01 {
		t.Errorf("computing %.1f ms, unknown %.1f, want 60 and 200", sums[StatePython], sums[StateUnknown])
	}
	checkWhole(t, got, 0, 500*msec)
	for i, at := 0, 60*msec; i < len(got); i++ {
		if got[i].State == StateUnknown {
			if got[i].Start != at {
				t.Errorf("unknown from %d on, want %d", got[i].Start, at)
			}
			at += 100 * msec
		}
	}
}

// What is unknown for long has no part in it, nor what was before and after.
func TestNothingIsWeighedAcrossAGap(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	id := b.Thread(Thread{NativeID: 1})
	node := b.Child(RootNode, b.Frame(Frame{Function: "f"}))
	b.Set(id, 0, node, StateWaiting, false)
	b.Account(id, Scheduled{At: 0})
	b.Account(id, Scheduled{At: 50 * msec, Ran: 0})
	b.Set(id, 60*msec, RootNode, StateUnknown, false)
	b.Account(id, Scheduled{At: 900 * msec, Ran: 800 * msec})
	b.Set(id, 1000*msec, node, StateWaiting, false)
	b.Account(id, Scheduled{At: 1000 * msec, Ran: 900 * msec})
	b.Account(id, Scheduled{At: 1200 * msec, Ran: 900 * msec})
	want := []Span{
		{0, 60 * msec, node, StateWaiting, false, 0, 0}, {60 * msec, 1000 * msec, RootNode, StateUnknown, false, 0, 0},
		{1000 * msec, 1300 * msec, node, StateWaiting, false, 0, 0},
	}
	if got := b.Snapshot(1300 * msec).Threads[id].Spans; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("spans\n%v, want\n%v", got, want)
	}
}

// That a process was stopped is found out after the reading that follows the stop.
func TestWhatIsSaidOfATimeLaterReplacesWhatWasSaid(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	id := b.Thread(Thread{NativeID: 1})
	node := b.Child(RootNode, b.Frame(Frame{Function: "f"}))
	b.Set(id, 0, node, StatePython, false)
	b.Account(id, Scheduled{At: 0})
	b.Account(id, Scheduled{At: 1100 * msec, Ran: 1090 * msec})
	b.Set(id, 1090*msec, RootNode, StateUnknown, false)
	want := []Span{{0, 1090 * msec, node, StatePython, false, 0, 0}, {1090 * msec, 1300 * msec, RootNode, StateUnknown, false, 0, 0}}
	if got := b.Snapshot(1300 * msec).Threads[id].Spans; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("spans\n%v, want\n%v", got, want)
	}
}

// A cell that ends between two readings shows what is known until then.
func TestASnapshotIsWeighedUpToTheLastReading(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	id := b.Thread(Thread{NativeID: 1})
	node := b.Child(RootNode, b.Frame(Frame{Function: "f"}))
	b.Set(id, 0, node, StatePython, false)
	b.Account(id, Scheduled{At: 0})
	b.Account(id, Scheduled{At: 80 * msec, Ran: 40 * msec, Delayed: 40 * msec})
	for range 2 { // the Builder goes on as it was
		sums := stateSums(b.Snapshot(90 * msec).Threads[id].Spans)
		if sums[StatePython] != 50 || sums[StateOff] != 40 {
			t.Errorf("computing %v ms, off %v, want 50 and 40", sums[StatePython], sums[StateOff])
		}
		if recent := stateSums(b.Recent(0, 90*msec).Threads[0].Spans); recent != sums {
			t.Errorf("lately %v, in all %v", recent, sums)
		}
	}
}

// A cell may end while its thread waits for a CPU, and a wait may be longer than a window: what the scheduler has not
// counted yet of a thread that is runnable, and does not run, is such a wait.
func TestAWaitForACPUThatIsNotOverIsNoOtherWait(t *testing.T) {
	for _, c := range []struct {
		name           string
		ran, end       Nanos
		computes, over bool
		off            float64
	}{
		{"at the end of a cell", 100 * msec, 500 * msec, true, false, 390},
		{"for longer than a window", 100 * msec, 3000 * msec, true, false, 2890},
		{"and then counted", 100 * msec, 3000 * msec, true, true, 2900},
		{"in a cell that hardly ran", 30 * msec, 300 * msec, true, false, 260},
		{"but of one that is blocked", 100 * msec, 3000 * msec, false, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := NewBuilder(Options{Origin: 1})
			id := b.Thread(Thread{NativeID: 1})
			node := b.Child(RootNode, b.Frame(Frame{Function: "f"}))
			b.Set(id, 0, node, StatePython, false)
			for at := Nanos(0); at < c.end; at += 20 * msec {
				if at >= c.ran && !c.computes {
					b.Set(id, at, node, StateWaiting, false)
				}
				b.Account(id, Scheduled{At: at, Ran: min(at, c.ran)})
			}
			end, delayed := c.end, Nanos(0)
			if c.over {
				end, delayed = c.end+400*msec, c.end-c.ran
				for at := c.end; at < end; at += 20 * msec {
					b.Account(id, Scheduled{At: at, Ran: c.ran + at - c.end, Delayed: delayed})
				}
			}
			sum := stateSums(b.Snapshot(end).Threads[id].Spans)
			if got := sum[StateOff]; math.Abs(got-c.off) > 25 {
				t.Errorf("no CPU for %.0f ms, want %.0f", got, c.off)
			}
			if got := sum[StateWaiting]; c.computes && got > 20 {
				t.Errorf("waits for %.0f ms, want none", got)
			}
		})
	}
}

// A wait for a CPU may have just begun at a reading, or begun while the sampler had no CPU itself.
func TestAWaitForACPUThatHasJustBegunIsNoOtherWait(t *testing.T) {
	for _, gap := range []int{0, 30, 70} { // ms without the sampler, after each 100
		random := rand.New(rand.NewPCG(2, uint64(gap)))
		for cell := range 200 { // short ones
			b := NewBuilder(Options{Origin: 1})
			id := b.Thread(Thread{NativeID: 1})
			node := b.Child(RootNode, b.Frame(Frame{Function: "f"}))
			b.Set(id, 0, node, StatePython, false)
			const end = 300
			var ran, delayed, waits Nanos
			runs, left, missed := true, 3+random.IntN(6), 0
			for at := range end {
				switch {
				case gap > 0 && at%100 >= 100-gap:
					missed++
				case missed > 0: // the first tick after it
					b.Set(id, Nanos(at-missed)*msec, RootNode, StateUnknown, false)
					b.Set(id, Nanos(at)*msec, node, StatePython, false)
					missed = 0
				}
				if missed == 0 && at%20 == 0 {
					b.Account(id, Scheduled{At: Nanos(at) * msec, Ran: ran, Delayed: delayed})
				}
				if left--; runs {
					ran += msec
				} else {
					waits += msec
				}
				switch {
				case left > 0:
				case runs:
					runs, left = false, 10+random.IntN(60)
				default:
					runs, left, delayed, waits = true, 3+random.IntN(6), delayed+waits, 0
				}
			}
			if sum := stateSums(b.Snapshot(end * msec).Threads[id].Spans); sum[StateWaiting] > 10 {
				t.Fatalf("cell %d, gaps of %d ms: waits for %.0f of 300 ms, no CPU for %.0f", cell, gap, sum[StateWaiting], sum[StateOff])
			}
		}
	}
}

// Where the sampler has no CPU for most of the time, the count is still of what it saw: the thread was runnable all the time.
func TestWhatIsSeenBetweenLongGapsHasItsShareOfTheCount(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	id := b.Thread(Thread{NativeID: 1})
	node := b.Child(RootNode, b.Frame(Frame{Function: "f"}))
	b.Set(id, 0, node, StatePython, false)
	const end = 1200 * msec
	for at := Nanos(0); at < end; at += 60 * msec { // seen for 20 of each 60 ms, on a CPU for a quarter
		b.Account(id, Scheduled{At: at, Ran: at / 4, Delayed: at * 3 / 4})
		b.Set(id, at+20*msec, RootNode, StateUnknown, false)
		b.Set(id, at+60*msec, node, StatePython, false)
	}
	sum := stateSums(b.Snapshot(end).Threads[id].Spans)
	if math.Abs(sum[StatePython]-100) > 40 || math.Abs(sum[StateOff]-300) > 40 || math.Abs(sum[StateUnknown]-800) > 20 {
		t.Errorf("computing %.0f ms, no CPU for %.0f, unknown %.0f; want 100, 300 and 800", sum[StatePython], sum[StateOff], sum[StateUnknown])
	}
}
