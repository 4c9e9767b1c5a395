package analyses

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// recording is the part of one file that the questions look at, as one mode sees
// it: in exact mode the device events and runtime calls of the chosen steps.
// What differs between the modes is settled here as far as possible.
type recording struct {
	t     *kineto.Trace
	opts  *Options
	hta   bool                   // HTA's rules, rounded or not
	spans []span                 // by start; equal starts in file order
	calls []call                 // file order
	of    []int32                // the devices that spans ran on, ascending; one in HTA's modes, which know none
	steps []step                 // chosen ones
	found []int                  // the numbers of all steps, ascending
	keeps func(start int64) bool // whether the host's work at a time is in the chosen steps
	// dropped is the number of the last step, dropped as unfinished; -1 if none was.
	dropped   int
	cut       int64 // HTA: host rows from here on were dropped, if dropped >= 0
	stepNames int   // of all files, for HTA

	// What several questions share, made when it is first asked for.
	perDevice   [][]span
	layers      map[layerKey][]interval
	tree        *opTree
	python      *pythonStacks
	phaseTree   *phases
	moduleCalls *moduleCalls

	launcherOf []int32 // by span
	streams    []streamKey
	gaps       [][]gap // by stream
}

// span is a device event.
type span struct {
	start, dur  int64 // ns
	launch      int64 // start of its runtime call; None if that is not in the trace
	stream      int64
	correlation int64
	name        kineto.Sym
	row         int32  // of Trace.Device; -1 for HTA's other "device" events
	call        int32  // its runtime call in recording.calls; -1 if it is not there
	device      uint16 // index into recording.of
	kind        KernelKind
}

// end is never before the start, except in HTA's rounded times.
func (s *span) end() int64 { return s.start + s.dur }

// call is a runtime call.
type call struct {
	start, dur  int64 // ns
	correlation int64
	name        kineto.Sym
	row         int32 // of Trace.Calls; -1 for HTA's other "host" events
}

func (c *call) end() int64 { return c.start + c.dur }

// newRecording selects by opts.
func newRecording(t *kineto.Trace, opts *Options, stepNames int) *recording {
	if opts.AsHTA() {
		return newHTARecording(t, opts, stepNames)
	}
	r := &recording{t: t, opts: opts, dropped: -1, steps: findSteps(t), stepNames: stepNames}
	r.found = stepNumbers(r.steps)
	all := r.chooseSteps()
	c := &t.Calls
	launched := make(map[int64]int32, c.Len())
	r.calls = make([]call, 0, c.Len())
	for row, start := range c.Start {
		if !all && !r.keeps(start) {
			continue
		}
		if c.Correlation[row] != kineto.None {
			launched[c.Correlation[row]] = int32(len(r.calls))
		}
		r.calls = append(r.calls, call{start, max(0, c.Dur[row]), c.Correlation[row], c.Name[row], int32(row)})
	}
	d := &t.Device
	kind := kinds{t: t, seen: map[kindKey]KernelKind{}}
	r.spans = make([]span, 0, d.Len())
	for row, start := range d.Start {
		s := span{
			start: start, dur: max(0, d.Dur[row]), launch: kineto.None, stream: d.Stream[row],
			correlation: d.Correlation[row], name: d.Name[row], row: int32(row), call: -1,
			kind: kind.of(d.Name[row], d.Class[row]),
		}
		if call, known := launched[s.correlation]; known {
			s.call, s.launch = call, r.calls[call].start
		} else if !all {
			continue
		}
		r.spans = append(r.spans, s)
	}
	r.listDevices()
	r.sort()
	return r
}

// chooseSteps sets what of the host's work is looked at; all reports that it is
// everything.
func (r *recording) chooseSteps() (all bool) {
	host := hostSteps(r.steps)
	switch {
	case len(r.opts.Steps) > 0:
		r.keeps = func(start int64) bool { return inSteps(host, r.opts.Steps, start) }
		r.steps = slices.DeleteFunc(r.steps, func(s step) bool { return !slices.Contains(r.opts.Steps, s.number) })
		return false
	case !r.opts.IncludeLastStep && distinct(host) >= 2:
		last := host[len(host)-1]
		r.keeps = func(start int64) bool { return start < last.start }
		r.dropped = last.number
		r.steps = slices.DeleteFunc(r.steps, func(s step) bool { return s.number == last.number })
		return false
	}
	r.keeps = func(int64) bool { return true }
	return true
}

// mostDevices bounds how many devices are distinguished; a file that names more is
// damaged, and what is beyond counts as the last of them.
const mostDevices = 1 << 10

// listDevices lists the devices of the spans and gives each its index.
func (r *recording) listDevices() {
	number := r.t.Device.Device
	for i, s := range r.spans {
		device := number[s.row]
		if i > 0 && device == number[r.spans[i-1].row] {
			continue
		}
		if at, found := slices.BinarySearch(r.of, device); !found && len(r.of) < mostDevices {
			r.of = slices.Insert(r.of, at, device)
		}
	}
	if len(r.of) < 2 {
		return
	}
	for i := range r.spans {
		at, _ := slices.BinarySearch(r.of, number[r.spans[i].row])
		r.spans[i].device = uint16(min(at, len(r.of)-1))
	}
}

// sort orders spans by start, then end, then place in the file.
func (r *recording) sort() {
	byStart := func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.dur, b.dur))
	}
	if !slices.IsSortedFunc(r.spans, byStart) {
		slices.SortStableFunc(r.spans, byStart)
	}
}

// ofDevice are the spans of one device, by start.
func (r *recording) ofDevice(device int) []span {
	if len(r.of) <= 1 {
		return r.spans
	}
	if r.perDevice == nil {
		r.perDevice = make([][]span, len(r.of))
		for _, s := range r.spans {
			r.perDevice[s.device] = append(r.perDevice[s.device], s)
		}
	}
	return r.perDevice[device]
}

// layerKey names a layer: the time that spans of some kinds ran on a device.
type layerKey struct {
	device int
	kind   KernelKind
}

// busy is when anything ran on a device.
func (r *recording) busy(device int) []interval { return r.layer(device, anyOfThem) }

// layer is when spans of a kind ran on a device.
func (r *recording) layer(device int, kind KernelKind) []interval {
	key := layerKey{device, kind}
	merged, made := r.layers[key]
	if !made {
		keep := ofKind(kind)
		if kind == anyOfThem {
			keep = anyKind
		}
		merged = union(r.ofDevice(device), keep)
		if r.layers == nil {
			r.layers = map[layerKey][]interval{}
		}
		r.layers[key] = merged
	}
	return merged
}

// window is from the first device event to the last, on whatever device: all
// devices share it.
func (r *recording) window() (window interval, ok bool) {
	for d := range r.of {
		busy := r.busy(d)
		if len(busy) == 0 {
			continue
		}
		first, last := busy[0].Start, busy[len(busy)-1].End
		if !ok {
			window, ok = between(first, last), true
		}
		window = between(min(window.Start, first), max(window.End, last))
	}
	return window, ok
}

// symSet is the set of those names that a trace has.
func symSet(t *kineto.Trace, names []string) map[kineto.Sym]bool {
	set := map[kineto.Sym]bool{}
	for _, n := range names {
		if s := t.Names.Find(n); s != 0 {
			set[s] = true
		}
	}
	return set
}
