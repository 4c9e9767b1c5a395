package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/place"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

func (d drawing) stragglers(t *table.Table) (Chart, bool) {
	var list []bar
	for r := range t.Len() {
		name := d.label(t, r)
		waited, transfer := t.FloatAt("waited_us", r), t.FloatAt("transfer_us", r)
		figure := ""
		if n := t.IntAt("times_last", r); n > 0 {
			figure = fmt.Sprintf("last %d×", n)
		}
		list = append(list, bar{name, figure, []part{
			{transfer, paintOverhead, name + ": transfers, " + length(transfer)},
			{waited, paintIdle, name + ": waited for other ranks, " + length(waited)},
		}, float64(max(0, t.IntAt("times_last", r)))})
	}
	return bars(d.theme, shortNames, "stragglers", "Collectives: who waited for whom", "last: came to a collective after all others", []legend{
		{paintOverhead, "transfer"}, {paintIdle, "waited for other ranks"},
	}, list, 0), true
}

// loader shows what part of a rank's steps went into fetching batches.
func (d drawing) loader(t *table.Table) (Chart, bool) {
	names, groups := byKey(t, func(r int) string { return fmt.Sprintf("rank %d", t.IntAt("rank", r)) })
	devices := d.devicesOf()
	var list []bar
	for _, name := range names {
		var fetching, idle, steps float64
		for _, r := range groups[name] {
			fetching += t.FloatAt("dataloader_us", r)
			idle += t.FloatAt("device_idle_us", r) / devices[t.IntAt("rank", r)] // mean of the rank's devices
			steps += t.FloatAt("step_us", r)
		}
		if !(steps > 0) {
			continue
		}
		b := bar{name: name, figure: share(fetching / steps), weight: fetching / steps}
		if !d.severalRanks() {
			b.name = "steps"
		}
		if !d.Analysis.Device {
			b.parts = []part{{fetching / steps, paintHost, b.name + ": fetching, " + length(fetching)}}
		} else {
			idle = min(idle, fetching)
			b.parts = []part{
				{idle / steps, paintHost, b.name + ": fetching with the device idle, " + length(idle)},
				{(fetching - idle) / steps, paintQueue, b.name + ": fetching with the device busy, " + length(fetching-idle)},
			}
		}
		list = append(list, b)
	}
	var legends []legend
	if d.Analysis.Device {
		legends = []legend{{paintHost, "device idle meanwhile"}, {paintQueue, "device busy"}}
	}
	return bars(d.theme, shortNames, "dataloader", "Waiting for data", "share of the steps' time in enumerate(DataLoader)", legends, list, 1), len(list) > 0
}

// devicesOf counts the devices of each rank, at least one.
func (d drawing) devicesOf() map[int64]float64 {
	n := map[int64]float64{}
	if t := d.table(analyses.TableTemporalByDevice); t != nil {
		for r := range t.Len() {
			n[t.IntAt("rank", r)]++
		}
	}
	for _, rank := range d.Analysis.Ranks {
		n[int64(rank)] = max(1, n[int64(rank)])
	}
	return n
}

// steps shows the mean of each step over the ranks that have it, and over their
// devices. Steps that were dropped are in the table.
func (d drawing) steps(t *table.Table) (Chart, bool) {
	names, groups := byKey(t, func(r int) string { return strconv.FormatInt(t.IntAt("step", r), 10) })
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	devices := d.devicesOf()
	fetched := d.fetching()
	var bins []columnBin
	for _, step := range names {
		var computing, busy, all, fetching float64
		counted := slices.DeleteFunc(groups[step], func(r int) bool { return t.TextAt("counted", r) == "dropped" })
		if len(counted) == 0 {
			continue
		}
		for _, r := range counted {
			n := devices[t.IntAt("rank", r)]
			computing += t.FloatAt("compute_us", r) / n
			busy += t.FloatAt("device_busy_us", r) / n
			all += t.FloatAt("duration_us", r)
			fetching += fetched[[2]int64{t.IntAt("rank", r), t.IntAt("step", r)}]
		}
		n := float64(len(counted))
		label := "step " + step
		if !d.Analysis.Device {
			bins = append(bins, columnBin{label, []part{
				{fetching / n, paintHost, label + ": waiting for data, " + length(fetching/n)},
				{(all - fetching) / n, paintCompute, label + ": " + length(all/n) + " in all"},
			}})
			continue
		}
		bins = append(bins, columnBin{label, []part{
			{computing / n, paintCompute, label + ": computing, " + length(computing/n)},
			{(busy - computing) / n, paintOverhead, label + ": copying or communicating, " + length((busy-computing)/n)},
			{(all - busy) / n, paintIdle, label + ": device idle, " + length((all-busy)/n)},
		}})
	}
	legends := []legend{{paintCompute, "computing"}, {paintOverhead, "only copying or communicating"}, {paintIdle, "idle"}}
	if !d.Analysis.Device {
		legends = nil
		if len(fetched) > 0 {
			legends = []legend{{paintHost, "waiting for data"}, {paintCompute, "the rest of the step"}}
		}
	}
	return histogram(d.theme, "steps", "Profiler steps", d.ofAll("mean of all ranks"), legends, bins, duration), len(bins) > 1
}

// fetching is the time each step of each rank waited for data.
func (d drawing) fetching() map[[2]int64]float64 {
	by := map[[2]int64]float64{}
	if t := d.table(analyses.TableDataLoader); t != nil {
		for r := range t.Len() {
			by[[2]int64{t.IntAt("rank", r), t.IntAt("step", r)}] += t.FloatAt("dataloader_us", r)
		}
	}
	return by
}

// placeTime is the time charged to one place over all ranks.
type placeTime struct {
	name   string
	us     float64
	nobody bool // no place: what none can be charged with
}

// placeTimes sums a column up by a name, most first.
func placeTimes(t *table.Table, column string, name func(row int) string) (list []placeTime, all float64) {
	names, groups := byKey(t, name)
	for _, name := range names {
		sum := 0.0
		for _, r := range groups[name] {
			sum += t.FloatAt(column, r)
		}
		if sum > 0 {
			list = append(list, placeTime{name: name, us: sum})
			all += sum
		}
	}
	slices.SortStableFunc(list, func(a, b placeTime) int { return cmp.Compare(b.us, a.us) })
	return list, all
}

// functionText is a row's function as "file(line): function".
func functionText(t *table.Table, row int) string {
	p := place.Place{File: t.TextAt("file", row), Function: t.TextAt("function", row)}
	if n := t.IntAt("line", row); n != table.None {
		p.Line = int(n)
	}
	return p.String()
}

// pythonLines are the places of the devices' idle time; what is no place comes
// last.
func pythonLines(t *table.Table) (list []placeTime, all float64) {
	nobody := map[string]bool{}
	list, all = placeTimes(t, "idle_us", func(r int) string {
		name := functionText(t, r)
		nobody[name] = t.TextAt("kind", r) != analyses.IdlePython
		return name
	})
	var places, rest []placeTime
	for _, l := range list {
		if l.nobody = nobody[l.name]; l.nobody {
			rest = append(rest, l)
		} else {
			places = append(places, l)
		}
	}
	return append(places, rest...), all
}

func (d drawing) placeBars(name, title, aside string, p paint, list []placeTime, all float64) Chart {
	var rows []bar
	for i, l := range list {
		paint := p
		if l.nobody {
			paint = paintOther
		} else if i >= d.rows {
			continue
		}
		rows = append(rows, bar{baseName(l.name), length(l.us) + " · " + share(l.us/all),
			[]part{{l.us, paint, l.name + ": " + length(l.us)}}, l.us})
	}
	return bars(d.theme, longNames, name, title, aside, nil, rows, 0)
}

func (d drawing) pythonIdle(t *table.Table) (Chart, bool) {
	lines, all := pythonLines(t)
	return d.placeBars("python-idle", "What Python did while the device was idle", d.ofAll("all ranks"), paintHost, lines, all), len(lines) > 0
}

// hostWords name what is no operator, annotation or call.
var hostWords = map[string]string{
	analyses.HostUnrecorded: "(nothing recorded: Python, or outside the profiler)",
	analyses.HostLaunched:   "(the next work was launched)",
}

// hostActivities sums ranks up, the longest first, what has no name last.
func hostActivities(t *table.Table) (list []placeTime, all float64) {
	unnamed := map[string]bool{}
	list, all = placeTimes(t, "idle_us", func(r int) string {
		name := t.TextAt("name", r)
		if name == "" {
			name = hostWords[t.TextAt("kind", r)]
			unnamed[name] = true
		}
		return name
	})
	for i := range list {
		list[i].nobody = unnamed[list[i].name]
	}
	slices.SortStableFunc(list, func(a, b placeTime) int {
		switch {
		case a.nobody == b.nobody:
			return 0
		case a.nobody:
			return 1
		}
		return -1
	})
	return list, all
}

// hostIdle is for traces without Python stacks: else a line says more.
func (d drawing) hostIdle(t *table.Table) (Chart, bool) {
	if d.repeats(t) {
		return Chart{}, false
	}
	list, all := hostActivities(t)
	return d.placeBars("host-idle", "What the host did while the device was idle", d.ofAll("all ranks"), paintHost, list, all), len(list) > 0
}

// pythonTime shows where the main thread was, of traces of the CPU alone: else
// the device's idle time matters.
func (d drawing) pythonTime(t *table.Table) (Chart, bool) {
	if d.Analysis.Device {
		return Chart{}, false
	}
	_, all := placeTimes(t, "self_us", func(int) string { return "" })
	own, _ := placeTimes(t, "own_us", func(r int) string { return functionText(t, r) })
	title, aside := "What the main thread's time went into", "your functions, with the library code they call"
	if len(own) == 0 {
		own, _ = placeTimes(t, "self_us", func(r int) string { return functionText(t, r) })
		aside = "by the functions' own time"
	}
	return d.placeBars("python-time", title, aside, paintHost, own, all), len(own) > 0
}

// operators shows the operators of traces of the CPU alone: else kernels do.
func (d drawing) operators(t *table.Table) (Chart, bool) {
	if d.Analysis.Device {
		return Chart{}, false
	}
	list, all := placeTimes(t, "self_cpu_us", func(r int) string { return t.TextAt("name", r) })
	list = slices.DeleteFunc(list, func(o placeTime) bool {
		if analyses.IsAnnotation(o.name) {
			all -= o.us
		}
		return analyses.IsAnnotation(o.name)
	})
	return d.placeBars("operators", "Operators by CPU time of their own", d.ofAll("all ranks"), paintCompute, list, all), len(list) > 0
}

// baseName leaves the folders out of "folder/file.py(12): function".
func baseName(text string) string {
	if p, ok := place.Parse(text); ok {
		return p.Base()
	}
	return text
}
