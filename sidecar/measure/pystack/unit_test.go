package pystack

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// refusing is a memory the kernel does not let us read.
type refusing struct{ err error }

func (m refusing) Read([]byte, []Range) (int, error) { return 0, m.err }

func TestPermissionRefused(t *testing.T) {
	_, err := open(refusing{ErrPermission}, imageKernel{&Image{}}, runtimePlace{addr: 4096})
	if !errors.Is(err, ErrPermission) {
		t.Fatalf("got %v, want ErrPermission", err)
	}
	if text := explain(42, err).Error(); !strings.Contains(text, "process 42") || !strings.Contains(text, "run as") && !strings.Contains(text, "root") {
		t.Errorf("%q does not say what to do", text)
	}
}

// flaky refuses its memory from some read on.
type flaky struct {
	*Image
	left int
	err  error
}

func (m *flaky) Read(buf []byte, ranges []Range) (int, error) {
	if m.left--; m.left < 0 {
		return 0, m.err
	}
	return m.Image.Read(buf, ranges)
}

func TestTargetGoneAtAnyRead(t *testing.T) {
	im := loadImage(t, "3.12")
	opened := &flaky{Image: im, left: 1 << 30}
	if _, err := open(opened, imageKernel{im}, runtimePlace{addr: im.Runtime, hex: im.Hex}); err != nil {
		t.Fatal(err)
	}
	reads := 1<<30 - opened.left
	for n := range reads {
		m := &flaky{Image: im, left: n, err: ErrGone}
		_, err := open(m, imageKernel{im}, runtimePlace{addr: im.Runtime, hex: im.Hex})
		if m.left >= 0 {
			continue // threads are read in any order, and in this one that was enough
		}
		if !errors.Is(err, ErrGone) && !errors.Is(err, ErrUnsupported) {
			t.Fatalf("gone at read %d: got %v, want ErrGone", n, err)
		}
	}
}

func TestFreeThreadedIsRefused(t *testing.T) {
	im := loadImage(t, "3.14")
	im.blocks[im.Runtime/blockSize][im.Runtime%blockSize+16] = 1
	_, err := OpenImage(im)
	if !errors.Is(err, ErrFreeThreaded) || !strings.Contains(err.Error(), "3.14") {
		t.Errorf("got %v, want ErrFreeThreaded with the version", err)
	}
}

func TestOtherVersionsAreRefused(t *testing.T) {
	im := loadImage(t, "3.12")
	for hex, want := range map[uint64]string{0x030a0df0: "3.10.13", 0x03100000: "3.16.0"} {
		im.Hex = hex
		if _, err := OpenImage(im); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want ErrUnsupported with %s", err, want)
		}
	}
	im.Hex = 0x030b00f0 // another version's layout fits nothing
	if _, err := OpenImage(im); err == nil {
		t.Error("3.12's memory read as 3.11: got no error")
	}
}

func TestAttachToAnotherProgram(t *testing.T) {
	if _, err := Attach(1<<22+1, Options{}); !errors.Is(err, ErrGone) {
		t.Errorf("a process that does not exist: got %v, want ErrGone", err)
	}
	_, err := Attach(unix.Getpid(), Options{})
	if !errors.Is(err, ErrNotPython) {
		t.Errorf("this test itself: got %v, want ErrNotPython", err)
	}
}

func TestActivity(t *testing.T) {
	const gil = 0x7f0000001000
	for _, test := range []struct {
		file string
		want call
	}{
		{"running\n", call{state: timeline.StateNative, leaf: "in C, on the CPU"}},
		{"202 0x7f0000001020 0x80 0x0 0x0 0x0 0x0 0x7ffe 0x7f01", call{state: timeline.StateGIL, wait: timeline.WaitLock, leaf: "waiting for the GIL"}},
		{"202 0x7f0000002020 0x80 0x0 0x0 0x0 0x0 0x7ffe 0x7f01", call{state: timeline.StateWaiting, wait: timeline.WaitLock, leaf: "waiting for a lock"}},
		{"-1 0x7ffe 0x7f01", call{state: timeline.StateIO, wait: timeline.WaitOther, leaf: "in a page fault"}},
		{"9999 0x0 0x0", call{state: timeline.StateWaiting, wait: timeline.WaitOther, leaf: "in system call 9999"}},
		{"", call{state: timeline.StateUnknown, leaf: ""}},
	} {
		a := parseSyscall([]byte(test.file))
		if strings.HasPrefix(test.file, "202 ") {
			a.syscall = unix.SYS_FUTEX // another number on other architectures
		}
		if got := describeActivity(a, gil); got != test.want {
			t.Errorf("%q: got %v, want %v", test.file, got, test.want)
		}
	}
	if got := describeActivity(parseStat([]byte("12 (a) b) D 1 2")), gil); got.state != timeline.StateIO {
		t.Errorf("state D: got %v, want io", got)
	}
}

func TestPace(t *testing.T) {
	p := pace{asked: time.Millisecond, budget: 0.05}
	wall := 200 * time.Millisecond
	interval := p.asked
	for range 10 { // a sample costs 200 µs: 20 % of a core at 1 kHz
		cpu := time.Duration(float64(wall) / float64(interval) * 200e3)
		interval = p.adjust(interval, wall, cpu)
	}
	if share := 200e3 / float64(interval); share > 0.055 || share < 0.03 {
		t.Errorf("interval %v costs %.3f of a core, want at most 0.05", interval, share)
	}
	for range 20 { // now 10 µs
		cpu := time.Duration(float64(wall) / float64(interval) * 10e3)
		interval = p.adjust(interval, wall, cpu)
	}
	if interval != p.asked {
		t.Errorf("interval %v when there is room, want %v again", interval, p.asked)
	}
	if got := (&pace{asked: 1, budget: -1}).adjust(1, wall, wall); got != 1 {
		t.Errorf("without budget: interval %v", got)
	}
}

func TestBudgetIsKept(t *testing.T) {
	p, err := OpenImage(loadImage(t, "3.13"))
	if err != nil {
		t.Fatal(err)
	}
	retry.Again(t, func(t *retry.Attempt) {
		ctx, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
		defer cancel()
		tape := newTape()
		stats, err := p.Sample(ctx, tape, SampleOptions{Interval: 20 * time.Microsecond, Budget: 0.02})
		if err != nil {
			t.Fatal(err)
		}
		if stats.Interval <= 20*time.Microsecond {
			t.Errorf("still samples every %v", stats.Interval)
		}
		rec := tape.Snapshot(tape.Since(timeline.Monotonic()))
		if len(rec.Notes) == 0 {
			t.Error("nothing says that it samples less often than asked")
		}
		if changes := rec.Sampling.Changes; len(changes) == 0 || changes[0].From > 4*timeline.Nanos(slowEvery) {
			t.Errorf("imports are over before it samples less often: %v", changes)
		}
	})
}

// Nearly every program imports for a moment, with stacks so deep that they are read less
// often: that is no news.
func TestSlownessIsToldFromATenthOfTheTime(t *testing.T) {
	for _, test := range []struct {
		slow  time.Duration
		noted bool
	}{{0, false}, {time.Second - 1, false}, {time.Second, true}} {
		tape := newTape()
		s := &session{sink: tape, slow: test.slow, opts: SampleOptions{}.withDefaults()}
		s.noteSlow(10 * time.Second)
		s.noteSlow(10 * time.Second) // once
		if got := len(tape.Snapshot(timeline.Nanos(time.Second)).Notes); got != map[bool]int{true: 1}[test.noted] {
			t.Errorf("slow for %v of 10 s: %d notes", test.slow, got)
		}
	}
}

func TestClockMeanAndJitter(t *testing.T) {
	c := newClock(&worker{}, time.Millisecond)
	c.due = 0
	var steps []int64
	for last := int64(0); len(steps) < 10_000; last = c.due {
		if missed := c.next(c.due); missed != 0 {
			t.Fatalf("missed %d though in time", missed)
		}
		steps = append(steps, c.due-last)
	}
	sum := int64(0)
	for _, s := range steps {
		sum += s
	}
	if mean := sum / int64(len(steps)); mean < 990_000 || mean > 1_010_000 {
		t.Errorf("mean interval %d ns, want 1 ms", mean)
	}
	if lo, hi := slices.Min(steps), slices.Max(steps); lo < 750_000 || lo > 760_000 || hi > 1_250_000 || hi < 1_240_000 {
		t.Errorf("intervals from %d to %d ns, want 0.75 to 1.25 ms", lo, hi)
	}
	if missed := c.next(c.due + 5_500_000); missed < 4 || missed > 6 {
		t.Errorf("5.5 ms late: %d missed, want about 5", missed)
	}
}

// TestSecondRecording samples an attached process twice: nodes and threads of
// the first recording must not leak into the second.
func TestSecondRecording(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		target := truth.Start(t, python, truth.Work)
		legal, err := target.Legal()
		if err != nil {
			t.Fatal(err)
		}
		p := attachTo(t, target)
		retry.Again(t, func(try *retry.Attempt) {
			for range 2 {
				tape, rec, stats := sampleFor(try, p, 100*time.Millisecond, SampleOptions{Budget: -1})
				v := legal.Judge(tape.samples(rec, mainThread(try, rec)))
				if v.Impossible > 0 {
					t.Errorf("%+v", v)
				}
				if v.Samples == 0 || v.Lost > 0 {
					try.Errorf("%+v", v)
				}
				if rec.Sampling.Samples != stats.Samples || stats.Samples == 0 || rec.Sampling.Method != method {
					try.Errorf("recording says %+v, want %+v", rec.Sampling, stats)
				}
				if n := rec.Threads[mainThread(try, rec)].OnCPU; n < 0 { // 0 where the machine is busy
					t.Errorf("main thread on the CPU for %v", n)
				}
			}
		})
	})
}

func TestFramesLeftOutAreRoundedToTheNearest(t *testing.T) {
	for count, want := range map[int]int{0: 1, 1: 1, 9: 9, 14: 10, 15: 20, 96: 100, 600: 600, 29_700: 30_000, 199_700: 200_000} {
		if got := roundToDigit(count); got != want {
			t.Errorf("%d frames left out are shown as about %d, want %d", count, got, want)
		}
	}
}
