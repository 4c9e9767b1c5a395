package proctree

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/spare"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Sink is what a tree writes to; *timeline.Builder is one.
type Sink interface {
	Since(monotonic int64) timeline.Nanos
	Note(id timeline.NoteID, what, reason string)
	Describe(change func(*timeline.Recording))
}

// maxListed bounds Recording.Processes for targets that start ever new ones.
const maxListed = 2048

// maxBuried bounds what is remembered of the dead: who they were, and what they ran.
const maxBuried = 1 << 14

// Options of a Tree; the zero value is usable.
type Options struct {
	Proc  string        // where procfs is mounted; empty = /proc
	Role  timeline.Role // of the root; empty = RoleScript
	Clock timeline.Clock
	Alone bool // nobody but the root is looked for
	Spare spare.CPUs
	// Marks are "NAME=value" variables that every descendant of the root was started
	// with, as long as it did not drop them; all must be there. They show descendants
	// that were adopted before they were seen. nil: there are none.
	Marks []string
}

// Identity distinguishes a process from a later one with the same pid.
type Identity struct {
	PID   int
	Start uint64 // ticks since boot
}

// Member is a process of the tree.
type Member struct {
	Identity
	Index  int // in Recording.Processes; -1 where it has no room there
	Parent Identity
	Image  Image
	Python bool // by the name of what it runs
	Ours   bool // it belongs to an omni-perf within the program
}

// Tree is a root and the processes that descend from it. Look and Watch are called
// from one goroutine at a time, the others from any.
type Tree struct {
	root int
	opts Options
	fs   procfs.FS
	sink Sink
	zero int64 // the sink's zero on the clock of processes' starts, ns

	find finder

	mu      sync.Mutex
	members map[Identity]*member // those that live
	byPID   map[int]*member      // likewise
	ours    map[int]bool         // pids that were members' at some time: leaders of sessions
	images  map[Image]bool
	buried  map[Identity]bool // zombies that were members; they may be seen again until they are waited for
	listed  []timeline.Process
	changed map[int]bool // of listed, since they were last reported
	room    int          // for processes in the list
	left    int          // processes without room there
	// searched: a look at all descendants has come to its end.
	searched bool
}

// member is a process as it was last seen.
type member struct {
	Member
	facts    facts
	role     timeline.Role
	admitted int64          // CLOCK_MONOTONIC of when it was first seen
	checks   int            // how often it was looked at for a program that it has executed
	next     int64          // CLOCK_MONOTONIC of the next such look
	first    timeline.Nanos // CPU time when first seen, if it began before the recording
	handle   int            // pidfd; -1: none
	ended    bool
}

// New makes the tree of a root; nothing is read before Look or Watch.
func New(root int, sink Sink, opts Options) *Tree {
	if opts.Proc == "" {
		opts.Proc = "/proc"
	}
	if opts.Role == "" {
		opts.Role = timeline.RoleScript
	}
	if opts.Clock == nil {
		opts.Clock = timeline.Monotonic
	}
	t := &Tree{
		root: root, opts: opts, fs: procfs.New(opts.Proc), sink: sink,
		members: make(map[Identity]*member), byPID: make(map[int]*member), ours: make(map[int]bool),
		images: make(map[Image]bool), buried: make(map[Identity]bool), changed: make(map[int]bool), room: maxListed,
	}
	var boot unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) == nil { // starts are counted since boot, sleep included
		t.zero = boot.Nano() - int64(sink.Since(timeline.Monotonic()))
	}
	return t
}

// Living returns the members that live, the root first, then by pid.
func (t *Tree) Living() []Identity {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Identity, 0, len(t.members))
	for id := range t.members {
		out = append(out, id)
	}
	slices.SortFunc(out, func(a, b Identity) int {
		switch {
		case a.PID == t.root:
			return -1
		case b.PID == t.root:
			return 1
		}
		return a.PID - b.PID
	})
	return out
}

// Used takes over what CPU time a process and its own dead children have used in all.
func (t *Tree) Used(id Identity, cpu timeline.Nanos) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.members[id]; m != nil {
		t.usedLocked(m, cpu)
	}
}

func (t *Tree) usedLocked(m *member, cpu timeline.Nanos) {
	if m.Index < 0 {
		return
	}
	p := &t.listed[m.Index]
	if used := max(cpu-m.first, 0); used > p.CPU {
		p.CPU = used
		t.changed[m.Index] = true
	}
}

// used is the CPU time of a process and its own dead children in all, by the same clock as
// what Used gets: against ticks of 10 ms an idle process would seem to use what is left
// of its last one.
func (t *Tree) used(pid int, st procfs.Stat) timeline.Nanos {
	own := st.Own
	if t.fs.Root == "/proc" {
		if cpu, err := procfs.CPUTime(pid); err == nil {
			own = cpu
		}
	}
	return timeline.Nanos(own + st.Reaped)
}

// Precedes reports whether a process that started at so many ticks since boot is older
// than the recording.
func (t *Tree) Precedes(start uint64) bool {
	return int64(start)*int64(procfs.Tick) < t.zero
}

// Index returns where the members of some pids stand in Recording.Processes; the root's
// place, 0, for those that are none.
func (t *Tree) Index(pid int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.byPID[pid]; m != nil {
		return max(m.Index, 0)
	}
	return 0
}

// Has reports whether a member that lives has a pid.
func (t *Tree) Has(pid int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byPID[pid] != nil
}

// Admitted is how many members there have been, those that ended among them.
func (t *Tree) Admitted() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.listed) + t.left
}

// Searched reports whether all that were there at the beginning are known: who asks earlier may see only some of them.
func (t *Tree) Searched() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.searched
}

// LongestPause is the longest time between two looks, after Watch has returned. On a busy
// machine it is more than the interval.
func (t *Tree) LongestPause() time.Duration { return time.Duration(t.find.pause) }

// Ours reports whether the member with a pid is the profiler's own: what it uses is not the
// program's.
func (t *Tree) Ours(pid int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.byPID[pid]
	return m != nil && m.Ours
}

// Image is that of the member with a pid; zero where there is none, or it may not be
// read.
func (t *Tree) Image(pid int) Image {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.byPID[pid]; m != nil {
		return m.Image
	}
	return Image{}
}

// publish gives the sink what has changed.
func (t *Tree) publish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.changed) == 0 {
		return
	}
	t.sink.Describe(func(rec *timeline.Recording) {
		for i, p := range t.listed {
			switch {
			case i == len(rec.Processes):
				rec.Processes = append(rec.Processes, p)
			case t.changed[i]:
				p.Stacks, p.Memory = rec.Processes[i].Stacks, rec.Processes[i].Memory // others' to write
				rec.Processes[i] = p
			}
		}
	})
	clear(t.changed)
}

// admit takes up a process that is new; nil if it is a member already.
func (t *Tree) admit(pid int, st procfs.Stat, parent *member) *member {
	id := Identity{pid, st.Start}
	t.mu.Lock()
	known := t.members[id] != nil || t.buried[id]
	t.mu.Unlock()
	if known {
		return nil
	}
	m := &member{Member: Member{Identity: id, Index: -1}, handle: -1}
	if parent != nil {
		m.Parent = parent.Identity
	}
	used := t.used(pid, st)
	start := timeline.Nanos(int64(st.Start)*int64(procfs.Tick) - t.zero)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.listed) < t.room {
		m.Index = len(t.listed)
		process := timeline.Process{PID: pid, Parent: st.Parent, ParentIndex: -1, Start: start}
		if parent != nil {
			process.Parent, process.ParentIndex = parent.PID, parent.Index
		}
		if t.Precedes(st.Start) {
			m.first = used
		}
		process.CPU = max(used-m.first, 0)
		t.listed = append(t.listed, process)
	} else {
		t.left++
	}
	t.members[id], t.byPID[pid] = m, m
	if len(t.ours) < 1<<16 {
		t.ours[pid] = true
	}
	m.admitted = t.opts.Clock()
	m.next = m.admitted
	return m
}

// identify reads what a member runs; changed reports whether it runs another program
// than before.
func (t *Tree) identify(m *member, st procfs.Stat) (changed bool) {
	image := t.image(m.PID)
	if m.checks++; m.checks > 1 && image == m.Image && st.Comm == m.facts.comm && (image != (Image{}) || m.checks > young) {
		return false
	}
	changed = m.checks == 1 || image != m.Image
	f := facts{comm: st.Comm, arguments: t.fs.Arguments(m.PID), executable: t.fs.Executable(m.PID), image: image, rank: -1}
	rank, hasRank := timeline.RankOf(t.fs.Environment(m.PID))
	if hasRank {
		f.rank = rank.Global
	}
	if len(f.arguments) == 0 && m.checks > 1 { // it has ended
		f.arguments, f.executable, f.rank = m.facts.arguments, m.facts.executable, m.facts.rank
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !changed && image == (Image{}) {
		changed = f.executable != m.facts.executable
	}
	m.facts, m.Image, m.Python = f, image, f.isPython()
	t.noteLocked(image)
	role, number := t.roleLocked(m)
	m.role, m.Ours = role, role == timeline.RoleProfiler
	if m.Index < 0 {
		return changed
	}
	p := &t.listed[m.Index]
	before := *p
	p.Role, p.Number, p.Command = role, number, commandOf(f.arguments)
	if p.Command == "" {
		p.Command = f.comm
	}
	if hasRank {
		r := rank.Global
		p.Rank = &r
	}
	if before != *p {
		t.changed[m.Index] = true
	}
	return changed
}

// roleLocked is what a member is for the one that started it, and its number there.
func (t *Tree) roleLocked(m *member) (role timeline.Role, number *int) {
	if m.PID == t.root {
		return t.opts.Role, nil
	}
	var parentFacts *facts
	var parentRole timeline.Role
	if parent := t.members[m.Parent]; parent != nil {
		parentFacts, parentRole = &parent.facts, parent.role
	}
	return roleOf(&m.facts, parentFacts, parentRole)
}

// noteLocked remembers the program of a member, for forks of it that outlive it.
func (t *Tree) noteLocked(image Image) {
	if image == (Image{}) {
		return
	}
	if len(t.images) >= maxBuried {
		clear(t.images)
		for _, m := range t.members {
			t.images[m.Image] = true
		}
		delete(t.images, Image{})
	}
	t.images[image] = true
}

// end notes that a member is no more. st is its last, of a zombie; ok reports whether
// there is one.
func (t *Tree) end(m *member, exit *int, signal int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m.ended {
		return
	}
	m.ended = true
	if len(t.buried) >= maxBuried {
		clear(t.buried)
	}
	t.buried[m.Identity] = true
	delete(t.members, m.Identity)
	if t.byPID[m.PID] == m {
		delete(t.byPID, m.PID)
	}
	if m.Index >= 0 {
		p := &t.listed[m.Index]
		p.End = max(t.sink.Since(t.opts.Clock()), 1)
		p.Exit, p.Signal = exit, signal
		t.changed[m.Index] = true
	}
}

// exitOf reads a wait status (wait(2)): an exit code, or 128 and the signal.
func exitOf(status uint64) (code *int, signal int) {
	n := int(status >> 8 & 0xff)
	if signal = int(status & 0x7f); signal != 0 {
		n = 128 + signal
	}
	return &n, signal
}

// adopted recognises a process of which no living parent is a member, but which is ours.
func (t *Tree) adopted(pid int, st procfs.Stat) bool {
	t.mu.Lock()
	root := t.byPID[t.root]
	leader := t.ours[st.Session]
	t.mu.Unlock()
	if root == nil || st.Start < root.Start {
		return false
	}
	if leader { // a session that one of ours began
		return true
	}
	if image := t.image(pid); image != (Image{}) {
		t.mu.Lock()
		fork := t.images[image]
		t.mu.Unlock()
		if fork {
			return true
		}
	}
	if len(t.opts.Marks) == 0 {
		return false
	}
	environment := t.fs.Environment(pid)
	return !slices.ContainsFunc(t.opts.Marks, func(mark string) bool { return !slices.Contains(environment, mark) })
}

// hasEnded distinguishes an error of a process that is no more from one of a process that
// may not be read.
func hasEnded(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

func (t *Tree) noteLeft() {
	t.mu.Lock()
	left := t.left
	t.mu.Unlock()
	if left > 0 {
		t.sink.Note(timeline.NoteLeftOut, "processes", fmt.Sprintf("more than the %d that are kept apart; later ones count in the sums only", t.room))
	}
}

// parseLast reads the last process id of /proc/loadavg: its fifth field (proc_loadavg(5)).
func parseLast(text string) (int, bool) {
	fields := strings.Fields(text)
	if len(fields) < 5 {
		return 0, false
	}
	n := 0
	_, err := fmt.Sscanf(fields[4], "%d", &n)
	return n, err == nil && n > 0
}
