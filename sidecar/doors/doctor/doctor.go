// Package doctor finds out what works on this machine: it tries every
// prerequisite of profiling and reports each in a sentence that says what to do.
//
// In flows the interpreter to try with, out flow Checks. Nothing is changed: the
// one process it starts, an idle Python, ends with the check.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/doors/python"
	"github.com/omni-perf/omni-perf/sidecar/measure/gpu"
)

// Check is one prerequisite and what was found.
type Check struct {
	Name     string `json:"name"`
	OK       bool   `json:"ok"`
	Required bool   `json:"required"` // for sampling from outside
	Sentence string `json:"sentence"` // what was found; if not OK: why, and what to do
}

// Options of Examine.
type Options struct {
	Interpreter string // to try with; empty: any
	// Folder makes the sidecar's folder and removes it again; it returns where.
	Folder func() (parent string, err error)
	GPUs   func() *gpu.Driver
	// Read reads a process's stacks once; an error that is fs.ErrPermission may go
	// away when the process grants access.
	Read func(pid int) error
}

// Examine makes all checks; it takes about a second at most.
func Examine(ctx context.Context, o Options) []Check {
	checks := []Check{system(), folder(o.Folder), yama("/proc/sys/kernel/yama/ptrace_scope"), selfRead()}
	checks = append(checks, stacks(ctx, python.Any(o.Interpreter), o.Read)...)
	return append(checks, figures(os.Getpid()), gpus(o.GPUs()))
}

// Passed reports whether the outside sampler works: every required check is OK.
func Passed(checks []Check) bool {
	for _, c := range checks {
		if c.Required && !c.OK {
			return false
		}
	}
	return true
}

func system() Check {
	c := Check{Name: "system", Required: true}
	var u unix.Utsname
	_ = unix.Uname(&u)
	release := unix.ByteSliceToString(u.Release[:])
	if runtime.GOOS != "linux" || (runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64") {
		c.Sentence = fmt.Sprintf("Stacks are read from outside on Linux on x86-64 and arm64; this is %s on %s, where the sampler in the kernel is used.", runtime.GOOS, runtime.GOARCH)
		return c
	}
	c.OK = true
	c.Sentence = fmt.Sprintf("Linux %s on %s.", release, runtime.GOARCH)
	return c
}

func folder(try func() (string, error)) Check {
	c := Check{Name: "runtime folder", Required: true}
	parent, err := try()
	if err != nil {
		c.Sentence = upper(err.Error()) + "."
		return c
	}
	c.OK = true
	c.Sentence = fmt.Sprintf("The sidecar's socket goes into a folder of its own in %s.", parent)
	return c
}

// yama reads who may look into whose memory. The check that counts is the try.
func yama(path string) Check {
	c := Check{Name: "ptrace scope"}
	text, err := os.ReadFile(path)
	switch scope := strings.TrimSpace(string(text)); {
	case errors.Is(err, fs.ErrNotExist):
		c.OK, c.Sentence = true, "There is no Yama: processes of one user may read each other."
	case err != nil:
		c.Sentence = fmt.Sprintf("%s could not be read: %v.", path, err)
	case scope == "0":
		c.OK, c.Sentence = true, "kernel.yama.ptrace_scope is 0: processes of one user may read each other."
	case scope == "1":
		c.OK, c.Sentence = true, "kernel.yama.ptrace_scope is 1: the extension permits its sidecar to read the kernel; omni-perf run may read what it starts; omni-perf attach needs root or scope 0."
	case scope == "2":
		c.Sentence = "kernel.yama.ptrace_scope is 2: only root may read other processes. Ask the administrator for sysctl kernel.yama.ptrace_scope=1; until then the slower sampler in the kernel is used."
	default:
		c.Sentence = "kernel.yama.ptrace_scope is " + scope + ": nobody may read other processes until the machine restarts with 1. The slower sampler in the kernel is used."
	}
	return c
}

// selfRead tries process_vm_readv on ourselves, which only a filter can refuse.
func selfRead() Check {
	c := Check{Name: "process_vm_readv", Required: true}
	from, to := []byte("omni_perf"), make([]byte, 9)
	local := []unix.Iovec{{Base: &to[0]}}
	local[0].SetLen(len(to))
	remote := []unix.RemoteIovec{{Base: addressOf(from), Len: len(from)}}
	n, err := unix.ProcessVMReadv(os.Getpid(), local, remote, 0)
	runtime.KeepAlive(from)
	if err != nil || n != len(from) || string(to) != string(from) {
		c.Sentence = fmt.Sprintf("The system call process_vm_readv is refused (%v): the container's seccomp profile does not allow it. Allow it, or start the container with --cap-add=SYS_PTRACE.", err)
		return c
	}
	c.OK, c.Sentence = true, "The system call process_vm_readv is allowed."
	return c
}

// figures looks whether a process's I/O counters may be read.
func figures(pid int) Check {
	c := Check{Name: "process figures"}
	for _, name := range []string{"stat", "io", "task"} {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/%s", pid, name)); err != nil {
			c.Sentence = fmt.Sprintf("/proc/PID/%s cannot be read (%v): its tracks will be missing.", name, err)
			return c
		}
	}
	if _, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid)); err != nil {
		c.Sentence = fmt.Sprintf("/proc/PID/io cannot be read (%v): the disk tracks will be missing.", err)
		return c
	}
	c.OK, c.Sentence = true, "CPU, memory, disk and thread figures can be read from /proc."
	return c
}

func gpus(driver *gpu.Driver) Check {
	c := Check{Name: "NVIDIA GPUs"}
	select {
	case <-driver.Ready():
	case <-time.After(5 * time.Second):
		c.Sentence = "The NVIDIA driver did not answer within 5 s; recordings go on without GPU lanes."
		return c
	}
	if err := driver.Err(); err != nil {
		c.Sentence = fmt.Sprintf("No GPU lanes: %v.", err)
		return c
	}
	var names []string
	for _, d := range driver.Devices() {
		name := d.Info().Name
		if d.Info().Simulated {
			name += " (simulated)"
		}
		names = append(names, name)
	}
	c.OK = true
	c.Sentence = fmt.Sprintf("%d GPU(s): %s; driver %s.", len(names), strings.Join(names, ", "), driver.Version())
	return c
}

// target is the program that is tried with. It leaves us by a double fork, as a
// kernel does not descend from its sidecar, prints its pid, and waits: for "grant",
// on which it permits us to read it as the extension would, and for the end.
const target = `
import ctypes, os, sys
reader = int(sys.argv[1])
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
print("%d %d.%d.%d %s" % (os.getpid(), *sys.version_info[:3], sys.implementation.name), flush=True)
for line in sys.stdin:
    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(reader), 0, 0, 0)
    print("granted", flush=True)
`

// stacks starts an idle Python that does not descend from us and reads its stack.
func stacks(ctx context.Context, path string, try func(pid int) error) []Check {
	found := Check{Name: "Python", Required: true}
	read := Check{Name: "sampling from outside", Required: true}
	if path == "" {
		found.Sentence = "No Python was found: activate a virtual environment or put python3 on PATH."
		read.Sentence = "It could not be tried without a Python."
		return []Check{found, read}
	}
	p, err := startTarget(ctx, path)
	if err != nil {
		found.Sentence = fmt.Sprintf("%s did not start: %v.", path, err)
		read.Sentence = "It could not be tried without a Python."
		return []Check{found, read}
	}
	defer p.end()
	found.OK, found.Sentence = true, fmt.Sprintf("%s is %s %s.", path, p.implementation, p.version)

	granted := false
	err = try(p.pid)
	if errors.Is(err, fs.ErrPermission) && p.grant() == nil {
		granted = true
		err = try(p.pid)
	}
	switch {
	case err != nil:
		read.Sentence = fmt.Sprintf("Python's stacks cannot be read from outside: %v. The slower sampler in the kernel is used.", err)
	case granted:
		read.OK, read.Sentence = true, "A process that is not our child could be read, after it permitted us to (as the extension does)."
	default:
		read.OK, read.Sentence = true, "A process that is not our child could be read."
	}
	return []Check{found, read}
}

func upper(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}
