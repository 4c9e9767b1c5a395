package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Last reports are in a folder of their own beside those of sidecars, 0700, one file for each notebook, 0600:
// the next kernel of the notebook reads and removes it. What nobody has read for a day the next sidecar removes.
const (
	lastFor    = 24 * time.Hour
	lastEnding = ".json"
)

// notebookKey is what distinguishes notebooks, as the extension makes it.
var notebookKey = regexp.MustCompile(`^[0-9a-f]{32}$`)

// lastFolder is the name of the folder of last reports.
func lastFolder() string { return fmt.Sprintf("omni_perf-last-%d", os.Geteuid()) }

// keepLast writes the last report of a notebook's kernel.
func keepLast(parent, notebook string, l *lastReport) error {
	if !notebookKey.MatchString(notebook) {
		return fmt.Errorf("%q names no notebook", notebook)
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	folder, err := openLast(parent, true)
	if err != nil {
		return err
	}
	defer folder.Close()
	name, temporary := notebook+lastEnding, fmt.Sprintf("%s.%d", notebook, os.Getpid())
	fd, err := unix.Openat(int(folder.Fd()), temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), temporary)
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = unix.Renameat(int(folder.Fd()), temporary, int(folder.Fd()), name)
	}
	if err != nil {
		_ = unix.Unlinkat(int(folder.Fd()), temporary, 0)
	}
	return err
}

// openLast opens the folder, if it is ours alone.
func openLast(parent string, make bool) (*os.File, error) {
	path := filepath.Join(parent, lastFolder())
	if make {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	folder, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(folder.Fd()), &st); err != nil || int(st.Uid) != os.Geteuid() || st.Mode&0o077 != 0 {
		folder.Close()
		return nil, fmt.Errorf("%s is not ours alone", path)
	}
	return folder, nil
}

// sweepLast removes last reports that nobody has read for a day, and the folder once it is empty.
func sweepLast(parent string, now time.Time) {
	folder, err := openLast(parent, false)
	if err != nil {
		return
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	for _, name := range names {
		key, _, _ := strings.Cut(name, ".")
		var st unix.Stat_t
		if !notebookKey.MatchString(key) || unix.Fstatat(int(folder.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}
		if now.Sub(time.Unix(st.Mtim.Unix())) > lastFor {
			_ = unix.Unlinkat(int(folder.Fd()), name, 0)
		}
	}
	_ = os.Remove(folder.Name()) // which fails where something is in it
}
