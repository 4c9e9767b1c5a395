package proctree

import (
	"context"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Listener receives the news of a tree, from the goroutine that watches it.
type Listener interface {
	// Started is called for a member that is new, or that runs another program since it was
	// last reported.
	Started(Member)
	Ended(Member)
}

const (
	lookInterval = 20 * time.Millisecond
	// While no CPU is free a look is taken from the program: where nothing has begun or ended for calmAfter the next ones
	// are calmInterval apart.
	calmInterval = 100 * time.Millisecond
	calmAfter    = int64(5 * time.Second)
	pollInterval = int64(100 * time.Millisecond) // of members without a pidfd
	// young is how often a new process is looked at for the program that it executes,
	// at growing distances; after that, once a second.
	young      = 5
	firstCheck = int64(5 * time.Millisecond)
	// What runs no Python yet may be a shell that sets up an environment for it: among few
	// members it is looked at as often for its first seconds, each time for some tens of microseconds.
	settling     = int64(3 * time.Second)
	settleChecks = int64(40 * time.Millisecond)
	maxSettling  = 16
)

// Watch keeps the tree up to date until ctx ends.
func (t *Tree) Watch(ctx context.Context, l Listener) error {
	ends := newEnds()
	defer ends.close()
	defer t.closeHandles()
	polled := int64(0)
	for ctx.Err() == nil {
		found, err := t.look(false, l)
		if err != nil {
			return err
		}
		for _, m := range found {
			t.awaitEnd(ends, m)
		}
		now := t.opts.Clock()
		t.recheck(now, l)
		if now-polled >= pollInterval {
			polled = now
			t.poll(l)
		}
		t.publish()
		t.sleep(ctx, ends, l)
	}
	t.poll(l)
	t.publish()
	return nil
}

func (t *Tree) closeHandles() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.members {
		if m.handle >= 0 {
			unix.Close(m.handle)
			m.handle = -1
		}
	}
}

// awaitEnd asks for a word when the process ends.
func (t *Tree) awaitEnd(e *ends, m *member) {
	if e == nil || t.fs.Root != "/proc" {
		return
	}
	handle, err := unix.PidfdOpen(m.PID, 0)
	if err != nil {
		return // it is looked at now and then
	}
	if st, err := t.fs.Stat(m.PID); err != nil || st.Start != m.Start { // of another process by now
		unix.Close(handle)
		return
	}
	if !e.add(handle, m.PID) {
		unix.Close(handle)
		return
	}
	m.handle = handle
}

// sleep waits until the next look is due, and takes note of who ends meanwhile.
func (t *Tree) sleep(ctx context.Context, e *ends, l Listener) {
	due := time.Now().Add(t.interval())
	for ctx.Err() == nil && time.Now().Before(due) {
		pids, ok := e.wait(due)
		if !ok {
			select {
			case <-ctx.Done():
			case <-time.After(time.Until(due)):
			}
			return
		}
		for _, pid := range pids {
			t.mu.Lock()
			m := t.byPID[pid]
			t.mu.Unlock()
			if m != nil && m.handle >= 0 {
				t.lose(m, l)
			}
		}
		if len(pids) > 0 {
			t.publish()
		}
	}
}

// interval is how long it is to the next look.
func (t *Tree) interval() time.Duration {
	now := t.opts.Clock()
	if now-t.find.news < calmAfter {
		return lookInterval
	}
	return t.opts.Spare.Interval(time.Duration(now-t.find.since), lookInterval, calmInterval)
}

// lose takes a member for ended, of which something says so.
func (t *Tree) lose(m *member, l Listener) {
	if st, err := t.fs.Stat(m.PID); err == nil && st.Start == m.Start {
		t.bury(m, st, l)
		return
	}
	exit, signal := exitByHandle(m.handle)
	t.leave(m, exit, signal, l)
}

// bury ends a member of which a zombie is left. Another user's exit status is not
// counted: it reads 0.
func (t *Tree) bury(m *member, st procfs.Stat, l Listener) {
	t.mu.Lock()
	t.usedLocked(m, timeline.Nanos(st.Own+st.Reaped))
	t.mu.Unlock()
	exit, signal := exitOf(st.Exit)
	if st.Exit == 0 && m.Image == (Image{}) {
		exit, signal = exitByHandle(m.handle)
	}
	t.leave(m, exit, signal, l)
}

func (t *Tree) leave(m *member, exit *int, signal int, l Listener) {
	t.find.news = t.opts.Clock()
	if m.handle >= 0 {
		unix.Close(m.handle)
		m.handle = -1
	}
	t.end(m, exit, signal)
	if l != nil {
		t.publish()
		l.Ended(m.Member)
	}
}

// pidfdInfo is struct pidfd_info of linux/pidfd.h.
type pidfdInfo struct {
	mask, cgroupID                                   uint64
	pid, tgid, ppid                                  uint32
	ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid uint32
	exitCode                                         int32
	_                                                [3]uint64
}

const (
	pidfdGetInfo  = 0xc000ff0b | 64<<16 // _IOWR(PIDFS_IOCTL_MAGIC, 11, struct pidfd_info), of 64 bytes (PIDFD_INFO_SIZE_VER0)
	pidfdInfoExit = 1 << 3              // PIDFD_INFO_EXIT, Linux 6.15
)

// exitByHandle asks a pidfd how its process ended, which Linux 6.15 and later show
// even after it was waited for.
func exitByHandle(handle int) (exit *int, signal int) {
	if handle < 0 {
		return nil, 0
	}
	info := pidfdInfo{mask: pidfdInfoExit}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(handle), pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
	if errno != 0 || info.mask&pidfdInfoExit == 0 {
		return nil, 0
	}
	return exitOf(uint64(uint32(info.exitCode)))
}

// Ended returns how a process ended: its exit code, or 128 and the signal. It is known while nobody has waited for the
// process, and by its pidfd from Linux 6.15 on; nil is not known. handle is -1 where there is none.
func Ended(fs procfs.FS, pid int, start uint64, handle int) (exit *int, signal int) {
	if st, err := fs.Stat(pid); err == nil && st.Start == start && st.State == 'Z' {
		return exitOf(st.Exit)
	}
	return exitByHandle(handle)
}

// Recheck has the next look find out whether a member runs another program by now:
// something says so.
func (t *Tree) Recheck(id Identity) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.members[id]; m != nil {
		m.next = 0
	}
}

// recheck looks whether members run another program by now.
func (t *Tree) recheck(now int64, l Listener) {
	t.mu.Lock()
	var due []*member
	for _, m := range t.members {
		if m.next <= now {
			m.next = now + min(firstCheck<<min(2*m.checks, 20), int64(time.Second))
			if !m.Python && now-m.admitted < settling && len(t.members) <= maxSettling {
				m.next = min(m.next, now+settleChecks)
			}
			due = append(due, m)
		}
	}
	t.mu.Unlock()
	for _, m := range due {
		st, err := t.fs.Stat(m.PID)
		if err != nil || st.Start != m.Start || st.Zombie() {
			continue // its end is noticed otherwise
		}
		if t.identify(m, st) {
			t.news(l, m)
		}
	}
}

// poll looks at the members without a pidfd.
func (t *Tree) poll(l Listener) {
	t.mu.Lock()
	var due []*member
	for _, m := range t.members {
		if m.handle < 0 {
			due = append(due, m)
		}
	}
	t.mu.Unlock()
	for _, m := range due {
		st, err := t.fs.Stat(m.PID)
		switch {
		case err != nil && !hasEnded(err):
		case err != nil || st.Start != m.Start:
			t.leave(m, nil, 0, l)
		case st.Zombie():
			t.bury(m, st, l)
		case l == nil: // nobody watches: looks are all there is
			t.identify(m, st)
		}
	}
}

func (t *Tree) news(l Listener, m *member) {
	if l != nil {
		t.publish() // so that it is in the list
		l.Started(m.Member)
	}
}
