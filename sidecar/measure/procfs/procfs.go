// Package procfs reads what /proc says of processes and threads: the files that
// several collectors look at. In flow process ids, out flow plain facts; what they
// mean is the caller's business.
package procfs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Tick is the unit of times in stat files: USER_HZ is 100 on every architecture
// Linux still has.
const Tick = 10 * time.Millisecond

// FS is one /proc. Its buffer is used again: one goroutine.
type FS struct {
	Root string
	buf  []byte
}

// New makes the reader of the /proc that is mounted at root.
func New(root string) FS { return FS{Root: root, buf: make([]byte, 4096)} }

// Read returns a file's content, valid until the next Read. It asks the kernel directly:
// an os.File takes twice the time, and these files are read some hundred times a second.
func (f *FS) Read(path string) ([]byte, error) {
	fd, err := retried(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if len(f.buf) == 0 {
		f.buf = make([]byte, 4096)
	}
	n := 0
	for {
		m, err := retried(func() (int, error) { return unix.Read(fd, f.buf[n:]) })
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if m == 0 {
			return f.buf[:n], nil
		}
		if n += m; n == len(f.buf) {
			f.buf = append(f.buf, make([]byte, n)...)
		}
	}
}

// retried makes a system call until no signal interrupts it.
func retried(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

// Path names a file of a process.
func (f *FS) Path(pid int, file string) string {
	return f.Root + "/" + strconv.Itoa(pid) + "/" + file
}

// Stat reads /proc/PID/stat.
func (f *FS) Stat(pid int) (Stat, error) {
	text, err := f.ReadShort(f.Path(pid, "stat"))
	if err != nil {
		return Stat{}, err
	}
	return ParseStat(text)
}

// Group is the id of the process that an id belongs to, which may be a thread's
// (Tgid in /proc/PID/status).
func (f *FS) Group(id int) (int, error) {
	text, err := f.Read(f.Path(id, "status"))
	if err != nil {
		return 0, err
	}
	if _, rest, ok := bytes.Cut(text, []byte("\nTgid:")); ok {
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		if n, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil {
			return n, nil
		}
	}
	return 0, errors.New("a status file of an unknown form")
}

// NamespaceIDs are the numbers that a process or thread goes by, from the pid namespace
// that /proc shows to its own, innermost one: the line "NSpid:\t4711\t12" of a status
// file; nil where it is not known.
func NamespaceIDs(status []byte) []int {
	_, rest, ok := bytes.Cut(status, []byte("\nNSpid:"))
	if !ok {
		return nil
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return numbers(strings.Fields(string(line)))
}

// Tasks are the ids of a process's threads.
func (f *FS) Tasks(pid int) ([]int, error) { return f.folder(f.Path(pid, "task")) }

// All are the ids of all processes that can be seen.
func (f *FS) All() ([]int, error) { return f.folder(f.Root) }

func (f *FS) folder(path string) ([]int, error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	return numbers(names), err
}

// Children are the processes that a thread has made and not waited for.
func (f *FS) Children(pid, tid int) ([]int, error) {
	text, err := f.Read(f.Path(pid, "task/"+strconv.Itoa(tid)+"/children"))
	if err != nil {
		return nil, err
	}
	return numbers(strings.Fields(string(text))), nil
}

func numbers(names []string) []int {
	var out []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n > 0 {
			out = append(out, n)
		}
	}
	return out
}

// Executable is what the process runs; empty when that cannot be seen.
func (f *FS) Executable(pid int) string {
	path, err := os.Readlink(filepath.Join(f.Root, strconv.Itoa(pid), "exe"))
	if err != nil {
		return ""
	}
	return path
}

// maxCommandLine bounds how much of a command line is looked at: the program and
// its first arguments come first.
const maxCommandLine = 4096

// Arguments are the process's command line; nil when it cannot be seen or, of a
// zombie, is gone.
func (f *FS) Arguments(pid int) []string {
	text, err := f.Read(f.Path(pid, "cmdline"))
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(string(text[:min(len(text), maxCommandLine)]), "\x00"), "\x00")
}

// Environment is what the process was started with, "NAME=value" each: of a program
// what its exec was given, whatever it has changed since. nil when it cannot be seen.
func (f *FS) Environment(pid int) []string {
	text, err := f.Read(f.Path(pid, "environ"))
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
}

// Start returns when a process started, in clock ticks since boot: with the pid, its
// identity. A zombie has ended.
func Start(pid int) (start uint64, alive bool) {
	fs := New("/proc")
	st, err := fs.Stat(pid)
	return st.Start, err == nil && !st.Zombie()
}
