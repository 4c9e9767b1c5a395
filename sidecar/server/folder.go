package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	folderPrefix = "omni_perf-"
	socketName   = "s"
	maxSocket    = 107 // bytes of a unix socket's path, without the NUL
)

// Folder is the sidecar's own folder: 0700, with the socket and the log in it. A
// lock on it tells other sidecars that its owner lives.
type Folder struct {
	Path string
	lock *os.File
}

// NewFolder makes the folder under $XDG_RUNTIME_DIR when that can be, else under
// /tmp, and removes there what killed sidecars left. Its error is a sentence.
func NewFolder() (*Folder, error) {
	parents := []string{"/tmp"}
	if own := os.Getenv("XDG_RUNTIME_DIR"); ours(own) {
		parents = []string{own, "/tmp"}
	}
	return newFolder(parents)
}

// ours tells whether a folder belongs to the user: after sudo, XDG_RUNTIME_DIR may
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
			removeAbandoned(parent, f.Path)
			return f, nil
		}
		refused = append(refused, err)
	}
	return nil, fmt.Errorf("the sidecar could not make a folder for its socket: %w. Set XDG_RUNTIME_DIR to a folder of yours that can be written", errors.Join(refused...))
}

func makeFolder(parent string) (*Folder, error) {
	if !filepath.IsAbs(parent) {
		return nil, fmt.Errorf("%s is no absolute path", parent)
	}
	path, err := os.MkdirTemp(parent, fmt.Sprintf("%s%d-", folderPrefix, os.Getpid())) // 0700
	if err != nil {
		return nil, err
	}
	f := &Folder{Path: path}
	if len(f.Socket()) > maxSocket {
		err = fmt.Errorf("%s: the path is too long for a socket", path)
	}
	if err == nil {
		f.lock, err = lockFolder(path)
	}
	if err != nil {
		_ = os.Remove(path)
		return nil, err
	}
	return f, nil
}

// lockFolder locks the folder against removal by other sidecars. The error may be
// that one of them holds it just now, to look whether we live.
func lockFolder(path string) (*os.File, error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		d.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return d, nil
}

// removeAbandoned removes our uid's folders in parent whose owner is dead.
func removeAbandoned(parent, own string) {
	paths, _ := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
	for _, path := range paths {
		var st unix.Stat_t
		if path == own || unix.Lstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() {
			continue
		}
		if lock, err := lockFolder(path); err == nil {
			_ = os.RemoveAll(path)
			lock.Close()
		}
	}
}

// Socket is the path of the sidecar's socket.
func (f *Folder) Socket() string { return filepath.Join(f.Path, socketName) }

// Log is the path of the log when no other was asked for.
func (f *Folder) Log() string { return filepath.Join(f.Path, "log") }

// Remove removes the folder and what is in it.
func (f *Folder) Remove() error {
	err := os.RemoveAll(f.Path)
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
