package cupti

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The layout of shim/ring.h; a test compares it with what the compiler makes of that.
const (
	magic      = 0x31495450554e4d4f
	headerSize = 4096
	recordSize = 40
	capacity   = 1 << 17
	namesSize  = 1 << 20
	ringSize   = headerSize + capacity*recordSize + namesSize

	atRecordSize = 8
	atPID        = 12
	atRecords    = 16
	atNames      = 20
	atAPI        = 24
	atHead       = 32
	atTail       = 40
	atLost       = 56
	atDropped    = 64
	atUnknown    = 72
	atPending    = 80
	atBlind      = 88
	atTaken      = 96
	atCallback   = 104
	atOverhead   = 112
	atRests      = 120
	atHalt       = 128
	atFirst      = 136
	firstSize    = 64

	longestName = 1000
)

// kind is what a record is: CUPTI's numbers of activities, and the shim's own.
type kind uint16

const (
	memcpyKind kind = 1
	memsetKind kind = 2
	kernelKind kind = 10
	clockKind  kind = 200
	openKind   kind = 201
	shutKind   kind = 202
	lostKind   kind = 203
	missedKind kind = 204
	whyKind    kind = 205
)

// record is one of the ring's, as shim/ring.h describes its fields.
type record struct {
	start, end, number uint64
	name               string
	device, stream     uint32
	kind               kind
	copy               uint16
}

var (
	errUnfinished = errors.New("the ring is being made")
	errForeign    = errors.New("it is no ring of this version of omni_perf")
	errDamaged    = errors.New("the process has damaged its ring")
)

// ring is one process's, mapped. It is used by one goroutine.
type ring struct {
	memory []byte // aligned to 8 bytes
	mapped bool
	tail   uint64
	names  map[uint32]string
}

// open maps the ring at a path, of the process of that id.
func open(path string, pid int) (*ring, error) {
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	switch info, err := file.Stat(); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > ringSize:
		return nil, errForeign
	case info.Size() < ringSize:
		return nil, errUnfinished
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, ringSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	r, err := of(memory, pid)
	if err != nil {
		_ = unix.Munmap(memory)
		return nil, err
	}
	r.mapped = true
	return r, nil
}

// of reads the header of a ring in memory.
func of(memory []byte, pid int) (r *ring, err error) {
	defer faults(&err)()
	if len(memory) != ringSize {
		return nil, errForeign
	}
	r = &ring{memory: memory, names: make(map[uint32]string)}
	switch r.load(0) {
	case magic:
	case 0:
		return nil, errUnfinished
	default:
		return nil, errForeign
	}
	if r.word(atRecordSize) != recordSize || r.word(atRecords) != capacity || r.word(atNames) != namesSize || int(r.word(atPID)) != pid {
		return nil, errForeign
	}
	r.tail = r.load(atTail)
	return r, nil
}

// faults turns a fault, as of a file that was cut, into an error: defer faults(&err)().
func faults(err *error) (restore func()) {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			fault, ok := p.(interface {
				error
				Addr() uintptr
			})
			if !ok {
				panic(p)
			}
			*err = fmt.Errorf("%w: %w", errDamaged, fault)
		}
	}
}

func (r *ring) close() {
	if r.mapped {
		_ = unix.Munmap(r.memory)
	}
	r.memory = nil
}

func (r *ring) at(offset int) *uint64       { return (*uint64)(unsafe.Pointer(&r.memory[offset])) }
func (r *ring) load(offset int) uint64      { return atomic.LoadUint64(r.at(offset)) }
func (r *ring) word(offset int) uint32      { return binary.NativeEndian.Uint32(r.memory[offset:]) }
func (r *ring) store(offset int, to uint64) { atomic.StoreUint64(r.at(offset), to) }

// read hands over the records that have come since the last call.
func (r *ring) read(take func(record)) (err error) {
	defer faults(&err)()
	head := r.load(atHead)
	if head-r.tail > capacity {
		return errDamaged
	}
	const freed = 1 << 12 // records after which the writer learns that there is room
	for r.tail < head {
		take(r.record(r.tail % capacity))
		if r.tail++; r.tail%freed == 0 {
			r.store(atTail, r.tail)
		}
	}
	r.store(atTail, r.tail)
	return nil
}

func (r *ring) record(slot uint64) record {
	b := r.memory[headerSize+slot*recordSize:][:recordSize]
	ne := binary.NativeEndian
	return record{
		start: ne.Uint64(b), end: ne.Uint64(b[8:]), number: ne.Uint64(b[16:]),
		name: r.name(ne.Uint32(b[24:])), device: ne.Uint32(b[28:]), stream: ne.Uint32(b[32:]),
		kind: kind(ne.Uint16(b[36:])), copy: ne.Uint16(b[38:]),
	}
}

func (r *ring) name(at uint32) string {
	if at == 0 || at >= namesSize {
		return ""
	}
	name, known := r.names[at]
	if !known {
		field := r.memory[headerSize+capacity*recordSize:][at:]
		name = text(field[:min(len(field), longestName)])
		r.names[at] = name
	}
	return name
}

// text is a C string in a field.
func text(field []byte) string {
	if end := bytes.IndexByte(field, 0); end >= 0 {
		field = field[:end]
	}
	return strings.ToValidUTF8(string(field), "�")
}

// counts are what the shim has counted since it was loaded.
type counts struct {
	api                                    uint32
	lost, dropped, unknown, pending, blind uint64
	taken, callback, overhead, rests       uint64
	first                                  string // who uses CUPTI besides, as it says
}

func (r *ring) counts() (c counts, err error) {
	defer faults(&err)()
	return counts{
		r.word(atAPI), r.load(atLost), r.load(atDropped), r.load(atUnknown), r.load(atPending), r.load(atBlind),
		r.load(atTaken), r.load(atCallback), r.load(atOverhead), r.load(atRests),
		strings.TrimPrefix(text(r.memory[atFirst:][:firstSize]), "CUPTI for "),
	}, nil
}

// halt has the shim record no more.
func (r *ring) halt() (err error) {
	defer faults(&err)()
	r.store(atHalt, 1)
	return nil
}
