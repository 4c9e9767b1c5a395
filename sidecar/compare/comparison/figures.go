package comparison

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
)

// figures are those of one run, by what they are of.
type figures struct {
	v    *report.View
	run  *runFiles
	book *fileBook

	whole     map[string]amount
	lines     map[lineKey]amount
	functions map[functionKey]amount
	causes    map[causeKey]amount
	steps     map[stepKey]amount

	seen map[functionKey]bool // the functions that are in the report at all; roles empty
	// starved is the share of the time that seems spent computing for which the target's
	// threads had no CPU: under another load of the machine it would be another.
	starved float64
}

// amount is a figure, how far measuring can have missed it, and where it is in the run's
// report.
type amount struct {
	value, noise float64 // ns
	over, under  float64 // ns, as in a difference.Reading
	file, line   int     // -1: of no place
	function     int     // -1: of none
	name         string
	edited       bool
	count        int
}

type lineKey struct {
	lineID
	role string // of the process; empty: the target's
}

type functionKey struct {
	file int
	name string
	role string
}

type causeKey struct {
	id   string
	at   lineID
	none bool // it has no place
}

type stepKey struct{ id, name string }

// figuresOf reads a report's figures. Of stacks that are read now and then, and of what is
// known only by windows of time, a figure is known to some noise: noiseOf.
func figuresOf(v *report.View, book *fileBook, run *runFiles) *figures {
	f := &figures{
		v: v, run: run, book: book,
		whole: make(map[string]amount), lines: make(map[lineKey]amount), functions: make(map[functionKey]amount),
		causes: make(map[causeKey]amount), steps: make(map[stepKey]amount), seen: make(map[functionKey]bool),
	}
	for i := range v.Functions {
		f.seen[f.functionKey(i, "")] = true
	}
	f.starved = starvedOf(v)
	f.ofWhole()
	f.ofStacks()
	f.ofIdle()
	f.ofSteps()
	return f
}

func (f *figures) ofWhole() {
	f.whole[WallTime] = amount{value: float64(f.v.DurationNS), over: WithoutCPU(f.v), file: -1, function: -1}
	devices := 0.0
	var busy, idle, noise float64
	for _, d := range f.v.Devices {
		if d.Used && d.UnknownNS < d.BusyNS+d.IdleNS {
			devices++
			busy += float64(d.BusyNS)
			idle += float64(d.IdleNS)
			noise += square(resolutionOf(&d)) // at the ends; in between windows show shares
		}
	}
	if devices > 0 {
		noise = math.Sqrt(noise) / devices
		f.whole[GPUBusy] = amount{value: busy / devices, noise: noise, file: -1, function: -1}
		f.whole[GPUIdle] = amount{value: idle / devices, noise: noise, file: -1, function: -1}
	}
}

func square(v float64) float64 { return v * v }

func resolutionOf(d *report.Device) float64 {
	if d.ResolutionNS == nil {
		return 0
	}
	return float64(*d.ResolutionNS)
}

// noiseOf is the standard deviation of a time that was found by looking each interval
// whether it runs, when it was seen in so many stretches.
//
// Of something shorter than the interval each look is a coin that shows it with the
// probability p: after n looks the variance is n·p·(1−p) intervals squared, and n·p·(1−p)
// is the number of stretches to be expected. Of something longer only the ends of each
// stretch are uncertain, by a sixth of that. So the number of stretches is an upper bound
// of the variance for both. One more stands for what was missed.
func noiseOf(interval float64, stretches int) float64 {
	return interval * math.Sqrt(float64(stretches)+1)
}

// targetThreads are those whose time the target's lines divide.
func targetThreads(v *report.View) []*report.Thread {
	threads := make([]*report.Thread, len(v.Subject.Threads))
	for i, t := range v.Subject.Threads {
		threads[i] = &v.Threads[t]
	}
	return threads
}

// starvedOf is the share of the time of computing, 0 to 1, for which the target's threads
// waited for a CPU, by the scheduler's count of their time on one; 0 where that is not known.
func starvedOf(v *report.View) float64 {
	var computing, onCPU int64
	for _, t := range targetThreads(v) {
		if t.OnCPUNS != nil && !t.OnCPUAtLeast {
			computing += computingOf(t.StateNS)
			onCPU += *t.OnCPUNS
		}
	}
	if computing <= 0 || float64(computing-onCPU) < leastStarved*float64(v.DurationNS) {
		return 0 // of a program that mostly waits: what its threads wanted between two looks is not known so well
	}
	return max(1-float64(onCPU)/float64(computing), 0)
}

// leastStarved is the share of the duration for which threads must have lacked a CPU, for that to be known.
const leastStarved = 0.05

// computingOf is the time in which a thread computed, or wanted to.
func computingOf(times report.StateTimes) (ns int64) {
	for state, t := range times {
		if s := report.State(state); s.Computes() || s == report.StateOff {
			ns += t
		}
	}
	return ns
}

// starting is how long it took until the program ran Python, if it did: of that it is not known what
// it did, and taken for computing.
func starting(v *report.View) (ns float64) {
	for _, g := range v.Gaps {
		if g.Process == v.Target().Process && (g.Reason == timeline.GapStarting.String() || g.Reason == timeline.GapNoPython.String()) {
			ns += float64(g.EndNS - g.StartNS)
		}
	}
	return ns
}

// WithoutCPU is the time, in ns, for which no CPU was free for a report's target: without other work on the machine
// it may have taken so much less.
func WithoutCPU(v *report.View) float64 {
	computing := int64(0)
	for _, t := range targetThreads(v) {
		computing += computingOf(t.StateNS)
	}
	return starvedOf(v) * (float64(computing) + starting(v))
}

// amount of a line or function: known to the noise of sampling, and too large by what of
// it other programs may have caused.
func (f *figures) amount(self int64, process, stretches int, states report.StateTimes) amount {
	a := amount{value: float64(self), noise: noiseOf(f.interval(process), stretches), function: -1}
	if f.role(process) == "" {
		a.over = f.starved * float64(computingOf(states))
	}
	return a
}

// role of a process in keys: empty of the targets' own ones.
func (f *figures) role(process int) string {
	p := &f.v.Processes[process]
	if f.v.Targets[p.Target].Runs() == process {
		return ""
	}
	return cmp.Or(p.Role, "child")
}

// interval at which the stacks of a process are known.
func (f *figures) interval(process int) float64 {
	p := &f.v.Processes[process]
	t := &f.v.Targets[p.Target]
	interval := max(t.Sampling.Interval(f.v.DurationNS), t.Sampling.ResolutionNS)
	if p.Stacks.IntervalNS != nil {
		interval = max(interval, *p.Stacks.IntervalNS)
	}
	if thinned := f.v.Thinned; thinned != nil && thinned.SpansStepNS != nil {
		interval = max(interval, *thinned.SpansStepNS)
	}
	return float64(interval)
}

// ofStacks takes lines and functions from the report's own tables, and from the histories
// in how many stretches each ran.
func (f *figures) ofStacks() {
	s := f.stretches()
	for i := range f.v.Lines {
		l := &f.v.Lines[i]
		id, edited := f.book.line(f.run, l.File, l.Line)
		role := f.role(l.Process)
		a := f.amount(l.SelfNS, l.Process, s.lines[placeKey{l.File, l.Line, l.Process}], l.StateNS)
		a.file, a.line, a.edited = l.File, l.Line, edited
		add(f.lines, lineKey{id, role}, a)
	}
	for i := range f.v.FunctionTimes {
		t := &f.v.FunctionTimes[i]
		fn := &f.v.Functions[t.Function]
		a := f.amount(t.SelfNS, t.Process, s.functions[placeKey{t.Function, 0, t.Process}], t.StateNS)
		a.file, a.line, a.function = fn.File, fn.FirstLine, t.Function
		add(f.functions, f.functionKey(t.Function, f.role(t.Process)), a)
	}
}

func (f *figures) functionKey(function int, role string) functionKey {
	fn := &f.v.Functions[function]
	return functionKey{f.run.number[fn.File], fn.Name, role}
}

// add sums amounts that have one key; the largest one's place counts.
func add[K comparable](to map[K]amount, key K, more amount) {
	sum, known := to[key]
	if !known {
		to[key] = more
		return
	}
	if more.value > sum.value {
		sum.file, sum.line, sum.function, sum.name, sum.edited = more.file, more.line, more.function, more.name, more.edited
	}
	sum.value += more.value
	sum.noise = math.Hypot(sum.noise, more.noise)
	sum.over += more.over
	sum.under += more.under
	sum.count += more.count
	to[key] = sum
}

// placeKey is a line of a file, or a function, in a process.
type placeKey struct{ file, line, process int }

// stretches count how often lines and functions began to run, as it was seen.
type stretches struct{ lines, functions map[placeKey]int }

func (f *figures) stretches() stretches {
	v := f.v
	s := stretches{make(map[placeKey]int), make(map[placeKey]int)}
	size := len(v.Nodes.Parent)
	line := make([]placeKey, size)     // the innermost own line of each stack, without process
	function := make([]placeKey, size) // the innermost function
	nowhere := placeKey{-1, -1, -1}
	line[0], function[0] = nowhere, nowhere
	for n := 1; n < size; n++ {
		frame := v.FrameOf(int32(n))
		fn := v.FunctionOf(frame)
		line[n], function[n] = line[v.Nodes.Parent[n]], placeKey{fn, 0, 0}
		if at := v.LineOf(frame); at > 0 && v.Files[v.Functions[fn].File].Code.Own() {
			line[n] = placeKey{v.Functions[fn].File, at, 0}
		}
	}
	for i := range v.Threads {
		if v.Threads[i].Internal {
			continue
		}
		atLine, atFunction, end := nowhere, nowhere, int64(-1)
		for _, span := range v.History(i) {
			if span.Start > end {
				atLine, atFunction = nowhere, nowhere
			}
			end = span.End
			count(s.lines, &atLine, line[span.Node], v.Threads[i].Process)
			count(s.functions, &atFunction, function[span.Node], v.Threads[i].Process)
		}
	}
	return s
}

// count counts where a history comes to another place.
func count(stretches map[placeKey]int, at *placeKey, now placeKey, process int) {
	if now == *at {
		return
	}
	*at = now
	if now.file >= 0 {
		now.process = process
		stretches[now]++
	}
}

// ofIdle takes the causes of idle time over all devices, with the report's bounds where
// they are estimates.
func (f *figures) ofIdle() {
	if f.v.Idle == nil {
		return
	}
	window := 0.0
	if f.v.Idle.WindowNS != nil {
		window = float64(*f.v.Idle.WindowNS)
	}
	for i := range f.v.Idle.Causes {
		c := &f.v.Idle.Causes[i]
		a := amount{value: float64(c.NS), noise: noiseOf(window, len(c.Evidence)), file: -1, function: -1, name: c.Text}
		if c.LowNS != nil && c.HighNS != nil && *c.HighNS > *c.LowNS {
			a.over, a.under = max(float64(c.NS-*c.LowNS), 0), max(float64(*c.HighNS-c.NS), 0)
		}
		key := causeKey{id: c.ID, none: true}
		if c.File != nil && c.Line != nil {
			a.file, a.line = *c.File, *c.Line
			key.none = false
			key.at, a.edited = f.book.line(f.run, *c.File, *c.Line)
		}
		add(f.causes, key, a)
	}
}

// ofSteps takes the mean step of each name. Its noise is that of the mean of so many.
func (f *figures) ofSteps() {
	type lists struct{ length, wait, busy, idle []float64 }
	kinds := make(map[string]*lists)
	for _, s := range f.v.Steps {
		l := kinds[s.Name]
		if l == nil {
			l = &lists{}
			kinds[s.Name] = l
		}
		l.length = append(l.length, float64(s.EndNS-s.StartNS))
		l.wait = append(l.wait, float64(s.DataWaitNS))
		if s.BusyNS != nil {
			l.busy = append(l.busy, float64(*s.BusyNS))
		}
		if s.IdleNS != nil {
			l.idle = append(l.idle, float64(*s.IdleNS))
		}
	}
	for name, l := range kinds {
		for id, values := range map[string][]float64{StepTime: l.length, DataWait: l.wait, StepBusy: l.busy, StepIdle: l.idle} {
			if len(values) == 0 || id != StepTime && slices.Max(values) <= 0 {
				continue
			}
			mean, deviation := stat.MeanStdDev(values, nil)
			if len(values) == 1 {
				deviation = 0
			}
			f.steps[stepKey{id, name}] = amount{
				value: mean, noise: deviation / math.Sqrt(float64(len(values))), file: -1, function: -1, name: name, count: len(values),
			}
		}
	}
}

// functionNumbers are numbers that functions of several runs have in common: the index of
// their key among all that the book's runs have asked for.
func (f *figures) functionNumbers() []int {
	out := make([]int, len(f.v.Functions))
	for i := range out {
		out[i] = f.book.functionNumber(f.functionKey(i, ""))
	}
	return out
}

// reading is an amount as package significance wants it.
func (a amount) reading() significance.Reading {
	return significance.Reading{Value: a.value, Noise: a.noise, Over: a.over, Under: a.under}
}
