package analyses

import (
	"math"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// deviceTime is what one device did in its rank's window, from the first device
// event of the rank to the last, in ns.
type deviceTime struct {
	device                int32
	whole, busy, compute  int64
	communication, hidden int64 // all of it; the part of it under computation
	before, after         int64 // of the chosen steps, without steps of the recording, outside of the window
}

func (t deviceTime) plus(o deviceTime) deviceTime {
	return deviceTime{
		device: t.device,
		whole:  t.whole + o.whole, busy: t.busy + o.busy, compute: t.compute + o.compute,
		communication: t.communication + o.communication, hidden: t.hidden + o.hidden,
		before: t.before + o.before, after: t.after + o.after,
	}
}

func (t deviceTime) idle() int64       { return t.whole - t.busy }
func (t deviceTime) nonCompute() int64 { return t.whole - t.compute - t.idle() }

// exposed is when only communication ran, or that and copies; copying when neither that nor computation did.
func (t deviceTime) exposed() int64 { return t.communication - t.hidden }
func (t deviceTime) copying() int64 { return t.nonCompute() - t.exposed() }

// cells are the figures of a row of a breakdown: times, then their shares as part
// has them, percent or share.
func (t deviceTime) cells(part func(part, whole int64) float64) []any {
	return []any{
		micros(t.idle()), micros(t.compute), micros(t.nonCompute()), micros(t.whole),
		part(t.idle(), t.whole), part(t.compute, t.whole), part(t.nonCompute(), t.whole),
	}
}

// observeDeviceTime has a row per device.
func observeDeviceTime(r *recording) []deviceTime {
	window, ok := r.window()
	if !ok {
		return nil
	}
	looked := r.looked()
	times := make([]deviceTime, len(r.of))
	for d, number := range r.of {
		comm, comp := r.layer(d, Communication), r.layer(d, Computation)
		times[d] = deviceTime{
			device: number, whole: window.End - window.Start, busy: timeline.Total(r.busy(d)), compute: timeline.Total(comp),
			communication: timeline.Total(comm), hidden: timeline.Total(timeline.Common(comm, comp)),
			before: max(0, window.Start-looked.Start), after: max(0, looked.End-window.End),
		}
		if r.hta { // its rounded intervals may end before they start
			times[d].hidden = layered(1, comm, comp)[1|2]
		}
	}
	return times
}

// looked is from the begin of the first chosen step to the end of the last, without steps all of the recording.
func (r *recording) looked() interval {
	steps := hostSteps(r.steps)
	if len(steps) == 0 {
		return between(r.t.First, r.t.Last)
	}
	whole := between(steps[0].start, steps[0].end)
	for _, s := range steps {
		whole.End = max(whole.End, s.end)
	}
	return whole
}

func answerDeviceTime(a asked[[]deviceTime]) []*table.Table {
	columns := append([]*table.Column{{Name: "rank", Kind: table.Int}}, temporalColumns("_time_pctg", table.Percent)...)
	if !a.opts.AsHTA() {
		columns = append(columns,
			&table.Column{Name: "before_us", Kind: table.Micros}, // of the steps or the recording, before the first device event
			&table.Column{Name: "after_us", Kind: table.Micros})  // after the last
	}
	temporal := table.New(TableTemporal, "Where the device time went", columns...)
	byDevice := table.New(TableTemporalByDevice, "Where the time of each device went",
		append(append([]*table.Column{{Name: "rank", Kind: table.Int}, {Name: "device", Kind: table.Int}}, temporalColumns("_share", table.Ratio)...),
			&table.Column{Name: "exposed_communication_us", Kind: table.Micros}, // no computation ran beside it
			&table.Column{Name: "copying_us", Kind: table.Micros})...)           // neither computation nor communication did
	overlap := table.New(TableOverlap, "Communication overlapped by computation",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "comp_comm_overlap_pctg", Kind: table.Percent})
	if !a.opts.AsHTA() {
		overlap.Columns = append(overlap.Columns, &table.Column{Name: "communication_us", HTAName: "communication_us", Kind: table.Micros})
	}
	var why notes
	sums := make([]deviceTime, len(a.ranks))
	for i, rank := range a.ranks {
		devices := map[int32]deviceTime{}
		for _, part := range rank.parts {
			for _, t := range part {
				devices[t.device] = t.plus(devices[t.device])
				sums[i] = sums[i].plus(t)
			}
		}
		hidden := []any{rank.rank, percent(sums[i].hidden, sums[i].communication)}
		if !a.opts.AsHTA() {
			hidden = append(hidden, orNone(micros(sums[i].communication)))
		}
		overlap.Add(hidden...)
		if len(devices) == 0 {
			why.add(rank.rank, "no device events")
			continue
		}
		why.add(rank.rank, "")
		cells := append([]any{rank.rank}, sums[i].cells(percent)...)
		if !a.opts.AsHTA() {
			cells = append(cells, micros(sums[i].before), micros(sums[i].after))
		}
		temporal.Add(cells...)
		for _, number := range sortedKeys(devices) {
			of := devices[number]
			byDevice.Add(append(append([]any{rank.rank, int64(number)}, of.cells(share)...), micros(of.exposed()), micros(of.copying()))...)
		}
	}
	temporal.Note, byDevice.Note = why.String(), why.String()
	tables := []*table.Table{temporal, overlap, acrossRanks(a, sums)}
	if !a.opts.AsHTA() { // which knows no devices
		tables = append(tables, byDevice)
	}
	return tables
}

// temporalColumns are for cells: shares are percent only where HolisticTraceAnalysis
// has the table, too.
func temporalColumns(shareSuffix string, shareKind table.Kind) []*table.Column {
	return []*table.Column{
		{Name: "idle_time_us", HTAName: "idle_time(us)", Kind: table.Micros},
		{Name: "compute_time_us", HTAName: "compute_time(us)", Kind: table.Micros},
		{Name: "non_compute_time_us", HTAName: "non_compute_time(us)", Kind: table.Micros},
		{Name: "kernel_time_us", HTAName: "kernel_time(us)", Kind: table.Micros},
		{Name: "idle" + shareSuffix, Kind: shareKind},
		{Name: "compute" + shareSuffix, Kind: shareKind},
		{Name: "non_compute" + shareSuffix, Kind: shareKind},
	}
}

// acrossRanks has a row per figure: its mean over the ranks, and which ranks
// are its extremes.
func acrossRanks(a asked[[]deviceTime], sums []deviceTime) *table.Table {
	t := table.New(TableAcrossRanks, "The ranks together",
		&table.Column{Name: "metric", Kind: table.Text},
		&table.Column{Name: "ranks", Kind: table.Int},
		&table.Column{Name: "mean", Kind: table.Float},
		&table.Column{Name: "min", Kind: table.Float},
		&table.Column{Name: "min_rank", Kind: table.Int},
		&table.Column{Name: "max", Kind: table.Float},
		&table.Column{Name: "max_rank", Kind: table.Int})
	for _, metric := range []struct {
		name string
		of   func(deviceTime) float64
	}{
		{"kernel_time_us", func(t deviceTime) float64 { return micros(t.whole) }},
		{"idle_share", func(t deviceTime) float64 { return share(t.idle(), t.whole) }},
		{"compute_share", func(t deviceTime) float64 { return share(t.compute, t.whole) }},
		{"non_compute_share", func(t deviceTime) float64 { return share(t.nonCompute(), t.whole) }},
		{"hidden_communication_share", func(t deviceTime) float64 { return share(t.hidden, t.communication) }},
	} {
		n, sum := 0, 0.0
		least, most := math.Inf(1), math.Inf(-1)
		var leastRank, mostRank int
		for i, rank := range a.ranks {
			value := metric.of(sums[i])
			if sums[i].whole == 0 || math.IsNaN(value) {
				continue
			}
			n++
			sum += value
			if value < least {
				least, leastRank = value, rank.rank
			}
			if value > most {
				most, mostRank = value, rank.rank
			}
		}
		if n > 0 {
			t.Add(metric.name, n, sum/float64(n), least, leastRank, most, mostRank)
		}
	}
	return t
}

// observeKernelTypes is the time each combination of kinds ran, by the bits of
// listedKinds, summed over the devices.
func observeKernelTypes(r *recording) map[int]int64 {
	unit := int64(1)
	if r.hta {
		unit = 1000 // HTA cuts every piece down to whole microseconds
	}
	sums := map[int]int64{}
	for d := range r.of {
		layers := make([][]interval, len(listedKinds))
		for i, kind := range listedKinds {
			layers[i] = r.layer(d, kind)
		}
		for bits, ns := range layered(unit, layers...) {
			sums[bits] += ns
		}
	}
	return sums
}
