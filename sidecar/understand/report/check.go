package report

import (
	"errors"
	"fmt"
	"math"
)

var errDamaged = errors.New("the report is damaged")

const (
	// maxInteger bounds every number of a document, so that no sum of a few overflows.
	// What JavaScript reads exactly ends at 2⁵³, 104 days of nanoseconds: beyond are
	// the clocks of a host that has been up for longer, and sums over many threads.
	maxInteger = 1 << 60
	maxFigure  = 1e18
)

// Check looks once whether everything in a document holds: indices, bounds, order,
// and the sums that are exact. After it nobody needs to look again. It takes over the
// document, whose states and codes it numbers as this program does.
func Check(d *Document) (*View, error) {
	c := &checker{d: d}
	for _, check := range []func(){
		c.size, c.head, c.enumerations, c.places, c.about, c.code, c.stacks, c.spans, c.tracks, c.idle, c.tables, c.findings, c.gaps, c.kernels, c.torch,
	} {
		if check(); c.err != nil {
			return nil, fmt.Errorf("%w: %w", errDamaged, c.err)
		}
	}
	d.interpreted()
	return newView(d), nil
}

// checker keeps the first thing that does not hold.
type checker struct {
	d   *Document
	err error
}

// must says what does not hold; the arguments are only used then.
func (c *checker) must(holds bool, format string, args ...any) {
	if !holds && c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *checker) index(what string, i, n int) {
	c.must(i >= 0 && i < n, "%s is %d of %d", what, i, n)
}

func (c *checker) indexOrNull(what string, i *int, n int) {
	if i != nil {
		c.index(what, *i, n)
	}
}

func (c *checker) amount(what string, v int64) {
	c.must(v >= 0 && v <= maxInteger, "%s is %d", what, v)
}

func (c *checker) amountOrNull(what string, v *int64) {
	if v != nil {
		c.amount(what, *v)
	}
}

func (c *checker) count(what string, v int) { c.amount(what, int64(v)) }

func (c *checker) figureOrNull(what string, v *float64) {
	if v != nil {
		c.must(math.Abs(*v) <= maxFigure, "%s is %g", what, *v) // false for NaN, too
	}
}

func (c *checker) instant(what string, v int64) {
	c.must(v >= 0 && v <= c.d.DurationNS, "%s is %d in %d ns", what, v, c.d.DurationNS)
}

func (c *checker) intervals(what string, list []Interval, apart bool) {
	end := int64(0)
	for _, iv := range list {
		c.must(iv[0] >= end && iv[0] <= iv[1] && iv[1] <= c.d.DurationNS, "%s has a stretch from %d to %d", what, iv[0], iv[1])
		if apart {
			end = iv[1]
		}
	}
}

func (c *checker) place(what string, file, line, function *int) {
	c.indexOrNull(what+".file", file, len(c.d.Files))
	c.indexOrNull(what+".function", function, len(c.d.Functions))
	c.must(line == nil || file != nil && *line > 0 && *line <= math.MaxInt32, "%s.line makes no sense", what)
}

// size refuses to make what a reader would refuse, as by merging too many reports.
func (c *checker) size() {
	for what, n := range map[string]int{"stacks": len(c.d.Nodes.Parent), "spans": len(c.d.Spans.Node)} {
		c.must(n <= maxNumbers, "it has %d %s, a report at most %d", n, what, maxNumbers)
	}
}

func (c *checker) head() {
	d := c.d
	c.must(d.Document == Kind && d.Version == Version, "it is a %q of version %d", d.Document, d.Version)
	c.amount("duration_ns", d.DurationNS)
	c.must(d.StartedAt.Year() < 10_000, "started_at is %v", d.StartedAt) // JSON has no more
	c.indexOrNull("headline.finding", d.Headline.Finding, len(d.Findings))
	for _, i := range d.Headline.Limits {
		c.index("headline.limits", i, len(d.Findings))
	}
	c.must(len(d.Hosts) > 0 && len(d.Targets) > 0 && len(d.Processes) > 0, "nothing in it was recorded")
}

// enumerations brings the document's numbers of states and codes to ours.
func (c *checker) enumerations() {
	d := c.d
	states := translation(d.Enumerations.State, stateIDs, int(StateUnknown))
	codes := translation(d.Enumerations.Code, codeIDs, int(CodeOther))
	for i, s := range d.Spans.State {
		if s < 0 || s >= int64(len(states)) {
			c.must(false, "spans.state[%d] is %d of %d", i, s, len(states))
			return
		}
		d.Spans.State[i] = int64(states[s])
	}
	times := func(t *StateTimes) {
		if len(*t) != len(states) {
			c.must(false, "state_ns has %d states of %d", len(*t), len(states))
			return
		}
		ours := make(StateTimes, NumStates)
		for i, v := range *t {
			c.amount("state_ns", v)
			ours[states[i]] += v
		}
		*t = ours
	}
	for i := range d.Threads {
		times(&d.Threads[i].StateNS)
	}
	for i := range d.Lines {
		times(&d.Lines[i].StateNS)
	}
	for i := range d.FunctionTimes {
		times(&d.FunctionTimes[i].StateNS)
	}
	code := func(code *Code) {
		if int(*code) >= len(codes) {
			c.must(false, "code is %d of %d", *code, len(codes))
			return
		}
		*code = Code(codes[*code])
	}
	for i := range d.Files {
		code(&d.Files[i].Code)
	}
	for i := range d.Functions {
		code(&d.Functions[i].Code)
	}
	d.Enumerations = enumerations()
}

// places checks hosts, targets, processes, threads and devices.
func (c *checker) places() {
	d := c.d
	for _, h := range d.Hosts {
		c.amount("hosts.clock.monotonic_ns", h.Clock.MonotonicNS)
		c.must(h.Clock.WallNS >= 0, "hosts.clock.wall_ns is %d", h.Clock.WallNS)
		if h.Aligned != nil {
			c.amount("hosts.aligned.bound_ns", h.Aligned.BoundNS)
		}
		for _, r := range h.Readings {
			c.amount("hosts.readings.monotonic_ns", r.MonotonicNS)
			c.amount("hosts.readings.low_ns", r.LowNS)
			c.amount("hosts.readings.high_ns", r.HighNS)
			c.must(r.LowNS <= r.HighNS, "hosts.readings.high_ns is before low_ns")
		}
		c.amountOrNull("hosts.memory_bytes", h.MemoryBytes)
	}
	for _, t := range d.Targets {
		c.index("targets.host", t.Host, len(d.Hosts))
		c.index("targets.process", t.Process, len(d.Processes))
		c.index("targets.program", t.Runs(), len(d.Processes))
		if t.Leading != nil {
			c.index("targets.leading", *t.Leading, len(d.Processes))
		}
		c.instant("targets.start_ns", t.StartNS)
		c.instant("targets.end_ns", t.EndNS)
		c.amount("targets.thread_ns", t.ThreadNS)
		c.amount("targets.no_line_ns", t.NoLineNS)
		if t.Cell != nil {
			c.index("targets.cell.file", t.Cell.File, len(d.Files))
		}
		if t.Output != nil {
			c.amount("targets.output.messages", t.Output.Messages)
			c.amount("targets.output.bytes", t.Output.Bytes)
		}
		c.sampling(&t.Sampling)
	}
	for i, p := range d.Processes {
		c.index("processes.target", p.Target, len(d.Targets))
		c.index("processes.host", p.Host, len(d.Hosts))
		c.indexOrNull("processes.parent", p.Parent, len(d.Processes))
		c.must(p.Parent == nil || *p.Parent != i, "a process is its own parent")
		c.count("processes.pid", p.PID)
		c.must(p.StartNS <= d.DurationNS && p.StartNS >= -maxInteger, "processes.start_ns is %d", p.StartNS)
		if p.EndNS != nil {
			c.instant("processes.end_ns", *p.EndNS)
		}
		c.amountOrNull("processes.cpu_ns", p.CPUNS)
		c.amountOrNull("processes.stacks.interval_ns", p.Stacks.IntervalNS)
		c.work(p.Work)
	}
	c.ranks()
	for _, t := range d.Threads {
		c.index("threads.process", t.Process, len(d.Processes))
		c.count("threads.native_id", t.NativeID)
		c.amountOrNull("threads.on_cpu_ns", t.OnCPUNS)
		c.must(t.StateNS.Sum() <= d.DurationNS, "a thread's states take longer than the recording")
	}
	for _, v := range d.Devices {
		c.index("devices.host", v.Host, len(d.Hosts))
		c.count("devices.number", v.Number)
		c.must(v.Number <= math.MaxInt32, "devices.number is %d", v.Number)
		for _, ns := range []int64{v.BusyNS, v.IdleNS, v.UnknownNS} {
			c.instant("a device's time", ns)
		}
		c.must(v.BusyNS+v.IdleNS+v.UnknownNS == d.DurationNS, "a device's times do not add up to the duration")
		c.amountOrNull("devices.resolution_ns", v.ResolutionNS)
		c.must(v.EnergyJ == nil || *v.EnergyJ >= 0 && *v.EnergyJ < 1e15, "devices.energy_j is no energy")
		for _, x := range v.Xids {
			c.instant("devices.xids.at_ns", x.AtNS)
			c.must(x.Code >= 0 && x.Code <= math.MaxInt32, "devices.xids.code is %d", x.Code)
		}
		for _, p := range v.Processes {
			c.index("devices.processes", p, len(d.Processes))
		}
	}
}

func (c *checker) sampling(s *Sampling) {
	for _, v := range []int64{s.AskedNS, s.ResolutionNS, s.Ticks, s.Incomplete, s.Unreadable} {
		c.amount("targets.sampling", v)
	}
	for _, v := range []*int64{s.MissedTicks, s.Reads, s.CPUNS} {
		c.amountOrNull("targets.sampling", v)
	}
	last := int64(0)
	for _, k := range s.Kept {
		c.must(k[0] >= last && k[1] > 0 && k[1] <= maxInteger, "targets.sampling.kept has %d from %d on", k[1], k[0])
		c.instant("targets.sampling.kept", k[0])
		last = k[0]
	}
}

func (c *checker) code() {
	d := c.d
	for _, f := range d.Functions {
		c.index("functions.file", f.File, len(d.Files))
		c.must(f.FirstLine >= 0 && f.FirstLine <= math.MaxInt32, "functions.first_line is %d", f.FirstLine)
	}
}

func (c *checker) stacks() {
	f, n := &c.d.Frames, &c.d.Nodes
	c.must(len(f.Function) == len(f.Line), "the columns of frames differ in length")
	c.must(len(n.Parent) == len(n.Frame) && len(n.Parent) > 0, "the columns of nodes differ in length, or are empty")
	if c.err != nil {
		return
	}
	for i, fn := range f.Function {
		if fn < 0 || fn >= int64(len(c.d.Functions)) || f.Line[i] < 0 || f.Line[i] > math.MaxInt32 {
			c.must(false, "frame %d is line %d of function %d", i, f.Line[i], fn)
			return
		}
	}
	c.must(n.Parent[0] == 0, "node 0 has a parent")
	for i := 1; i < len(n.Parent); i++ {
		if n.Parent[i] < 0 || n.Parent[i] >= int64(i) || n.Frame[i] < 0 || n.Frame[i] >= int64(len(f.Function)) {
			c.must(false, "node %d has parent %d and frame %d", i, n.Parent[i], n.Frame[i])
			return
		}
	}
}

func (c *checker) spans() {
	s := &c.d.Spans
	n := len(s.Node)
	c.must(len(s.GapUS) == n && len(s.LengthUS) == n && len(s.State) == n, "the columns of spans differ in length")
	c.must(len(s.First) == len(c.d.Threads)+1 && s.First[0] == 0 && s.First[len(s.First)-1] == int64(n), "spans.first does not fit the threads")
	if c.err != nil {
		return
	}
	for t := range c.d.Threads {
		if from, to := s.First[t], s.First[t+1]; from > to || to > int64(n) {
			c.must(false, "spans.first falls")
			return
		}
		c.history(t, int(s.First[t]), int(s.First[t+1]))
	}
	last := int64(-1)
	for _, i := range s.Incomplete {
		c.must(i > last && i < int64(n), "spans.incomplete has %d", i)
		last = i
	}
}

func (c *checker) history(thread, from, to int) {
	s := &c.d.Spans
	at, end := int64(0), ceilMicroseconds(c.d.DurationNS)
	for i := from; i < to; i++ {
		gap, length := s.GapUS[i], s.LengthUS[i]
		if gap < 0 || length <= 0 || gap > end-at || length > end-at-gap {
			c.must(false, "span %d of thread %d leaves the recording", i, thread)
			return
		}
		if s.Node[i] < 0 || s.Node[i] >= int64(len(c.d.Nodes.Parent)) {
			c.must(false, "span %d has node %d", i, s.Node[i])
			return
		}
		at += gap + length
	}
}

// ceilMicroseconds is the last instant that a column may hold.
func ceilMicroseconds(ns int64) int64 { return (ns + 999) / 1000 }

func (c *checker) tracks() {
	d := c.d
	end := ceilMicroseconds(d.DurationNS)
	for _, t := range d.Tracks {
		c.index("tracks.host", t.Host, len(d.Hosts))
		c.indexOrNull("tracks.process", t.Process, len(d.Processes))
		c.indexOrNull("tracks.thread", t.Thread, len(d.Threads))
		c.indexOrNull("tracks.device", t.Device, len(d.Devices))
		c.amountOrNull("tracks.resolution_ns", t.ResolutionNS)
		for _, v := range []*float64{t.Limit, t.Mean, t.Peak} {
			c.figureOrNull("a track's figure", v)
		}
		c.must(t.Kind == Rate || t.Kind == Gauge, "a track is a %q", t.Kind)
		if len(t.AtUS) != len(t.Value) {
			c.must(false, "the columns of track %q differ in length", t.ID)
			return
		}
		last := int64(-1)
		for i, at := range t.AtUS {
			if v := t.Value[i]; at <= last || at > end || math.Abs(v) > maxFigure {
				c.must(false, "track %q has %g at %d", t.ID, v, at)
				return
			}
			last = at
		}
	}
}

func (c *checker) idle() {
	idle := c.d.Idle
	if idle == nil {
		return
	}
	c.certainty(&idle.Certainty)
	c.amount("idle.idle_ns", idle.IdleNS)
	c.causes("idle", idle.Causes, idle.IdleNS)
	sum := int64(0)
	seen := make(map[int]bool)
	for i := range idle.Devices {
		v := &idle.Devices[i]
		c.index("idle.devices.device", v.Device, len(c.d.Devices))
		if c.err != nil {
			return
		}
		c.must(!seen[v.Device] && v.IdleNS == c.d.Devices[v.Device].IdleNS, "the idle time of device %d is given differently", v.Device)
		seen[v.Device] = true
		c.certainty(&v.Certainty)
		c.causes("idle.devices", v.Causes, v.IdleNS)
		c.intervals("idle.devices.intervals", v.Intervals, true)
		sum += v.IdleNS
	}
	c.must(sum == idle.IdleNS, "the devices' idle times do not add up")
}

func (c *checker) certainty(s *Certainty) {
	c.amountOrNull("idle.window_ns", s.WindowNS)
	c.figureOrNull("idle.r2", s.R2)
	c.figureOrNull("idle.held_out", s.HeldOut)
}

func (c *checker) causes(what string, list []Cause, idle int64) {
	sum := int64(0)
	for i := range list {
		v := &list[i]
		c.amount(what+".causes.ns", v.NS)
		c.must(v.NS <= maxInteger-sum, "%s.causes are too large", what)
		if c.err != nil {
			return
		}
		sum += v.NS
		c.must(v.Share >= 0 && v.Share <= 1, "%s.causes.share is %g", what, v.Share)
		c.amountOrNull(what+".causes.low_ns", v.LowNS)
		c.amountOrNull(what+".causes.high_ns", v.HighNS)
		c.place(what+".causes", v.File, v.Line, v.Function)
		c.intervals(what+".causes.evidence", v.Evidence, false)
	}
	c.must(sum == idle, "the causes of %s add up to %d, not %d ns", what, sum, idle)
}

func (c *checker) tables() {
	d := c.d
	for _, s := range d.Steps {
		c.index("steps.process", s.Process, len(d.Processes))
		c.instant("steps.start_ns", s.StartNS)
		c.instant("steps.end_ns", s.EndNS)
		c.must(s.StartNS <= s.EndNS, "a step ends before it starts")
		c.amount("steps.data_wait_ns", s.DataWaitNS)
		c.amountOrNull("steps.busy_ns", s.BusyNS)
		c.amountOrNull("steps.idle_ns", s.IdleNS)
		c.must(s.CollectiveNS == nil || *s.CollectiveNS >= 0 && *s.CollectiveNS <= s.EndNS-s.StartNS, "a step was in collectives for longer than it took")
		for _, ns := range s.PhasesNS {
			c.amount("steps.phases_ns", ns)
		}
	}
	for _, g := range d.Regions {
		c.index("regions.process", g.Process, len(d.Processes))
		c.count("regions.count", g.Count)
		for _, v := range []int64{g.TotalNS, g.P50NS, g.P95NS} {
			c.amount("regions", v)
		}
	}
	for _, p := range d.Phases {
		c.index("phases.process", p.Process, len(d.Processes))
		c.amount("phases.self_ns", p.SelfNS)
	}
	for _, f := range d.FunctionTimes {
		c.index("function_times.function", f.Function, len(d.Functions))
		c.index("function_times.process", f.Process, len(d.Processes))
		c.times("function_times", f.SelfNS, f.TotalNS, f.StateNS)
		c.must(f.IncompleteNS >= 0 && f.IncompleteNS <= f.SelfNS, "function_times.incomplete_ns is %d", f.IncompleteNS)
	}
	c.lines()
	c.phases()
	c.loaders()
	c.blocked()
	c.awaits()
	c.memory()
	c.gpuMemory()
	c.allocations()
	c.outOfMemory()
}

func (c *checker) work(w *Work) {
	if w == nil {
		return
	}
	for name, ns := range map[string]int64{"thread_ns": w.ThreadNS, "starting_ns": w.StartingNS, "no_task_ns": w.NoTaskNS, "passing_ns": w.PassingNS} {
		c.amount("processes.work."+name, ns)
	}
	c.must(w.StartingNS+w.NoTaskNS+w.PassingNS <= w.ThreadNS, "processes.work: its parts are more than its threads' time")
}

func (c *checker) times(what string, self, total int64, states StateTimes) {
	c.amount(what+".self_ns", self)
	c.amount(what+".total_ns", total)
	c.must(self <= total, "%s: self time is more than total time", what)
	c.must(states.Sum() == self, "%s: the states do not add up to the self time", what)
}

// lines also checks that the self times add up to the target's time.
func (c *checker) lines() {
	d := c.d
	sums := make(map[int]int64) // by process
	for _, l := range d.Lines {
		c.index("lines.file", l.File, len(d.Files))
		c.index("lines.process", l.Process, len(d.Processes))
		c.must(l.Line > 0 && l.Line <= math.MaxInt32, "lines.line is %d", l.Line)
		c.times("lines", l.SelfNS, l.TotalNS, l.StateNS)
		c.amount("lines.idle_ns", l.IdleNS)
		c.must(l.IncompleteNS >= 0 && l.IncompleteNS <= l.SelfNS, "lines.incomplete_ns is %d", l.IncompleteNS)
		c.must(l.GCNS >= 0 && l.GCNS <= l.SelfNS, "lines.gc_ns is %d", l.GCNS)
		c.must(l.FreeingNS >= 0 && l.FreeingNS <= l.SelfNS && (l.FreeingNS > 0) == (l.FreeingFunction != nil), "lines.freeing_ns is %d", l.FreeingNS)
		if l.FreeingFunction != nil {
			c.index("lines.freeing_function", *l.FreeingFunction, len(d.Functions))
		}
		if c.err != nil {
			return
		}
		sums[l.Process] = min(sums[l.Process]+l.SelfNS, maxInteger+1)
	}
	rests := make(map[int]int64) // the same: of a process there may be two targets, one after the other
	for _, t := range d.Targets {
		rests[t.Runs()] = min(rests[t.Runs()]+t.ThreadNS-t.NoLineNS, maxInteger+1)
	}
	for _, t := range d.Targets {
		rest := rests[t.Runs()]
		whole := d.Thinned == nil || d.Thinned.Tables["lines"].Kept == d.Thinned.Tables["lines"].Of
		c.must(sums[t.Runs()] == rest || !whole && sums[t.Runs()] < rest, "the lines of a target add up to %d, not %d ns", sums[t.Runs()], rest)
	}
}

func (c *checker) gaps() {
	for _, g := range c.d.Gaps {
		c.index("gap.process", g.Process, len(c.d.Processes))
		c.intervals("a gap", []Interval{{g.StartNS, g.EndNS}}, false)
	}
}

func (c *checker) findings() {
	for i := range c.d.Findings {
		f := &c.d.Findings[i]
		c.place("findings", f.File, f.Line, f.Function)
		c.intervals("findings.evidence", f.Evidence, false)
		c.amountOrNull("findings.cost_ns", f.CostNS)
		c.figureOrNull("findings.value", f.Value)
		c.figureOrNull("findings.threshold", f.Threshold)
	}
}

func (c *checker) kernels() {
	for _, k := range c.d.Kernels {
		c.index("kernels.device", k.Device, len(c.d.Devices))
		c.amount("kernels.resolution_ns", k.ResolutionNS)
		n := len(k.GapNS)
		if len(k.LengthNS) != n || len(k.Name) != n || len(k.Count) != n {
			c.must(false, "the columns of kernels differ in length")
			return
		}
		if launched := len(k.LaunchNS); launched != len(k.Launcher) || launched != 0 && launched != n {
			c.must(false, "the columns of kernels differ in length")
			return
		}
		for i, delay := range k.LaunchNS {
			if delay < -1 || delay > c.d.DurationNS || k.Launcher[i] < -1 || k.Launcher[i] >= int64(len(c.d.Threads)) {
				c.must(false, "the launch of kernel %d makes no sense", i)
				return
			}
		}
		at, end := int64(0), c.d.DurationNS
		for i := range n {
			gap, length := k.GapNS[i], k.LengthNS[i]
			if gap < 0 || length < 0 || gap > end-at || length > end-at-gap ||
				k.Name[i] < 0 || k.Name[i] >= int64(len(k.Names)) || k.Count[i] < 1 || k.Count[i] > math.MaxInt32 {
				c.must(false, "kernel %d of a stream makes no sense", i)
				return
			}
			at += gap + length
		}
	}
}
