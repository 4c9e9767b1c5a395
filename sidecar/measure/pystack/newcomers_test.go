package pystack

import (
	"slices"
	"testing"
	"time"
)

// replacing is a memory in which another frame has taken one's place when it is read by itself.
type replacing struct {
	Memory
	frame Range
	code  uint64 // of the frame: where it has its code object
	times int    // that it is to be so
}

func (m *replacing) Read(buf []byte, ranges []Range) (int, error) {
	n, err := m.Memory.Read(buf, ranges)
	at := 0
	for _, r := range ranges {
		if r == m.frame && m.times > 0 {
			m.times--
			buf[at+int(m.code)]++
		}
		at += r.Len
	}
	return n, err
}

// A stack that has code objects which were not known is read once: each frame is looked at again, and has kept its own.
func TestCodeReadAfterTheCopies(t *testing.T) {
	for _, name := range imageNames() {
		t.Run(name, func(t *testing.T) {
			im := loadImage(t, name)
			memory := &replacing{Memory: im}
			p, err := open(memory, imageKernel{im}, runtimePlace{addr: im.Runtime, hex: im.Hex})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Snapshot(); err != nil {
				t.Fatal(err)
			}
			memory.code = p.l.Frame.Code
			r := p.reader
			r.times.may = time.Hour // a copy that takes long, on a busy machine, is none that is made again
			attempts := func(unsure bool, replaced int) (attempts uint32) {
				for _, thread := range p.threads {
					if len(thread.stack) == 0 {
						continue
					}
					clear(r.codes.byAddr)
					leaf := thread.stack[len(thread.stack)-1]
					memory.frame, memory.times = Range{Addr: leaf.addr, Len: int(p.l.Frame.Size)}, replaced
					frames := slices.Clone(thread.stack)
					thread.stack, thread.unsure, r.number = thread.stack[:0], unsure, r.replacedAt+calm+1
					before := r.number
					if v, err := r.sample(thread, false); v != stackWhole || err != nil {
						t.Fatalf("%v %v", v, err)
					}
					if len(thread.stack) != len(frames) {
						t.Fatalf("%d frames, want %d", len(thread.stack), len(frames))
					}
					attempts = max(attempts, r.number-before)
				}
				return attempts
			}
			once := uint32(1)
			if p.l.Code.Version == 0 { // 3.11: nothing distinguishes one from the next but what it says
				once = 2
			}
			if got := attempts(false, 0); got != once {
				t.Errorf("%d attempts, want %d", got, once)
			}
			if got := attempts(false, 1); got != 2 {
				t.Errorf("%d attempts where a frame is another by then, want 2", got)
			}
			if got := attempts(true, 0); got != 2 {
				t.Errorf("%d attempts where a code object was replaced a moment ago, want 2", got)
			}
		})
	}
}
