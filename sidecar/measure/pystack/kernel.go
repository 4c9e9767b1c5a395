package pystack

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
)

// activity is what a thread does, as the kernel has it.
type activity struct {
	known   bool
	running bool      // on a CPU, or waiting for one
	syscall int       // system call it is blocked in; -1 none, as in a page fault
	args    [4]uint64 // the call's first arguments
	letter  byte      // of the state in /proc/PID/stat where the system call is not known; 0 otherwise
}

// kernel reads what the operating system knows of the target's threads. One
// goroutine at a time.
type kernel interface {
	// tid is our id of the thread that has the given one in the target's own pid
	// namespace; 0 if there is none.
	tid(native int) int
	// activity returns what a thread does; gone if there is none of that id.
	activity(tid int) (a activity, gone bool)
	// scheduled is for how long a thread has been on a CPU, and runnable without one, in
	// nanoseconds; -1 unknown.
	scheduled(tid int) (ran, delayed int64)
	// cpu is the one that a thread ran on last; -1 unknown.
	cpu(tid int) int
	// state is the letter of the process's state in /proc/PID/stat; 0 unknown.
	state() byte
	// comm is the kernel's name of a thread; empty unknown.
	comm(tid int) string
	// resident is the memory that is resident in the process, in bytes; false unknown.
	resident() (int64, bool)
	// faults are the minor page faults of a thread, or with 0 of the process; -1 unknown.
	faults(tid int) int64
	// link is what a file descriptor of the process stands for: a path, "socket:[INODE]"; empty unknown.
	link(fd int) string
	table(fd int) string
	// sockets are the lines of one of the tables of its network, below /proc/PID/net; nil unknown.
	sockets(table string) []byte
	// command is the name of another process, by its id in the target's pid namespace; empty unknown.
	command(pid int) string
	// locks are the lines of /proc/locks; nil unknown.
	locks() []byte
	// file identifies what a file descriptor of the process stands for.
	file(fd int) (fileNumber, bool)
	// files are the process's regular files.
	files() []openFile
	// forget gives back what is held open of a thread; 0: of the process.
	forget(tid int)
}

// maxOpenFiles bounds the files kept open, two of a thread; beyond they are opened each
// time, which costs more than reading it.
const maxOpenFiles = 512

// procKernel reads /proc.
type procKernel struct {
	pid     int
	mayOpen int
	open    map[procFile]int // file descriptors
	stat    bool             // "syscall" is refused: use "stat"
	buf     [512]byte
	linkBuf [unix.PathMax]byte

	nested *bool       // the target is in a pid namespace of its own; nil not yet known
	outer  map[int]int // if so, our ids of its threads by theirs
}

const (
	fileSyscall   = "syscall"
	fileStat      = "stat"
	fileSchedstat = "schedstat"
	fileStatm     = "statm"
)

// procFile is a file of a thread; tid 0: of the process.
type procFile struct {
	tid  int
	name string
}

func newProcKernel(pid int) *procKernel {
	return &procKernel{pid: pid, mayOpen: maxOpenFiles, open: make(map[procFile]int)}
}

func (k *procKernel) path(f procFile) string {
	if f.tid == 0 {
		return fmt.Sprintf("/proc/%d/%s", k.pid, f.name)
	}
	return fmt.Sprintf("/proc/%d/task/%d/%s", k.pid, f.tid, f.name)
}

// read returns the beginning of a file, until the next read. It is kept open.
func (k *procKernel) read(f procFile) ([]byte, error) {
	fd, ok := k.open[f]
	if !ok {
		var err error
		if fd, err = unix.Open(k.path(f), unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return nil, err
		}
		if len(k.open) >= k.mayOpen {
			defer unix.Close(fd)
		} else {
			k.open[f] = fd
		}
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&k.buf[0])), uintptr(len(k.buf)), 0, 0, 0)
	switch {
	case errno != 0:
		k.close(f)
		return nil, errno
	case n == 0:
		k.close(f)
		return nil, unix.ESRCH
	}
	return k.buf[:n], nil
}

func (k *procKernel) close(f procFile) {
	if fd, ok := k.open[f]; ok {
		unix.Close(fd)
		delete(k.open, f)
	}
}

func (k *procKernel) tid(native int) int {
	if k.nested == nil {
		nested := k.innerID(k.pid) != k.pid
		k.nested = &nested
	}
	if !*k.nested {
		return native
	}
	if tid := k.outer[native]; tid != 0 && k.innerID(tid) == native {
		return tid
	}
	k.outer = make(map[int]int)
	for _, tid := range k.tasks() {
		k.outer[k.innerID(tid)] = tid
	}
	return k.outer[native]
}

// tasks lists the ids of the process's threads, as they are here.
func (k *procKernel) tasks() []int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", k.pid))
	if err != nil {
		return nil
	}
	var out []int
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, tid)
		}
	}
	return out
}

// innerID is the thread's id in its own, innermost pid namespace: the last
// figure of NSpid; tid itself if that is not known.
func (k *procKernel) innerID(tid int) int {
	status, err := os.ReadFile(k.path(procFile{tid, "status"}))
	if err != nil {
		return tid
	}
	if ids := procfs.NamespaceIDs(status); len(ids) > 0 {
		return ids[len(ids)-1]
	}
	return tid
}

func (k *procKernel) activity(tid int) (activity, bool) {
	if k.stat {
		b, err := k.read(procFile{tid, fileStat})
		return parseStat(b), isGone(err)
	}
	b, err := k.read(procFile{tid, fileSyscall})
	if err != nil && !isGone(err) && err != unix.EMFILE {
		k.stat = true // not permitted, or a kernel without it
	}
	return parseSyscall(b), isGone(err)
}

// link reads where a file descriptor leads.
func (k *procKernel) link(fd int) string {
	n, err := procfs.Readlink(fmt.Sprintf("/proc/%d/fd/%d", k.pid, fd), k.linkBuf[:])
	if err != nil || n == len(k.linkBuf) {
		return ""
	}
	return strings.ToValidUTF8(string(k.linkBuf[:n]), "\uFFFD")
}

// table names the one in /proc/PID/net that has a socket in it, by the protocol that the kernel shows for it; empty
// if there is none.
func (k *procKernel) table(fd int) string {
	n, err := unix.Getxattr(fmt.Sprintf("/proc/%d/fd/%d", k.pid, fd), "system.sockprotoname", k.linkBuf[:])
	if err != nil {
		return ""
	}
	switch protocol := unix.ByteSliceToString(k.linkBuf[:n]); protocol {
	case "TCP", "UDP":
		return strings.ToLower(protocol)
	case "TCPv6":
		return "tcp6"
	case "UDPv6":
		return "udp6"
	default:
		if strings.HasPrefix(protocol, "UNIX") {
			return "unix"
		}
		return ""
	}
}

// maxTable bounds what is read of a table of sockets: some 25,000 of them.
const maxTable = 4 << 20

func (k *procKernel) sockets(table string) []byte {
	f, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", k.pid, table))
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxTable))
	if err != nil {
		return nil
	}
	return text
}

func (k *procKernel) command(pid int) string {
	if k.nested == nil || *k.nested {
		return ""
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return asName(name)
}

func (k *procKernel) locks() []byte {
	text, err := os.ReadFile("/proc/locks")
	if err != nil {
		return nil
	}
	return text
}

func (k *procKernel) file(fd int) (fileNumber, bool) {
	var st unix.Stat_t
	if unix.Stat(fmt.Sprintf("/proc/%d/fd/%d", k.pid, fd), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fileNumber{}, false
	}
	return fileNumber{fmt.Sprintf("%02x:%02x", unix.Major(st.Dev), unix.Minor(st.Dev)), st.Ino}, true
}

// maxFiles bounds the descriptors that are looked at for a database.
const maxFiles = 1 << 10

func (k *procKernel) files() (out []openFile) {
	folder, err := os.Open(fmt.Sprintf("/proc/%d/fd", k.pid))
	if err != nil {
		return nil
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(maxFiles)
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if file, ok := k.file(fd); ok {
			out = append(out, openFile{fd, file})
		}
	}
	return out
}

func isGone(err error) bool { return err == unix.ENOENT || err == unix.ESRCH }

func (k *procKernel) forget(tid int) {
	for _, name := range []string{fileSyscall, fileStat, fileSchedstat, fileStatm} {
		k.close(procFile{tid, name})
	}
}

func (k *procKernel) closeAll() {
	for f := range k.open {
		k.close(f)
	}
}

// parseSyscall reads /proc/PID/syscall: "running", "-1 0xSP 0xPC", or
// "202 0xARG …".
func parseSyscall(b []byte) activity {
	b = bytes.TrimSpace(b)
	if bytes.Equal(b, []byte("running")) {
		return activity{known: true, running: true}
	}
	number, rest, _ := bytes.Cut(b, []byte{' '})
	nr, err := strconv.Atoi(string(number))
	if err != nil {
		return activity{}
	}
	a := activity{known: true, syscall: nr}
	if nr >= 0 {
		for i := range a.args {
			var word []byte
			word, rest, _ = bytes.Cut(rest, []byte{' '})
			a.args[i], _ = strconv.ParseUint(strings.TrimPrefix(string(word), "0x"), 16, 64)
		}
	}
	return a
}

// parseStat reads the state letter of /proc/PID/stat, which follows the
// name in brackets (the name may hold anything).
func parseStat(b []byte) activity {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 || i+2 >= len(b) {
		return activity{}
	}
	return activity{known: true, running: b[i+2] == 'R', syscall: -1, letter: b[i+2]}
}

func (k *procKernel) scheduled(tid int) (ran, delayed int64) {
	b, err := k.read(procFile{tid, fileSchedstat})
	if err != nil {
		return -1, -1
	}
	return parseSchedstat(b)
}

// parseSchedstat reads /proc/PID/schedstat: time on a CPU, time runnable without one, turns.
func parseSchedstat(b []byte) (ran, delayed int64) {
	first, rest, _ := bytes.Cut(bytes.TrimSpace(b), []byte{' '})
	second, _, _ := bytes.Cut(rest, []byte{' '})
	ran, err := strconv.ParseInt(string(first), 10, 64)
	if err != nil || ran < 0 {
		return -1, -1
	}
	if delayed, err = strconv.ParseInt(string(second), 10, 64); err != nil || delayed < 0 {
		return ran, -1
	}
	return ran, delayed
}

func (k *procKernel) state() byte {
	b, err := k.read(procFile{0, fileStat})
	if err != nil {
		return 0
	}
	return parseStat(b).letter
}

func (k *procKernel) comm(tid int) string {
	b, err := os.ReadFile(k.path(procFile{tid, "comm"}))
	if err != nil {
		return ""
	}
	return asName(b)
}

// asName is the text of a file that has a name.
func asName(text []byte) string {
	return strings.ToValidUTF8(strings.TrimSuffix(string(text), "\n"), "\uFFFD")
}
