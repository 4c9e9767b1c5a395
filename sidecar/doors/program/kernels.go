package program

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Kernel is a running kernel of this user.
type Kernel struct {
	PID      int
	File     jupyter.ConnectionFile
	Notebook string    // JPY_SESSION_NAME, by which a Jupyter server names it; empty: not known
	Started  time.Time // zero: not known
	Refusal  error     // why its cells cannot be followed; nil: nothing speaks against it
}

// Kernels are the running kernels of this user, the oldest first. They are found by their
// processes, each of which was started with a connection file; no server is asked, nor are they.
func Kernels() []Kernel {
	var kernels []Kernel
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		c, ok := readCandidate(folder)
		if !ok || !c.executed || c.uid != os.Geteuid() {
			continue
		}
		if k, ok := kernelOf(c); ok {
			kernels = append(kernels, k)
		}
	}
	slices.SortFunc(kernels, func(a, b Kernel) int {
		if a.Started.Equal(b.Started) {
			return a.PID - b.PID
		}
		return a.Started.Compare(b.Started)
	})
	return kernels
}

// kernelOf is the kernel that a process is. One whose connection file we see under another
// name than it does, as in a container, is none.
func kernelOf(c kernelCandidate) (Kernel, bool) {
	for name := range c.files() {
		if filepath.Ext(name) != ".json" {
			continue
		}
		if !filepath.IsAbs(name) {
			folder, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", c.pid))
			if err != nil {
				continue
			}
			name = filepath.Join(folder, name)
		}
		file, err := jupyter.ReadConnection(name)
		if err != nil && !errors.Is(err, jupyter.ErrCurve) || !c.startedWith(file) {
			continue
		}
		return Kernel{
			PID: c.pid, File: file, Notebook: environment(c.pid)["JPY_SESSION_NAME"], Started: startOf(c.pid), Refusal: err,
		}, true
	}
	return Kernel{}, false
}

// startOf is when a process started, by the wall clock as it is now.
func startOf(pid int) time.Time {
	proc := procfs.New("/proc")
	st, err := proc.Stat(pid)
	var now unix.Timespec
	if err = errors.Join(err, unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)); err != nil {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(st.Start)*procfs.Tick - time.Duration(now.Nano()))
}

// ID is the kernel's id, as the name of its connection file shows it.
func (k Kernel) ID() string {
	name := strings.TrimSuffix(filepath.Base(k.File.Path), ".json")
	return strings.TrimPrefix(name, "kernel-")
}

// Name is the notebook, or the kernel's id where that is not known.
func (k Kernel) Name() string {
	if k.Notebook != "" {
		return k.Notebook
	}
	return k.ID()
}

// FindKernel resolves what a user may call a kernel: its connection file, its id or the
// beginning of it, its notebook's path or name. Running kernels go before files that others
// have left behind.
func FindKernel(name string, running []Kernel) (jupyter.ConnectionFile, error) {
	notebook := strings.HasSuffix(name, ".ipynb")
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && !notebook {
		return jupyter.ReadConnection(name)
	}
	for _, is := range []func(Kernel) bool{
		func(k Kernel) bool { return k.ID() == name },
		func(k Kernel) bool { return !notebook && strings.HasPrefix(k.ID(), name) },
		func(k Kernel) bool { return k.isOf(name) },
	} {
		var found []Kernel
		for _, k := range running {
			if is(k) {
				found = append(found, k)
			}
		}
		switch {
		case len(found) == 1 && found[0].Refusal != nil:
			return jupyter.ConnectionFile{}, found[0].Refusal
		case len(found) == 1:
			return found[0].File, nil
		case len(found) > 1:
			return jupyter.ConnectionFile{}, fmt.Errorf("%q may be any of %s; give more of the id", name, idsOf(found))
		}
	}
	if notebook {
		return jupyter.ConnectionFile{}, fmt.Errorf("no running kernel of yours is that of %s; omni-perf attach lists those there are", name)
	}
	path, err := jupyter.FindConnection(name)
	if err != nil {
		return jupyter.ConnectionFile{}, fmt.Errorf("%w; omni-perf attach lists the kernels that run", err)
	}
	return jupyter.ReadConnection(path)
}

// Find returns the process that a user means, or the kernel; pid is then 0. A number is a
// process, unless there is none and a kernel's id begins with it.
func Find(name string) (pid int, file jupyter.ConnectionFile, err error) {
	running := Kernels()
	if pid, err := strconv.Atoi(name); err == nil && pid > 0 {
		_, gone := os.Stat("/proc/" + name)
		if gone == nil || !slices.ContainsFunc(running, func(k Kernel) bool { return strings.HasPrefix(k.ID(), name) }) {
			return pid, file, nil
		}
	}
	file, err = FindKernel(name, running)
	return 0, file, err
}

// CellsOf takes a process that Find returned and that is a kernel for one, so that each of its cells is shown. Where
// several processes were started with its connection file, it is a process: nothing says whose messages come.
func CellsOf(pid int, file jupyter.ConnectionFile) (int, jupyter.ConnectionFile) {
	if pid == 0 {
		return 0, file
	}
	running := Kernels()
	i := slices.IndexFunc(running, func(k Kernel) bool { return k.PID == pid && k.Refusal == nil })
	if i < 0 {
		return pid, file
	}
	if of, err := KernelProcess(running[i].File); err != nil || of != pid {
		return pid, file
	}
	return 0, running[i].File
}

// IsOf reports whether what Find or CellsOf returned is this process.
func IsOf(process, pid int, file jupyter.ConnectionFile) bool {
	if pid == 0 {
		pid, _ = KernelProcess(file)
	}
	return pid == process
}

func idsOf(kernels []Kernel) string {
	var ids []string
	for _, k := range kernels {
		ids = append(ids, fmt.Sprintf("%s (process %d)", k.ID(), k.PID))
	}
	return words.Alternatives(ids)
}

// isOf reports whether a name is that of the kernel's notebook: its path, or its file's name
// with or without the ending.
func (k Kernel) isOf(name string) bool {
	if k.Notebook == "" {
		return false
	}
	base := filepath.Base(k.Notebook)
	if name == k.Notebook || name == base || name == strings.TrimSuffix(base, ".ipynb") {
		return true
	}
	whole, err := filepath.Abs(name)
	return err == nil && whole == k.Notebook
}

// ListKernels writes a table of kernels, with what each is doing as its stack shows it.
func ListKernels(w io.Writer, kernels []Kernel, stack func(pid int) ([]timeline.Frame, error)) error {
	rows := [][]string{{"PID", "KERNEL", "STARTED", "STATE", "NOTEBOOK"}}
	for _, k := range kernels {
		started, notebook := "not known", "not known"
		if !k.Started.IsZero() {
			started = k.Started.Format("2006-01-02 15:04")
		}
		if k.Notebook != "" {
			notebook = words.Clean(shortHome(k.Notebook), 120)
		}
		rows = append(rows, []string{fmt.Sprint(k.PID), words.Clean(k.ID(), 60), started, words.Clean(k.state(stack), 60), notebook})
	}
	widths := make([]int, len(rows[0])-1)
	for _, row := range rows {
		for i := range widths {
			widths[i] = max(widths[i], words.Columns(row[i]))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		for i, width := range widths {
			out.WriteString(words.Pad(row[i], width) + "  ")
		}
		out.WriteString(row[len(widths)] + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// state says what a kernel does: a cell that awaits something looks like none from outside.
func (k Kernel) state(stack func(pid int) ([]timeline.Frame, error)) string {
	if k.Refusal != nil {
		return "encrypted (CurveZMQ)"
	}
	if isStopped(k.PID) {
		return "stopped"
	}
	frames, err := stack(k.PID)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "may not be read"
	case err != nil:
		return "cannot be read"
	}
	switch at := positionIn(frames, cellNames(k.PID)("")); {
	case at.cell != "":
		return "busy: " + at.String()
	case at.own:
		return "busy: a callback"
	}
	return "idle or awaiting"
}

func isStopped(pid int) bool {
	proc := procfs.New("/proc")
	st, err := proc.Stat(pid)
	return err == nil && (st.State == 'T' || st.State == 't')
}

// shortHome is a path with ~ for the user's home.
func shortHome(path string) string {
	home, err := os.UserHomeDir()
	if rest, ok := strings.CutPrefix(path, home); err == nil && ok && home != "/" && strings.HasPrefix(rest, "/") {
		return "~" + rest
	}
	return path
}
