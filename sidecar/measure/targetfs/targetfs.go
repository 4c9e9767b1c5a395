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
type FS struct {
	pid int

	mu     sync.Mutex
	root   *os.File // O_PATH; nil when it could not be had
	folder string   // the process's working folder, inside root
	user   user
}

// New looks at a process. What cannot be seen of it now is an error at Open.
func New(pid int) *FS {
	f := &FS{pid: pid}
	f.Refresh()
	return f
}

// Refresh looks again: the process may have changed its folder, its root or its
// user. Of a process that has ended the last look stays.
func (f *FS) Refresh() {
	proc := fmt.Sprintf("/proc/%d", f.pid)
	fd, err := unix.Open(proc+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	root := os.NewFile(uintptr(fd), proc+"/root")
	status, err := os.ReadFile(proc + "/status")
	who, ok := parseUser(status)
	if err != nil || !ok {
		root.Close()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.root != nil {
		f.root.Close()
	}
	f.root, f.user, f.folder = root, who, folderOf(proc)
}

// folderOf is the process's working folder as a path inside its root.
func folderOf(proc string) string {
	folder, err1 := os.Readlink(proc + "/cwd")
	root, err2 := os.Readlink(proc + "/root")
	if err1 != nil || err2 != nil {
		return "/"
	}
	if inside, ok := strings.CutPrefix(folder, strings.TrimSuffix(root, "/")); ok {
		return inside
	}
	return "/"
}

// Open opens a regular file for reading. A relative name starts in the process's
// working folder.
func (f *FS) Open(name string) (*os.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.root == nil {
		return nil, fmt.Errorf("open %s: the files of process %d cannot be seen", name, f.pid)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join("/", f.folder, name)
	}
	var file *os.File
	err := f.user.do(func() (err error) {
		file, err = f.open(name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return file, nil
}

func (f *FS) open(name string) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(int(f.root.Fd()), name, &how)
	for range 3 { // something was renamed meanwhile
		if err != unix.EAGAIN {
			break
		}
		fd, err = unix.Openat2(int(f.root.Fd()), name, &how)
	}
	if err == unix.ENOSYS && f.user.isOurs() {
		// Before Linux 5.6, and in some sandboxes. A link may lead out of the root,
		// to what our user could have read anyway.
		fd, err = unix.Open(fmt.Sprintf("/proc/%d/root%s", f.pid, name), unix.O_PATH|unix.O_CLOEXEC, 0)
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
