package snapshot

import (
	"bufio"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// Read reads one snapshot, plain or gzip, in two passes: the first refuses what must be refused and finds out which values are
// used again; the second reads events, frames and stacks as they are complete, so that memory is that of the Snapshot.
func Read(r io.ReadSeeker, limits Limits) (*Snapshot, error) {
	limits = limits.withDefaults()
	pickle, err := unpacked(r)
	if err != nil {
		return nil, err
	}
	found, err := survey(pickle, limits)
	if err != nil {
		return nil, err
	}
	if pickle, err = unpacked(r); err != nil {
		return nil, err
	}
	c := newReader(limits.Objects, found)
	m := machine{in: newInstructions(pickle, limits), notes: newNotes(found), reader: c}
	for i := range m.notes.values {
		m.notes.values[i].kind = unset
	}
	root, err := m.run()
	if err != nil {
		return nil, err
	}
	if root.kind != dictValue || root.object.get(memberSegments).kind == nothingKnown && root.object.get(memberDeviceTraces).kind == nothingKnown {
		return nil, ErrOther
	}
	c.segments(root.object.get(memberSegments))
	c.hostSegments(root.object.get(memberHostSegments))
	c.traces(root.object.get(memberDeviceTraces))
	c.hostTraces(root.object.get(memberHostTraces))
	if c.budget < 0 {
		return nil, ErrTooLarge
	}
	c.snapshot.noteHistory()
	var files origin.Names
	for _, stack := range c.snapshot.Stacks {
		c.snapshot.categories = append(c.snapshot.categories, categoryOf(stack, &files))
	}
	return c.snapshot, nil
}

// unpacked is the pickle from its beginning; a file that begins like none is
// shown as what it is, as far as that is known.
func unpacked(r io.ReadSeeker) (io.Reader, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the memory snapshot: %w", err)
	}
	in := bufio.NewReaderSize(r, 1<<16)
	magic, _ := in.Peek(2)
	if len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("the memory snapshot is damaged: %w", err)
		}
		in = bufio.NewReaderSize(z, 1<<16)
		magic, _ = in.Peek(2)
	}
	switch {
	case len(magic) == 0:
		return nil, fmt.Errorf("%w: the file is empty", ErrNoPickle)
	case magic[0] == protoOpcode:
		return in, nil
	case string(magic) == "PK":
		return nil, fmt.Errorf("%w but a zip archive, as torch.save writes", ErrNoPickle)
	case magic[0] == '{' || magic[0] == '[':
		return nil, fmt.Errorf("%w but text, JSON by its first byte; torch.profiler's memory timeline is not read", ErrNoPickle)
	}
	return nil, fmt.Errorf("%w of protocol 2 or later: it begins with byte 0x%02x", ErrNoPickle, magic[0])
}

// noteHistory says that there is no history where there is none.
func (s *Snapshot) noteHistory() {
	events := len(s.Host.Events)
	for _, d := range s.Devices {
		events += len(d.Events)
	}
	if events == 0 {
		s.Notes = append(s.Notes, "No history was recorded: call torch.cuda.memory._record_memory_history() before the code to see memory over time.")
	}
}

// memberName is the number of a text that is a member's name.
type memberName uint32

// The members that are read, as texts are numbered.
const (
	_ memberName = iota // the empty text
	memberAction
	memberTime
	memberAddr
	memberSize
	memberFree
	memberFrames
	memberFile
	memberLine
	memberFunction
	memberSegments
	memberDeviceTraces
	memberHostSegments
	memberHostTraces
	memberDevice
	memberAddress
	memberTotalSize
	memberStream
	memberSegmentType
	memberExpandable
	memberBlocks
	memberRequested
	memberState
	memberAllocated
	memberActive
	memberHistory
	memberRealSize
	members
)

var memberNames = [members]string{
	"", "action", "time_us", "addr", "size", "device_free", "frames", "filename", "line", "name",
	"segments", "device_traces", "host_segments", "host_traces", "device", "address", "total_size", "stream", "segment_type",
	"is_expandable", "blocks", "requested_size", "state", "allocated", "active", "history", "real_size",
}

// texts numbers them.
type texts struct {
	numbers map[string]uint32
	list    []string
}

func (t *texts) number(raw []byte) uint32 {
	n, known := t.numbers[string(raw)]
	if !known {
		n = uint32(len(t.list))
		text := string(raw)
		t.numbers[text] = n
		t.list = append(t.list, strings.ToValidUTF8(text, "\uFFFD"))
	}
	return n
}

// reader turns values into a Snapshot. The budget counts what was looked at, since a small pickle can refer to the same list
// many times.
type reader struct {
	snapshot *Snapshot
	texts    texts
	events   []Event
	frames   map[frameKey]int32 // index into list, from 1
	list     []*Frame
	stacks   map[uint64][]StackID // by hash of its frames
	ofStack  [][]int32            // frames by StackID
	seed     maphash.Seed
	scratch  []int32
	budget   int
	kept     int // members of lists and dicts
	most     int // of these
}

type frameKey struct {
	file, function int64
	line           int64
}

func newReader(budget int, found *surveyed) *reader {
	c := &reader{
		snapshot: &Snapshot{Stacks: []Stack{nil}}, texts: texts{numbers: map[string]uint32{}},
		events: make([]Event, 0, min(found.dicts, found.objects/8)), frames: map[frameKey]int32{},
		stacks: map[uint64][]StackID{}, ofStack: [][]int32{nil}, seed: maphash.MakeSeed(), budget: budget, most: budget,
	}
	for _, name := range memberNames {
		c.texts.number([]byte(name))
	}
	return c
}

// extend adds values to a list.
func (c *reader) extend(o *object, values []value) error {
	had := len(o.items)
	o.append(values)
	return c.keep(len(o.items) - had)
}

// keep counts members that are kept.
func (c *reader) keep(n int) error {
	if c.kept += n; c.kept > c.most {
		return ErrTooLarge
	}
	return nil
}

// fill adds members to a dict. What is an event or a frame is read at once.
func (c *reader) fill(o *object, values []value) error {
	if len(values)%2 != 0 {
		return fmt.Errorf("%w: a key without a value", ErrDamaged)
	}
	is := func(k memberName) bool {
		for i := 0; i < len(values); i += 2 {
			if values[i].kind == textValue && values[i].n == int64(k) && values[i+1].kind == textValue {
				return true
			}
		}
		return false
	}
	switch {
	case len(o.items) == 0 && is(memberAction):
		o.event = c.event(values)
	case len(o.items) == 0 && is(memberFile) && is(memberFunction):
		o.frame = c.frameOf(&object{items: values})
	default:
		o.items = append(o.items, values...)
		if err := c.keep(len(values)); err != nil {
			return err
		}
		if action := o.get(memberAction); action.kind == textValue {
			c.kept -= len(o.items)
			o.event, o.items = c.event(o.items), nil
		}
	}
	return nil
}

// event reads one and returns its number, from 1.
func (c *reader) event(values []value) int32 {
	e := Event{Action: OtherAction}
	for i := 0; i < len(values); i += 2 {
		if values[i].kind != textValue {
			continue
		}
		switch v := values[i+1]; memberName(values[i].n) {
		case memberAction:
			if action, known := actions[c.text(v)]; known {
				e.Action = action
			}
		case memberTime:
			e.TimeUs = number(v)
		case memberAddr, memberFree: // of which an event has one
			e.Address = number(v)
		case memberSize:
			e.Size = number(v)
		case memberFrames:
			e.Stack = c.stack(v)
		}
	}
	c.events = append(c.events, e)
	return int32(len(c.events))
}

// frameOf numbers the frame that a dict is, from 1.
func (c *reader) frameOf(o *object) int32 {
	if o.frame > 0 {
		return o.frame
	}
	file, function := o.get(memberFile), o.get(memberFunction)
	k := frameKey{line: number(o.get(memberLine))}
	if file.kind == textValue {
		k.file = file.n
	}
	if function.kind == textValue {
		k.function = function.n
	}
	n, known := c.frames[k]
	if !known {
		c.list = append(c.list, &Frame{File: c.texts.list[k.file], Function: c.texts.list[k.function], Line: k.line})
		n = int32(len(c.list))
		c.frames[k] = n
	}
	return n
}

// stack interns a list of frames.
func (c *reader) stack(v value) StackID {
	if v.kind != listValue {
		return 0
	}
	o := v.object
	if o.isStack {
		return o.stack
	}
	c.scratch = c.scratch[:0]
	for i := range o.items {
		if item := &o.items[i]; item.kind == dictValue {
			c.scratch = append(c.scratch, c.frameOf(item.object))
		}
	}
	c.kept -= len(o.items)
	o.stack, o.isStack, o.items = c.numberOf(c.scratch), true, nil
	return o.stack
}

// numberOf is the stack of some frames.
func (c *reader) numberOf(frames []int32) StackID {
	if len(frames) == 0 {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(c.seed)
	for _, f := range frames {
		h.Write([]byte{byte(f), byte(f >> 8), byte(f >> 16), byte(f >> 24)})
	}
	hash := h.Sum64()
	for _, id := range c.stacks[hash] {
		if slices.Equal(c.ofStack[id], frames) {
			return id
		}
	}
	id := StackID(len(c.ofStack))
	stack := make(Stack, len(frames))
	for i, f := range frames {
		stack[i] = c.list[f-1]
	}
	c.stacks[hash] = append(c.stacks[hash], id)
	c.ofStack = append(c.ofStack, slices.Clone(frames))
	c.snapshot.Stacks = append(c.snapshot.Stacks, stack)
	return id
}

// each visits the dicts of a list that are no events.
func (c *reader) each(v value, visit func(*object)) {
	if v.kind != listValue {
		return
	}
	for i := range v.object.items {
		if c.budget--; c.budget < 0 {
			return
		}
		if item := &v.object.items[i]; item.kind == dictValue {
			visit(item.object)
		}
	}
}

func (c *reader) segments(v value) {
	c.each(v, func(d *object) {
		s := Segment{
			Device: int(number(d.get(memberDevice))), Address: number(d.get(memberAddress)),
			Total: number(d.get(memberTotalSize)), Stream: number(d.get(memberStream)),
			Kind: c.text(d.get(memberSegmentType)), Expandable: isTrue(d.get(memberExpandable)),
		}
		at := s.Address
		c.each(d.get(memberBlocks), func(b *object) {
			block := Block{Size: number(b.get(memberSize)), Requested: number(b.get(memberRequested)), Address: at}
			if a := b.get(memberAddress); a.kind == integer {
				block.Address = a.n
			}
			block.State = c.stateOf(b)
			c.contextOf(b, &block)
			if block.Requested <= 0 {
				block.Requested = block.Size
			}
			at = block.Address + block.Size
			s.Blocks = append(s.Blocks, block)
		})
		c.snapshot.Segments = append(c.snapshot.Segments, s)
	})
}

// contextOf reads a block's frames. Before PyTorch 2.1 they were in its
// history, with the size asked for.
func (c *reader) contextOf(b *object, block *Block) {
	if frames := b.get(memberFrames); frames.kind != nothingKnown {
		block.Stack = c.stack(frames)
		return
	}
	c.each(b.get(memberHistory), func(h *object) {
		block.Stack = c.stack(h.get(memberFrames))
		if block.Requested == 0 {
			block.Requested = number(h.get(memberRealSize))
		}
	})
}

// stateOf is what a block or host segment is used for.
func (c *reader) stateOf(d *object) BlockState {
	switch state := c.text(d.get(memberState)); {
	case state == "active_allocated", isTrue(d.get(memberAllocated)):
		return Active
	case strings.HasPrefix(state, "active_"), isTrue(d.get(memberActive)): // documented as awaiting_free, written as pending_free
		return AwaitingFree
	}
	return Inactive
}

// hostSegments reads the pinned host memory. Its allocator never divides a
// segment, so that each is a block of its own.
func (c *reader) hostSegments(v value) {
	c.each(v, func(d *object) {
		size := max(number(d.get(memberTotalSize)), number(d.get(memberSize)))
		block := Block{Address: number(d.get(memberAddress)), Size: size, Requested: size, State: c.stateOf(d)}
		c.contextOf(d, &block)
		c.snapshot.Segments = append(c.snapshot.Segments, Segment{
			Device: HostMemory, Address: block.Address, Total: size, Kind: "pinned", Blocks: []Block{block},
		})
	})
}

func (c *reader) traces(v value) {
	if v.kind != listValue {
		return
	}
	for _, trace := range v.object.items {
		if c.budget--; c.budget < 0 {
			return
		}
		c.snapshot.Devices = append(c.snapshot.Devices, c.history(trace))
	}
}

// hostTraces reads one history; should it be a list of them, as those of devices
// are, their events follow one another.
func (c *reader) hostTraces(v value) {
	c.snapshot.Host = c.history(v)
	if v.kind != listValue {
		return
	}
	for _, trace := range v.object.items {
		if c.budget--; c.budget < 0 {
			return
		}
		c.snapshot.Host.Events = append(c.snapshot.Host.Events, c.history(trace).Events...)
	}
}

func (c *reader) history(v value) (device Device) {
	if v.kind != listValue {
		return device
	}
	if o := v.object; o.first < o.end {
		c.budget -= int(o.end - o.first)
		device.Events = c.events[o.first:o.end:o.end]
		return device
	}
	c.each(v, func(d *object) {
		if d.event > 0 {
			device.Events = append(device.Events, c.events[d.event-1])
		}
	})
	return device
}

func number(v value) int64 {
	if v.kind == integer {
		return v.n
	}
	return 0
}

func isTrue(v value) bool { return v.kind == truthValue && v.n == 1 }

func (c *reader) text(v value) string {
	if v.kind != textValue {
		return ""
	}
	return c.texts.list[v.n]
}
