package pystack

import (
	"encoding/binary"
	"math/bits"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// blocked knows what threads that are blocked in system calls wait for.
type blocked struct {
	known  map[string]timeline.ObjectID // by the call and what its descriptor stands for
	peers  map[string]peer              // of sockets, by what the descriptor stands for
	count  map[string]int               // of sockets, by their peer
	links  map[timeline.ObjectID]bool   // those that are connections
	masked *bool                        // names are not to be kept; nil: not looked up
	spent  time.Duration                // reading the tables of sockets
	// locks are those of files, when they were last read; reading is where the next ones come from, nil: they are not being read.
	locks   lockTable
	reading chan lockTable
	// lockSpent is the time that went to reading them.
	lockSpent time.Duration
}

// peer is whom a socket is connected to, and the number of the socket among those with this peer.
type peer struct {
	name   string
	number int
	late   bool // its name was not looked up: that would have cost too much
}

// MaskWaits is the environment variable by which names of files and addresses are left out.
const MaskWaits = "OMNI_PERF_MASK_WAITS"

const (
	maxKnown = 4096
	// probeConnection is the most between two questions what a thread waits for that is blocked on a connection, for each thread
	// that there is: all together are asked about so often, at some 20 µs.
	probeConnection = int64(8 * time.Millisecond)
	// The tables of sockets may take so long in all, and as long those of locks: one of TCP takes milliseconds, however few there are.
	tablesShare = 0.002
	tablesFirst = 50 * time.Millisecond
)

// onDescriptor are the calls that work on the file descriptor that is their first argument.
var onDescriptor = map[int]bool{
	unix.SYS_READ: true, unix.SYS_PREAD64: true, unix.SYS_READV: true, unix.SYS_PREADV: true, unix.SYS_WRITE: true, unix.SYS_PWRITE64: true, unix.SYS_WRITEV: true, unix.SYS_PWRITEV: true,
	unix.SYS_RECVFROM: true, unix.SYS_RECVMSG: true, unix.SYS_RECVMMSG: true, unix.SYS_SENDTO: true, unix.SYS_SENDMSG: true, unix.SYS_SENDMMSG: true,
	unix.SYS_SENDFILE: true, unix.SYS_SPLICE: true, unix.SYS_COPY_FILE_RANGE: true, unix.SYS_CONNECT: true, unix.SYS_ACCEPT: true, unix.SYS_ACCEPT4: true,
	unix.SYS_FSYNC: true, unix.SYS_FDATASYNC: true, unix.SYS_GETDENTS64: true, unix.SYS_CLOSE: true, unix.SYS_IOCTL: true, unix.SYS_FCNTL: true, unix.SYS_FLOCK: true,
}

// waitingFor adds to what a thread does what it waits for, if the system shows that.
func (s *session) waitingFor(t *thread, c call, a activity) call {
	t.session.asks = false
	if c.leaf == leafLock {
		c.on = s.lockOf(t, a.args[0])
		return c
	}
	if c.state != timeline.StateWaiting && c.state != timeline.StateIO || !a.known || a.syscall < 0 {
		return c
	}
	switch c.wait {
	case timeline.WaitSleep:
		c.on = s.database(t, a)
		return c
	case timeline.WaitChild:
		c.on = s.ofProcess(a)
		return c
	}
	if fd, ok := s.descriptor(c, a); ok {
		c.on = s.object(t, strings.TrimPrefix(c.leaf, "in "), s.p.kernel.link(fd), fd)
	}
	return c
}

// ofProcess is the process whose end is waited for.
func (s *session) ofProcess(a activity) timeline.ObjectID {
	what := timeline.Object{Call: "wait", Kind: timeline.ObjectProcess}
	pid := int32(a.args[0])
	if a.syscall == unix.SYS_WAITID {
		if pid = 0; a.args[0] == unix.P_PID {
			pid = int32(a.args[1])
		}
	}
	if pid > 0 {
		what.Name = s.p.kernel.command(int(pid))
	}
	return s.sink.Object(what)
}

// descriptor is the one that a call works on. A socket with a time limit is waited for by a poll of it alone.
func (s *session) descriptor(c call, a activity) (fd int, ok bool) {
	if onDescriptor[a.syscall] {
		return int(int32(a.args[0])), true
	}
	if c.leaf == "in select" {
		return s.selected(a)
	}
	if c.leaf != "in poll" || a.args[1] != 1 {
		return 0, false
	}
	var polled [4]byte // pollfd.fd
	n, err := s.p.mem.Read(polled[:], []Range{{Addr: a.args[0], Len: len(polled)}})
	if err != nil || n != len(polled) {
		return 0, false
	}
	return int(int32(binary.NativeEndian.Uint32(polled[:]))), true
}

// selected is the descriptor of a select of one alone.
func (s *session) selected(a activity) (fd int, ok bool) {
	var set [unix.FD_SETSIZE / 8]byte
	for _, addr := range a.args[1:4] { // readfds, writefds, exceptfds
		words := set[:(min(a.args[0], unix.FD_SETSIZE)+63)/64*8]
		if addr == 0 {
			continue
		}
		if cpython.ReadAt(s.p.mem, addr, words) != nil {
			return 0, false
		}
		for i, b := range words {
			switch {
			case b == 0:
			case ok || bits.OnesCount8(b) != 1:
				return 0, false
			default:
				fd, ok = 8*i+bits.TrailingZeros8(b), true
			}
		}
	}
	return fd, ok
}

// object is what a call waits for whose descriptor fd stands for link.
func (s *session) object(t *thread, name, link string, fd int) timeline.ObjectID {
	b := &s.blocked
	if b.known == nil || len(b.known) >= maxKnown {
		b.known, b.peers = make(map[string]timeline.ObjectID), make(map[string]peer)
		b.count, b.links = make(map[string]int), make(map[timeline.ObjectID]bool)
	}
	key := name + " " + link
	if id, ok := b.known[key]; ok {
		return id
	}
	what, again := timeline.Object{Call: name}, false
	switch {
	case strings.HasPrefix(link, "/"):
		what.Kind, what.Name = timeline.ObjectFile, strings.TrimSuffix(link, " (deleted)")
		if name == "flock" || name == "fcntl" {
			what.Owner, again = s.lockedBy(t, name, fd), true
		}
	case strings.HasPrefix(link, "pipe:"):
		if what.Kind = timeline.ObjectPipe; fd == 0 {
			what.Name = timeline.StandardInput
		}
	case strings.HasPrefix(link, "socket:["):
		socket := s.peer(link, fd)
		again = socket.late
		what.Kind, what.Name = timeline.ObjectSocket, socket.name
		if name != "accept" {
			what.Connection = socket.number
		}
	default:
		return 0
	}
	if b.masks() && what.Kind != timeline.ObjectPipe {
		what.Name = ""
	}
	id := s.sink.Object(what)
	if what.Owner > 0 {
		s.locks.named.add(id)
	}
	if what.Connection > 0 {
		b.links[id] = true
	}
	if !again {
		b.known[key] = id
	}
	return id
}

// peer is whom a socket is connected to.
func (s *session) peer(link string, fd int) peer {
	b := &s.blocked
	p, known := b.peers[link]
	late := !b.masks() && s.tooDear(b.spent)
	if known && (late || !p.late) {
		return p
	}
	if p = (peer{late: late}); !late && !b.masks() {
		p.name = s.lookUp(link, fd)
	}
	b.count[p.name]++
	p.number = b.count[p.name]
	b.peers[link] = p
	return p
}

// lookUp reads the name of a socket's peer in the tables of sockets; empty where they have none.
func (s *session) lookUp(link string, fd int) (name string) {
	defer charge(&s.blocked.spent, time.Now())
	inode := strings.TrimSuffix(strings.TrimPrefix(link, "socket:["), "]")
	if table := s.p.kernel.table(fd); table != "" {
		name, _ = endpoint(s.p.kernel.sockets(table), inode)
	}
	return name
}

// tooDear reports whether the share of the time has been spent in which tables of one kind are read.
func (s *session) tooDear(spent time.Duration) bool {
	return spent > tablesFirst+time.Duration(tablesShare*float64(s.at-s.begun))
}

// charge adds the time that has passed.
func charge(spent *time.Duration, began time.Time) { *spent += time.Since(began) }

// masks reports whether names are not to be kept.
func (b *blocked) masks() bool {
	if b.masked == nil {
		masked := os.Getenv(MaskWaits) != ""
		b.masked = &masked
	}
	return *b.masked
}
