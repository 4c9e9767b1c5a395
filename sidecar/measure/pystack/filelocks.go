package pystack

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Which process has a lock of a file /proc/locks says (proc_locks(5)), by the file's device and number:
//
//	1: POSIX  ADVISORY  WRITE 4711 fe:00:10004334 1073741825 1073741825
//	1: -> POSIX  ADVISORY  WRITE 4712 fe:00:10004334 1073741825 1073741825
//
// SQLite sleeps, for longer and longer, while another connection has its database (sqlite3_busy_timeout). That it does shows a sleep other than time.sleep,
// called from a method of module sqlite3; which database it is, that somebody has bytes locked of a file of the process that only SQLite locks
// (https://www.sqlite.org/fileformat2.html#the_lock_byte_page, https://www.sqlite.org/walformat.html#locking_primitives).

// fileLock is a lock of a file that a process has.
type fileLock struct {
	flock      bool // by flock, else by fcntl
	write      bool
	owner      int // 0: not known
	file       fileNumber
	first, end int64 // bytes; -1: all that follow
}

// fileNumber identifies a file: its device, as /proc/locks has it, and its inode.
type fileNumber struct {
	device string
	inode  uint64
}

// openFile is a file descriptor of the process.
type openFile struct {
	fd   int
	file fileNumber
}

const (
	lockBytes, lockBytesEnd = 0x40000000, 0x40000000 + 512 // PENDING_BYTE, RESERVED_BYTE, SHARED_FIRST and SHARED_SIZE of SQLite's os.h
	walWriteLock            = 120                          // WALINDEX_LOCK_OFFSET and WAL_WRITE_LOCK of its wal.c
	walIndex                = "-shm"
)

// parseLocks reads the locks that somebody has.
func parseLocks(text []byte) (locks []fileLock) {
	for line := range bytes.Lines(text) {
		f := strings.Fields(string(line))
		if len(f) < 8 || f[1] == "->" {
			continue
		}
		at := strings.LastIndexByte(f[5], ':')
		if at < 0 || f[1] != "FLOCK" && f[1] != "POSIX" && f[1] != "OFDLCK" {
			continue
		}
		inode, err := strconv.ParseUint(f[5][at+1:], 10, 64)
		first, wrong := strconv.ParseInt(f[6], 10, 64)
		if err != nil || wrong != nil {
			continue
		}
		l := fileLock{flock: f[1] == "FLOCK", write: f[3] == "WRITE", file: fileNumber{f[5][:at], inode}, first: first, end: -1}
		if owner, err := strconv.Atoi(f[4]); err == nil && owner > 0 {
			l.owner = owner
		}
		if end, err := strconv.ParseInt(f[7], 10, 64); err == nil {
			l.end = end
		}
		locks = append(locks, l)
	}
	return locks
}

// ofDatabase reports whether it is one that SQLite makes in a database's file, or in the index of its write-ahead log to write.
func (l *fileLock) ofDatabase() bool {
	return !l.flock && (l.first >= lockBytes && l.end >= l.first && l.end < lockBytesEnd || l.write && l.first <= walWriteLock && l.end >= walWriteLock && l.end < walWriteLock+8)
}

// ownerOf is the one process that has a lock of a file; 0: none is known to, or several are.
func ownerOf(locks []fileLock, has func(*fileLock) bool) (owner int) {
	for i := range locks {
		if l := &locks[i]; has(l) {
			if l.owner == 0 || owner != 0 && owner != l.owner {
				return 0
			}
			owner = l.owner
		}
	}
	return owner
}

// fileLocks are the locks of files, read since a thread waits where it does; nil: not known. Reading them waits until no CPU is in the midst of changing one
// (percpu_down_write in locks_start of Linux's fs/locks.c), for tens of milliseconds, and whoever wants a lock waits, too: it is done
// aside, seldom, and only for waits that last.
func (s *session) fileLocks(t *thread) []fileLock {
	b, since := &s.blocked, t.session.movedAt
	select {
	case read := <-b.reading: // nil where nothing is being read: never ready
		b.locks, b.reading = read, nil
		b.lockSpent += read.took
	default:
	}
	known := b.locks.at >= since && b.locks.at > 0
	late := s.tooDear(b.lockSpent)
	t.session.asks = !known && !late
	if b.reading == nil && s.at-since >= longWait && !(known && s.at-b.locks.at < locksFor) && !late {
		reading, at, k := make(chan lockTable, 1), s.at, s.p.kernel
		b.reading = reading
		go func() {
			began := time.Now()
			locks := parseLocks(k.locks())
			reading <- lockTable{at: at, took: time.Since(began), list: locks}
		}()
	}
	if !known {
		return nil
	}
	return b.locks.list
}

// lockTable are the locks of files that there were from a moment on.
type lockTable struct {
	at   int64
	took time.Duration
	list []fileLock
}

const (
	longWait = int64(50 * time.Millisecond) // from which on it is looked up who has a file's lock
	locksFor = int64(10 * time.Second)      // after which they are read again for a wait that goes on: the share of the time is for new ones
)

// lockedBy is the process that has the lock for which a thread is blocked in flock or fcntl; 0: it is not known.
func (s *session) lockedBy(t *thread, name string, fd int) int {
	locks := s.fileLocks(t)
	if locks == nil {
		return 0
	}
	file, ok := s.p.kernel.file(fd)
	if !ok {
		return 0
	}
	return ownerOf(locks, func(l *fileLock) bool { return l.file == file && l.flock == (name == "flock") })
}

// database is the database of SQLite that a sleeping thread waits for; 0: it waits for none.
func (s *session) database(t *thread, a activity) timeline.ObjectID {
	// time.sleep waits for a moment of the monotonic clock (Modules/timemodule.c), usleep for a time.
	if a.syscall == unix.SYS_CLOCK_NANOSLEEP && a.args[0] == unix.CLOCK_MONOTONIC && a.args[1] == unix.TIMER_ABSTIME {
		return 0
	}
	n := len(t.stack)
	if n == 0 || t.session.truncated || !s.p.reader.calls(&t.stack[n-1], "sqlite3.") {
		return 0
	}
	locks := s.fileLocks(t)
	if locks == nil {
		return 0
	}
	defer charge(&s.blocked.lockSpent, time.Now())
	what, ok := lockedDatabase(locks, s.p.kernel.files(), s.p.pid, s.p.kernel.link)
	if !ok {
		return 0
	}
	if s.blocked.masks() {
		what.Name = ""
	}
	on := s.sink.Object(what)
	s.locks.named.add(on)
	return on
}

// lockedDatabase is the database of the process that another process has locked, else one that the process itself has; ok is false where none is
// locked. It has no name where it may be one of several.
func lockedDatabase(locks []fileLock, files []openFile, self int, path func(fd int) string) (what timeline.Object, ok bool) {
	open := make(map[fileNumber]string)
	for _, f := range files {
		open[f.file] = path(f.fd)
	}
	// The first of these that there are: what keeps others from writing is a lock to write; a process that waits may have such a lock itself.
	for _, counts := range []func(*fileLock) bool{
		func(l *fileLock) bool { return l.owner != self && l.write },
		func(l *fileLock) bool { return l.owner != self },
		func(l *fileLock) bool { return l.write },
	} {
		counts := func(l *fileLock) bool {
			name, mine := open[l.file]
			return mine && l.ofDatabase() && counts(l) && (l.first >= lockBytes || strings.HasSuffix(name, walIndex))
		}
		names := make(map[string]bool)
		for i := range locks {
			if counts(&locks[i]) {
				what.Name = strings.TrimSuffix(open[locks[i].file], walIndex)
				names[what.Name] = true
			}
		}
		if len(names) == 0 {
			continue
		}
		what.Call, what.Kind = "sleep", timeline.ObjectDatabase
		if len(names) > 1 {
			what.Name = ""
			return what, true
		}
		what.Owner = ownerOf(locks, counts)
		return what, true
	}
	return what, false
}

// calls reports whether a frame has called a method of an object whose type's name begins like that, or has such an object at hand there.
func (r *reader) calls(f *frame, prefix string) bool {
	for _, v := range r.called(f) {
		if strings.HasPrefix(r.objects.Class(v.value&^r.l.Frame.CodeTag), prefix) {
			return true
		}
	}
	return false
}
