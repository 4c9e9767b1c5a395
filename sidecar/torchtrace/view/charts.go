package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/torchtrace/analyses"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/snapshot"
)

// Charts draws what there is a table for, in order of reading.
func (r *Result) Charts(theme Theme) []Chart {
	var all []Chart
	for _, c := range []struct {
		table string
		draw  func(rowsOf, Theme) Chart
	}{
		{analyses.TableTemporal, temporalChart},
		{analyses.TableIdle, idleChart},
		{analyses.TableIdleIntervalBins, idleHistogram},
		{analyses.TablePythonIdle, pythonChart},
		{analyses.TableDataLoader, loaderChart},
		{analyses.TableSteps, stepChart},
		{analyses.TableOverlap, overlapChart},
		{analyses.TableStragglers, stragglerChart},
		{analyses.TableKernels, kernelChart},
		{analyses.TableLaunchDelayBins, launchHistogram},
		{analyses.TableQueueSeries, queueChart},
		{analyses.TableBandwidthSeries, bandwidthChart},
		{analyses.TableMemoryTimeline, memoryChart},
		{snapshot.TableTimeline, snapshotChart},
		{snapshot.TablePeak, peakChart},
	} {
		if t := r.table(c.table); t != nil {
			all = append(all, c.draw(rowsOf{t}, theme))
		}
	}
	return all
}

func rankName(rank int64) string { return fmt.Sprintf("rank %d", rank) }

func temporalChart(t rowsOf, theme Theme) Chart {
	var list []bar
	for r := range t.Len() {
		name := rankName(t.int("rank", r))
		add := func(column, what string, p paint) part {
			v := t.float(column, r)
			return part{v, p, fmt.Sprintf("%s: %s %s", name, what, duration(v))}
		}
		list = append(list, bar{name, percentText(t.float("idle_time_pctg", r)) + " idle", []part{
			add("compute_time_us", "computing", paintCompute),
			add("non_compute_time_us", "copying or communicating", paintOverhead),
			add("idle_time_us", "idle", paintIdle),
		}})
	}
	return bars(theme, shortNames, "temporal", "Where the device time went", "", []legend{
		{paintCompute, "computing"}, {paintOverhead, "only copying or communicating"}, {paintIdle, "idle"},
	}, list, 0)
}

// causes of idle time in the order they are drawn.
var causes = []struct {
	name, text string
	paint      paint
}{
	{"host_wait", "host was late", paintHost},
	{"other", "waited for other work", paintOther},
	{"kernel_wait", "between queued kernels", paintQueue},
}

func causeLegend() []legend {
	var l []legend
	for _, c := range causes {
		l = append(l, legend{c.paint, c.text})
	}
	return l
}

func idleChart(t rowsOf, theme Theme) Chart {
	type key struct{ rank, stream int64 }
	sums := map[key]map[string]float64{}
	var order []key
	for r := range t.Len() {
		k := key{t.int("rank", r), t.int("stream", r)}
		if sums[k] == nil {
			sums[k] = map[string]float64{}
			order = append(order, k)
		}
		sums[k][t.text("idle_category", r)] += t.float("idle_time_us", r)
	}
	var list []bar
	for _, k := range order {
		b := bar{name: fmt.Sprintf("rank %d, stream %d", k.rank, k.stream)}
		all := 0.0
		for _, c := range causes {
			v := sums[k][c.name]
			all += v
			b.parts = append(b.parts, part{v, c.paint, fmt.Sprintf("%s: %s, %s", b.name, c.text, duration(v))})
		}
		b.figure = duration(all)
		list = append(list, b)
	}
	return bars(theme, shortNames, "idle", "Why streams were idle", "", causeLegend(), list, 0)
}

func idleHistogram(t rowsOf, theme Theme) Chart {
	bins := gather(t, func(r int) (string, float64) { return t.text("idle_category", r), t.float("sum_us", r) })
	var columns []columnBin
	for _, b := range bins {
		c := columnBin{label: duration(b.from)}
		for _, cause := range causes {
			v := b.sums[cause.name]
			c.parts = append(c.parts, part{v, cause.paint, fmt.Sprintf("gaps of %s to %s: %s, %s in all", duration(b.from), duration(b.to), cause.text, duration(v))})
		}
		columns = append(columns, c)
	}
	return histogram(theme, "idle-intervals", "Idle time by length of the gap", "all ranks", causeLegend(), columns, duration)
}

// bin sums the rows of one bin over ranks.
type bin struct {
	from, to float64
	sums     map[string]float64
}

func gather(t rowsOf, value func(row int) (kind string, v float64)) []bin {
	at := map[float64]*bin{}
	for r := range t.Len() {
		from := t.float("from_us", r)
		if at[from] == nil {
			at[from] = &bin{from, t.float("to_us", r), map[string]float64{}}
		}
		kind, v := value(r)
		at[from].sums[kind] += v
	}
	var list []bin
	for _, b := range at {
		list = append(list, *b)
	}
	slices.SortFunc(list, func(a, b bin) int { return cmp.Compare(a.from, b.from) })
	return list
}

func launchHistogram(t rowsOf, theme Theme) Chart {
	var columns []columnBin
	for _, b := range gather(t, func(r int) (string, float64) { return "", t.float("count", r) }) {
		n := b.sums[""]
		columns = append(columns, columnBin{duration(b.from), []part{{n, paintOverhead,
			fmt.Sprintf("%s launches with a delay of %s to %s", counted(int64(n)), duration(b.from), duration(b.to))}}})
	}
	return histogram(theme, "launch-delay", "Launch delays", "from the end of the host's call to the start on the device; all ranks", nil, columns,
		func(v float64) string { return counted(int64(v)) })
}

func overlapChart(t rowsOf, theme Theme) Chart {
	var list []bar
	for r := range t.Len() {
		p := t.float("comp_comm_overlap_pctg", r)
		name := rankName(t.int("rank", r))
		b := bar{name: name, figure: percentText(p)}
		if !math.IsNaN(p) {
			b.parts = []part{
				{p, paintCompute, name + ": " + percentText(p) + " under computation"},
				{100 - p, paintIdle, name + ": " + percentText(100-p) + " exposed"},
			}
		}
		list = append(list, b)
	}
	return bars(theme, shortNames, "overlap", "Communication hidden behind computation", "", []legend{
		{paintCompute, "hidden"}, {paintIdle, "exposed"},
	}, list, 100)
}

var kindPaint = map[string]paint{
	"COMPUTATION": paintCompute, "COMMUNICATION": paintOverhead, "MEMORY": paintMemory,
}

// kernelTime is one kernel name over all ranks.
type kernelTime struct {
	kind, name string
	us         float64
}

// kernelTimes sums ranks up, most first.
func kernelTimes(t rowsOf) (list []kernelTime, all float64) {
	at := map[[2]string]int{}
	for r := range t.Len() {
		key := [2]string{t.text("kernel_type", r), t.text("name", r)}
		i, ok := at[key]
		if !ok {
			i = len(list)
			at[key] = i
			list = append(list, kernelTime{kind: key[0], name: key[1]})
		}
		us := t.float("sum_us", r)
		list[i].us += us
		all += us
	}
	slices.SortFunc(list, func(a, b kernelTime) int { return cmp.Or(cmp.Compare(b.us, a.us), cmp.Compare(a.name, b.name)) })
	return list, all
}

// kernelLabel leaves out what all kernels' names have: return type, common
// namespaces, the list of arguments.
func kernelLabel(name string) string {
	name = strings.TrimPrefix(name, "void ")
	name = strings.NewReplacer("at::native::", "", "(anonymous namespace)::", "").Replace(name)
	if i := strings.LastIndexByte(name, '('); i > 0 && strings.HasSuffix(name, ")") && !strings.HasPrefix(name, "Mem") {
		name = name[:i]
	}
	return name
}

func kernelChart(t rowsOf, theme Theme) Chart {
	kernels, all := kernelTimes(t)
	aside := "all ranks"
	if len(kernels) > 12 {
		rest := 0.0
		for _, k := range kernels[12:] {
			rest += k.us
		}
		aside = fmt.Sprintf("all ranks; %d further kernels: %s", len(kernels)-12, percentText(100*rest/all))
		kernels = kernels[:12]
	}
	var list []bar
	for _, k := range kernels {
		list = append(list, bar{kernelLabel(k.name), duration(k.us) + " · " + percentText(100*k.us/all),
			[]part{{k.us, kindPaint[k.kind], k.name + ": " + duration(k.us)}}})
	}
	return bars(theme, longNames, "kernels", "Kernels by device time", aside, []legend{
		{paintCompute, "computation"}, {paintOverhead, "communication"}, {paintMemory, "memory"},
	}, list, 0)
}
