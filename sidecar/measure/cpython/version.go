package cpython

import (
	"errors"
	"fmt"
	"slices"
)

// What a caller decides on; the errors returned wrap one of these and say more.
var (
	// ErrUnsupported: a CPython whose layout is not known.
	ErrUnsupported = errors.New("this version of CPython cannot be read from outside")
	// ErrFreeThreaded: a CPython without GIL.
	ErrFreeThreaded = errors.New("free-threaded builds of CPython cannot be read from outside")
)

// Version is major, minor, micro of an interpreter.
type Version struct{ Major, Minor, Micro int }

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Micro) }

// minor is the version as a file's name has it: "3.12".
func (v Version) minor() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// versionFromHex decodes PY_VERSION_HEX.
func versionFromHex(hex uint64) Version {
	return Version{int(hex>>24) & 0xff, int(hex>>16) & 0xff, int(hex>>8) & 0xff}
}

// Readable are the versions whose layout is known.
var Readable = []string{"3.11", "3.12", "3.13", "3.14", "3.15"}

// IsReadable reports whether the layout of a minor version, "3.12", is known.
func IsReadable(minor string) bool { return slices.Contains(Readable, minor) }

func unsupported(v Version) error {
	return fmt.Errorf("CPython %v: %w; it needs 3.11 to 3.15", v, ErrUnsupported)
}
