package proctree

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// fakeProc is a /proc in a folder.
type fakeProc struct {
	t    *testing.T
	root string
}

type fakeProcess struct {
	pid, parent, session int
	start                int // ticks
	comm, line           string
	state                string
	exit                 int // wait status
	children             []int
	environment          string
}

func newFakeProc(t *testing.T) *fakeProc { return &fakeProc{t, t.TempDir()} }

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

func (p *fakeProc) set(f fakeProcess) {
	p.t.Helper()
	if f.comm == "" {
		f.comm = "python3"
	}
	if f.state == "" {
		f.state = "S"
	}
	dir := strconv.Itoa(f.pid) + "/"
	p.write(dir+"stat", fmt.Sprintf("%d (%s) %s %d 1 %d 0 -1 0 0 0 0 0 5 0 0 0 20 0 1 0 %d 0 0%s %d\n",
		f.pid, f.comm, f.state, f.parent, f.session, f.start, strings.Repeat(" 0", 27), f.exit))
	p.write(dir+"status", fmt.Sprintf("Name:\tx\nTgid:\t%d\n", f.pid))
	p.write(dir+"cmdline", strings.ReplaceAll(f.line, " ", "\x00")+"\x00")
	p.write(dir+"environ", strings.ReplaceAll(f.environment, " ", "\x00")+"\x00")
	p.write(fmt.Sprintf("%stask/%d/children", dir, f.pid), strings.Trim(fmt.Sprint(f.children), "[]"))
}

func (p *fakeProc) last(pid int) { p.write("loadavg", fmt.Sprintf("0.1 0.1 0.1 1/9 %d\n", pid)) }

func (p *fakeProc) kill(pid int) {
	p.t.Helper()
	if err := os.RemoveAll(filepath.Join(p.root, strconv.Itoa(pid))); err != nil {
		p.t.Fatal(err)
	}
}

// watched is a tree of a fakeProc, with the news that it gave.
type watched struct {
	*Tree
	t    *testing.T
	now  int64
	b    *timeline.Builder
	news []string
}

func (w *watched) Started(m Member) { w.news = append(w.news, fmt.Sprintf("+%d", m.PID)) }
func (w *watched) Ended(m Member)   { w.news = append(w.news, fmt.Sprintf("-%d", m.PID)) }

func watch(t *testing.T, p *fakeProc, root int, opts Options) *watched {
	w := &watched{t: t, b: timeline.NewBuilder(timeline.Options{Origin: 1})}
	opts.Proc, opts.Clock = p.root, func() int64 { return w.now }
	w.Tree = New(root, w.b, opts)
	w.zero = 0 // the recording began with the machine
	return w
}

// watchOne watches process 10, which has no children yet; last is the id given away last.
func watchOne(t *testing.T, last int) (*fakeProc, *watched) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1})
	p.last(last)
	w := watch(t, p, 10, Options{})
	w.look(0)
	return p, w
}

// look looks at a time and returns the news since the last look.
func (w *watched) look(at time.Duration) string {
	w.t.Helper()
	w.now, w.news = int64(at), nil
	if _, err := w.Tree.look(false, w); err != nil {
		w.t.Fatal(err)
	}
	w.poll(w)
	w.recheck(w.now, w)
	w.publish()
	return strings.Join(w.news, " ")
}

func (w *watched) processes() []timeline.Process {
	return w.b.Snapshot(timeline.Nanos(w.now)).Processes
}

const ms = time.Millisecond

// A child is listed from its start to its end, under what it executed since.
func TestAChildFromStartToEnd(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1, line: "python3 train.py"})
	p.last(10)
	w := watch(t, p, 10, Options{Role: timeline.RoleKernel})
	if got := w.look(0); got != "+10" {
		t.Errorf("at first %s", got)
	}
	p.set(fakeProcess{pid: 12, parent: 10, start: 50, line: "python3 train.py"})
	p.set(fakeProcess{pid: 13, parent: 12, start: 51, comm: "sh", line: "sh -c x"})
	p.write("11/stat", "11 (python3) S 1 1 1 0 -1 0 0 0 0 0 5 0 0 0 20 0 1 0 50 0 0\n") // a thread of the target
	p.write("11/status", "Name:\tx\nTgid:\t10\n")
	if got := w.look(510 * ms); got != "" {
		t.Errorf("got %s, want nothing", got)
	}
	p.last(13)
	if got := w.look(520 * ms); got != "+12 +13" {
		t.Errorf("news %q, want the child and its child", got)
	}
	before := w.processes()
	if got := before[1]; got.Command != "train.py" || got.Start.Duration() != 500*ms || got.ParentIndex != 0 || before[2].ParentIndex != 1 {
		t.Errorf("%+v", before)
	}
	p.set(fakeProcess{pid: 12, parent: 10, start: 50, comm: "ffmpeg", line: "/usr/bin/ffmpeg -i a"})
	w.look(600 * ms)
	if got := w.processes()[1]; got.Command != "ffmpeg" || got.End != 0 {
		t.Errorf("after exec %+v", got)
	}
	if before[1].Command != "train.py" {
		t.Error("an earlier snapshot has changed")
	}
	p.set(fakeProcess{pid: 12, parent: 10, start: 50, comm: "ffmpeg", state: "Z", exit: 9})
	if got := w.look(700 * ms); got != "-12" {
		t.Errorf("news %q", got)
	}
	if got := w.processes()[1]; got.End.Duration().Round(ms) != 700*ms || got.Command != "ffmpeg" || got.Signal != 9 {
		t.Errorf("killed: %+v", got)
	}
	p.set(fakeProcess{pid: 10, start: 1, line: "python3 train.py", children: []int{12}})
	if got := w.look(1900 * ms); got != "" || len(w.processes()) != 3 {
		t.Errorf("a zombie was taken for a new process: %q", got)
	}
	p.kill(12)
	p.set(fakeProcess{pid: 13, parent: 1, start: 51, comm: "sh", line: "sh -c x"}) // adopted by init
	w.look(1950 * ms)
	if got := w.processes(); got[1].End.Duration().Round(ms) != 700*ms || got[2].End != 0 {
		t.Errorf("later: %+v", got)
	}
	p.kill(13)
	if got := w.look(1990 * ms); got != "-13" {
		t.Errorf("news %q", got)
	}
}

// The kernel empties the command line and the environment of a process that ends before
// anybody has waited for it: it stays what it was.
func TestARankThatEndsStaysOne(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1, comm: "sh", line: "sh launch", children: []int{11}})
	p.set(fakeProcess{pid: 11, parent: 10, start: 2, line: "python3 train.py", environment: "RANK=1 WORLD_SIZE=2"})
	p.last(11)
	w := watch(t, p, 10, Options{})
	w.look(50 * ms)
	p.set(fakeProcess{pid: 11, parent: 10, start: 2, comm: "pt_main"})
	p.write("11/cmdline", "")
	p.write("11/environ", "")
	w.Recheck(Identity{11, 2})
	w.look(100 * ms)
	rank := w.processes()[1]
	if rank.Role != timeline.RoleRank || rank.Rank == nil || *rank.Rank != 1 || rank.Command != "train.py" {
		t.Errorf("it is %+v", rank)
	}
}

// A shell that has become the interpreter is looked at once a second by then; its first
// fork is a worker all the same.
func TestAForkOfWhatItsParentHasBecome(t *testing.T) {
	p := newFakeProc(t)
	runs := func(pid, parent int, program, line string) {
		p.set(fakeProcess{pid: pid, parent: parent, start: pid, comm: filepath.Base(program), line: line})
		exe := filepath.Join(p.root, strconv.Itoa(pid), "exe")
		os.Remove(exe)
		if err := os.Symlink(program, exe); err != nil {
			t.Fatal(err)
		}
	}
	runs(10, 1, "/usr/bin/bash", "bash shims/python train.py")
	p.last(10)
	w := watch(t, p, 10, Options{})
	for i := range 40 {
		w.look(time.Duration(i) * 100 * ms)
	}
	runs(10, 1, "/usr/bin/python3.12", "python train.py")
	runs(11, 10, "/usr/bin/python3.12", "python train.py")
	p.last(11)
	if got := w.look(3910 * ms); got != "+10 +11" {
		t.Errorf("news %q, want what the parent has become, and its fork", got)
	}
	if got := w.processes(); got[1].Role != timeline.RoleWorker || got[0].Command != "train.py" {
		t.Errorf("the parent is %q, the fork a %s", got[0].Command, got[1].Role)
	}
}

func TestAPidThatIsUsedAgain(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1})
	p.set(fakeProcess{pid: 12, parent: 10, start: 2, comm: "a", line: "a"})
	p.set(fakeProcess{pid: 10, start: 1, children: []int{12}})
	p.last(12)
	w := watch(t, p, 10, Options{})
	w.look(0)
	p.set(fakeProcess{pid: 12, parent: 99, start: 70, comm: "stranger", line: "stranger"})
	if got := w.look(700 * ms); got != "-12" {
		t.Errorf("news %q, want the end of the first", got)
	}
	p.set(fakeProcess{pid: 12, parent: 10, start: 90, comm: "b", line: "b"})
	if got := w.look(2 * time.Second); got != "+12" {
		t.Errorf("news %q, want the second of our own", got)
	}
	list := w.processes()
	if len(list) != 3 || list[1].Command != "a" || list[1].End == 0 || list[2].Command != "b" || list[2].End != 0 || w.Index(12) != 2 {
		t.Errorf("processes %+v", list)
	}
}

func TestWhoWasAdoptedBeforeAnybodySawIt(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 5, session: 3})
	p.last(10)
	w := watch(t, p, 10, Options{Marks: []string{"RUN=x", "USER=me"}})
	w.look(0)
	p.set(fakeProcess{pid: 11, parent: 10, start: 50, session: 11})
	p.set(fakeProcess{pid: 21, parent: 1, start: 60, session: 11, line: "session"})
	p.set(fakeProcess{pid: 22, parent: 1, start: 60, session: 22, line: "environment", environment: "USER=me A=b RUN=x"})
	p.set(fakeProcess{pid: 23, parent: 1, start: 60, session: 3, line: "stranger", environment: "USER=me RUN=y"})
	p.set(fakeProcess{pid: 24, parent: 1, start: 4, session: 11, line: "older", environment: "USER=me RUN=x"})
	p.last(24)
	if got := w.look(700 * ms); got != "+11 +21 +22" {
		t.Errorf("news %q", got)
	}
}

func TestWhereLoadavgCannotBeBelieved(t *testing.T) {
	for name, text := range map[string]string{"none": "", "no last id": "0 0 0 1/1 0\n", "made up": "0 0 0 1/1 10\n"} {
		p := newFakeProc(t)
		p.set(fakeProcess{pid: 10, start: 1})
		if text != "" {
			p.write("loadavg", text)
		}
		w := watch(t, p, 10, Options{})
		w.look(0)
		for i := 1; i <= 5; i++ { // found at the latest by the walk of each second, from then on at once
			pid, at := 10+i, time.Duration(i)*1200*ms
			p.set(fakeProcess{pid: pid, parent: 10, start: int((at - 400*ms) / procfs.Tick), comm: "x", line: "x"})
			p.set(fakeProcess{pid: 10, start: 1, children: []int{pid}})
			if got, want := strings.TrimSpace(w.look(at-250*ms)+" "+w.look(at)), fmt.Sprintf("+%d", pid); got != want {
				t.Errorf("%s: news %q, want %s", name, got, want)
			}
			p.kill(pid)
			w.look(at + 50*ms)
		}
		if !w.find.blind {
			t.Errorf("%s: loadavg is still believed", name)
		}
	}
}

func TestAnIdThatWasGivenAwayButIsNotThereYet(t *testing.T) {
	p, w := watchOne(t, 10)
	p.last(12)
	w.look(20 * ms)
	p.set(fakeProcess{pid: 12, parent: 10, start: 2, line: "x"})
	if got := w.look(40 * ms); got != "+12" {
		t.Errorf("news %q", got)
	}
	if len(w.find.missing) != 1 {
		t.Errorf("still looked for: %v", w.find.missing)
	}
	for i := range patience {
		w.look(time.Duration(60+20*i) * ms)
	}
	if len(w.find.missing) != 0 {
		t.Errorf("still looked for: %v", w.find.missing)
	}
}

// On a busy machine a fork may be off its CPU for long when its id is given away
// already; also when the ids begin anew at just that time.
func TestAForkThatTakesLong(t *testing.T) {
	for name, id := range map[string]int{"the next id": 13, "the ids begin anew": 3} {
		p, w := watchOne(t, 12)
		p.last(id)
		news, at := "", 20*ms
		for ; at < 200*ms; at += 20 * ms {
			news += w.look(at)
		}
		p.set(fakeProcess{pid: id, parent: 10, start: 2, line: "x"})
		for ; at < 400*ms; at += 20 * ms {
			news += w.look(at)
		}
		if want := fmt.Sprintf("+%d", id); news != want || w.find.blind {
			t.Errorf("%s: news %q, want %q; loadavg is doubted: %v", name, news, want, w.find.blind)
		}
	}
}

// A profiler that was kept from looking finds children late: that is no reason not to
// believe loadavg.
func TestLooksThatComeLate(t *testing.T) {
	p, w := watchOne(t, 10)
	w.look(20 * ms)
	p.set(fakeProcess{pid: 12, parent: 10, start: 30, line: "x"})
	p.set(fakeProcess{pid: 10, start: 1, children: []int{12}}) // seen by the walk, before loadavg shows
	if got := w.look(3 * time.Second); got != "+12" || w.find.blind {
		t.Errorf("news %q; loadavg is doubted: %v", got, w.find.blind)
	}
	if got := w.LongestPause(); got < 2900*ms {
		t.Errorf("the longest pause was %v", got)
	}
}

func TestManyProcessesAreBounded(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1})
	p.last(10)
	w := watch(t, p, 10, Options{})
	w.room = 50
	w.look(0)
	for i := range 70 {
		pid := 100 + i
		p.set(fakeProcess{pid: pid, parent: 10, start: 5, state: "Z"})
		p.last(pid)
		w.look(time.Duration(i) * ms)
		p.kill(pid)
	}
	rec := w.b.Snapshot(timeline.Nanos(w.now))
	if len(rec.Processes) != 50 || len(rec.Notes) != 1 {
		t.Errorf("%d processes, notes %v", len(rec.Processes), rec.Notes)
	}
}

// What runs long is looked at once a second for another program; when something says
// that it executed one, at the next look.
func TestWhoIsSaidToRunAnotherProgram(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1})
	p.set(fakeProcess{pid: 12, parent: 10, start: 2, line: "sh"})
	p.set(fakeProcess{pid: 10, start: 1, children: []int{12}})
	p.last(12)
	w := watch(t, p, 10, Options{})
	for i := range 40 {
		w.look(time.Duration(i) * 100 * ms)
	}
	p.set(fakeProcess{pid: 12, parent: 10, start: 2, comm: "ffmpeg", line: "ffmpeg"})
	w.look(3910 * ms)
	if got := w.processes()[1].Command; got != "sh" {
		t.Errorf("found at once as %q: nothing is left to test", got)
	}
	w.Recheck(Identity{12, 2})
	w.look(3930 * ms)
	if got := w.processes()[1].Command; got != "ffmpeg" {
		t.Errorf("command %q", got)
	}
}

// A shell that sets up an environment executes the interpreter within its first seconds.
func TestAShellThatBecomesPythonIsFoundSoon(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1, children: []int{12}})
	p.set(fakeProcess{pid: 12, parent: 10, start: 2, comm: "bash", line: "bash shims/python train.py"})
	p.last(12)
	w := watch(t, p, 10, Options{})
	for i := range 60 {
		w.look(time.Duration(i) * 20 * ms)
	}
	p.set(fakeProcess{pid: 12, parent: 10, start: 2, line: "python3 train.py"})
	w.look(1200 * ms)
	w.look(1220 * ms)
	if got := w.processes()[1].Command; got != "train.py" {
		t.Errorf("after 40 ms it is still called %q", got)
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	p := newFakeProc(t)
	p.set(fakeProcess{pid: 10, start: 1})
	w := watch(t, p, 10, Options{})
	w.look(0)
	for _, m := range w.members {
		m.Image = Image{1}
	}
	for i := range maxBuried + 10 {
		w.noteLocked(Image{2, byte(i >> 16), byte(i >> 8), byte(i)})
	}
	if n := len(w.images); n > maxBuried || !w.images[Image{1}] {
		t.Errorf("%d programs are remembered, the living root's: %v", n, w.images[Image{1}])
	}
}

// Where no CPU is free a look is taken from the program.
func TestLooksAreSeldomWhereNothingBeginsAndNoCPUIsFree(t *testing.T) {
	second := int64(time.Second)
	for _, test := range []struct {
		name      string
		now, news int64
		free      float64
		want      time.Duration
	}{
		{"at first", 10 * second, 0, 0, lookInterval},
		{"a CPU is free", 60 * second, 0, 1, lookInterval},
		{"a process has just ended", 60 * second, 58 * second, 0, lookInterval},
		{"nothing has happened for a while", 60 * second, 50 * second, 0, calmInterval},
	} {
		tree := watch(t, newFakeProc(t), 1, Options{Spare: func() (free, cores float64) { return test.free, 2 }})
		tree.now = test.now
		tree.find.news = test.news
		if got := tree.interval(); got != test.want {
			t.Errorf("%s: %v to the next look, want %v", test.name, got, test.want)
		}
	}
}
