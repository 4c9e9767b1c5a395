package cupti

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// inMemory is a ring with these bytes as the rest of the header behind what is checked, as records and as names.
func inMemory(memory []byte, header, records, names []byte) {
	clear(memory)
	ne := binary.NativeEndian
	ne.PutUint64(memory, magic)
	ne.PutUint32(memory[atRecordSize:], recordSize)
	ne.PutUint32(memory[atPID:], 7)
	ne.PutUint32(memory[atRecords:], capacity)
	ne.PutUint32(memory[atNames:], namesSize)
	copy(memory[atAPI:headerSize], header)
	copy(memory[headerSize:headerSize+capacity*recordSize], records)
	copy(memory[headerSize+capacity*recordSize:], names)
}

func FuzzRing(f *testing.F) {
	ne := binary.NativeEndian
	header := make([]byte, 128)
	ne.PutUint64(header[atHead-atAPI:], 4)
	var records []byte
	add := func(start, end, number uint64, name uint32, k kind) {
		records = ne.AppendUint64(ne.AppendUint64(ne.AppendUint64(records, start), end), number)
		records = ne.AppendUint32(ne.AppendUint32(ne.AppendUint32(records, name), 0), 7)
		records = ne.AppendUint16(ne.AppendUint16(records, uint16(k)), 1)
	}
	add(1000, 500, 1, 0, clockKind)
	add(500, 0, 0, 0, openKind)
	add(1100, 1200, 0, 1, kernelKind)
	add(900, 0, 0, 0, shutKind)
	f.Add(header, records, []byte("\x00gemm\x00"))
	words := make([]uint64, ringSize/8)
	memory := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), ringSize)
	f.Fuzz(func(t *testing.T, header, records, names []byte) {
		inMemory(memory, header, records, names)
		r, err := of(memory, 7)
		if err != nil {
			t.Fatal(err)
		}
		var w work
		number := 0
		if err := r.read(func(r record) { number++; w.take(r) }); err != nil {
			return
		}
		c, err := r.counts()
		if err != nil || number > capacity {
			t.Fatalf("%d records, %v", number, err)
		}
		for _, why := range w.why {
			if reason(why.number).sentence(c, why.start) == "" {
				t.Error("a reason without a sentence")
			}
		}
		d, _ := w.deliver(7, 1<<40, int64(c.pending), c.blind != 0, func(at int64) timeline.Nanos { return timeline.Nanos(at) })
		if len(d.Activities) > number {
			t.Errorf("%d activities of %d records", len(d.Activities), number)
		}
		last := timeline.Nanos(-1 << 63)
		for _, i := range d.Complete {
			if i.End <= i.Start || i.Start < last {
				t.Fatalf("complete are %v", d.Complete)
			}
			last = i.End
		}
	})
}
