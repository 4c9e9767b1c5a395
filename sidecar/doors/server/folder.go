package server

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/cupti"
)

const (
	socketName = "s"
	cellsName  = "c"
	logName    = "log"
	hookName   = "omni_perf.zip"
	maxSocket  = 107 // bytes of a unix socket's path, without the NUL
)

// A folder is called omni_perf-PID-RANDOM. While it is being made, it has the ending
// .new: what bears the final name is locked as long as its owner lives.
var (
	folderName = regexp.MustCompile(`^omni_perf-[0-9]+-[0-9]+$`)
	newName    = regexp.MustCompile(`^omni_perf-[0-9]+-[0-9]+\.new$`)
)

// newFor is how long a folder may take to be made, generously; what still is new
// then was left by a sidecar that was killed on its first steps.
const newFor = time.Minute

// Folder is the sidecar's own folder: 0700, with the sockets and the log in it, for a
// program also the step hook, and rings of processes that record their GPUs, and nothing else. A lock on it shows other sidecars that its owner lives.
type Folder struct {
	Path string
	lock *os.File
}

// NewFolder makes the folder under $XDG_RUNTIME_DIR when that can be, else under
// /tmp. Its error is a sentence.
func NewFolder() (*Folder, error) {
	parents := []string{"/tmp"}
	if own := os.Getenv("XDG_RUNTIME_DIR"); ours(own) {
		parents = []string{own, "/tmp"}
	}
	return newFolder(parents)
}

// ours reports whether a folder belongs to the user: after sudo, XDG_RUNTIME_DIR may
// be another's, and goes when that one logs out.
func ours(folder string) bool {
	var st unix.Stat_t
	return folder != "" && unix.Stat(folder, &st) == nil && int(st.Uid) == os.Geteuid()
}

func newFolder(parents []string) (*Folder, error) {
	var refused []error
	for _, parent := range parents {
		f, err := makeFolder(parent)
		if err == nil {
			return f, nil
		}
		refused = append(refused, err)
	}
	return nil, fmt.Errorf("the sidecar could not make a folder for its socket: %w. Set XDG_RUNTIME_DIR to a folder of yours, on a disk of this machine, that can be written", errors.Join(refused...))
}

func makeFolder(parent string) (*Folder, error) {
	if !filepath.IsAbs(parent) {
		return nil, fmt.Errorf("%s is no absolute path", parent)
	}
	path, err := os.MkdirTemp(parent, fmt.Sprintf("omni_perf-%d-*.new", os.Getpid())) // 0700
	if err != nil {
		return nil, err
	}
	f := &Folder{Path: strings.TrimSuffix(path, ".new")}
	if len(f.Socket()) > maxSocket {
		err = fmt.Errorf("%s: the path is too long for a socket", f.Path)
	}
	if err == nil {
		f.lock, err = lockFolder(path)
	}
	if err == nil {
		err = os.Rename(path, f.Path) // the lock stays on it
	}
	if err != nil {
		if f.lock != nil {
			f.lock.Close()
		}
		_ = os.Remove(path)
		return nil, err
	}
	return f, nil
}

// lockFolder locks the folder against removal by other sidecars.
func lockFolder(path string) (*os.File, error) {
	d, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		d.Close()
		return nil, fmt.Errorf("the folder %s cannot be locked: %w", path, err)
	}
	return d, nil
}

// Sweep removes the folders beside f whose sidecars were killed: those that are
// exactly what a sidecar makes, by name, owner, mode and content, and that nobody
// has locked. Anything else is somebody's own and stays.
func (f *Folder) Sweep() {
	parent := filepath.Dir(f.Path)
	entries, _ := os.ReadDir(parent) // as far as it can be read
	for _, e := range entries {
		if folderName.MatchString(e.Name()) || newName.MatchString(e.Name()) {
			removeAbandoned(filepath.Join(parent, e.Name()))
		}
	}
}

// removeAbandoned removes one folder if its owner is dead and it holds nothing that
// a sidecar does not make.
func removeAbandoned(path string) {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil || st.Mode != unix.S_IFDIR|0o700 || int(st.Uid) != os.Geteuid() {
		return
	}
	if newName.MatchString(filepath.Base(path)) && time.Since(time.Unix(st.Mtim.Unix())) < newFor {
		return // its owner has not locked it yet
	}
	lock, err := lockFolder(path)
	if err != nil {
		return
	}
	defer lock.Close()
	names, err := lock.Readdirnames(-1)
	if err != nil || slices.ContainsFunc(names, func(name string) bool { return !isOurs(lock, name) }) {
		return
	}
	empty(lock)
	_ = os.Remove(path)
}

// isOurs reports whether a file in a folder is one that a sidecar makes there.
func isOurs(folder *os.File, name string) bool {
	var st unix.Stat_t
	if unix.Fstatat(int(folder.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || int(st.Uid) != os.Geteuid() {
		return false
	}
	return (name == socketName || name == cellsName) && st.Mode&unix.S_IFMT == unix.S_IFSOCK ||
		(name == logName || name == hookName || cupti.IsFile(name)) && st.Mode == unix.S_IFREG|0o600
}

// empty removes what a sidecar makes from a folder.
func empty(folder *os.File) {
	_, _ = folder.Seek(0, io.SeekStart)
	names, _ := folder.Readdirnames(-1)
	for _, name := range names {
		if isOurs(folder, name) {
			_ = unix.Unlinkat(int(folder.Fd()), name, 0)
		}
	}
}

// Socket is the path of the sidecar's socket.
func (f *Folder) Socket() string { return filepath.Join(f.Path, socketName) }

// Cells is the path of the socket that cells are announced at.
func (f *Folder) Cells() string { return filepath.Join(f.Path, cellsName) }

// Log is the path of the log when no other was asked for.
func (f *Folder) Log() string { return filepath.Join(f.Path, logName) }

// StepHook is the path of the archive with the step hook of a program.
func (f *Folder) StepHook() string { return filepath.Join(f.Path, hookName) }

// Remove removes the folder with what a sidecar makes in it. What a user has put there
// besides stays, and the error says so.
func (f *Folder) Remove() error {
	empty(f.lock)
	err := os.Remove(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // somebody did it for us
	}
	return errors.Join(err, f.lock.Close())
}

// TryFolder makes a folder and removes it again; it returns where it was made.
func TryFolder() (parent string, err error) {
	f, err := NewFolder()
	if err != nil {
		return "", err
	}
	return filepath.Dir(f.Path), f.Remove()
}
