package host

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/proctree"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// fakeProc is a /proc in a folder.
type fakeProc struct {
	t    *testing.T
	root string
}

// fakeProcess is one process of it; times in ticks.
type fakeProcess struct {
	pid, parent   int
	start         int
	own, reaped   int
	read, written int
	pages         int
	children      []int
	minor, major  int
	threads       int
	unreadableIO  bool
	exiting       bool
}

func newFakeProc(t *testing.T) *fakeProc {
	p := &fakeProc{t: t, root: t.TempDir()}
	p.write("meminfo", "MemTotal: 1000 kB\nMemFree: 300 kB\nMemAvailable: 400 kB\n")
	p.write("stat", "cpu  100 0 50 1000 0 0 0 0 0 0\n")
	return p
}

func (p *fakeProc) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *fakeProc) read(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.root, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), "\n")
}

func (p *fakeProc) set(f fakeProcess) {
	p.t.Helper()
	dir := strconv.Itoa(f.pid) + "/"
	flags := 0x400000
	if f.exiting {
		flags |= 4
	}
	p.write(dir+"stat", fmt.Sprintf("%d (x) S %d 1 1 0 -1 %d %d 0 %d 0 %d 0 %d 0 20 0 %d 0 %d 0 %d\n",
		f.pid, f.parent, flags, f.minor, f.major, f.own, f.reaped, max(f.threads, 1), f.start, f.pages))
	if !f.unreadableIO {
		p.write(dir+"io", fmt.Sprintf("rchar: 1\nwchar: 1\nsyscr: 1\nsyscw: 1\nread_bytes: %d\nwrite_bytes: %d\n", f.read, f.written))
	}
	p.write(dir+"status", "VmHWM:\t64 kB\nvoluntary_ctxt_switches:\t1\nnonvoluntary_ctxt_switches:\t2\n")
	task := fmt.Sprintf("%stask/%d/", dir, f.pid)
	p.write(task+"children", strings.Trim(fmt.Sprint(f.children), "[]"))
	p.write(task+"schedstat", fmt.Sprintf("%d 0 1\n", f.own*int(tick)))
	p.write(dir+"net/dev", "Inter-| Receive\n face |bytes\n    lo: 999 0 0 0 0 0 0 0 999 0 0 0 0 0 0 0\n  eth0: 100 0 0 0 0 0 0 0 50 0 0 0 0 0 0 0\n")
}

func (p *fakeProc) kill(pid int) {
	p.t.Helper()
	if err := os.RemoveAll(filepath.Join(p.root, strconv.Itoa(pid))); err != nil {
		p.t.Fatal(err)
	}
}

func (p *fakeProc) family(pid int) *family {
	fs := newFiles(p.root, p.root)
	f := newFamily(&fs, pid, proctree.New(pid, timeline.NewBuilder(timeline.Options{}), proctree.Options{Proc: p.root}), nil)
	f.private = true
	return f
}

func mustLook(t *testing.T, f *family) {
	t.Helper()
	if err := f.look(true); err != nil {
		t.Fatal(err)
	}
}

func TestADeadChildsTimeIsCountedOnce(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1, children: []int{20}})
	p.set(fakeProcess{pid: 20, parent: 10, start: 2, own: 1000, written: 5000})
	f := p.family(10)
	mustLook(t, f) // 1000 ticks were used before: not ours
	p.set(fakeProcess{pid: 20, parent: 10, start: 2, own: 1400, written: 7000})
	mustLook(t, f)
	if got, want := f.childrenCPU, 400*tick; got != want {
		t.Errorf("while it lives: %v ticks, want %v", got/tick, want/tick)
	}
	// It runs 10 ticks more, dies, and is waited for: Linux adds all 1410 to the
	// parent's count, and its bytes.
	p.kill(20)
	p.set(fakeProcess{pid: 10, start: 1, own: 5, reaped: 1410, written: 7100})
	mustLook(t, f)
	if got, want := f.childrenCPU, 410*tick; got != want {
		t.Errorf("after it was waited for: %v ticks, want %v", got/tick, want/tick)
	}
	if f.written != 2100 {
		t.Errorf("%v bytes written, want 2100", f.written)
	}
	if f.ownCPU != 5*tick {
		t.Errorf("the target itself used %v ticks, want 5", f.ownCPU/tick)
	}
}

func TestADeadChildWhoseParentWasReadTooEarly(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1, children: []int{20}})
	p.set(fakeProcess{pid: 20, parent: 10, start: 2, own: 1000})
	f := p.family(10)
	mustLook(t, f)
	p.kill(20) // gone, but the parent's count was read before it waited
	mustLook(t, f)
	p.set(fakeProcess{pid: 10, start: 1, reaped: 1000})
	mustLook(t, f)
	if got := f.childrenCPU; got != 0 {
		t.Errorf("%v ticks counted that were used before the first look", got/tick)
	}
}

func TestAChildThatNobodyWaitsForHidesNoLaterWork(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1, children: []int{20, 30}})
	p.set(fakeProcess{pid: 20, parent: 10, start: 2, own: 100000, read: 1 << 30})
	p.set(fakeProcess{pid: 30, parent: 10, start: 3})
	f := p.family(10)
	mustLook(t, f)
	p.kill(20) // SIGCHLD is ignored: its parent is never notified
	mustLook(t, f)
	mustLook(t, f)
	p.set(fakeProcess{pid: 30, parent: 10, start: 3, own: 50, read: 4096})
	mustLook(t, f)
	if got := f.childrenCPU; got != 50*tick {
		t.Errorf("the other child's 50 ticks are reported as %v", got/tick)
	}
	if f.read != 4096 {
		t.Errorf("the other child's 4096 bytes are reported as %v", f.read)
	}
}

func TestChildrenThatLiveBetweenTwoLooksCount(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1})
	f := p.family(10)
	mustLook(t, f)
	p.set(fakeProcess{pid: 10, start: 1, reaped: 30, written: 100})
	mustLook(t, f)
	if f.childrenCPU != 30*tick || f.written != 100 {
		t.Errorf("%v ticks, %v bytes; want 30 and 100", f.childrenCPU/tick, f.written)
	}
}

func TestGrandchildrenOrphansAndReusedPids(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1, children: []int{20}})
	p.set(fakeProcess{pid: 20, parent: 10, start: 2, children: []int{30}})
	p.set(fakeProcess{pid: 30, parent: 20, start: 3})
	f := p.family(10)
	mustLook(t, f)
	if got := fmt.Sprint(f.pids()); got != "[10 20 30]" {
		t.Errorf("family %s", got)
	}
	p.kill(20) // 30 is an orphan now, still ours
	p.set(fakeProcess{pid: 10, start: 1})
	p.set(fakeProcess{pid: 30, parent: 1, start: 3, own: 7})
	mustLook(t, f)
	if got := fmt.Sprint(f.pids()); got != "[10 30]" || f.childrenCPU != 7*tick {
		t.Errorf("family %s, children used %v ticks; want the orphan and its 7", got, f.childrenCPU/tick)
	}
	p.kill(30)
	p.set(fakeProcess{pid: 30, parent: 1, start: 99, own: 5000}) // a stranger
	mustLook(t, f)
	if got := fmt.Sprint(f.pids()); got != "[10]" || f.childrenCPU != 7*tick {
		t.Errorf("family %s, %v ticks: a stranger was taken for the child", got, f.childrenCPU/tick)
	}
}

func TestSamplerFromAFakeProc(t *testing.T) {
	p := newFakeProc(t)
	p.write("fs/cgroup/box/cpu.max", "150000 100000\n")
	p.write("fs/cgroup/memory.max", "524288\n")
	target := fakeProcess{pid: 10, start: 1, pages: 4, minor: 100}
	p.set(target)
	p.write("10/cgroup", "0::/box\n")
	now := int64(1e9)
	b := timeline.NewBuilder(timeline.Options{Origin: now})
	c := New(10, Options{Proc: p.root, Sys: p.root, Role: "kernel", Clock: func() int64 { return now }})
	s := newSampler(c, b, 0)
	s.read(now, everything)
	now += 1e8
	target.own, target.pages, target.minor, target.read = 5, 8, 150, 1000
	p.set(target)
	p.write("stat", "cpu  110 0 60 1000 0 0 0 0 0 0\n")
	s.read(now, usual)
	rec := b.Snapshot(b.Since(now))

	page := float64(os.Getpagesize())
	for _, want := range []struct {
		id           string
		value, limit float64
	}{
		{"cpu", 0.5, 1.5}, {"rss", 8 * page, 524288}, {"faults.minor", 500, 0}, {"faults.major", 0, 0},
		{"disk.read", 10000, 0}, {"disk.write", 0, 0}, {"mem.system", 600 << 10, 1000 << 10}, {"rss.peak", 64 << 10, 524288},
		{"net.recv", 0, 0}, {"threads", 1, 0}, {"thread.10.cpu", 0.5, 1}, {"ctx.voluntary", 0, 0},
	} {
		tr := find(rec, want.id)
		if tr == nil || len(tr.Points) == 0 {
			t.Errorf("%s: no points", want.id)
			continue
		}
		if got := tr.Points[len(tr.Points)-1].Value; math.Abs(got-want.value) > 1e-6*want.value {
			t.Errorf("%s is %v, want %v", want.id, got, want.value)
		}
		if tr.Limit != want.limit {
			t.Errorf("%s: limit %v, want %v", want.id, tr.Limit, want.limit)
		}
	}
	if tr := find(rec, "cpu.children"); tr != nil {
		t.Errorf("a track of children that there never were: %+v", tr)
	}
	if tr := find(rec, "cpu.system"); tr == nil || math.Abs(tr.Points[0].Value-2) > 1e-9 || tr.PID != 0 {
		t.Errorf("cpu.system %+v, want 0.2 s in 0.1 s, of the machine", tr)
	}
	if len(rec.Processes) != 1 || rec.Processes[0].Role != "kernel" {
		t.Errorf("processes %+v", rec.Processes)
	}
}

// A process gives its memory back when it ends; that is nothing it came to while it ran.
func TestTheMemoryOfAnEndingProcessIsNotRead(t *testing.T) {
	p := newFakeProc(t)
	now := int64(1e9)
	b := timeline.NewBuilder(timeline.Options{Origin: now})
	s := newSampler(New(10, Options{Proc: p.root, Sys: p.root, Clock: func() int64 { return now }}), b, 0)
	target, child := fakeProcess{pid: 10, start: 1, pages: 8, children: []int{20}}, fakeProcess{pid: 20, parent: 10, start: 150, pages: 4}
	for _, d := range []depth{everything, usual, usual, cheap} {
		child.own += 50
		p.set(target)
		p.set(child)
		s.read(now, d)
		now += 1e9
	}
	target.exiting, target.pages, child.exiting, child.pages = true, 3, true, 1
	for _, d := range []depth{cheap, usual} {
		child.own += 50
		p.set(target)
		p.set(child)
		s.read(now, d)
		now += 1e9
	}
	rec := b.Snapshot(b.Since(now))
	page := float64(os.Getpagesize())
	for id, want := range map[string]float64{"rss": 8 * page, "process.1.rss": 4 * page} {
		tr := find(rec, id)
		if tr == nil || len(tr.Points) == 0 {
			t.Errorf("%s: no points", id)
			continue
		}
		for _, point := range tr.Points {
			if point.Value != want {
				t.Errorf("%s is %v at %v, want %v throughout", id, point.Value, point.At, want)
			}
		}
	}
}

// TestChildrenBeginWithNothing: until they are there they have and use nothing, of which the
// mean over the recording is made.
func TestChildrenBeginWithNothing(t *testing.T) {
	p := newFakeProc(t)
	target := fakeProcess{pid: 10, start: 1}
	p.set(target)
	now := int64(1e9)
	b := timeline.NewBuilder(timeline.Options{Origin: now})
	s := newSampler(New(10, Options{Proc: p.root, Sys: p.root, Clock: func() int64 { return now }}), b, 0)
	s.read(now, everything)
	now += 1e9
	s.read(now, everything)
	now += 1e9
	target.children = []int{20}
	p.set(target)
	p.set(fakeProcess{pid: 20, parent: 10, start: 150, own: 40, pages: 8})
	p.write("20/status", "RssAnon:\t      24 kB\n")
	s.read(now, everything)
	rec := b.Snapshot(b.Since(now))
	if tr := find(rec, "own.children"); tr == nil || len(tr.Points) != 3 || tr.Points[1].At != 1e9 || tr.Points[0].Value+tr.Points[1].Value != 0 || tr.Points[2].Value != 24<<10 {
		t.Errorf("own.children %+v, want nothing until 1 s", tr)
	}
	if tr := find(rec, "cpu.children"); tr == nil || math.Abs(integral(tr)-0.4) > 1e-9 || len(tr.Points) != 2 || tr.Points[0].Value != 0 {
		t.Errorf("cpu.children %+v, want nothing in the first second, then the 0.4 s that the child used before it was seen", tr)
	}
}

// TestChildrenThatWereThereAreNoGrowth: somebody else finds the descendants while the family is read first, one of them at
// that time. The two that are older than the recording count from its beginning, the one that began in it does not.
func TestChildrenThatWereThereAreNoGrowth(t *testing.T) {
	p := newFakeProc(t)
	memory := func(pid, start, kB int) {
		p.set(fakeProcess{pid: pid, parent: 10, start: start})
		p.write(fmt.Sprintf("%d/status", pid), fmt.Sprintf("RssAnon:\t %d kB\n", kB))
	}
	p.set(fakeProcess{pid: 10, start: 1, children: []int{20, 30}})
	memory(20, 2, 100)
	memory(30, 3, 200)
	now := int64(1e9)
	b := timeline.NewBuilder(timeline.Options{Origin: now})
	clock := func() int64 { return now }
	s := newSampler(New(10, Options{Proc: p.root, Sys: p.root, Clock: clock}), b, 0)
	s.family.tree, s.family.private = proctree.New(10, b, proctree.Options{Proc: p.root, Clock: clock}), false
	s.read(now, everything)
	now += 5e7
	p.set(fakeProcess{pid: 10, start: 1, children: []int{20, 30, 40}})
	memory(40, 150, 400)
	if err := s.family.tree.Look(true); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.read(now, usual)
		now += 1e8
	}
	for id, want := range map[string][]float64{"own.children": {300 << 10, 700 << 10, 700 << 10}, "processes": {2, 3, 3}} {
		var got []float64
		tr := find(b.Snapshot(b.Since(now)), id)
		for _, point := range tr.Points {
			got = append(got, point.Value)
		}
		if !slices.Equal(got, want) || tr.Points[0].At != 0 {
			t.Errorf("%s: %v from %v on, want %v from the beginning", id, got, tr.Points[0].At, want)
		}
	}
}

// A child that began in the recording is growth though it was there when the family was read first.
func TestAChildThatBeganBeforeTheFirstReadingIsGrowth(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1, children: []int{20, 40}})
	for pid, start := range map[int]int{20: 2, 40: 150} {
		p.set(fakeProcess{pid: pid, parent: 10, start: start})
		p.write(fmt.Sprintf("%d/status", pid), "RssAnon:\t 100 kB\n")
	}
	origin := int64(1e9)
	now := origin + 3e7
	b := timeline.NewBuilder(timeline.Options{Origin: origin})
	s := newSampler(New(10, Options{Proc: p.root, Sys: p.root, Clock: func() int64 { return now }}), b, 0)
	s.read(now, everything)
	if tr := find(b.Snapshot(b.Since(now)), "own.children"); len(tr.Points) != 2 || tr.Points[0].At != 0 || tr.Points[0].Value != 100<<10 || tr.Points[1].Value != 200<<10 {
		t.Errorf("%+v", tr.Points)
	}
}

// The memory of all is read at first, however many there are.
func TestManyChildrenThatWereThereAreNoGrowth(t *testing.T) {
	p := newFakeProc(t)
	target := fakeProcess{pid: 10, start: 1}
	for pid := 20; pid < 20+3*maxOwnReads; pid++ {
		target.children = append(target.children, pid)
		p.set(fakeProcess{pid: pid, parent: 10, start: 2})
		p.write(fmt.Sprintf("%d/status", pid), "RssAnon:\t 1 kB\n")
	}
	p.set(target)
	now := int64(1e9)
	b := timeline.NewBuilder(timeline.Options{Origin: now})
	s := newSampler(New(10, Options{Proc: p.root, Sys: p.root, Clock: func() int64 { return now }}), b, 0)
	for range 3 {
		s.read(now, usual)
		now += 1e8
	}
	for _, point := range find(b.Snapshot(b.Since(now)), "own.children").Points {
		if point.Value != 3*maxOwnReads<<10 {
			t.Errorf("%v B at %v, want %v throughout", point.Value, point.At, 3*maxOwnReads<<10)
		}
	}
}

// TestCheapReadingsDoNotHalveTheSum: they do not look at children, which work evenly here.
func TestCheapReadingsDoNotHalveTheSum(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1, children: []int{20}})
	now := int64(1e9)
	b := timeline.NewBuilder(timeline.Options{Origin: now})
	s := newSampler(New(10, Options{Proc: p.root, Sys: p.root, Clock: func() int64 { return now }}), b, 0)
	for i := range 8 {
		p.set(fakeProcess{pid: 20, parent: 10, start: 1, own: 100 * i})
		if i%2 == 0 {
			s.read(now, usual)
		} else {
			s.read(now, cheap)
		}
		now += 1e9
	}
	for _, point := range find(b.Snapshot(b.Since(now)), "cpu").Points {
		if math.Abs(point.Value-1) > 1e-9 {
			t.Errorf("%v cores from %v to %v, want 1", point.Value, point.From, point.At)
		}
	}
}

// What children used that lived and ended between two readings was not used in the moment
// before the reading that finds it.
func TestNobodyUsesMoreCPUsThanThereAre(t *testing.T) {
	p := newFakeProc(t)
	target := fakeProcess{pid: 10, start: 1}
	p.set(target)
	now := int64(1e9)
	b := timeline.NewBuilder(timeline.Options{Origin: now})
	tree := proctree.New(10, b, proctree.Options{Proc: p.root, Clock: func() int64 { return now }})
	s := newSampler(New(10, Options{Proc: p.root, Sys: p.root, Clock: func() int64 { return now }}), b, 0)
	s.family.tree, s.family.private = tree, false // another one looks
	look := func(d depth) {
		now += 50e6
		if err := tree.Look(true); err != nil {
			t.Fatal(err)
		}
		s.read(now, d)
	}
	s.read(now, everything)
	for range 4 {
		look(cheap)
	}
	target.children = nil
	for child := range 2 * fewMembers {
		target.children = append(target.children, 20+child)
		p.set(fakeProcess{pid: 20 + child, parent: 10, start: 120})
	}
	p.set(target)
	for range 10 {
		look(cheap)
	}
	target.children, target.reaped = nil, 80 // ticks: 0.8 s
	for child := range 2 * fewMembers {
		p.kill(20 + child)
	}
	p.set(target)
	for range 4 {
		look(cheap)
	}
	look(usual)
	target.reaped++ // a tick, within 3 ms
	p.set(target)
	now += 3e6
	s.read(now, usual)
	rec := b.Snapshot(b.Since(now))
	for _, id := range []string{"cpu", "cpu.children"} {
		tr := find(rec, id)
		if tr == nil || math.Abs(integral(tr)-0.8) > 1e-9 {
			t.Fatalf("%s: %+v, want 0.8 s in all", id, tr)
		}
		for _, point := range tr.Points {
			if point.Value > 1.6 { // they lived for 0.5 s
				t.Errorf("%s: %.1f cores from %v to %v", id, point.Value, point.From.Duration(), point.At.Duration())
			}
		}
	}
}

func TestWhatCannotBeReadIsANote(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1, unreadableIO: true})
	for _, gone := range []string{"stat", "meminfo", "10/net/dev", "10/task/10/schedstat", "10/status"} {
		if err := os.Remove(filepath.Join(p.root, gone)); err != nil {
			t.Fatal(err)
		}
	}
	now := int64(1e9)
	b := timeline.NewBuilder(timeline.Options{Origin: now})
	s := newSampler(New(10, Options{Proc: p.root, Sys: p.root, Clock: func() int64 { return now }}), b, 0)
	for range 3 {
		s.read(now, everything)
		now += 1e8
	}
	rec := b.Snapshot(b.Since(now))
	for _, id := range []string{"disk.read", "disk.write", "cpu.system", "mem.system", "net.recv", "net.sent", "thread.10.cpu", "rss.peak", "ctx.voluntary"} {
		if tr := find(rec, id); tr != nil {
			t.Errorf("%s has points %v though it could not be read", id, tr.Points)
		}
	}
	noted := fmt.Sprint(rec.Notes)
	for _, want := range []string{"disk.read", "cpu.system", "mem.system", "net.recv", "CPU time of threads", "rss.peak"} {
		if !strings.Contains(noted, want) {
			t.Errorf("notes %s say nothing of %s", noted, want)
		}
	}
	if find(rec, "cpu") == nil || find(rec, "rss") == nil {
		t.Error("what could be read is missing as well")
	}
}

func TestLimitsOfOldControlGroups(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10})
	p.write("10/cgroup", "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n3:cpuset:/\n")
	p.write("fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1\n")
	p.write("fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n")
	p.write("fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "50000\n")
	p.write("fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n")
	p.write("fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n")
	p.write("fs/cgroup/memory/memory.limit_in_bytes", "4096\n")
	fs := newFiles(p.root, p.root)
	if got, want := readLimits(&fs, 10), (Limits{Cores: 0.5, Memory: 4096}); got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
}

func TestPace(t *testing.T) {
	p := newPace(0, timeline.FigurePace{Interval: 100e6})
	var usualReads, cheapReads, slowReads int
	now := int64(0)
	for now < 3e9 {
		now += int64(max(p.wait(now), 1))
		switch d := p.due(now); d {
		case cheap:
			cheapReads++
		case everything:
			slowReads++
		default:
			usualReads++
		}
	}
	if cheapReads < 8 || cheapReads > 12 {
		t.Errorf("%d cheap readings in the first second, want some 10 between the usual ones", cheapReads)
	}
	if total := usualReads + slowReads; total < 29 || total > 31 || slowReads < 2 || slowReads > 3 {
		t.Errorf("%d readings in 3 s, %d of them of everything; want 30 and 2 or 3", total, slowReads)
	}
	for now < 70e9 {
		now += int64(max(p.wait(now), 1))
		if slows := p.slows(now); slows {
			t.Error("readings become less frequent without having been asked for that")
		}
		p.due(now)
	}
	p.took(usual, 50e6) // a machine with very many processes
	if p.stretched != 2500e6 {
		t.Errorf("after a reading of 50 ms the interval is %v; it may cost 2 %% of a core", p.stretched)
	}
	p.took(usual, 1e6)
	if p.stretched != 100e6 {
		t.Errorf("after a quick reading the interval is %v, want the one asked for", p.stretched)
	}
}

// A process that is found after the first look, but started before the recording, has used
// what it used before: only what it uses from then on counts, CPU time and bytes.
func TestAMemberFoundLateIsNotBornLate(t *testing.T) {
	p := newFakeProc(t)
	target := fakeProcess{pid: 10, start: 1}
	p.set(target)
	fs := newFiles(p.root, p.root)
	began := timeline.Monotonic()
	b := timeline.NewBuilder(timeline.Options{Origin: began})
	f := newFamily(&fs, 10, proctree.New(10, b, proctree.Options{Proc: p.root}), nil)
	mustLook(t, f)
	now := int(timeline.Boottime()/int64(tick)) + 2
	target.children = []int{20, 30}
	p.set(target)
	p.set(fakeProcess{pid: 20, parent: 10, start: now - 1000, own: 1000, read: 1 << 30, written: 1 << 20}) // ten seconds ago
	p.set(fakeProcess{pid: 30, parent: 10, start: now, own: 7, written: 100})
	mustLook(t, f)
	if f.childrenCPU != 7*tick || f.read != 0 || f.written != 100 {
		t.Errorf("%v ticks, %v bytes read, %v written; want those of the new one: 7, 0, 100", f.childrenCPU/tick, f.read, f.written)
	}
	p.set(fakeProcess{pid: 20, parent: 10, start: now - 1000, own: 1003, read: 1<<30 + 50, written: 1 << 20})
	mustLook(t, f)
	if f.childrenCPU != 10*tick || f.read != 50 {
		t.Errorf("%v ticks, %v bytes read, want 10, 50", f.childrenCPU/tick, f.read)
	}
}

// Whatever the counts say: a machine of four CPUs does no more than four seconds of work in
// one. What is too much for one window counts in the next.
func TestNoFigureAboveTheMachine(t *testing.T) {
	p := newFakeProc(t)
	p.write("cpuinfo", strings.Repeat("processor\t: 0\n\n", 4))
	p.set(fakeProcess{pid: 10, start: 1})
	now := int64(1e9)
	b := timeline.NewBuilder(timeline.Options{Origin: now})
	s := newSampler(New(10, Options{Proc: p.root, Sys: p.root, Clock: func() int64 { return now }}), b, 0)
	for _, ticks := range []int{0, 600, 600, 650} {
		p.set(fakeProcess{pid: 10, start: 1, own: ticks})
		s.read(now, usual)
		now += 1e9
	}
	var got []float64
	for _, point := range find(b.Snapshot(b.Since(now)), "cpu").Points {
		got = append(got, point.Value)
	}
	if want := []float64{4, 2, 0.5}; !slices.Equal(got, want) {
		t.Errorf("%v cores, want %v", got, want)
	}
}

// As omni-perf run reads without -s: what a script does at its beginning it does once.
func TestFiguresAreReadLessOftenAfterTheFirstMinute(t *testing.T) {
	p := newPace(0, timeline.FigurePace{Interval: timeline.DefaultFigureInterval, Later: timeline.LaterFigureInterval})
	var first, later, slowed int
	for now := int64(0); now < 120e9; {
		now += int64(max(p.wait(now), 1))
		if p.slows(now) {
			slowed++
		}
		switch d := p.due(now); {
		case d != usual && d != everything:
		case now < 60e9:
			first++
		default:
			later++
		}
	}
	if first < 595 || first > 600 || later < 58 || later > 61 || slowed != 1 {
		t.Errorf("%d readings in the first minute, %d in the second, slowed down %d times; want 600, 60 and once", first, later, slowed)
	}
}

// A thread's name is its own only where it is not the process's.
func TestThreadsAreCalledByTheirOwnNames(t *testing.T) {
	p := newFakeProc(t)
	p.write("10/comm", "python3\n")
	p.write("10/task/10/comm", "python3\n")
	p.write("10/task/11/comm", "feeder\n")
	fs := newFiles(p.root, p.root)
	for tid, want := range map[int]string{10: "", 11: "feeder", 12: ""} {
		if got := fs.taskName(10, tid); got != want {
			t.Errorf("thread %d is called %q, want %q", tid, got, want)
		}
	}
}
