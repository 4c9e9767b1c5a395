package snapshot

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// Names of the tables.
const (
	TableTimeline      = "snapshot_timeline"
	TablePlaces        = "snapshot_timeline_by_place"
	TablePeaks         = "snapshot_peaks" // a row per device: when it was highest, and what by
	TablePeak          = "snapshot_peak"  // what was allocated then, by stack
	TableLive          = "snapshot_live_blocks"
	TableFragmentation = "snapshot_fragmentation"
	TableOutOfMemory   = "snapshot_out_of_memory"
	TableAroundOOM     = "snapshot_around_oom"  // the events before and after
	TableWindow        = "snapshot_window"      // what came and went in it
	TableSegmentsAt    = "snapshot_segments_at" // fragmentation at some moments
	TableChanges       = "snapshot_changes"     // against another snapshot
)

// Options: the zero value is sensible.
type Options struct {
	MinBytes int64 // smaller allocations are summed in one row; 0 keeps all apart
	Rows     int   // of peak and live blocks; 0 = 50
	Points   int   // of the timeline, per device; 0 = 500
	// Window is a part of the history that is looked at; nil: none.
	Window *Window
}

func (o Options) withDefaults() Options {
	if o.Rows <= 0 {
		o.Rows = 50
	}
	if o.Points <= 0 {
		o.Points = 500
	}
	return o
}

// Analyze computes every table.
func Analyze(s *Snapshot, opts Options) []*table.Table {
	opts = opts.withDefaults()
	peaks := s.peaks()
	categories, places := s.timeline(peaks, opts)
	highest, peak := s.peak(peaks, opts)
	tables := []*table.Table{
		highest, categories, places, peak, s.liveBlocks(opts), s.fragmentation(), s.segmentsAt(peaks, opts.Window), s.outOfMemory(), s.aroundOOM(),
	}
	if opts.Window != nil {
		tables = append(tables, s.window(*opts.Window, opts))
	}
	return tables
}

func column(name string, kind table.Kind) *table.Column { return &table.Column{Name: name, Kind: kind} }

func optional(name string) *table.Column {
	return &table.Column{Name: name, Kind: table.Text, Optional: true}
}

// moment is a device's highest use and what was allocated then.
type moment struct {
	device int
	event  int // index of the event after which it was so; -1 = from the start
	total  int64
	// reserved then.
	reserved int64
	// blocks is the most that replay.blocks was, at whatever time.
	blocks int64
}

// peaks finds each device's.
func (s *Snapshot) peaks() []moment {
	var peaks []moment
	for _, device := range s.DeviceNumbers() {
		r := newReplay(s, device)
		peak := moment{device, -1, r.total, r.reserved, r.blocks}
		for i, e := range s.history(device) {
			r.apply(e)
			blocks := max(peak.blocks, r.blocks)
			if r.total > peak.total {
				peak = moment{device, i, r.total, r.reserved, blocks}
			}
			peak.blocks = blocks
		}
		peaks = append(peaks, peak)
	}
	return peaks
}

// mostPlaces is how many stacks the timeline by place distinguishes.
const mostPlaces = 10

// timeline returns what was allocated when, by category and by the stacks that
// had most at the peak: of each of Points equal parts of the history the moment
// with most in use, so that peaks stay.
func (s *Snapshot) timeline(peaks []moment, opts Options) (byCategory, byPlace *table.Table) {
	categories := table.New(TableTimeline, "Memory over time",
		column("device", table.Text), column("time_us", table.Micros), column("category", table.Text),
		column("allocated_bytes", table.Bytes), column("reserved_bytes", table.Bytes))
	places := table.New(TablePlaces, "Memory over time, by what allocated most",
		column("device", table.Text), column("time_us", table.Micros), column("place", table.Text),
		column("allocated_bytes", table.Bytes))
	for _, peak := range peaks {
		events := s.history(peak.device)
		timed := len(events) > 0 && events[0].TimeUs > 0
		stacks := s.placesAt(peak)
		s.eachBin(peak.device, stacks, opts.Points, func(at int, total, reserved int64, kinds, byStack []int64) {
			when := float64(at)
			if timed {
				when = float64(events[at].TimeUs - events[0].TimeUs)
			}
			for c, bytes := range kinds {
				if bytes != 0 {
					categories.Add(DeviceName(peak.device), when, Category(c).String(), bytes, reserved)
				}
			}
			rest := total
			for i, bytes := range byStack {
				places.Add(DeviceName(peak.device), when, s.Place(stacks[i]), bytes)
				rest -= bytes
			}
			places.Add(DeviceName(peak.device), when, "(everything else)", rest)
		})
		if !timed && len(events) > 0 {
			categories.Note = "This PyTorch recorded no times: time_us counts events."
			places.Note = categories.Note
		}
	}
	if categories.Len() == 0 {
		categories.Note = "The snapshot has no history: call torch.cuda.memory._record_memory_history() before the code."
		places.Note = categories.Note
	}
	return categories, places
}

// eachBin replays a device's history in equal parts and visits the moment of
// each with most in use. The slices are valid during the visit.
func (s *Snapshot) eachBin(device int, stacks []StackID, points int, visit func(at int, total, reserved int64, kinds, byStack []int64)) {
	events := s.history(device)
	points = min(points, len(events))
	r := newReplay(s, device, stacks...)
	byStack := make([]int64, len(stacks))
	for bin := range points {
		var kinds [numCategories]int64
		var total, reserved int64
		at := -1
		for i := bin * len(events) / points; i < (bin+1)*len(events)/points; i++ {
			if r.apply(events[i]); at < 0 || r.total > total {
				at, total, reserved, kinds = i, r.total, r.reserved, r.byKind
				copy(byStack, r.byPlace)
			}
		}
		visit(at, total, reserved, kinds[:], byStack)
	}
}

// placesAt are the stacks that had most allocated at a moment.
func (s *Snapshot) placesAt(m moment) []StackID {
	sums := map[StackID]int64{}
	for _, a := range s.liveAt(m) {
		sums[a.stack] += a.size
	}
	delete(sums, 0) // no stack: part of everything else
	list := slices.SortedFunc(maps.Keys(sums), func(a, b StackID) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b)) })
	return list[:min(len(list), mostPlaces)]
}

func (s *Snapshot) liveAt(m moment) map[int64]allocation {
	r := newReplay(s, m.device)
	for _, e := range s.history(m.device)[:m.event+1] {
		r.apply(e)
	}
	return r.live
}

// peak returns when each device was at its highest and lists what was allocated
// then, by stack.
func (s *Snapshot) peak(peaks []moment, opts Options) (highest, byStack *table.Table) {
	highest = table.New(TablePeaks, "When memory was highest",
		column("device", table.Text), column("peak_bytes", table.Bytes), // requested
		column("max_memory_allocated_bytes", table.Bytes), // what torch.cuda.max_memory_allocated() counts: blocks; at least
		column("reserved_bytes", table.Bytes),
		column("time_us", table.Micros), // since the first event; none without times
		column("history_us", table.Micros), column("events_before", table.Int), column("events", table.Int),
		optional("category"), column("category_share", table.Ratio), // what had most
		optional("place"), column("place_share", table.Ratio))
	byStack = table.New(TablePeak, "Memory at the peak, by what allocated it",
		column("device", table.Text), optional("category"), column("place", table.Text),
		column("bytes", table.Bytes), column("share", table.Ratio), column("blocks", table.Int),
		column("largest_bytes", table.Bytes), optional("stack"))
	for _, p := range peaks {
		groups := map[groupKey]group{}
		categories, places := map[string]int64{}, map[string]int64{}
		for _, a := range s.liveAt(p) {
			key := groupKey{s.category(a), a.stack}
			groups[key] = groups[key].plus(a.size, opts.MinBytes)
			categories[key.category.String()] += a.size
			if a.stack != 0 {
				places[s.Place(a.stack)] += a.size
			}
		}
		addGroups(byStack, s, p.device, p.total, groups, opts)
		events := s.history(p.device)
		when, length := math.NaN(), math.NaN()
		if n := len(events); n > 0 && events[0].TimeUs > 0 {
			length = float64(events[n-1].TimeUs - events[0].TimeUs)
			when = float64(events[max(0, p.event)].TimeUs - events[0].TimeUs)
		}
		category, most := largest(categories)
		at, there := largest(places)
		highest.Add(DeviceName(p.device), p.total, blocksOf(p), p.reserved, when, length, p.event+1, len(events),
			category, share(most, p.total), at, share(there, p.total))
	}
	return highest, byStack
}

// blocksOf is the most that blocks took; none of pinned host memory.
func blocksOf(m moment) int64 {
	if m.device == HostMemory {
		return table.None
	}
	return m.blocks
}

// largest is the name with the largest sum.
func largest(sums map[string]int64) (name string, most int64) {
	for _, n := range slices.Sorted(maps.Keys(sums)) {
		if sums[n] > most {
			name, most = n, sums[n]
		}
	}
	return name, most
}

// groupKey is what allocations are grouped by.
type groupKey struct {
	category Category
	stack    StackID
}

// group sums allocations; those under the limit go to small.
type group struct {
	bytes, largest, blocks  int64
	smallBytes, smallBlocks int64
}

func (g group) plus(size, limit int64) group {
	if size < limit {
		g.smallBytes += size
		g.smallBlocks++
		return g
	}
	g.bytes += size
	g.blocks++
	g.largest = max(g.largest, size)
	return g
}

func addGroups(t *table.Table, s *Snapshot, device int, total int64, groups map[groupKey]group, opts Options) {
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b groupKey) int {
		return cmp.Or(cmp.Compare(groups[b].bytes, groups[a].bytes), cmp.Compare(a.stack, b.stack), cmp.Compare(a.category, b.category))
	})
	var small, rest group
	for i, k := range keys {
		g := groups[k]
		small.bytes += g.smallBytes
		small.blocks += g.smallBlocks
		switch {
		case g.blocks == 0:
		case i < opts.Rows:
			t.Add(DeviceName(device), k.category.String(), s.Place(k.stack), g.bytes, share(g.bytes, total), g.blocks, g.largest, s.Trace(k.stack))
		default:
			rest.bytes += g.bytes
			rest.blocks += g.blocks
			rest.largest = max(rest.largest, g.largest)
		}
	}
	if rest.blocks > 0 {
		t.Add(DeviceName(device), "", fmt.Sprintf("(%d further places)", len(keys)-opts.Rows), rest.bytes, share(rest.bytes, total), rest.blocks, rest.largest, "")
	}
	if small.blocks > 0 {
		t.Add(DeviceName(device), "", fmt.Sprintf("(blocks below %d bytes)", opts.MinBytes), small.bytes, share(small.bytes, total), small.blocks, int64(0), "")
	}
}

func share(part, whole int64) float64 { return float64(part) / float64(whole) } // NaN of 0/0 is "no value"

// liveBlocks groups what was in use when the snapshot was taken by the stack
// that allocated it, most first.
func (s *Snapshot) liveBlocks(opts Options) *table.Table {
	t := table.New(TableLive, "In use at the end, by what allocated it",
		column("device", table.Text), column("bytes", table.Bytes), column("requested_bytes", table.Bytes),
		column("blocks", table.Int), column("largest_bytes", table.Bytes),
		column("state", table.Text), column("category", table.Text), column("place", table.Text), optional("stack"))
	type key struct {
		device int
		state  BlockState
		stack  StackID
	}
	type sums struct{ bytes, requested, blocks, largest int64 }
	by := map[key]sums{}
	var small sums
	for _, segment := range s.Segments {
		for _, b := range segment.Blocks {
			switch {
			case b.State == Inactive:
			case b.Size < opts.MinBytes:
				small.blocks++
				small.bytes += b.Size
			default:
				k := key{segment.Device, b.State, b.Stack}
				g := by[k]
				by[k] = sums{g.bytes + b.Size, g.requested + b.Requested, g.blocks + 1, max(g.largest, b.Size)}
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(by), func(a, b key) int {
		return cmp.Or(cmp.Compare(by[b].bytes, by[a].bytes), cmp.Compare(a.device, b.device), cmp.Compare(a.state, b.state), cmp.Compare(a.stack, b.stack))
	})
	var notes []string
	if len(keys) > opts.Rows {
		notes = append(notes, fmt.Sprintf("The %d largest of %d stacks.", opts.Rows, len(keys)))
		keys = keys[:opts.Rows]
	}
	if small.blocks > 0 {
		notes = append(notes, fmt.Sprintf("%d blocks below %d bytes are left out, %d bytes together.", small.blocks, opts.MinBytes, small.bytes))
	}
	t.Note = strings.Join(notes, " ")
	for _, k := range keys {
		state := "in use"
		if k.state == AwaitingFree {
			state = "awaiting free"
		}
		g := by[k]
		t.Add(DeviceName(k.device), g.bytes, g.requested, g.blocks, g.largest, state, s.Category(k.stack).String(), s.Place(k.stack), s.Trace(k.stack))
	}
	return t
}

// fragmentation sums up segments per device and kind, and per device.
func (s *Snapshot) fragmentation() *table.Table {
	t := table.New(TableFragmentation, "Reserved memory and its fragments",
		column("device", table.Text), column("segments", table.Text), column("count", table.Int),
		column("reserved_bytes", table.Bytes), column("used_bytes", table.Bytes), column("requested_bytes", table.Bytes),
		column("free_bytes", table.Bytes), column("largest_free_bytes", table.Bytes),
		column("releasable_bytes", table.Bytes), column("fragmented_share", table.Ratio))
	t.Note = "fragmented = 1 - largest free block / all free bytes; releasable: wholly free segments, which empty_cache() gives back."
	for _, device := range s.DeviceNumbers() {
		kinds := map[string]*space{}
		all := &space{}
		for _, segment := range s.Segments {
			if segment.Device != device {
				continue
			}
			if kinds[segment.Kind] == nil {
				kinds[segment.Kind] = &space{}
			}
			kinds[segment.Kind].add(segment)
			all.add(segment)
		}
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			kinds[kind].row(t, device, kind)
		}
		all.row(t, device, "all")
	}
	return t
}

type space struct {
	count, reserved, used, requested, free, largestFree, releasable int64
}

func (s *space) add(segment Segment) {
	s.count++
	s.reserved += segment.Total
	used := int64(0)
	for _, b := range segment.Blocks {
		if b.State == Inactive {
			s.free += b.Size
			s.largestFree = max(s.largestFree, b.Size)
			continue
		}
		used += b.Size
		s.requested += b.Requested
	}
	s.used += used
	if used == 0 {
		s.releasable += segment.Total
	}
}

func (s *space) row(t *table.Table, device int, kind string) {
	fragmented := 0.0
	if s.free > 0 {
		fragmented = 1 - float64(s.largestFree)/float64(s.free)
	}
	t.Add(DeviceName(device), kind, s.count, s.reserved, s.used, s.requested, s.free, s.largestFree, s.releasable, fragmented)
}

// outOfMemory lists the allocations that failed.
func (s *Snapshot) outOfMemory() *table.Table {
	t := table.New(TableOutOfMemory, "Allocations that failed",
		column("device", table.Text), column("time_us", table.Micros), column("requested_bytes", table.Bytes),
		column("device_free_bytes", table.Bytes), column("place", table.Text), optional("stack"))
	for device, d := range s.Devices {
		for _, e := range d.Events {
			if e.Action == OutOfMemory {
				t.Add(DeviceName(device), float64(e.TimeUs-d.Events[0].TimeUs), e.Size, e.Free(), s.Place(e.Stack), s.Trace(e.Stack))
			}
		}
	}
	return t
}
