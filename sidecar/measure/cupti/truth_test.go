package cupti

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const (
	newest = "version=130401"
	second = int64(time.Second)
)

// piece is work as the script has it, in CLOCK_REALTIME.
type piece struct {
	kind           kind
	device, stream int
	name           string
	start, end     int64
}

// script makes up work of two devices and three streams that was over by a time.
func script(n int, over int64) []piece {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	var list []piece
	for at := over - int64(n)*20_000; len(list) < n; at += 20_000 {
		p := piece{
			kind:   []kind{kernelKind, kernelKind, kernelKind, memcpyKind, memsetKind}[random.IntN(5)],
			device: random.IntN(2), stream: 7 + random.IntN(3), start: at + random.Int64N(5_000), name: "-",
		}
		p.end = p.start + random.Int64N(15_000)
		if p.kind == kernelKind {
			p.name = fmt.Sprintf("fusion_%d", random.IntN(9))
		}
		list = append(list, p)
	}
	return list
}

// expected is the script as timeline.DeviceWork has it, with CLOCK_MONOTONIC behind CLOCK_REALTIME by offset.
func expected(list []piece, offset int64) []timeline.DeviceActivity {
	var want []timeline.DeviceActivity
	for _, p := range list {
		a := timeline.DeviceActivity{
			Interval: timeline.Between(timeline.Nanos(p.start-offset), timeline.Nanos(p.end-offset)), Device: p.device, Stream: int64(p.stream),
			Kind: timeline.WorkKernel, Name: p.name,
		}
		switch p.kind {
		case memcpyKind:
			a.Kind, a.Name = timeline.WorkCopy, "Memcpy HtoD"
		case memsetKind:
			a.Kind, a.Name = timeline.WorkMemset, "Memset"
		}
		want = append(want, a)
	}
	return want
}

// same compares activities; near is how far off all of them may be, together.
func same(t *testing.T, got, want []timeline.DeviceActivity, near time.Duration) {
	t.Helper()
	byStart := func(a, b timeline.DeviceActivity) int { return int(a.Start - b.Start) }
	slices.SortFunc(got, byStart)
	slices.SortFunc(want, byStart)
	if len(got) != len(want) {
		t.Fatalf("got %d activities, want %d", len(got), len(want))
	}
	if len(got) == 0 {
		return
	}
	shift := got[0].Start - want[0].Start
	if shift.Duration().Abs() > near+time.Microsecond {
		t.Errorf("all is %v off, more than %v", shift.Duration(), near)
	}
	for i, g := range got {
		g.Start, g.End = g.Start-shift, g.End-shift
		w := want[i]
		if apart := max((g.Start - w.Start).Duration().Abs(), (g.End - w.End).Duration().Abs()); apart > time.Microsecond {
			t.Fatalf("activity %d is %v off: %+v, want %+v", i, apart, g, w)
		}
		if g.Interval = w.Interval; g != w {
			t.Fatalf("activity %d: got %+v, want %+v", i, g, w)
		}
	}
}

func (p *program) play(list []piece) {
	for _, w := range list {
		p.say("record %d %d %d %s %d %d %d", w.kind, w.device, w.stream, w.name, w.start, w.end, 4096)
	}
}

// one is the work of the program, of which there is one delivery.
func (p *program) one() timeline.DeviceWork {
	p.t.Helper()
	if len(p.work) != 1 || p.work[0].PID != p.pid {
		p.t.Fatalf("got %d deliveries (of process %d: %+v), notes %q", len(p.work), p.pid, p.work, p.notes)
	}
	return p.work[0]
}

// idle is when the devices did nothing, in the stretches that are complete.
func idle(w timeline.DeviceWork) timeline.Nanos {
	var busy []timeline.Interval
	for _, a := range w.Activities {
		busy = append(busy, a.Interval)
	}
	return timeline.Total(timeline.Without(w.Complete, timeline.Joined(busy)))
}

// What was delivered is what the device did, to the microsecond, with the structs of each release.
func TestTruth(t *testing.T) {
	for _, settings := range []string{
		"version=14", "version=18", "version=28", "version=130001", newest,
		newest + ",order=1",           // buffers out of order
		newest + ",offset=5000000000", // a clock of its own
		newest + ",overhead=10",
		newest + ",several=1", newest + ",several=1,others=1,order=1", // beside another user, as torch's own monitor
	} {
		t.Run(settings, func(t *testing.T) {
			p := start(t, plain.folder(t), settings, true)
			if reason, _ := p.ask("begin"); reason != 0 {
				t.Fatalf("begin returns %d", reason)
			}
			p.say("sleep 30")
			real, monotonic := p.ask("now")
			list := script(1500, real)
			var clock int64
			if strings.Contains(settings, "offset") {
				clock = 5 * second
			}
			shifted := slices.Clone(list)
			for i := range shifted {
				shifted[i].start, shifted[i].end = shifted[i].start+clock, shifted[i].end+clock
			}
			p.play(shifted)
			p.ask("end")
			after, _ := p.ask("now")
			work := p.end().one()
			same(t, work.Activities, expected(list, real-monotonic), work.Error+100*time.Microsecond)
			if len(work.Complete) != 1 || len(p.notes) != 0 {
				t.Fatalf("complete are %v, notes %q", work.Complete, p.notes)
			}
			if got := int64(work.Complete[0].End) - monotonic; got < 0 || got > after-real {
				t.Errorf("complete until %d ns after the last work, and it ended %d ns after it", got, after-real)
			}
			want := timeline.DeviceWork{Activities: expected(list, real-monotonic), Complete: work.Complete}
			if apart := (idle(work) - idle(want)).Duration().Abs(); apart > work.Error+100*time.Microsecond {
				t.Errorf("idle time is %v off", apart)
			}
		})
	}
}

// What hinders it is said in a sentence, and the program goes on.
func TestRefusals(t *testing.T) {
	libraries := plain.folder(t)
	for _, c := range []struct {
		settings, environment string
		want                  reason
		sentence              string
	}{
		{newest + ",subscribe=39", "", occupied, "another profiler uses CUPTI"},
		{newest + ",subscribe=12", "", occupied, "another profiler uses CUPTI"},
		{newest + ",several=2,others=1", "", occupied, "another profiler (torch-cuspy) uses CUPTI"},
		{newest + ",others=1", "", occupied, "another profiler uses CUPTI"}, // the driver is too old to be asked
		{newest + ",several=1,hardware=1", "", otherwise, "events in hardware"},
		{newest + ",several=1,others=1,whole=1", "", otherwise, "another profiler (torch-cuspy) has CUPTI"},
		{newest + ",several=1,enable=15", "", cuptiFailed, "(its error 15)"},
		{newest + ",enable=15", "", cuptiFailed, "(its error 15)"},
		{"version=0", "", cuptiFailed, "finds no NVIDIA driver"},
		{newest, "OMNI_PERF_CUPTI_LIBRARY=/nonexistent", noLibrary, "was not found"},
		{newest, "OMNI_PERF_CUPTI_LIBRARY=libm.so.6", noSymbol, "lacks functions"},
		{"version=13", "", versionRefused, "API version 13, before CUDA 13"},
		{"version=130000", "", versionRefused, "(CUDA 13.0)"}, // B2: it would hang
		{"version=130201", "", versionRefused, "(CUDA 13.2 Update 1)"},
	} {
		p := start(t, libraries, c.settings, true, c.environment)
		if got, _ := p.ask("begin"); reason(got) != c.want {
			t.Errorf("%+v: begin returns %d, want %d", c, got, c.want)
		}
		p.say("record 10 0 7 a 1 2 0")
		p.ask("end")
		p.end()
		if len(p.work) != 0 || len(p.notes) != 1 || !strings.Contains(p.notes[0], c.sentence) {
			t.Errorf("%+v: got work %v, notes %q", c, p.work, p.notes)
		}
	}
}

// B3: after many kernels their times are zero or run backwards. What came before counts.
func TestBadTimes(t *testing.T) {
	for _, fault := range []string{"end0=1000", "backwards=1000"} {
		p := start(t, plain.folder(t), newest+","+fault, true)
		p.ask("begin")
		p.say("sleep 100")
		real, _ := p.ask("now")
		p.play(script(2000, real))
		p.ask("end")
		again, _ := p.ask("begin")
		p.ask("end")
		work := p.end().one()
		if len(work.Activities) != 999 || reason(again) != badTimes {
			t.Errorf("%s: %d activities are delivered, want 999; the next cell's begin returns %d", fault, len(work.Activities), again)
		}
		if len(p.notes) != 2 || !strings.Contains(p.notes[0], "times that are zero or run backwards") {
			t.Errorf("%s: notes %q", fault, p.notes)
		}
		if timeline.Total(work.Complete).Duration() > 2*time.Second || len(work.Complete) > 1 {
			t.Errorf("%s: complete are %v", fault, work.Complete)
		}
	}
}

// Where a device's memory becomes scarce it ends for good: what CUPTI takes of it grows in some versions.
func TestScarceMemory(t *testing.T) {
	var scarce atomic.Bool
	p := startWith(t, plain.folder(t), newest, true, scarce.Load)
	p.ask("begin")
	p.ask("many 1 500 500 200000")
	time.Sleep(3 * readEvery)
	scarce.Store(true)
	time.Sleep(3 * readEvery)
	_, monotonic := p.ask("now")
	p.ask("many 1 2000 500 200000")
	p.ask("end")
	again, _ := p.ask("begin")
	work := p.end().one()
	if n := len(work.Activities); n < 500 || n > 1500 || reason(again) != deviceMemory {
		t.Errorf("%d activities are delivered, want 500 and what was in the buffer; the next cell's begin returns %d", n, again)
	}
	if len(p.notes) != 2 || !strings.Contains(p.notes[0], "memory became scarce") {
		t.Errorf("notes %q", p.notes)
	}
	if len(work.Complete) != 1 || int64(work.Complete[0].End) > monotonic+second/2 {
		t.Errorf("complete are %v, and memory was scarce at %d", work.Complete, monotonic)
	}
}

// A kind that nobody asked for is passed over.
func TestUnknownKinds(t *testing.T) {
	p := start(t, plain.folder(t), newest+",unknown=10", true)
	p.ask("begin")
	p.ask("many 1 1000 500 0")
	p.ask("end")
	c := p.counts()
	if work := p.end().one(); len(work.Activities) != 900 || c.unknown != 100 {
		t.Errorf("got %d activities and %d unknown records, want 900 and 100", len(work.Activities), c.unknown)
	}
}

func (p *program) counts() counts {
	p.t.Helper()
	r, err := open(p.ring, p.pid)
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.close()
	c, err := r.counts()
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// What is still running when the recording ends keeps its buffer from being delivered: complete is what was
// before CUPTI got it.
func TestRunningWork(t *testing.T) {
	p := start(t, plain.folder(t), newest, true)
	p.ask("begin")
	p.say("sleep 50")
	real, monotonic := p.ask("now")
	p.say("record 10 0 7 done %d %d 0", real-30_000_000, real-10_000_000)
	p.say("sleep 300") // longer than a flush's period, which takes no buffer that is not full
	p.say("record 10 0 7 runs %d %d 0", real, real+60*second)
	p.ask("end")
	work := p.end().one()
	if len(work.Activities) != 0 || len(work.Complete) != 1 || int64(work.Complete[0].End) < monotonic || int64(work.Complete[0].End) > monotonic+100_000_000 {
		t.Errorf("got %v, complete %v, want nothing, complete until about %d", work.Activities, work.Complete, monotonic)
	}
}

// What CUPTI drops, and for when that was possible.
func TestDroppedRecords(t *testing.T) {
	p := start(t, plain.folder(t), newest+",drop=1", true)
	p.ask("begin")
	p.ask("many 1 2000 500 0")
	p.ask("end")
	c := p.counts()
	work := p.end().one()
	if c.dropped == 0 || len(p.notes) != 1 || !strings.Contains(p.notes[0], "are missing") {
		t.Errorf("dropped %d, notes %q", c.dropped, p.notes)
	}
	var all []timeline.Interval
	for _, a := range work.Activities {
		all = append(all, a.Interval)
	}
	if left := timeline.Total(timeline.Common(work.Complete, timeline.Joined(all))); left != 0 {
		t.Errorf("%v of the time in which records were dropped is called complete: %v", left.Duration(), work.Complete)
	}
}

// A program of 10⁶ activities in a second and nobody who reads: what found no room is counted, and the time is known.
func TestLostRecords(t *testing.T) {
	p := start(t, plain.folder(t), newest, false)
	p.ask("begin")
	const number = capacity + 30_000
	p.ask("many 1 %d 500 0", number)
	p.ask("end")
	r, err := open(p.ring, p.pid)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	var w work
	if err := r.read(w.take); err != nil {
		t.Fatal(err)
	}
	c, _ := r.counts()
	if got := uint64(len(w.activities)) + c.lost; got != c.taken || c.lost != w.left || c.taken+c.dropped > number || c.lost == 0 || c.blind != 0 {
		t.Errorf("%d were read and %d lost, of %d that were taken; %d are said to be lost", len(w.activities), c.lost, c.taken, w.left)
	}
	d, _ := w.deliver(p.pid, timeline.Monotonic(), 0, false, p.Since)
	if len(w.lost) != 1 || timeline.Total(timeline.Common(d.Complete, []timeline.Interval{timeline.Between(
		timeline.Nanos(w.clock.ToBase(int64(w.lost[0].start))), timeline.Nanos(w.clock.ToBase(int64(w.lost[0].end))))})) != 0 {
		t.Errorf("lost are %v, complete %v", w.lost, d.Complete)
	}
}

// Each thread has a buffer of its own (B7); all arrive.
func TestManyThreads(t *testing.T) {
	p := start(t, plain.folder(t), newest, true)
	p.ask("begin")
	p.ask("many 500 40 100 0")
	p.ask("end")
	work := p.end().one()
	streams := make(map[int64]int)
	for _, a := range work.Activities {
		streams[a.Stream]++
	}
	if len(work.Activities) != 500*40 || len(streams) != 500 || len(work.Complete) != 1 {
		t.Errorf("got %d activities of %d threads, complete %v, notes %q", len(work.Activities), len(streams), work.Complete, p.notes)
	}
}

// A child of fork records nothing, and disturbs nothing.
func TestFork(t *testing.T) {
	p := start(t, plain.folder(t), newest, true)
	p.ask("begin")
	p.ask("many 1 100 500 0")
	if status, _ := p.ask("fork"); status != 0 {
		t.Errorf("the child ended with %d", status)
	}
	p.ask("many 1 100 500 0")
	p.ask("end")
	if work := p.end().one(); len(work.Activities) != 200 || len(work.Complete) != 1 {
		t.Errorf("got %d activities, complete %v, notes %q", len(work.Activities), work.Complete, p.notes)
	}
}

// Killed inside the callback, a program leaves what it had delivered before.
func TestKilled(t *testing.T) {
	p := start(t, plain.folder(t), newest+",kill=500", true)
	p.ask("begin")
	p.say("many 1 1000 500 0")
	_, _ = p.output.ReadString('\n')
	work := p.end().one()
	if n := len(work.Activities); n == 0 || n >= 500 {
		t.Errorf("%d activities are delivered, of 499", n)
	}
	for _, c := range work.Complete {
		if last := work.Activities[len(work.Activities)-1]; c.End > last.End+timeline.Nanos(second) {
			t.Errorf("complete are %v, the last activity is %v", work.Complete, last)
		}
	}
}

// Where recording costs more than 2 %, it rests: the stretches that are complete have a rest between them.
func TestGovernor(t *testing.T) {
	p := start(t, plain.folder(t), newest+",overhead=20000000", true)
	p.ask("begin")
	_, took := p.ask("many 1 6000 20000 400000") // 2,500 in a second, in which CUPTI says it spends some 0.2 s
	p.ask("end")
	c := p.counts()
	work := p.end().one()
	if c.rests == 0 || len(work.Complete) < 1 {
		t.Fatalf("it rested %d times, complete are %v", c.rests, work.Complete)
	}
	complete := timeline.Total(work.Complete)
	if share := float64(complete) / float64(took); share > 0.6 || share <= 0 {
		t.Errorf("%.2f of the time are complete: %v", share, work.Complete)
	}
	// In a stretch that is complete there is each kernel that was launched.
	first, last := work.Activities[0].Start, work.Activities[len(work.Activities)-1].End
	for _, s := range timeline.Clip(work.Complete, timeline.Between(first, last)) {
		inside, want := 0, int(s.Nanos()/400_000)
		for _, a := range work.Activities {
			if a.Start >= s.Start && a.End <= s.End {
				inside++
			}
		}
		if inside < want-1 || inside > want+1 {
			t.Errorf("%d kernels lie in %v, want %d", inside, s, want)
		}
	}
}

// A cell's recording may be followed by others, in the same ring or, where the sidecar is a new one, in another.
func TestSeveralCells(t *testing.T) {
	p := start(t, plain.folder(t), newest, true)
	for range 3 {
		p.ask("begin")
		p.ask("many 1 100 500 0")
		p.ask("end")
		p.ask("many 1 100 500 0") // outside: nothing is recorded
	}
	if work := p.end().one(); len(work.Activities) != 300 || len(work.Complete) != 3 {
		t.Errorf("got %d activities, complete %v", len(work.Activities), work.Complete)
	}
}

// A program that cuts its ring while it is read costs a note.
func TestCutRing(t *testing.T) {
	p := start(t, plain.folder(t), newest, true)
	p.ask("begin")
	p.ask("many 1 1000 500 0")
	time.Sleep(4 * firstLook)
	if err := os.Truncate(p.ring, 0); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * readEvery)
	_ = p.command.Process.Kill()
	p.end()
	if len(p.work) != 0 || len(p.notes) != 1 || !strings.Contains(p.notes[0], errDamaged.Error()) {
		t.Errorf("got %v, notes %q", p.work, p.notes)
	}
}
