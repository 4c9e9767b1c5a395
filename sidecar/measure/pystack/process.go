package pystack

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

// Options of Attach; the zero value is usable.
type Options struct {
	// Wait is how long to wait for an interpreter that is still starting, or for
	// a process that is about to become one by exec; 0 = do not.
	Wait time.Duration
}

// Process is a CPython whose stacks can be read. Its caches outlive a recording,
// so that starting the next one costs next to nothing. Methods may be called
// from any goroutine; Sample and Snapshot run one at a time.
type Process struct {
	pid    int
	l      *cpython.Layout
	place  runtimePlace
	mem    Memory
	kernel kernel

	lending lending // of what is known of its code objects

	mu      sync.Mutex // guards what follows
	reader  *reader
	gils    []*gilGroup
	threads map[uint64]*thread // by address of the thread state

	program [16]byte // see programOf

	mainInterp uint64 // address of the main interpreter's state
}

// Info describes an attached process for status lines and doctor.
type Info struct {
	PID     int
	Version string // "3.12.1"
	File    string // the executable or library with the interpreter, as the process sees it
}

// Attach finds the interpreter of a process and checks that a stack of it can
// be read.
func Attach(pid int, opts Options) (*Process, error) {
	deadline := time.Now().Add(opts.Wait)
	for {
		p, err := attach(pid)
		if err == nil || !errors.Is(err, ErrStarting) && !errors.Is(err, ErrNotPython) || time.Now().After(deadline) {
			return p, err
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func attach(pid int) (*Process, error) {
	m := &liveMemory{pid: pid}
	place, err := findRuntime(pid, m)
	if err != nil {
		return nil, explain(pid, err)
	}
	p, err := open(m, newProcKernel(pid), place)
	if err != nil {
		return nil, explain(pid, err)
	}
	p.pid, p.program = pid, programOf(pid, m)
	return p, nil
}

// Close gives back what the Process holds open. It must not be used after.
func (p *Process) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k, ok := p.kernel.(*procKernel); ok {
		k.closeAll()
	}
}

// open prepares a runtime found in m.
func open(m Memory, k kernel, place runtimePlace) (*Process, error) {
	l, err := layoutOf(m, place)
	if err != nil {
		return nil, err
	}
	p := &Process{l: l, place: place, mem: m, kernel: k, reader: newReader(m, l), threads: make(map[uint64]*thread)}
	if err := p.findThreads(); err != nil {
		return nil, err
	}
	return p, p.check()
}

// layoutOf reads the layout of the interpreter at a place.
func layoutOf(m Memory, place runtimePlace) (*cpython.Layout, error) {
	l, err := cpython.ReadLayout(m, place.addr, place.hex, place.file)
	if errors.Is(err, ErrUnsupported) && place.hex == 0 && place.guessed != "" {
		return nil, fmt.Errorf("CPython %s (%s): %w; it needs 3.11 to 3.15", place.guessed, place.file, ErrUnsupported)
	}
	return l, err
}

// checkTries is how often the stack of one thread is tried to be read at attach.
const checkTries = 20

// check reads every thread once: an interpreter whose layout is another than
// its version's is found out here.
func (p *Process) check() error {
	failed, decoded := 0, 0
	for _, t := range p.threads {
		if failed > 3 && decoded == 0 {
			break
		}
		v, err := p.reader.sample(t, false)
		for try := 0; v == stackLost && err == nil && try < checkTries; try++ {
			time.Sleep(time.Millisecond) // it changes faster than its code is learnt
			v, err = p.reader.sample(t, false)
		}
		switch {
		case err != nil:
			return err
		case v == stackLost:
			failed++
		case v != threadGone && len(t.stack) > 0:
			decoded++
		}
	}
	if failed > 0 && decoded == 0 {
		return fmt.Errorf("CPython %v (%s): no stack of it can be decoded, is it a build of its own? %w",
			p.l.Version, p.place.file, ErrUnsupported)
	}
	return nil
}

// Version returns the interpreter's version: "3.12.1".
func (p *Process) Version() string { return p.l.Version.String() }

// Info describes the process.
func (p *Process) Info() Info {
	return Info{PID: p.pid, Version: p.Version(), File: p.place.file}
}

// explain adds to a refusal what can be done about it.
func explain(pid int, err error) error {
	if !errors.Is(err, ErrPermission) {
		return err
	}
	return fmt.Errorf("process %d: %w: %s", pid, err, permissionAdvice())
}

func permissionAdvice() string {
	scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if err == nil {
		switch strings.TrimSpace(string(scope)) {
		case "1":
			return "Yama lets only a parent read it (kernel.yama.ptrace_scope is 1); let the process call " +
				"prctl(PR_SET_PTRACER, reader), or run as root, or set it to 0 with sysctl"
		case "2", "3":
			return "kernel.yama.ptrace_scope is " + strings.TrimSpace(string(scope)) + ": only root may (2) or nobody (3)"
		}
	}
	return "it runs as another user or is not dumpable, or a container's profile forbids process_vm_readv; " +
		"run as the same user, or allow SYS_PTRACE"
}
