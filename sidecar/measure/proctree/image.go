package proctree

import (
	"io"
	"os"
)

// Image identifies the program that a process runs since its last exec: the 16 random
// bytes that the kernel gives each program (AT_RANDOM, getauxval(3)). Processes with
// the same ones are forks of one another, at the same addresses. The zero Image is
// that of a process whose memory may not be read.
type Image [16]byte

// image reads it from the auxiliary vector and the memory of a process.
func (t *Tree) image(pid int) (i Image) {
	address := t.fs.RandomAddress(pid)
	if address <= 0 {
		return i
	}
	memory, err := os.Open(t.fs.Path(pid, "mem"))
	if err != nil {
		return i
	}
	defer memory.Close()
	if _, err := memory.ReadAt(i[:], address); err != nil && err != io.EOF {
		return Image{}
	}
	return i
}
