package pystack

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// blockSize is the grain of an Image: what was read is kept in blocks of it.
const blockSize = 256

// imageMagic begins an image's file, within gzip.
const imageMagic = "omni-perf memory image 1\n"

// maxImageBlocks bounds an image's file: 64 MB.
const maxImageBlocks = 1 << 18

// Image is recorded memory of a target: enough of it to decode its stacks again
// without it.
type Image struct {
	PID     int
	Runtime uint64         // address of _PyRuntime
	Hex     uint64         // PY_VERSION_HEX, as the symbol Py_Version has it
	Tasks   map[int]string // comm of each thread, by native id
	blocks  map[uint64]*[blockSize]byte
}

// Read implements Memory.
func (im *Image) Read(buf []byte, ranges []Range) (int, error) {
	total := 0
	for _, r := range ranges {
		for at, end := r.Addr, r.Addr+uint64(r.Len); at < end; {
			block := im.blocks[at/blockSize]
			if block == nil {
				return total, nil
			}
			n := copy(buf[total:total+int(min(end-at, blockSize))], block[at%blockSize:])
			total += n
			at += uint64(n)
		}
	}
	return total, nil
}

// imageRecorder is a Memory that keeps all it has read.
type imageRecorder struct {
	Memory
	image *Image
}

func (rec *imageRecorder) Read(buf []byte, ranges []Range) (int, error) {
	n, err := rec.Memory.Read(buf, ranges)
	for _, r := range ranges {
		for block := r.Addr / blockSize; block*blockSize < r.Addr+uint64(r.Len); block++ {
			if rec.image.blocks[block] != nil || err != nil {
				continue
			}
			b := new([blockSize]byte)
			if cpython.ReadAt(rec.Memory, block*blockSize, b[:]) == nil {
				rec.image.blocks[block] = b
			}
		}
	}
	return n, err
}

// RecordImage attaches to a process, reads the stacks of all its threads and
// returns the memory that took.
func RecordImage(pid int) (*Image, error) {
	live := &liveMemory{pid: pid}
	place, err := findRuntime(pid, live)
	if err != nil {
		return nil, explain(pid, err)
	}
	image := &Image{PID: pid, Runtime: place.addr, Hex: place.hex, Tasks: make(map[int]string), blocks: make(map[uint64]*[blockSize]byte)}
	k := newProcKernel(pid)
	defer k.closeAll()
	p, err := open(&imageRecorder{live, image}, k, place)
	if err != nil {
		return nil, explain(pid, err)
	}
	p.pid = pid
	if _, err := p.Snapshot(); err != nil {
		return nil, err
	}
	if err := newSession(p, timeline.NewBuilder(timeline.Options{}), SampleOptions{}, &worker{}).tick(); err != nil {
		return nil, err
	}
	for _, tid := range k.tasks() {
		image.Tasks[k.innerID(tid)] = k.comm(tid)
	}
	return image, nil
}

// OpenImage attaches to an image.
func OpenImage(im *Image) (*Process, error) {
	p, err := open(im, imageKernel{im}, runtimePlace{addr: im.Runtime, hex: im.Hex, file: "memory image"})
	if err != nil {
		return nil, err
	}
	p.pid = im.PID
	return p, nil
}

// imageKernel knows the threads of an image and nothing of what they do.
type imageKernel struct{ im *Image }

func (k imageKernel) tid(native int) int {
	if _, ok := k.im.Tasks[native]; ok {
		return native
	}
	return 0
}
func (k imageKernel) activity(int) (activity, bool) { return activity{}, false }
func (k imageKernel) state() byte                   { return 0 }
func (k imageKernel) scheduled(int) (int64, int64)  { return -1, -1 }
func (k imageKernel) cpu(int) int                   { return -1 }
func (k imageKernel) comm(tid int) string           { return k.im.Tasks[tid] }
func (k imageKernel) resident() (int64, bool)       { return 0, false }
func (k imageKernel) faults(int) int64              { return -1 }
func (k imageKernel) link(int) string               { return "" }
func (k imageKernel) table(int) string              { return "" }
func (k imageKernel) sockets(string) []byte         { return nil }
func (k imageKernel) command(int) string            { return "" }
func (k imageKernel) locks() []byte                 { return nil }
func (k imageKernel) file(int) (fileNumber, bool)   { return fileNumber{}, false }
func (k imageKernel) files() []openFile             { return nil }
func (k imageKernel) forget(int)                    {}

// WriteTo writes the image's file.
func (im *Image) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	b.WriteString(imageMagic)
	number := func(n uint64) { b.Write(binary.AppendUvarint(nil, n)) }
	number(uint64(im.PID))
	number(im.Runtime)
	number(im.Hex)
	number(uint64(len(im.Tasks)))
	for _, native := range slices.Sorted(maps.Keys(im.Tasks)) {
		number(uint64(native))
		number(uint64(len(im.Tasks[native])))
		b.WriteString(im.Tasks[native])
	}
	number(uint64(len(im.blocks)))
	last := uint64(0)
	for _, at := range slices.Sorted(maps.Keys(im.blocks)) {
		number(at - last)
		b.Write(im.blocks[at][:])
		last = at
	}
	z, _ := gzip.NewWriterLevel(w, gzip.BestCompression) // the level is a valid one
	n, err := z.Write(b.Bytes())
	return int64(n), errors.Join(err, z.Close())
}

// ReadImage reads an image's file.
func ReadImage(r io.Reader) (*Image, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("memory image: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(z, maxImageBlocks*(blockSize+10)))
	if err != nil {
		return nil, fmt.Errorf("memory image: %w", err)
	}
	b := bytes.NewBuffer(data)
	if string(b.Next(len(imageMagic))) != imageMagic {
		return nil, errors.New("memory image: not one")
	}
	var failed error
	number := func() uint64 {
		n, err := binary.ReadUvarint(b)
		failed = errors.Join(failed, err)
		return n
	}
	im := &Image{Tasks: make(map[int]string), blocks: make(map[uint64]*[blockSize]byte)}
	im.PID, im.Runtime, im.Hex = int(number()), number(), number()
	for n := number(); n > 0 && failed == nil; n-- {
		native := int(number())
		im.Tasks[native] = string(b.Next(int(min(number(), 64))))
	}
	at := uint64(0)
	for n := number(); n > 0 && failed == nil; n-- {
		at += number()
		block := new([blockSize]byte)
		if copy(block[:], b.Next(blockSize)) < blockSize {
			failed = errors.Join(failed, io.ErrUnexpectedEOF)
		}
		im.blocks[at] = block
	}
	if failed != nil {
		return nil, fmt.Errorf("memory image: %w", failed)
	}
	return im, nil
}
