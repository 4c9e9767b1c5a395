package program

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/targetfs"
)

// KernelProcess finds the process that was started with a connection file. It is
// one of the file's owner, and what it was started with is that very file: anybody
// may start a process with the same words.
func KernelProcess(file jupyter.ConnectionFile) (int, error) {
	owner, ok := file.Info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("the owner of %s is not known", file.Path)
	}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	var found []kernelCandidate
	for _, folder := range folders {
		c, ok := readCandidate(folder)
		if ok && c.uid == int(owner.Uid) && c.startedWith(file) {
			found = append(found, c)
		}
	}
	switch found = withoutForks(found); len(found) {
	case 0:
		return 0, fmt.Errorf("no process here of the owner of %s was started with it; give the kernel's process id instead", file.Path)
	case 1:
		return found[0].pid, nil
	}
	var pids []string
	for _, c := range found {
		pids = append(pids, strconv.Itoa(c.pid))
	}
	return 0, fmt.Errorf("%d processes were started with %s: %s; give the process id of the kernel instead", len(found), file.Path, strings.Join(pids, ", "))
}

// kernelCandidate is a process that may be a kernel.
type kernelCandidate struct {
	pid, parent, uid int
	args             []string
}

func readCandidate(proc string) (c kernelCandidate, ok bool) {
	var err error
	if c.pid, err = strconv.Atoi(filepath.Base(proc)); err != nil {
		return c, false
	}
	line, err1 := os.ReadFile(proc + "/cmdline")
	status, err2 := os.ReadFile(proc + "/status")
	if err1 != nil || err2 != nil {
		return c, false
	}
	c.args = strings.Split(string(line), "\x00")
	c.parent, c.uid, ok = parseStatus(status)
	return c, ok
}

// parseStatus reads parent and effective user of /proc/PID/status.
func parseStatus(status []byte) (parent, uid int, ok bool) {
	parent, uid = -1, -1
	for line := range bytes.Lines(status) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		fields := strings.Fields(string(rest))
		switch string(name) {
		case "PPid":
			if n, err := strconv.Atoi(strings.Join(fields, " ")); err == nil && n >= 0 {
				parent = n
			}
		case "Uid": // real effective saved filesystem
			if len(fields) == 4 {
				if n, err := strconv.ParseUint(fields[1], 10, 32); err == nil {
					uid = int(n)
				}
			}
		}
	}
	return parent, uid, parent >= 0 && uid >= 0
}

// startedWith tells whether an option of the process names the file: "-f FILE",
// "--f=FILE", "--IPKernelApp.connection_file=FILE". Files are compared, not names: a
// container may see it under another path.
func (c kernelCandidate) startedWith(file jupyter.ConnectionFile) bool {
	var seen *targetfs.FS
	for i, arg := range c.args {
		name := arg
		if option, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(option, "-") {
			name = value
		} else if i == 0 || !strings.HasPrefix(c.args[i-1], "-f") && !strings.HasPrefix(c.args[i-1], "--f") {
			continue
		}
		if filepath.Base(name) != filepath.Base(file.Path) {
			continue
		}
		if seen == nil {
			seen = targetfs.New(c.pid)
		}
		f, err := seen.Open(name)
		if err != nil {
			continue
		}
		info, err := f.Stat()
		f.Close()
		if err == nil && os.SameFile(info, file.Info) {
			return true
		}
	}
	return false
}

// withoutForks leaves out what a candidate has forked: workers of a kernel bear its
// command line.
func withoutForks(found []kernelCandidate) []kernelCandidate {
	var out []kernelCandidate
	for _, c := range found {
		forked := slices.ContainsFunc(found, func(p kernelCandidate) bool {
			return p.pid == c.parent && slices.Equal(p.args, c.args)
		})
		if !forked {
			out = append(out, c)
		}
	}
	return out
}
