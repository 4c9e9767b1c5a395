package program

import (
	"bytes"
	"fmt"
	"iter"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/measure/targetfs"
)

// KernelProcess finds the process that was started with a connection file. It is
// one of the file's owner, and what it was started with is that very file: anybody
// may start a process with the same words. Workers that a kernel forked bear its command
// line, also when they have outlived it; they executed no program of their own.
func KernelProcess(file jupyter.ConnectionFile) (int, error) {
	owner, ok := ownerOf(file)
	if !ok {
		return 0, fmt.Errorf("the owner of %s is not known", file.Path)
	}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	var found []string
	pid := 0
	for _, folder := range folders {
		c, ok := readCandidate(folder)
		if ok && c.executed && c.uid == owner && c.startedWith(file) {
			pid = c.pid
			found = append(found, strconv.Itoa(c.pid))
		}
	}
	switch len(found) {
	case 0:
		if !isLocal(file.Connection) {
			return 0, fmt.Errorf("the kernel of %s runs at %s, which is not this machine; run omni-perf there", file.Path, file.IP)
		}
		return 0, fmt.Errorf("no process here of the owner of %s was started with it; give the kernel's process id instead", file.Path)
	case 1:
		return pid, nil
	}
	return 0, fmt.Errorf("%d processes were started with %s: %s; give the process id of the kernel instead", len(found), file.Path, strings.Join(found, ", "))
}

// isLocal reports whether the address of a kernel may be one of this machine.
func isLocal(c jupyter.Connection) bool {
	address := net.ParseIP(c.IP)
	if c.Transport != "tcp" || address == nil || address.IsLoopback() || address.IsUnspecified() { // a name may be anybody's
		return true
	}
	ours, err := net.InterfaceAddrs()
	for _, a := range ours {
		if network, ok := a.(*net.IPNet); ok && network.IP.Equal(address) {
			return true
		}
	}
	return err != nil
}

func ownerOf(file jupyter.ConnectionFile) (uid int, ok bool) {
	st, ok := file.Info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// kernelCandidate is a process that may be a kernel.
type kernelCandidate struct {
	pid, uid int
	args     []string
	executed bool // a program of its own
}

func readCandidate(proc string) (c kernelCandidate, ok bool) {
	var err error
	if c.pid, err = strconv.Atoi(filepath.Base(proc)); err != nil {
		return c, false
	}
	line, err1 := os.ReadFile(proc + "/cmdline")
	status, err2 := os.ReadFile(proc + "/status")
	stat, err3 := os.ReadFile(proc + "/stat")
	if err1 != nil || err2 != nil || err3 != nil {
		return c, false
	}
	c.args = strings.Split(string(line), "\x00")
	uid, ok1 := parseUser(status)
	executed, ok2 := parseExecuted(stat)
	c.uid, c.executed = uid, executed
	return c, ok1 && ok2
}

// parseUser reads the effective user of /proc/PID/status.
func parseUser(status []byte) (uid int, ok bool) {
	for line := range bytes.Lines(status) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		fields := strings.Fields(string(rest))
		if string(name) == "Uid" && len(fields) == 4 { // real effective saved filesystem
			n, err := strconv.ParseUint(fields[1], 10, 32)
			return int(n), err == nil
		}
	}
	return 0, false
}

// forkNoExec is PF_FORKNOEXEC of include/linux/sched.h: forked, and executed nothing since.
const forkNoExec = 0x40

// parseExecuted reads from /proc/PID/stat whether the process executed a program since it was
// forked. The name in parentheses is the process's own choice: the last one closes it.
func parseExecuted(stat []byte) (executed, ok bool) {
	const flags = 9 - 3 // proc(5); what follows the name begins with field 3
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= flags {
		return false, false
	}
	n, err := strconv.ParseUint(string(fields[flags]), 10, 64)
	return n&forkNoExec == 0, err == nil
}

// startedWith reports whether an option of the process names the file. Files are compared,
// not names: a container may see it under another path.
func (c kernelCandidate) startedWith(file jupyter.ConnectionFile) bool {
	var seen *targetfs.FS
	for name := range c.files() {
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

// files are what options of the process name: "-f FILE", "--f=FILE",
// "--IPKernelApp.connection_file=FILE"; not what "--existing=FILE" names, by which clients
// of a kernel are started.
func (c kernelCandidate) files() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i, arg := range c.args {
			name := arg
			if option, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(option, "-") {
				if option == "--existing" {
					continue
				}
				name = value
			} else if i == 0 || !strings.HasPrefix(c.args[i-1], "-f") && !strings.HasPrefix(c.args[i-1], "--f") {
				continue
			}
			if !yield(name) {
				return
			}
		}
	}
}
