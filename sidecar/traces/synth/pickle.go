package synth

import (
	"bufio"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"sort"

	"github.com/omni-perf/omni-perf/sidecar/show/output"
)

// WriteSnapshotFile writes WriteSnapshot's pickle to a file.
func WriteSnapshotFile(cfg Config, path string) error {
	return output.Write(path, func(w io.Writer) error { return WriteSnapshot(cfg, w) })
}

// WriteSnapshot writes a memory snapshot, as torch.cuda.memory._dump_snapshot
// does, of a training like Generate's on one device.
func WriteSnapshot(cfg Config, w io.Writer) error {
	cfg = cfg.withDefaults()
	s := &heap{random: rand.New(rand.NewPCG(cfg.Seed, 1<<33)), live: map[int64]heapBlock{}, clock: epoch/1000 + start/1000}
	out := bufio.NewWriter(w)
	s.out = &pickler{w: out}
	s.train(cfg)
	s.out.finish(s.segments())
	return out.Flush()
}

// heap is a caching allocator that records its history as it goes.
type heap struct {
	out      *pickler
	random   *rand.Rand
	clock    int64 // µs
	live     map[int64]heapBlock
	free     []heapBlock // sorted by address
	reserved []heapBlock // segments
}

type heapBlock struct {
	address, size int64
	place         int // index into places
}

// places are the stacks memory is allocated from, innermost frame first.
var places = [][]frame{
	{{"/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", "_apply", 915}, {"/home/me/train.py", "build_model", 31}, {"/home/me/train.py", "<module>", 60}},
	{{"/opt/venv/lib/python3.12/site-packages/torch/nn/functional.py", "linear", 2290}, {"/home/me/model.py", "forward", 17}, {"/home/me/train.py", "train_step", 46}},
	{{"/opt/venv/lib/python3.12/site-packages/torch/nn/functional.py", "scaled_dot_product_attention", 5100}, {"/home/me/model.py", "forward", 23}, {"/home/me/train.py", "train_step", 46}},
	{{"/opt/venv/lib/python3.12/site-packages/torch/autograd/graph.py", "_engine_run_backward", 824}, {"/opt/venv/lib/python3.12/site-packages/torch/_tensor.py", "backward", 647}, {"/home/me/train.py", "train_step", 49}},
	{{"/opt/venv/lib/python3.12/site-packages/torch/optim/adam.py", "_init_group", 185}, {"/home/me/train.py", "train_step", 51}},
	{{"/home/me/train.py", "log_loss", 55}, {"/home/me/train.py", "<module>", 60}},
}

type frame struct {
	file, function string
	line           int64
}

const (
	placeModel = iota
	placeLinear
	placeAttention
	placeBackward
	placeOptimizer
	placeLog
)

func (h *heap) train(cfg Config) {
	h.out.begin()
	parameters := make([]int64, cfg.Layers)
	for i := range parameters {
		parameters[i] = int64(4+i%5) << 20
		h.alloc(parameters[i], placeModel)
	}
	for step := range cfg.Steps {
		var activations []heapBlock
		for i := range cfg.Layers {
			place := placeLinear
			if i%3 == 2 {
				place = placeAttention
			}
			activations = append(activations, h.alloc(int64(6+h.random.IntN(6))<<20, place))
		}
		var gradients []heapBlock
		for i := len(activations) - 1; i >= 0; i-- {
			gradients = append(gradients, h.alloc(parameters[i], placeBackward))
			h.release(activations[i])
		}
		if step == 0 {
			for _, size := range parameters {
				h.alloc(2*size, placeOptimizer) // two moments of Adam
			}
		}
		for _, g := range gradients {
			h.release(g)
		}
		h.alloc(512, placeLog) // a loss kept with its graph: a small leak per step
	}
}

// alloc takes the first gap that is large enough, else a new segment.
func (h *heap) alloc(size int64, place int) heapBlock {
	at := len(h.free)
	for i, gap := range h.free {
		if gap.size >= size {
			at = i
			break
		}
	}
	if at == len(h.free) {
		next := heapAddress
		if n := len(h.reserved); n > 0 {
			next = h.reserved[n-1].address + h.reserved[n-1].size
		}
		s := heapBlock{next, (size + segment - 1) / segment * segment, place}
		h.reserved = append(h.reserved, s)
		h.free = append(h.free, s)
		h.event("segment_alloc", s)
	}
	gap := &h.free[at]
	b := heapBlock{gap.address, size, place}
	gap.address += size
	gap.size -= size
	if gap.size == 0 {
		h.free = append(h.free[:at], h.free[at+1:]...)
	}
	h.live[b.address] = b
	h.event("alloc", b)
	return b
}

func (h *heap) release(b heapBlock) {
	delete(h.live, b.address)
	h.event("free_requested", b)
	h.event("free_completed", b)
	at := sort.Search(len(h.free), func(i int) bool { return h.free[i].address > b.address })
	h.free = append(h.free, heapBlock{})
	copy(h.free[at+1:], h.free[at:])
	h.free[at] = b
	h.join(at)
	if at > 0 {
		h.join(at - 1)
	}
}

// join merges gap i with the next one where they touch inside a segment.
func (h *heap) join(i int) {
	if i+1 >= len(h.free) || h.free[i].address+h.free[i].size != h.free[i+1].address {
		return
	}
	for _, s := range h.reserved {
		if s.address == h.free[i+1].address {
			return
		}
	}
	h.free[i].size += h.free[i+1].size
	h.free = append(h.free[:i+1], h.free[i+2:]...)
}

func (h *heap) event(action string, b heapBlock) {
	h.clock += 20 + h.random.Int64N(200)
	h.out.event(action, b, h.clock)
}

// segments lists every segment with its blocks, used and free.
func (h *heap) segments() []heapSegment {
	var all []heapSegment
	for _, s := range h.reserved {
		seg := heapSegment{heapBlock: s}
		for _, b := range h.live {
			if b.address >= s.address && b.address < s.address+s.size {
				seg.blocks = append(seg.blocks, usedBlock{b, true})
			}
		}
		for _, b := range h.free {
			if b.address >= s.address && b.address < s.address+s.size {
				seg.blocks = append(seg.blocks, usedBlock{b, false})
			}
		}
		sort.Slice(seg.blocks, func(i, j int) bool { return seg.blocks[i].address < seg.blocks[j].address })
		all = append(all, seg)
	}
	return all
}

type heapSegment struct {
	heapBlock
	blocks []usedBlock
}

type usedBlock struct {
	heapBlock
	used bool
}

// pickler writes protocol 4. Stacks are written once and referred to, as
// PyTorch's are.
type pickler struct {
	w    *bufio.Writer
	memo map[int]byte // place → memo index
}

func (p *pickler) text(s string) {
	p.w.WriteByte('X')
	binary.Write(p.w, binary.LittleEndian, uint32(len(s)))
	p.w.WriteString(s)
}

func (p *pickler) int(v int64) {
	p.w.WriteString("\x8a\x08") // LONG1 of eight bytes
	binary.Write(p.w, binary.LittleEndian, v)
}

func (p *pickler) field(key string, value int64) { p.text(key); p.int(value) }

func (p *pickler) begin() {
	p.memo = map[int]byte{}
	p.w.WriteString("\x80\x04}(")
	p.text("device_traces")
	p.w.WriteString("](](") // one device
}

func (p *pickler) frames(place int) {
	p.text("frames")
	if index, ok := p.memo[place]; ok {
		p.w.Write([]byte{'h', index})
		return
	}
	p.memo[place] = byte(len(p.memo))
	p.w.Write([]byte{']', 0x94, '('})
	for _, f := range places[place] {
		p.w.WriteString("}(")
		p.text("filename")
		p.text(f.file)
		p.text("name")
		p.text(f.function)
		p.field("line", f.line)
		p.w.WriteByte('u')
	}
	p.w.WriteByte('e')
}

func (p *pickler) event(action string, b heapBlock, timeUs int64) {
	p.w.WriteString("}(")
	p.text("action")
	p.text(action)
	p.field("addr", b.address)
	p.field("size", b.size)
	p.field("stream", 0)
	p.field("time_us", timeUs)
	p.frames(b.place)
	p.w.WriteByte('u')
}

func (p *pickler) finish(segments []heapSegment) {
	p.w.WriteString("ee")
	p.text("segments")
	p.w.WriteString("](")
	for _, s := range segments {
		p.w.WriteString("}(")
		p.field("device", 0)
		p.field("address", s.address)
		p.field("total_size", s.size)
		p.field("stream", 0)
		p.text("segment_type")
		p.text("large")
		p.text("blocks")
		p.w.WriteString("](")
		for _, b := range s.blocks {
			p.w.WriteString("}(")
			p.field("address", b.address)
			p.field("size", b.size)
			p.field("requested_size", b.size)
			p.text("state")
			if b.used {
				p.text("active_allocated")
				p.frames(b.place)
			} else {
				p.text("inactive")
			}
			p.w.WriteByte('u')
		}
		p.w.WriteString("eu")
	}
	p.w.WriteString("eu.")
}
