package output

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// File is a result that is being written. Exactly one of Close and Discard ends it;
// one goroutine.
type File struct {
	place place
	file  *os.File // the result itself, or the file that will take its place
	err   error    // of the first Write that failed
}

// Create begins to write a result to path. Opening a FIFO waits for its reader.
func Create(path string) (*File, error) {
	p, err := locate(path)
	if err != nil {
		return nil, err
	}
	f := &File{place: p}
	switch p.kind {
	case regular:
		f.file, err = os.CreateTemp(filepath.Dir(path), ".omni-perf-*")
		if err == nil {
			err = f.file.Chmod(0o600) // whatever the umask
		}
	case through:
		f.file, err = openThrough(path)
	case descriptor:
		var fd int
		if fd, err = unix.FcntlInt(uintptr(p.fd), unix.F_DUPFD_CLOEXEC, 3); err == nil {
			f.file = os.NewFile(uintptr(fd), path)
		}
	}
	if err != nil {
		if f.file != nil {
			f.Discard()
		}
		return nil, &PlaceError{path, bare(err)}
	}
	return f, nil
}

// openThrough opens a device or FIFO, and nothing that took its place meanwhile.
func openThrough(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || info.Mode()&(os.ModeCharDevice|os.ModeNamedPipe) == 0 {
		f.Close()
		return nil, errors.Join(err, errors.New("it has become another file"))
	}
	return f, nil
}

// Write implements io.Writer. Its error is a *PlaceError.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	if err != nil {
		err = &PlaceError{f.place.path, bare(err)}
		if f.err == nil {
			f.err = err
		}
	}
	return n, err
}

// Close makes what was written the result. If that cannot be, or a Write failed,
// what was there before stays; the error is a *PlaceError.
func (f *File) Close() error {
	if f.err != nil {
		f.Discard()
		return f.err
	}
	if f.place.kind != regular {
		if err := f.file.Close(); err != nil {
			return &PlaceError{f.place.path, bare(err)}
		}
		return nil
	}
	// A disk may show only here that it is full; a crash must not find the old
	// content gone and the new one not there.
	err := f.file.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil // a file system that has no such thing
	}
	if err == nil {
		err = f.file.Close()
	}
	if err == nil {
		err = unix.Rename(f.file.Name(), f.place.path)
	}
	if err != nil {
		f.Discard()
		return &PlaceError{f.place.path, bare(err)}
	}
	return nil
}

// Discard ends the writing and leaves what was there before. What went through a
// device or a FIFO has gone.
func (f *File) Discard() {
	f.file.Close()
	if f.place.kind == regular {
		os.Remove(f.file.Name())
	}
}

// Write writes a result through a buffer: whole, or not at all where it is a file.
func Write(path string, write func(io.Writer) error) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	buffer := bufio.NewWriterSize(f, 1<<16)
	if err = write(buffer); err == nil {
		err = buffer.Flush()
	}
	if err == nil {
		return f.Close()
	}
	f.Discard()
	if f.err != nil { // the place's fault, whatever write made of it
		return f.err
	}
	return fmt.Errorf("write %s: %w", path, err)
}

// WriteBytes is Write of a content that is there.
func WriteBytes(path string, content []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}
