package analyses

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// synchronising calls return only when the device has finished what they wait
// for. (cudaFree and its like wait for the whole device.)
var synchronising = map[string]bool{
	"cudaDeviceSynchronize": true, "cudaStreamSynchronize": true, "cudaEventSynchronize": true,
	"cudaMemcpy": true, "cudaMemcpy2D": true, "cudaFree": true, "cudaFreeHost": true,
	"cuCtxSynchronize": true, "cuStreamSynchronize": true, "cuEventSynchronize": true,
	"hipDeviceSynchronize": true, "hipStreamSynchronize": true, "hipEventSynchronize": true,
	"hipMemcpy": true, "hipMemcpyWithStream": true, "hipFree": true, "hipHostFree": true,
}

// orders are the calls that make a stream wait for another one.
var orders = map[string]bool{"cudaStreamWaitEvent": true, "cuStreamWaitEvent": true, "hipStreamWaitEvent": true}

// launching is the names of the calls that run a kernel or a graph of them, in the
// runtimes and the drivers: cudaLaunchKernelExC, cuLaunchKernelEx,
// hipModuleLaunchKernel, hipExtModuleLaunchKernel, cudaGraphLaunch.
var launching = regexp.MustCompile(`^(?:cu|hip|mtia)\w*(?:Launch\w*Kernel|GraphLaunch)`)

// LaunchesKernels recognises the runtime calls that run kernels.
func LaunchesKernels(call string) bool { return launching.MatchString(call) }

// launchesKernels reports whether a trace has such a call.
func launchesKernels(t *kineto.Trace) bool {
	seen := map[kineto.Sym]bool{}
	for _, name := range t.Calls.Name {
		if !seen[name] && LaunchesKernels(t.Text(name)) {
			return true
		}
		seen[name] = true
	}
	return false
}

// callTime is what one kind of runtime call took.
type callTime struct {
	count, slow  int
	sum, longest int64 // ns
	// drained is device idle that began while the host was inside a
	// synchronising call and nothing was queued: what followed the wait.
	drained int64
	gaps    int
	// inside is the streams' idle time while such a call, which launched what
	// ended it, was running.
	inside int64
	// Where the time was spent, by operator and by line of the user's code.
	operators, callers map[string]int64
}

func (c *callTime) plus(o *callTime) {
	c.count, c.slow = c.count+o.count, c.slow+o.slow
	c.sum, c.longest = c.sum+o.sum, max(c.longest, o.longest)
	c.drained, c.gaps, c.inside = c.drained+o.drained, c.gaps+o.gaps, c.inside+o.inside
	for _, m := range [][2]map[string]int64{{c.operators, o.operators}, {c.callers, o.callers}} {
		for name, ns := range m[1] {
			m[0][name] += ns
		}
	}
}

func newCallTime() *callTime {
	return &callTime{operators: map[string]int64{}, callers: map[string]int64{}}
}

// Waits recognises the runtime calls that return only when the device has finished.
func Waits(call string) bool { return synchronising[call] }

// observeCalls sums the runtime calls up by name. Where slow and synchronising
// ones were made is looked up; the others are too many to matter one by one.
func observeCalls(r *recording) map[string]*callTime {
	bySym := map[kineto.Sym]*callTime{}
	waits := map[kineto.Sym]bool{}
	var waiting []*call
	for i := range r.calls {
		c := &r.calls[i]
		if c.row < 0 {
			continue
		}
		t := bySym[c.name]
		if t == nil {
			t = newCallTime()
			bySym[c.name] = t
			waits[c.name] = synchronising[r.t.Text(c.name)]
		}
		t.count++
		t.sum += c.dur
		t.longest = max(t.longest, c.dur)
		if waits[c.name] {
			waiting = append(waiting, c)
		}
		if c.dur > slowCall {
			t.slow++
		}
		if c.dur > slowCall || waits[c.name] {
			operator, caller := r.around(c)
			t.operators[operator] += c.dur
			t.callers[caller] += c.dur
		}
	}
	r.chargeGaps(bySym, waiting)
	_, streams := r.streamGaps()
	for _, gaps := range streams {
		for _, g := range gaps {
			if in := r.inside(g); in > 0 {
				bySym[r.calls[g.call].name].inside += in
			}
		}
	}
	times := map[string]*callTime{}
	for name, t := range bySym {
		text := r.t.Text(name)
		if times[text] == nil {
			times[text] = newCallTime()
		}
		times[text].plus(t)
	}
	return times
}

// around is the operator and the line of the user's code that a call was made in.
func (r *recording) around(c *call) (operator, caller string) {
	thread := r.t.Calls.Thread[c.row]
	if r.t.Ops.Len() > 0 {
		tree := r.operators()
		at := tree.innermost(thread, c.start)
		operator = tree.outermost(at)
		if r.t.Python.Len() == 0 {
			caller = stackPlace(tree.stackAround(at))[0]
		}
	}
	if frames := r.frames(); frames != nil {
		if at := frames.innermost(thread, c.start); at >= 0 {
			caller = r.t.Text(frames.own[at])
		}
	}
	return operator, caller
}

// chargeGaps charges each gap that began with nothing queued for the device to
// the synchronising call that the host was inside of then.
func (r *recording) chargeGaps(byName map[kineto.Sym]*callTime, waiting []*call) {
	slices.SortFunc(waiting, func(a, b *call) int { return cmp.Compare(a.start, b.start) })
	latest := make([]int64, len(waiting)) // the latest end up to here
	for i, c := range waiting {
		latest[i] = c.end()
		if i > 0 {
			latest[i] = max(latest[i], latest[i-1])
		}
	}
	for _, g := range deviceGaps(r) {
		if g.next.call < 0 || r.calls[g.next.call].start < g.Start {
			continue
		}
		after, _ := slices.BinarySearchFunc(waiting, g.Start, func(c *call, at int64) int { return count(c.start > at)*2 - 1 })
		for i := after - 1; i >= 0 && latest[i] >= g.Start; i-- {
			if waiting[i].end() >= g.Start {
				t := byName[waiting[i].name]
				t.drained += g.End - g.Start
				t.gaps++
				break
			}
		}
	}
}

// answerCalls lists the runtime calls, the longest sum first.
func answerCalls(a asked[map[string]*callTime]) []*table.Table {
	t := table.New(TableCalls, "Runtime calls of the host",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "call", Kind: table.Text},
		&table.Column{Name: "synchronising", Kind: table.Text, Optional: true}, // yes, or none
		&table.Column{Name: "count", Kind: table.Int},
		&table.Column{Name: "total_us", Kind: table.Micros},
		&table.Column{Name: "mean_us", Kind: table.Micros},
		&table.Column{Name: "max_us", Kind: table.Micros},
		&table.Column{Name: "slow_calls", Kind: table.Int},                // over 50 µs
		&table.Column{Name: "inside_us", Kind: table.Micros},              // the streams' idle time while such a call launched what ended it
		&table.Column{Name: "drained_gaps", Kind: table.Int},              // gaps of a device that began during such a call
		&table.Column{Name: "drained_us", Kind: table.Micros},             // the devices' idle time in them
		&table.Column{Name: "operator", Kind: table.Text, Optional: true}, // that most of its time was spent in
		&table.Column{Name: "caller", Kind: table.Text, Optional: true},   // likewise the line of the user's code
		&table.Column{Name: "caller_share", Kind: table.Ratio})            // of the time, that is of slow and synchronising calls
	for _, rank := range a.ranks {
		sums := map[string]*callTime{}
		for _, part := range rank.parts {
			for name, c := range part {
				if sums[name] == nil {
					sums[name] = newCallTime()
				}
				sums[name].plus(c)
			}
		}
		names := sortedKeys(sums)
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(sums[b].sum, sums[a].sum) })
		for _, name := range names {
			c := sums[name]
			waits := ""
			if synchronising[name] {
				waits = "yes"
			}
			operator, _ := most(c.operators)
			caller, part := most(c.callers)
			t.Add(rank.rank, name, waits, c.count, micros(c.sum), micros(c.sum)/float64(c.count), micros(c.longest),
				c.slow, micros(c.inside), c.gaps, micros(c.drained), operator, caller, part)
		}
	}
	return []*table.Table{t}
}

// most is the name with the largest value, and its share of all.
func most(values map[string]int64) (name string, part float64) {
	var top, all int64
	for _, n := range sortedKeys(values) {
		all += values[n]
		if values[n] > top && n != "" {
			name, top = n, values[n]
		}
	}
	if strings.TrimSpace(name) == "" {
		return "", share(0, 0)
	}
	return name, share(top, all)
}
