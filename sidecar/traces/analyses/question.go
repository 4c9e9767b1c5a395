package analyses

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// Part is what one recording contributes to the answers.
type Part struct {
	Steps []int // the ProfilerStep#N numbers analysed, ascending
	Found []int // those of all steps in the file
	// Device reports whether anything ran on a device.
	Device bool

	world    int   // ranks there are, as the trace says; 0 if it does not
	memory   bool  // there are [memory] records
	unseen   bool  // its operators may have computed on a device whose events were not recorded
	answered []any // by question
}

// Rank is the recordings of one rank, by time.
type Rank struct {
	Number int
	Parts  []*Part
}

// Observe takes from a trace what opts.Tables need of it. opts must have its
// defaults. stepNames is CountStepNames of all traces, for HTA's modes.
func Observe(t *kineto.Trace, opts *Options, stepNames int) *Part {
	r := newRecording(t, opts, stepNames)
	p := &Part{
		Steps: stepNumbers(r.steps), Found: r.found, Device: len(r.spans) > 0,
		world: t.Meta.WorldSize, memory: t.Memory.Len() > 0,
		unseen:   len(r.spans) == 0 && (len(t.Meta.Devices) > 0 || launchesKernels(t)),
		answered: make([]any, len(questions)),
	}
	for i, q := range questions {
		if opts.wants(q.tables...) || q.tables[0] == TableCollectives { // which clocks are aligned by, too
			p.answered[i] = q.observe(r)
		}
	}
	return p
}

// Answer makes the tables that opts name, in their order. ranks are ascending;
// opts must be what Observe had.
func Answer(ranks []Rank, opts *Options) []*table.Table {
	made := map[string]*table.Table{}
	for i, q := range questions {
		if !opts.wants(q.tables...) {
			continue
		}
		for _, t := range q.answer(ranks, i, opts) {
			made[t.Name] = t
		}
	}
	var tables []*table.Table
	for _, name := range opts.Tables {
		if t := made[name]; t != nil {
			tables = append(tables, t)
		}
	}
	return tables
}

// question is one analysis: the tables it is needed for, and its two steps.
type question struct {
	tables  []string
	observe func(*recording) any
	answer  func(ranks []Rank, index int, opts *Options) []*table.Table
}

// asked is what an answer is made from.
type asked[P any] struct {
	opts  *Options
	ranks []rankParts[P]
	about setFacts
}

// rankParts is what the recordings of one rank contributed.
type rankParts[P any] struct {
	rank  int
	parts []P
}

// setFacts are what the recordings have together.
type setFacts struct {
	world  int
	device bool // something ran on a device
	memory bool // memory changes were recorded
	unseen bool // operators may have computed on a device, whose events were not recorded
}

func factsOf(ranks []Rank) (f setFacts) {
	for _, r := range ranks {
		for _, p := range r.Parts {
			f.world = max(f.world, p.world)
			f.device = f.device || p.Device
			f.memory = f.memory || p.memory
			f.unseen = f.unseen || p.unseen
		}
	}
	return f
}

// ask makes a question of two typed functions.
func ask[P any](observe func(*recording) P, answer func(asked[P]) []*table.Table, tables ...string) question {
	return question{
		tables:  tables,
		observe: func(r *recording) any { return observe(r) },
		answer: func(ranks []Rank, index int, opts *Options) []*table.Table {
			a := asked[P]{opts: opts, about: factsOf(ranks)}
			for _, r := range ranks {
				typed := rankParts[P]{rank: r.Number}
				for _, p := range r.Parts {
					typed.parts = append(typed.parts, p.answered[index].(P))
				}
				a.ranks = append(a.ranks, typed)
			}
			return answer(a)
		},
	}
}

var questions = []question{
	ask(observeDeviceTime, answerDeviceTime, TableTemporal, TableTemporalByDevice, TableOverlap, TableAcrossRanks),
	ask(observeIdle, answerIdle, TableIdle, TableIdleIntervals, TableIdleIntervalBins, TableIdleCauses),
	ask(observeKernels, answerKernels, TableKernels, TableKernelsTop, TableKernelsTogether),
	ask(observeKernelTypes, answerKernelTypes, TableKernelTypes),
	ask(observeLaunches, answerLaunches, TableLaunch, TableLaunchDelay, TableLaunchDelayBins),
	ask(observeCalls, answerCalls, TableCalls),
	ask(observeQueue, answerQueue, TableQueueLength, TableQueueSeries),
	ask(observeBandwidth, answerBandwidth, TableMemoryBandwidth, TableBandwidthSeries),
	ask(observeSteps, answerSteps, TableSteps),
	ask(observeLoading, answerLoading, TableDataLoader),
	ask(observeOperators, answerOperators, TableOperators),
	ask(observeEfficiency, answerEfficiency, TableEfficiencyKinds, TableEfficiency),
	ask(observeServing, answerServing, TableServingSteps, TableServingPhases),
	ask(observePhases, answerPhases, TablePhases),
	ask(observeModules, answerModules, TableModuleClasses, TableModules),
	ask(observeAnnotations, answerAnnotations, TableAnnotations),
	ask(observeMemory, answerMemory, TableMemoryPeaks, TableMemoryTimeline),
	ask(observePythonIdle, answerPythonIdle, TablePythonIdle),
	ask(observeHostIdle, answerHostIdle, TableHostIdle),
	ask(observePythonFunctions, answerPythonFunctions, TablePythonFunctions),
	ask(observeCollectives, answerCollectives, TableCollectives, TableStragglers, TableCommunication),
	ask(observeByStep, answerByStep, TableWorkByStep),
	ask(observeCriticalPath, answerCriticalPath, TableCriticalPath, TableCriticalPathReplay),
	ask(observeCycle, answerCycles, TableCycles),
	ask(observeFile, answerFiles, TableRecordings),
}

// notes are the ranks' reasons for an empty table, or reservations.
type notes struct {
	texts []string // "" where a rank has none
	ranks []int
}

func (n *notes) add(rank int, text string) {
	n.texts = append(n.texts, text)
	n.ranks = append(n.ranks, rank)
}

// String says once what holds for all ranks, else whom it concerns.
func (n *notes) String() string {
	if len(n.texts) == 0 {
		return ""
	}
	if !slices.ContainsFunc(n.texts, func(s string) bool { return s != n.texts[0] }) {
		return n.texts[0]
	}
	const shown = 3
	var list []string
	for i, text := range n.texts {
		if text != "" {
			list = append(list, fmt.Sprintf("rank %d: %s", n.ranks[i], text))
		}
	}
	if len(list) > shown {
		list = append(list[:shown:shown], fmt.Sprintf("and %d ranks more", len(list)-shown))
	}
	return strings.Join(list, "; ")
}

// micros converts nanoseconds for a table. Up to 2^53 ns (104 days) the
// result prints with the trace's own three decimals.
func micros(ns int64) float64 { return float64(ns) / 1000 }

// percent of a whole; a share of nothing does not exist.
func percent(part, whole int64) float64 { return 100 * share(part, whole) }

// share of a whole, 0 to 1; a share of nothing does not exist.
func share(part, whole int64) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return float64(part) / float64(whole)
}

// known is a number for a table, none where it is not known.
func known(n int64, is bool) int64 {
	if is {
		return n
	}
	return table.None
}

// count is 1 for true.
func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sortedKeys lists a map's keys, ascending.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
