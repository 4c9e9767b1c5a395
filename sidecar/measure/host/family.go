package host

import (
	"slices"

	"github.com/shirou/gopsutil/v3/process"

	"github.com/omni-perf/omni-perf/sidecar/measure/proctree"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// member is one process of the target's family as it was last seen.
type member struct {
	pid, parent int
	start       uint64 // identity beside the pid
	own         timeline.Nanos
	reaped      timeline.Nanos // CPU time of its children that are gone
	rss         uint64
	disk        *disk // nil: not readable
	minor       uint64
	major       uint64
	threads     int
	zombie      bool
	exiting     bool // its memory is being given back, or has been
	profiler    bool // ours: what it uses is not the program's
}

func (m *member) identity() proctree.Identity { return proctree.Identity{PID: m.pid, Start: m.start} }

type disk struct{ read, written uint64 }

// family is the target and its descendants, as the tree shows them. It knows how much
// all of them have used together since the first look, the dead included.
//
// When a process is waited for, Linux adds what it and its own dead children have
// used to its parent's counts (CPU in stat, bytes in io): growth that was counted
// before, while it lived. So what the dead were last seen with explains growth of
// their parents' counts, in this look or the next; what it does not explain are
// processes that lived between two looks. Where nobody waits (SIGCHLD ignored, the
// parent gone first) nothing grows and nothing is to be explained.
type family struct {
	fs       *files
	cpuClock func(pid int) (timeline.Nanos, error) // nil: stat files
	pid      int
	tree     *proctree.Tree // who belongs to it
	private  bool           // nobody else keeps the tree up to date
	members  map[int]*member

	// Totals since the first look.
	ownCPU      timeline.Nanos // of the target alone
	childrenCPU timeline.Nanos // of the others, the dead included
	read        float64        // bytes, of all
	written     float64
	unreadable  bool // some member's io file
	looked      bool
	complete    bool  // the tree had been searched before the last look: all that were there at the beginning are members
	unexplained usage // of members that died just before the last look
	admitted    int   // how many the tree had ever seen at the last look
}

// usage is what processes have used in their lives.
type usage struct {
	cpu           timeline.Nanos
	read, written float64
}

func newFamily(fs *files, pid int, tree *proctree.Tree, cpuClock func(int) (timeline.Nanos, error)) *family {
	return &family{fs: fs, cpuClock: cpuClock, pid: pid, tree: tree, private: true, members: make(map[int]*member)}
}

// alone reports whether there were no descendants at the last look, and none since.
func (f *family) alone() bool { return len(f.members) == 1 && f.tree.Admitted() == f.admitted }

// target is the target as it was last seen; nil when it is gone.
func (f *family) target() *member { return f.members[f.pid] }

// used is the CPU time of the target and its descendants by the last look.
func (f *family) used() timeline.Nanos { return f.ownCPU + f.childrenCPU }

// look reads all members. deep walks a tree that nobody else keeps up to date.
func (f *family) look(deep bool) error {
	now := make(map[int]*member, len(f.members))
	m, err := f.readMember(f.pid)
	if err != nil {
		return err
	}
	now[f.pid] = m
	if f.private {
		_ = f.tree.Look(deep) // of the target, which was there a moment ago
	}
	f.admitted, f.complete = f.tree.Admitted(), f.tree.Searched()
	for pid, start := range f.candidates() {
		if now[pid] != nil {
			continue
		}
		m, err := f.readMember(pid)
		if err != nil || m.start != start {
			continue // gone in between, and the pid perhaps used again by a stranger
		}
		now[pid] = m
	}
	f.settle(now)
	f.members = now
	for _, m := range now {
		f.tree.Used(m.identity(), m.own+m.reaped)
	}
	return nil
}

// candidates are the processes to be read, with their starts: those that live, and
// those that nobody has waited for yet.
func (f *family) candidates() map[int]uint64 {
	out := make(map[int]uint64, len(f.members))
	for pid, m := range f.members {
		out[pid] = m.start
	}
	for _, id := range f.tree.Living() {
		out[id.PID] = id.Start
	}
	return out
}

// readTarget reads the target alone, between two looks.
func (f *family) readTarget() (*member, error) {
	m, err := f.readMember(f.pid)
	if err != nil || f.target() == nil {
		return m, err
	}
	old := f.target()
	f.ownCPU += max(m.own-old.own, 0)
	old.own = max(m.own, old.own)
	return m, nil
}

func (f *family) readMember(pid int) (*member, error) {
	st, err := f.fs.Stat(pid)
	if err != nil {
		return nil, err
	}
	m := &member{pid: pid, parent: st.Parent, start: st.Start, own: timeline.Nanos(st.Own), reaped: timeline.Nanos(st.Reaped), rss: st.RSS, minor: st.Minor, major: st.Major, threads: st.Threads, zombie: st.Zombie(), exiting: st.Exiting || st.Zombie(), profiler: f.tree.Ours(pid)}
	if old := f.members[pid]; old != nil && old.start == m.start {
		m.profiler = m.profiler || old.profiler // the tree has forgotten one that ended
	}
	if f.cpuClock != nil {
		if cpu, err := f.cpuClock(pid); err == nil {
			m.own = cpu
		}
	}
	p := &process.Process{Pid: int32(pid)}
	if io, err := p.IOCountersWithContext(f.fs.ctx); err == nil {
		m.disk = &disk{io.ReadBytes, io.WriteBytes}
	}
	return m, nil
}

// settle adds to the totals what was used since the last look.
func (f *family) settle(now map[int]*member) {
	if !f.looked {
		f.looked = true
		return // what was used before is not ours to count
	}
	var grown usage // of those who live
	var reaped timeline.Nanos
	for pid, m := range now {
		old := f.members[pid]
		if old == nil || old.start != m.start {
			if f.tree.Precedes(m.start) {
				continue // found late: what it used before is not the recording's
			}
			old = &member{disk: &disk{}} // born since: all of it counts
		}
		own := max(m.own-old.own, 0)
		reaped += max(m.reaped-old.reaped, 0)
		switch {
		case m.profiler:
			continue
		case pid == f.pid:
			f.ownCPU += own
		default:
			grown.cpu += own
		}
		if m.disk != nil && old.disk != nil {
			grown.read += rise(old.disk.read, m.disk.read)
			grown.written += rise(old.disk.written, m.disk.written)
		}
		f.unreadable = f.unreadable || m.disk == nil
	}
	gone := f.gone(now)
	known := usage{gone.cpu + f.unexplained.cpu, gone.read + f.unexplained.read, gone.written + f.unexplained.written}
	explained := min(reaped, known.cpu)
	share := 1.0 // of the dead that were waited for
	if known.cpu > 2*tick {
		share = float64(explained) / float64(known.cpu)
	}
	f.childrenCPU += grown.cpu + reaped - explained
	f.read += max(grown.read-share*known.read, 0)
	f.written += max(grown.written-share*known.written, 0)
	f.unexplained = usage{}
	if gone.cpu > 0 && share < 0.5 {
		f.unexplained = gone // perhaps their parent was read before it waited
	}
}

// gone is what the members used that are no more.
func (f *family) gone(now map[int]*member) (u usage) {
	for pid, m := range f.members {
		if again := now[pid]; again != nil && again.start == m.start {
			continue
		}
		u.cpu += m.own + m.reaped
		if m.disk != nil {
			u.read += float64(m.disk.read)
			u.written += float64(m.disk.written)
		}
	}
	return u
}

func rise(before, after uint64) float64 {
	if after < before {
		return 0
	}
	return float64(after - before)
}

// pids are the members, the target first.
func (f *family) pids() []int {
	out := make([]int, 0, len(f.members))
	for pid := range f.members {
		if pid != f.pid {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return append([]int{f.pid}, out...)
}
