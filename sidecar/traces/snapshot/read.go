package snapshot

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"

	ogórek "github.com/kisielk/og-rek"
	"github.com/klauspost/compress/gzip"

	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// A list and a dict of Python, filled while the pickle is read. Nearly all
// dicts of a snapshot are events: they are read as soon as they are complete.
type (
	list struct{ items []any }
	dict struct {
		pairs []any // key, value, key, value …
		event *Event
	}
)

// get returns a member; dicts of a snapshot have a dozen keys.
func (d *dict) get(key string) any {
	for i := len(d.pairs) - 2; i >= 0; i -= 2 {
		if d.pairs[i] == any(key) {
			return d.pairs[i+1]
		}
	}
	return nil
}

// container answers the persistent references that plainPickle writes.
func (c *converter) container(ref ogórek.Ref) (any, error) {
	switch id := ref.Pid.(type) {
	case ogórek.None:
		return &list{}, nil
	case bool:
		return &dict{}, nil
	case ogórek.Tuple:
		if len(id) != 2 {
			break
		}
		items, ok := id[1].(ogórek.Tuple)
		if !ok {
			break
		}
		switch into := id[0].(type) {
		case *list:
			into.items = grow(into.items, items)
			return into, nil
		case *dict:
			return into, c.fill(into, items)
		}
	}
	return nil, errors.New("values are added to something that is no list or dict")
}

// fill adds members to a dict.
func (c *converter) fill(d *dict, items []any) error {
	if len(items)%2 != 0 {
		return errors.New("a key without a value")
	}
	for i := 0; i < len(items); i += 2 {
		if _, ok := items[i].(string); !ok {
			items[i] = nil // never asked for, and may not be comparable
		}
	}
	d.pairs = grow(d.pairs, items)
	if action, ok := d.get("action").(string); ok {
		d.event = c.event(d, action)
		d.pairs = nil
	}
	return nil
}

func (c *converter) event(d *dict, action string) *Event {
	e := &Event{
		TimeUs: number(d.get("time_us")), Address: number(d.get("addr")), Size: number(d.get("size")),
		Free: number(d.get("device_free")), Stream: number(d.get("stream")), Stack: c.stack(d.get("frames")),
	}
	var known bool
	if e.Action, known = actions[action]; !known {
		e.Action = OtherAction
	}
	return e
}

// grow takes over the first batch, which usually is the only one.
func grow(have, more []any) []any {
	if have == nil {
		return more
	}
	return append(have, more...)
}

// Read reads one snapshot, plain or gzip.
func Read(r io.ReadSeeker, limits Limits) (*Snapshot, error) {
	limits = limits.withDefaults()
	pickle, err := unpacked(r)
	if err != nil {
		return nil, err
	}
	uses, err := survey(pickle, limits)
	if err != nil {
		return nil, err
	}
	if pickle, err = unpacked(r); err != nil {
		return nil, err
	}
	c := converter{
		stacks: map[*list]StackID{}, texts: map[string]StackID{"": 0}, budget: limits.Objects,
		snapshot: &Snapshot{Stacks: []Stack{nil}},
	}
	decoder := ogórek.NewDecoderWithConfig(newPlainPickle(pickle, limits, uses), &ogórek.DecoderConfig{PersistentLoad: c.container})
	root, err := decoder.Decode()
	if err != nil {
		return nil, fmt.Errorf("the memory snapshot is damaged: %w", err)
	}
	top, ok := root.(*dict)
	if !ok || (top.get("segments") == nil && top.get("device_traces") == nil) {
		return nil, ErrOther
	}
	c.segments(top.get("segments"))
	c.hostSegments(top.get("host_segments"))
	c.traces(top.get("device_traces"))
	c.hostTraces(top.get("host_traces"))
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

// converter turns Python values into a Snapshot. The budget counts what was
// looked at, since a small pickle can refer to the same list many times.
type converter struct {
	snapshot *Snapshot
	stacks   map[*list]StackID // by identity: equal stacks are usually shared
	texts    map[string]StackID
	budget   int
}

func (c *converter) each(value any, visit func(*dict)) {
	l, ok := value.(*list)
	if !ok {
		return
	}
	for _, item := range l.items {
		if c.budget--; c.budget < 0 {
			return
		}
		if d, ok := item.(*dict); ok {
			visit(d)
		}
	}
}

func (c *converter) segments(value any) {
	c.each(value, func(d *dict) {
		s := Segment{
			Device: int(number(d.get("device"))), Address: number(d.get("address")),
			Total: number(d.get("total_size")), Stream: number(d.get("stream")),
			Kind: text(d.get("segment_type")), Expandable: d.get("is_expandable") == any(true),
		}
		at := s.Address
		c.each(d.get("blocks"), func(b *dict) {
			block := Block{Size: number(b.get("size")), Requested: number(b.get("requested_size")), Address: at}
			if a, ok := b.get("address").(int64); ok {
				block.Address = a
			} else if a, ok := b.get("address").(*big.Int); ok {
				block.Address = a.Int64()
			}
			block.State = stateOf(b)
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
func (c *converter) contextOf(b *dict, block *Block) {
	if frames := b.get("frames"); frames != nil {
		block.Stack = c.stack(frames)
		return
	}
	c.each(b.get("history"), func(h *dict) {
		block.Stack = c.stack(h.get("frames"))
		if block.Requested == 0 {
			block.Requested = number(h.get("real_size"))
		}
	})
}

// stateOf is what a block or host segment is used for.
func stateOf(d *dict) BlockState {
	switch state := text(d.get("state")); {
	case state == "active_allocated", d.get("allocated") == any(true):
		return Active
	case strings.HasPrefix(state, "active_"), d.get("active") == any(true): // documented as awaiting_free, written as pending_free
		return AwaitingFree
	}
	return Inactive
}

// hostSegments reads the pinned host memory. Its allocator never divides a
// segment, so that each is a block of its own.
func (c *converter) hostSegments(value any) {
	c.each(value, func(d *dict) {
		size := max(number(d.get("total_size")), number(d.get("size")))
		block := Block{Address: number(d.get("address")), Size: size, Requested: size, State: stateOf(d)}
		c.contextOf(d, &block)
		c.snapshot.Segments = append(c.snapshot.Segments, Segment{
			Device: HostMemory, Address: block.Address, Total: size, Kind: "pinned", Blocks: []Block{block},
		})
	})
}

func (c *converter) traces(value any) {
	l, ok := value.(*list)
	if !ok {
		return
	}
	for _, trace := range l.items {
		if c.budget--; c.budget < 0 {
			return
		}
		c.snapshot.Devices = append(c.snapshot.Devices, c.history(trace))
	}
}

// hostTraces reads one history; should it be a list of them, as those of devices
// are, their events follow one another.
func (c *converter) hostTraces(value any) {
	c.snapshot.Host = c.history(value)
	if l, ok := value.(*list); ok {
		for _, trace := range l.items {
			if c.budget--; c.budget < 0 {
				return
			}
			c.snapshot.Host.Events = append(c.snapshot.Host.Events, c.history(trace).Events...)
		}
	}
}

func (c *converter) history(value any) (device Device) {
	c.each(value, func(d *dict) {
		if d.event != nil {
			device.Events = append(device.Events, *d.event)
		}
	})
	return device
}

// stack interns a list of frames.
func (c *converter) stack(value any) StackID {
	l, ok := value.(*list)
	if !ok {
		return 0
	}
	if id, ok := c.stacks[l]; ok {
		return id
	}
	var stack Stack
	var key strings.Builder
	c.each(l, func(d *dict) {
		f := Frame{File: text(d.get("filename")), Function: text(d.get("name")), Line: number(d.get("line"))}
		stack = append(stack, f)
		fmt.Fprintf(&key, "%s\x00%d\x00%s\x00", f.File, f.Line, f.Function)
	})
	id, ok := c.texts[key.String()]
	if !ok {
		id = StackID(len(c.snapshot.Stacks))
		c.texts[key.String()] = id
		c.snapshot.Stacks = append(c.snapshot.Stacks, stack)
	}
	c.stacks[l] = id
	return id
}

func number(value any) int64 {
	switch v := value.(type) {
	case int64:
		return v
	case *big.Int:
		return v.Int64()
	case float64:
		return int64(v)
	}
	return 0
}

func text(value any) string {
	s, _ := value.(string)
	return strings.ToValidUTF8(s, "\uFFFD")
}
