package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/changes"
	"github.com/omni-perf/omni-perf/sidecar/traces/snapshot"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// drawing is what the charts of one result share.
type drawing struct {
	*Result
	theme Theme
	rows  int // most names that a chart lists; the tables have them all
}

// Charts draws what there is a table for, in order of reading.
func (r *Result) Charts(theme Theme) []Chart {
	d := drawing{r, theme, mostRows}
	var all []Chart
	for _, c := range []struct {
		table string
		draw  func(*table.Table) (Chart, bool)
	}{
		{changes.TableName, d.difference},
		{analyses.TableTemporal, d.temporal},
		{analyses.TableCriticalPath, d.criticalPath},
		{analyses.TableIdleCauses, d.idleCauses},
		{analyses.TableIdle, d.idleCategories},
		{analyses.TableIdleIntervalBins, d.idleHistogram},
		{analyses.TablePythonIdle, d.pythonIdle},
		{analyses.TableHostIdle, d.hostIdle},
		{analyses.TablePythonFunctions, d.pythonTime},
		{analyses.TableDataLoader, d.loader},
		{analyses.TableSteps, d.steps},
		{analyses.TableEfficiencyKinds, d.kinds},
		{analyses.TableEfficiency, d.roofline},
		{analyses.TableServingPhases, d.serving},
		{analyses.TablePhases, d.phases},
		{analyses.TableModuleClasses, d.modules},
		{analyses.TableAnnotations, d.annotations},
		{analyses.TableOperators, d.operators},
		{analyses.TableOverlap, d.overlap},
		{analyses.TableStragglers, d.stragglers},
		{analyses.TableKernels, d.kernels},
		{analyses.TableCalls, d.calls},
		{analyses.TableLaunchDelayBins, d.launchHistogram},
		{analyses.TableQueueSeries, d.queue},
		{analyses.TableBandwidthSeries, d.bandwidth},
		{analyses.TableMemoryTimeline, d.memory},
		{snapshot.TableTimeline, d.snapshot},
		{snapshot.TablePeak, d.peak},
	} {
		if t := r.table(c.table); t != nil {
			if chart, ok := c.draw(t); ok {
				all = append(all, chart)
			}
		}
	}
	return all
}

// ofAll is the aside of charts that sum over ranks; with one rank there is
// nothing to say.
func (d drawing) ofAll(what string) string {
	if d.severalRanks() {
		return what
	}
	return ""
}

func (d drawing) temporal(t *table.Table) (Chart, bool) {
	if d.severalDevices() {
		t = d.table(analyses.TableTemporalByDevice)
	}
	var list []bar
	for r := range t.Len() {
		name := d.label(t, r)
		add := func(column, what string, p paint) part {
			v := t.FloatAt(column, r)
			return part{v, p, fmt.Sprintf("%s: %s %s", name, what, length(v))}
		}
		idle := t.FloatAt("idle_time_us", r) / t.FloatAt("kernel_time_us", r)
		list = append(list, bar{name, share(idle) + " idle", []part{
			add("compute_time_us", "computing", paintCompute),
			add("non_compute_time_us", "copying or communicating", paintOverhead),
			add("idle_time_us", "idle", paintIdle),
		}, idle})
	}
	return bars(d.theme, shortNames, "temporal", "Where the device time went", "", []legend{
		{paintCompute, "computing"}, {paintOverhead, "only copying or communicating"}, {paintIdle, "idle"},
	}, list, 0), true
}

// idleKind is a cause or category of idle time as the charts show it.
type idleKind struct {
	name, text string
	paint      paint
}

// causes are those of TableIdleCauses in the order they are drawn.
var causes = []idleKind{
	{analyses.CauseNotLaunched, "not launched yet", paintHost},
	{analyses.CauseInsideCall, "inside the launch call", paintLate},
	{analyses.CauseWaited, "waited for other work", paintOther},
	{analyses.CauseQueued, "between queued kernels", paintQueue},
	{analyses.CauseUnknown, "launch not recorded", paintIdle},
}

// categories are HolisticTraceAnalysis's.
var categories = []idleKind{
	{"host_wait", "host was late", paintHost},
	{"other", "waited for other work", paintOther},
	{"kernel_wait", "between queued kernels", paintQueue},
}

func (d drawing) idleCauses(t *table.Table) (Chart, bool) {
	return d.idle(t, "Why devices were idle", causes, "cause", "device_idle_us", func(r int) string { return d.labelOf(t, r, "rank", "device") })
}

// idleCategories is for HTA's modes, which know no causes.
func (d drawing) idleCategories(t *table.Table) (Chart, bool) {
	if d.table(analyses.TableIdleCauses) != nil {
		return Chart{}, false
	}
	return d.idle(t, "Why streams were idle", categories, "idle_category", "idle_time_us", func(r int) string { return d.label(t, r) })
}

func (d drawing) idle(t *table.Table, title string, kinds []idleKind, kind, value string, name func(row int) string) (Chart, bool) {
	names, groups := byKey(t, name)
	sums := map[string]map[string]float64{}
	for _, n := range names {
		sums[n] = map[string]float64{}
		for _, r := range groups[n] {
			sums[n][t.TextAt(kind, r)] += t.FloatAt(value, r)
		}
	}
	var used []legend
	for _, c := range kinds {
		if slices.ContainsFunc(names, func(n string) bool { return sums[n][c.name] > 0 }) {
			used = append(used, legend{c.paint, c.text})
		}
	}
	var list []bar
	for _, n := range names {
		b := bar{name: n}
		all := 0.0
		for _, c := range kinds {
			v := sums[n][c.name]
			all += v
			b.parts = append(b.parts, part{v, c.paint, fmt.Sprintf("%s: %s, %s", n, c.text, length(v))})
		}
		b.figure, b.weight = length(all), all
		list = append(list, b)
	}
	return bars(d.theme, shortNames, "idle", title, "", used, list, 0), len(list) > 0
}

func (d drawing) idleHistogram(t *table.Table) (Chart, bool) {
	bins := gather(t, func(r int) (string, float64) { return t.TextAt("idle_category", r), t.FloatAt("sum_us", r) })
	var columns []columnBin
	var used []legend
	for _, c := range categories {
		if slices.ContainsFunc(bins, func(b bin) bool { return b.sums[c.name] > 0 }) {
			used = append(used, legend{c.paint, c.text})
		}
	}
	for _, b := range bins {
		column := columnBin{label: length(b.from)}
		for _, c := range categories {
			v := b.sums[c.name]
			column.parts = append(column.parts, part{v, c.paint, fmt.Sprintf("gaps of %s to %s: %s, %s in all", length(b.from), length(b.to), c.text, length(v))})
		}
		columns = append(columns, column)
	}
	scope := "each stream for itself"
	if d.severalRanks() {
		scope += ", of all ranks"
	}
	return histogram(d.theme, "idle-intervals", "Idle time by length of the gap", scope, used, columns, duration), len(used) > 0
}

// bin sums the rows of one bin over ranks.
type bin struct {
	from, to float64
	sums     map[string]float64
}

func gather(t *table.Table, value func(row int) (kind string, v float64)) []bin {
	at := map[float64]*bin{}
	for r := range t.Len() {
		from := t.FloatAt("from_us", r)
		if at[from] == nil {
			at[from] = &bin{from, t.FloatAt("to_us", r), map[string]float64{}}
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

func (d drawing) launchHistogram(t *table.Table) (Chart, bool) {
	var columns []columnBin
	for _, b := range gather(t, func(r int) (string, float64) { return "", t.FloatAt("count", r) }) {
		n := b.sums[""]
		columns = append(columns, columnBin{length(b.from), []part{{n, paintOverhead,
			fmt.Sprintf("%s with a delay of %s to %s", words.Plural(int(n), "launch", "launches"), length(b.from), length(b.to))}}})
	}
	aside := "from the end of the host's call to the start on the device"
	if d.severalRanks() {
		aside += "; all ranks"
	}
	return histogram(d.theme, "launch-delay", "Launch delays", aside, nil, columns,
		func(v float64) string { return words.Count(int64(v)) }), len(columns) > 0
}

func (d drawing) overlap(t *table.Table) (Chart, bool) {
	var list []bar
	for r := range t.Len() {
		p := t.FloatAt("comp_comm_overlap_pctg", r)
		if math.IsNaN(p) {
			continue
		}
		name := d.label(t, r)
		list = append(list, bar{name, percentOf(p), []part{
			{p, paintCompute, name + ": " + percentOf(p) + " under computation"},
			{100 - p, paintIdle, name + ": " + percentOf(100-p) + " exposed"},
		}, p})
	}
	return bars(d.theme, shortNames, "overlap", "Communication hidden behind computation", "", []legend{
		{paintCompute, "hidden"}, {paintIdle, "exposed"},
	}, list, 100), len(list) > 0
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
func kernelTimes(t *table.Table) (list []kernelTime, all float64) {
	at := map[[2]string]int{}
	for r := range t.Len() {
		key := [2]string{t.TextAt("kernel_type", r), t.TextAt("name", r)}
		i, ok := at[key]
		if !ok {
			i = len(list)
			at[key] = i
			list = append(list, kernelTime{kind: key[0], name: key[1]})
		}
		us := t.FloatAt("sum_us", r)
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

// mostRows is how many names a chart lists where nothing else is said.
const mostRows = 10

func (d drawing) kernels(t *table.Table) (Chart, bool) {
	kernels, all := kernelTimes(t)
	aside := d.ofAll("all ranks")
	if len(kernels) > d.rows {
		rest := 0.0
		for _, k := range kernels[d.rows:] {
			rest += k.us
		}
		aside = strings.TrimPrefix(fmt.Sprintf("%s; %s: %s", aside, plural(len(kernels)-d.rows, "further kernel"), share(rest/all)), "; ")
		kernels = kernels[:d.rows]
	}
	var list []bar
	var used []legend
	for _, kind := range []struct{ name, text string }{{"COMPUTATION", "computation"}, {"COMMUNICATION", "communication"}, {"MEMORY", "memory"}} {
		if slices.ContainsFunc(kernels, func(k kernelTime) bool { return k.kind == kind.name }) {
			used = append(used, legend{kindPaint[kind.name], kind.text})
		}
	}
	for _, k := range kernels {
		list = append(list, bar{kernelLabel(k.name), length(k.us) + " · " + share(k.us/all),
			[]part{{k.us, kindPaint[k.kind], k.name + ": " + length(k.us)}}, k.us})
	}
	return bars(d.theme, longNames, "kernels", "Kernels by device time", aside, used, list, 0), true
}

// calls shows what the host did in the runtime.
func (d drawing) calls(t *table.Table) (Chart, bool) {
	names, groups := byKey(t, func(r int) string { return t.TextAt("call", r) })
	type sums struct {
		name                string
		waits               bool
		us, drained, number float64
	}
	var all []sums
	for _, name := range names {
		s := sums{name: name}
		for _, r := range groups[name] {
			s.waits = s.waits || t.TextAt("synchronising", r) != ""
			s.us += t.FloatAt("total_us", r)
			s.drained += t.FloatAt("drained_us", r)
			s.number += t.FloatAt("count", r)
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b sums) int { return cmp.Compare(b.us, a.us) })
	var list []bar
	waits := false
	for _, s := range all[:min(d.rows, len(all))] {
		p, about := paintHost, fmt.Sprintf("%s: %s in %s", s.name, length(s.us), plural(int(s.number), "call"))
		if s.waits {
			p, waits = paintLate, true
			about += fmt.Sprintf("; %s of device idle time began in it", length(s.drained))
		}
		list = append(list, bar{s.name, fmt.Sprintf("%s · %s×", length(s.us), words.Count(int64(s.number))), []part{{s.us, p, about}}, s.us})
	}
	var legends []legend
	if waits {
		legends = []legend{{paintHost, "returns at once"}, {paintLate, "waits for the device"}}
	}
	return bars(d.theme, longNames, "calls", "Runtime calls by host time", d.ofAll("all ranks"), legends, list, 0), true
}
