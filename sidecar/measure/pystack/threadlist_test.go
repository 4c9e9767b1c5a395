package pystack

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

// words is memory in which a list of thread states changes between two walks of it.
type words struct {
	at     map[uint64]uint64
	walks  int
	before func(walk int, at map[uint64]uint64)
}

const (
	runtimeAt, interpAt              = 0x1000, 0x2000
	mainAt, workerAt                 = 0x3000, 0x4000
	nextWord, interpWord, nativeWord = 0, 8, 16
)

func (w *words) Read(buf []byte, ranges []Range) (n int, err error) {
	for _, r := range ranges {
		if r.Addr == runtimeAt { // where each walk begins
			w.before(w.walks, w.at)
			w.walks++
		}
		for i := range r.Len {
			at := r.Addr + uint64(i)
			buf[n] = byte(w.at[at&^7] >> (8 * (at & 7)))
			n++
		}
	}
	return n, nil
}

func listOf(before func(walk int, at map[uint64]uint64)) *Process {
	l := &cpython.Layout{}
	l.Runtime.GIL = 8
	l.Interp.ThreadsHead = 8
	l.Thread.Next, l.Thread.Interp, l.Thread.NativeID, l.Thread.Size = nextWord, interpWord, nativeWord, 24
	return &Process{l: l, place: runtimePlace{addr: runtimeAt}, mem: &words{before: before, at: map[uint64]uint64{
		runtimeAt: interpAt, interpAt + 8: workerAt,
		workerAt + nextWord: mainAt, workerAt + interpWord: interpAt, workerAt + nativeWord: 8,
		mainAt + interpWord: interpAt, mainAt + nativeWord: 7,
	}}}
}

// The state of a thread that has just ended becomes that of one which is being made: it has no next one yet, and the threads
// below it have not ended.
func TestAListThatEndsEarlyIsWalkedAgain(t *testing.T) {
	p := listOf(func(walk int, at map[uint64]uint64) {
		switch walk {
		case 1:
			at[workerAt+nextWord] = 0
		case 2:
			at[workerAt+nextWord] = mainAt
		}
	})
	if err := p.findThreads(); err != nil {
		t.Fatal(err)
	}
	main := p.threads[mainAt]
	if err := p.findThreads(); err != nil {
		t.Fatal(err)
	}
	if main == nil || p.threads[mainAt] != main {
		t.Errorf("threads %v, want the same main thread", p.threads)
	}
}

// A thread that has ended leaves the list, though it was the first.
func TestTheFirstThreadMayEnd(t *testing.T) {
	p := listOf(func(walk int, at map[uint64]uint64) {
		if walk == 1 {
			at[workerAt+nextWord] = 0
		}
	})
	for range 2 {
		if err := p.findThreads(); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.threads) != 1 || p.threads[workerAt] == nil {
		t.Errorf("threads %v, want the other one alone", p.threads)
	}
}
