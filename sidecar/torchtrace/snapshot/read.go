package snapshot

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"

	ogórek "github.com/kisielk/og-rek"
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

// Read reads one snapshot.
func Read(r io.ReadSeeker, limits Limits) (*Snapshot, error) {
	limits = limits.withDefaults()
	uses, err := survey(r, limits)
	if err == nil {
		_, err = r.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the memory snapshot: %w", err)
	}
	c := converter{
		stacks: map[*list]StackID{}, texts: map[string]StackID{"": 0}, budget: limits.Objects,
		snapshot: &Snapshot{Stacks: []Stack{nil}},
	}
	decoder := ogórek.NewDecoderWithConfig(newPlainPickle(r, limits, uses), &ogórek.DecoderConfig{PersistentLoad: c.container})
	root, err := decoder.Decode()
	if err != nil {
		return nil, fmt.Errorf("reading the memory snapshot: %w", err)
	}
	top, ok := root.(*dict)
	if !ok || (top.get("segments") == nil && top.get("device_traces") == nil) {
		return nil, errors.New("not a memory snapshot: it has neither segments nor device_traces; write one with torch.cuda.memory._dump_snapshot(path)")
	}
	c.segments(top.get("segments"))
	c.traces(top.get("device_traces"))
	if c.budget < 0 {
		return nil, ErrTooLarge
	}
	for _, stack := range c.snapshot.Stacks {
		c.snapshot.categories = append(c.snapshot.categories, categoryOf(stack))
	}
	return c.snapshot, nil
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
			switch state := text(b.get("state")); {
			case state == "active_allocated":
				block.State = Active
			case strings.HasPrefix(state, "active_"): // awaiting_free, pending_free
				block.State = AwaitingFree
			}
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

// contextOf reads a block's frames. Before PyTorch 2.1 they stood in its
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

func (c *converter) traces(value any) {
	l, ok := value.(*list)
	if !ok {
		return
	}
	empty := true
	for _, trace := range l.items {
		if c.budget--; c.budget < 0 {
			return
		}
		var device Device
		c.each(trace, func(d *dict) {
			if d.event != nil {
				device.Events = append(device.Events, *d.event)
			}
		})
		empty = empty && len(device.Events) == 0
		c.snapshot.Devices = append(c.snapshot.Devices, device)
	}
	if empty {
		c.snapshot.Notes = append(c.snapshot.Notes, "No history was recorded: call torch.cuda.memory._record_memory_history() before the code to see memory over time.")
	}
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
