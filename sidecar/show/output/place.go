package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// PlaceError says that a path cannot take a result. What is wrong is the place,
// not the result: elsewhere it could be written.
type PlaceError struct {
	Path   string
	Reason error
}

func (e *PlaceError) Error() string { return fmt.Sprintf("cannot write %s: %v", e.Path, e.Reason) }
func (e *PlaceError) Unwrap() error { return e.Reason }

var errEmpty = errors.New("the name is empty")

// Check returns, without changing anything, why a result could not be written to
// path; nil if as far as is known it could. The error is a *PlaceError.
func Check(path string) error {
	_, err := locate(path)
	return err
}

// CheckFolder is Check for a folder of results, which need not exist yet.
func CheckFolder(folder string) error {
	if folder == "" {
		return &PlaceError{folder, errEmpty}
	}
	info, err := os.Stat(folder)
	for ; errors.Is(err, fs.ErrNotExist) && folder != filepath.Dir(folder); info, err = os.Stat(folder) {
		if _, lerr := os.Lstat(folder); lerr == nil {
			return &PlaceError{folder, errors.New("it is a link that leads nowhere")}
		}
		folder = filepath.Dir(filepath.Clean(folder))
	}
	if err == nil && !info.IsDir() {
		err = errors.New("it is no folder")
	}
	if err == nil {
		err = access(folder, unix.W_OK|unix.X_OK)
	}
	if err != nil {
		return &PlaceError{folder, bare(err)}
	}
	return nil
}

// MakeFolder makes a folder of results, for its owner only, unless it is there.
func MakeFolder(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return &PlaceError{folder, bare(err)}
	}
	return nil
}

// IsSpecial reports whether a path is written through: it names a device, a FIFO or
// one of our descriptors.
func IsSpecial(path string) bool {
	p, err := locate(path)
	return err == nil && p.kind != regular
}

// kind is how a place is written.
type kind int

const (
	regular    kind = iota // replaced by rename
	through                // opened and written
	descriptor             // one of our own, duplicated and written
)

type place struct {
	path string
	kind kind
	fd   int // of kind descriptor
}

// locate finds out how a path is written, or why it cannot be.
func locate(path string) (place, error) {
	p := place{path: path}
	err := p.look()
	if err != nil {
		return p, &PlaceError{path, bare(err)}
	}
	return p, nil
}

func (p *place) look() error {
	if p.path == "" {
		return errEmpty
	}
	if fd, ok := ownDescriptor(p.path); ok {
		p.kind, p.fd = descriptor, fd
		return writableDescriptor(fd)
	}
	if strings.HasSuffix(p.path, "/") {
		return errors.New("it names a folder; add a file name")
	}
	link, err := os.Lstat(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return checkParent(filepath.Dir(p.path))
	}
	if err != nil {
		return err
	}
	info := link
	isLink := link.Mode()&fs.ModeSymlink != 0
	if isLink {
		if info, err = os.Stat(p.path); err != nil || info.Mode().IsRegular() {
			to, _ := os.Readlink(p.path)
			return fmt.Errorf("it is a link to %s, which is not followed; name that file itself, or remove the link", to)
		}
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		if err := checkReplaceable(p.path, info); err != nil {
			return err
		}
		return checkParent(filepath.Dir(p.path))
	case mode.IsDir():
		return errors.New("it is a folder; name a file in it")
	case mode&fs.ModeNamedPipe != 0, mode&fs.ModeCharDevice != 0:
		p.kind = through
		return access(p.path, unix.W_OK)
	case mode&fs.ModeDevice != 0:
		return errors.New("it is a disk")
	}
	return errors.New("it is neither a file nor a device")
}

// checkParent returns why no file can be made in a folder.
func checkParent(folder string) error {
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no folder %s", folder)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", folder)
	}
	if err := access(folder, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("nothing can be written in the folder %s: %w", folder, err)
	}
	return nil
}

// checkReplaceable returns why a file must not be, or cannot be, replaced although
// its folder can be written: its owner protected it, or the folder is one, such as
// /tmp, in which everybody may replace only what is their own.
func checkReplaceable(path string, info fs.FileInfo) error {
	if err := access(path, unix.W_OK); err != nil {
		return fmt.Errorf("the file there is write-protected: %w", err)
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	me := uint32(os.Geteuid())
	if folder.Mode()&fs.ModeSticky != 0 && me != 0 && owner(info) != me && owner(folder) != me {
		return errors.New("the file there belongs to another user")
	}
	return nil
}

func owner(info fs.FileInfo) uint32 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Uid
	}
	return ^uint32(0)
}

// access asks the system with our effective ids; it knows of read-only file
// systems, immutable files and access lists, too.
func access(path string, mode uint32) error {
	return unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS)
}

// ownDescriptor reports whether a path names a descriptor of this process, as
// /dev/stdout does. Opening such a path would open the file behind it anew, from
// its beginning.
func ownDescriptor(path string) (fd int, ok bool) {
	for range 8 {
		path = filepath.Clean(path)
		folder, name := filepath.Split(path)
		switch folder {
		case "/proc/self/fd/", "/dev/fd/", fmt.Sprintf("/proc/%d/fd/", os.Getpid()):
			fd, err := strconv.Atoi(name)
			return fd, err == nil && fd >= 0
		}
		to, err := os.Readlink(path)
		if err != nil {
			return 0, false
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(folder, to)
		}
		path = to
	}
	return 0, false
}

func writableDescriptor(fd int) error {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return fmt.Errorf("the file descriptor %d is not open", fd)
	}
	if flags&unix.O_ACCMODE == unix.O_RDONLY {
		return fmt.Errorf("the file descriptor %d is open for reading only", fd)
	}
	return nil
}

// bare takes the path off an error of package os: PlaceError names it.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) && error(p) == err {
		return p.Err
	}
	return err
}
