package pystack

import (
	"errors"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
)

// errMoved: the interpreter's memory is not where it was, and the program is the same.
var errMoved = errors.New("the interpreter's memory is not where it was")

// programOf identifies the program that a process runs since its last exec, by the random bytes
// that the kernel gave it; zero where they cannot be read.
func programOf(pid int, m Memory) (program [16]byte) {
	proc := procfs.New("/proc")
	address := proc.RandomAddress(pid)
	if address == 0 || cpython.ReadAt(m, uint64(address), program[:]) != nil {
		return [16]byte{}
	}
	return program
}

// programTries is how often the random bytes are looked for, a millisecond apart: in the midst of
// an exec a process has none.
const programTries = 50

func (p *Process) programNow() (now [16]byte) {
	for range programTries {
		now = programOf(p.pid, p.mem)
		if letter := p.kernel.state(); now != [16]byte{} || letter == 0 || letter == 'Z' || letter == 'X' {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return now
}

// because returns why stacks can no longer be read. A process has become another program if it
// has other random bytes; else its interpreter has shut down, or cannot be found.
func (p *Process) because(err error) error {
	none := [16]byte{}
	if p.program == none || !errors.Is(err, ErrReplaced) && !errors.Is(err, ErrStarting) {
		return err
	}
	switch now := p.programNow(); {
	case now != none && now != p.program:
		return ErrReplaced
	case errors.Is(err, ErrStarting):
		return err
	}
	if head, err := cpython.ReadWord(p.mem, p.place.addr+p.l.Runtime.InterpretersHead); err == nil && head == 0 {
		return ErrStarting
	}
	return errMoved
}
