// Package targetfs opens files that another process names, as that process sees
// them and with no more rights than its user has.
//
// A profiler that runs as root reads names out of the memory of a process that is
// anybody's: source files, libraries. Whoever wrote that process must gain nothing
// by the names it chooses. So a name is resolved inside the process's own root,
// links included; no link of /proc is followed; permissions are checked for the
// process's user and groups, not for ours; and only a regular file is ever opened,
// never a FIFO that holds us up or a device that notices.
package targetfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrNotRegular is returned for what is no regular file of a disk.
var ErrNotRegular = errors.New("not a regular file")

// FS is the file system as one process sees it. It may be used from any goroutine,
// and after the process has ended.
//
// Its rights only shrink. The names that a process chose while it belonged to one user
// may be opened much later, when the process has executed a set-uid program or its id is
// another process's: they are opened with the rights of every user that the process was
// seen to be, the first time included. So an FS is made before names are read.
type FS struct {
	proc *os.File // /proc/PID, which is of this process for ever; nil when there was none

	mu     sync.Mutex
	root   *os.File // O_PATH; nil when it could not be had
	folder string   // the process's working folder, inside root
	rights rights
}

// New looks at a process. What cannot be seen of it now is an error at Open.
func New(pid int) *FS {
	f := &FS{}
	name := fmt.Sprintf("/proc/%d", pid)
	if fd, err := unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		f.proc = os.NewFile(uintptr(fd), name)
	}
	f.Refresh()
	return f
}

// Refresh looks again: the process may have changed its folder, its root or its
// user. Of a process that has ended the last look stays. Of one that runs a set-uid program,
// or has become a user with other rights than before, folder and root are not renewed: they
// may be its new user's choice.
func (f *FS) Refresh() {
	if f.proc == nil {
		return
	}
	proc := int(f.proc.Fd())
	status, err := readAt(proc, "status")
	if err != nil {
		return
	}
	who, settled := parseUsers(status)
	f.mu.Lock()
	defer f.mu.Unlock()
	renew := f.root == nil || settled && f.rights.cover(who[0])
	f.rights.narrow(who)
	if !renew {
		return
	}
	fd, err := unix.Openat(proc, "root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	if f.root != nil {
		f.root.Close()
	}
	f.root, f.folder = os.NewFile(uintptr(fd), "root of "+f.proc.Name()), folderOf(proc)
}

func readAt(folder int, name string) ([]byte, error) {
	fd, err := unix.Openat(folder, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	return io.ReadAll(file)
}

// folderOf is the process's working folder as a path inside its root.
func folderOf(proc int) string {
	folder, err1 := readlinkAt(proc, "cwd")
	root, err2 := readlinkAt(proc, "root")
	if err1 != nil || err2 != nil {
		return "/"
	}
	if inside, ok := strings.CutPrefix(folder, strings.TrimSuffix(root, "/")); ok {
		return inside
	}
	return "/"
}

func readlinkAt(folder int, name string) (string, error) {
	to := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(folder, name, to)
	if err != nil {
		return "", err
	}
	return string(to[:n]), nil
}

// Open opens a regular file for reading. A relative name starts in the process's
// working folder.
func (f *FS) Open(name string) (*os.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.root == nil {
		return nil, fmt.Errorf("open %s: the files of %s cannot be seen", name, f.process())
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join("/", f.folder, name)
	}
	file, err := f.rights.open(func(ours bool) (*os.File, error) { return f.open(name, ours) })
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return file, nil
}

func (f *FS) process() string {
	if f.proc == nil {
		return "a process that has ended"
	}
	return f.proc.Name()
}

// open opens a file with the rights of the calling thread; ours: that thread has our own rights.
func (f *FS) open(name string, ours bool) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(int(f.root.Fd()), name, &how)
	for range 3 { // something was renamed meanwhile
		if err != unix.EAGAIN {
			break
		}
		fd, err = unix.Openat2(int(f.root.Fd()), name, &how)
	}
	if err == unix.ENOSYS && ours {
		// Before Linux 5.6, and in some sandboxes. A link may lead out of the root,
		// to what our user could have read anyway.
		fd, err = unix.Openat(int(f.root.Fd()), strings.TrimLeft(name, "/"), unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return reopen(fd, name)
}

// OpenRegular opens a file by a path of our own, such as /proc/PID/exe, if it is a
// regular one.
func OpenRegular(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	file, err := reopen(fd, path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return file, nil
}

// reopen opens for reading what an O_PATH descriptor stands for, after a look at
// what it is: opening a device or a FIFO would do something already.
func reopen(fd int, name string) (*os.File, error) {
	var st unix.Stat_t
	var fs unix.Statfs_t
	if err := errors.Join(unix.Fstat(fd, &st), unix.Fstatfs(fd, &fs)); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || fs.Type == unix.PROC_SUPER_MAGIC || fs.Type == unix.SYSFS_MAGIC {
		return nil, ErrNotRegular
	}
	const flags = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY
	opened, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), flags, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(opened), name), nil
}
