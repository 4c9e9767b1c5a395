package diagnose

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// gpuRules need a GPU the program used, or could have used.
var gpuRules = slices.Concat([]rule{
	{id: GPULost, severity: Limit, measure: lost},
	{id: GPUIdleUndecided, severity: Warning, threshold: 0.10, measure: undecided},
}, idleRules(), []rule{
	{id: SyncInLoop, severity: Warning, threshold: 0.05, measure: syncInLoop},
	{id: HostDeviceCopies, severity: Warning, threshold: 0.08, measure: copies},
	{id: SomeGPUsIdle, severity: Warning, threshold: 0.40, measure: someIdle},
	{id: GPUMemoryNearFull, severity: Warning, threshold: 0.92, unit: Fullness, measure: memoryNearFull},
	{id: GPUMemoryCollectives, severity: Warning, threshold: 0.92, unit: Fullness, measure: memoryAndCollectives},
	{id: GPUThrottled, severity: Warning, threshold: 0.05, measure: throttled(false)},
	{id: GPUPowerCapped, severity: Info, threshold: 0.25, measure: throttled(true)},
	{id: GPUUnused, severity: Warning, threshold: 0.50, measure: unused},
	{id: GPUBusy, severity: Info, threshold: 0.85, measure: gpuBusy},
	{id: GPUIdle, severity: Info, threshold: 0.20, measure: gpuIdle},
})

// idleKinds are the kinds of cause a GPU waits for, each a finding of its own.
var idleKinds = []struct {
	kind      Kind
	id        FindingID
	severity  Severity
	threshold float64 // share of the recording
}{
	{Starvation, GPUWaitsForData, Warning, 0.10},
	{Launching, GPUWaitsForLaunches, Warning, 0.15},
	{Host, GPUWaitsForHost, Warning, 0.15},
	{InputOutput, GPUWaitsForIO, Warning, 0.10},
	{Checkpoints, GPUWaitsForCheckpoint, Warning, 0.05},
	{Compilation, GPUWaitsForCompilation, Info, 0.10},
	{Collectives, GPUWaitsForRanks, Warning, 0.10},
	{Waits, GPUWaitsForWaits, Warning, 0.15},
	{Contention, GPUWaitsForContention, Warning, 0.15},
	{Copying, GPUWaitsForCopies, Warning, 0.10},
	{Synchronisation, GPUWaitsForSync, Warning, 0.10},
	{Ends, GPUWaitsAtEnds, Info, 0.20},
}

// idleAdvice is what to change where a GPU waits for a cause.
var idleAdvice = map[Cause]Advice{
	Load: Prefetch, LoadHere: UseWorkers, LoadWorker: SpeedUpWorkers, Launch: LaunchLess, Python: UseGPU, Native: UseGPU,
	Sync: SyncLess, Copy: CopyAsync, Compile: CompileOnce, Checkpoint: SaveAside, Collective: BalanceRanks,
	Network: ReadAhead, Database: ReadAhead, InOut: ReadAhead, GIL: AvoidGIL, SetUp: SetUpApart,
	Sleep: QueueWork, Lock: QueueWork, Thread: QueueWork, Waiting: QueueWork, Child: QueueWork,
}

func idleRules() []rule {
	var list []rule
	for _, k := range idleKinds {
		list = append(list, rule{id: k.id, severity: k.severity, threshold: k.threshold, measure: func(e *evidence) measured { return e.idleOfKind(k.kind) }})
	}
	return list
}

// idleOfKind measures the idle time of a kind of cause, as a mean over the used
// devices.
func (e *evidence) idleOfKind(kind Kind) measured {
	n := timeline.Nanos(len(e.used()))
	if n == 0 {
		return nothing
	}
	var total KindIdle
	for _, k := range e.diagnosis.Idle.Kinds {
		if k.Kind == kind {
			total = k
		}
	}
	f := Finding{Devices: e.usedDevices(), Time: total.Nanos / n, Low: total.Low / n, High: total.High / n, Cost: total.Nanos / n, Cores: math.NaN()}
	f.Value = e.share(f.Time)
	rows := slices.DeleteFunc(slices.Clone(e.diagnosis.Idle.Causes), func(c CauseIdle) bool { return c.Cause.Kind() != kind })
	if len(rows) == 0 {
		return nothing
	}
	f.Cause, f.Advice = rows[0].Cause, rows[0].Advice
	for _, c := range rows {
		f.Evidence = append(f.Evidence, c.Evidence...)
	}
	// A line is named where it surely has most of it.
	if first := rows[0]; first.Place != (Place{}) && !slices.ContainsFunc(rows[1:], func(c CauseIdle) bool { return c.High >= first.Low }) {
		f.Place, f.PlaceTime = first.Place, first.Nanos/n
	}
	return measured{Finding: f, low: e.share(f.Low), rank: f.Value}
}

// undecided holds where the kind of cause with most idle time is not surely the
// one with most: others reach its lower bound.
func undecided(e *evidence) measured {
	n := timeline.Nanos(len(e.used()))
	if n == 0 || len(e.diagnosis.Idle.Kinds) == 0 {
		return nothing
	}
	kinds := e.diagnosis.Idle.Kinds
	first := kinds[0]
	rivals := slices.DeleteFunc(slices.Clone(kinds[1:]), func(k KindIdle) bool { return k.High < first.Low })
	if len(rivals) == 0 {
		return nothing
	}
	idle := timeline.Nanos(e.meanIdle() * float64(e.rec.Duration))
	f := Finding{Devices: e.usedDevices(), Time: idle, Value: e.meanIdle(), Cores: math.NaN(), Advice: RecordTrace}
	for _, k := range append([]KindIdle{first}, rivals...) {
		f.Alternatives = append(f.Alternatives, e.alternative(k, n))
	}
	slices.SortStableFunc(f.Alternatives, func(a, b CauseIdle) int { return cmp.Compare(b.Nanos, a.Nanos) })
	f.Alternatives = f.Alternatives[:min(len(f.Alternatives), maxAlternatives)]
	return measured{Finding: f, low: f.Value, rank: 2} // nothing else may claim to be the first cause
}

const maxAlternatives = 3

// alternative is a kind of cause by its most costly row, as a mean over n devices.
func (e *evidence) alternative(k KindIdle, n timeline.Nanos) CauseIdle {
	out := CauseIdle{Nanos: k.Nanos / n, Low: k.Low / n, High: k.High / n}
	if e.diagnosis.Idle.Total > 0 {
		out.Share = float64(k.Nanos) / float64(e.diagnosis.Idle.Total)
	}
	for _, c := range e.diagnosis.Idle.Causes {
		if c.Cause.Kind() == k.Kind {
			out.Cause, out.Place, out.Advice = c.Cause, c.Place, c.Advice
			break
		}
	}
	return out
}

// minSyncIdle is the idle share below which a loop that waits for its device
// keeps it busy all the same.
const minSyncIdle = 0.15

// syncInLoop looks for a thread that keeps waiting for the device although the
// device is idle at other times: it has nothing queued when the wait is over.
func syncInLoop(e *evidence) measured {
	idle := e.meanIdle()
	a := e.accountOf(only(Sync))
	if idle < minSyncIdle || a.visits < minVisits {
		return nothing
	}
	m := e.of(a.finding())
	m.Against, m.Count, m.Advice = idle, int64(a.visits), SyncLess
	m.Cost = min(a.total, timeline.Nanos(idle*float64(e.rec.Duration)))
	m.rank = e.share(m.Cost) / 2 // what the GPU was idle for comes first
	return m
}

func copies(e *evidence) measured {
	a := e.accountOf(only(Copy))
	if len(e.used()) == 0 {
		return nothing
	}
	m := e.of(a.finding())
	m.Advice = CopyAsync
	m.rank /= 2
	return m
}

func (e *evidence) usedDevices() []int {
	var list []int
	for _, d := range e.used() {
		list = append(list, d.index)
	}
	return list
}

// meanIdle is the share of the time the used devices were idle; 0 without any.
func (e *evidence) meanIdle() float64 {
	used := e.used()
	total := 0.0
	for _, d := range used {
		total += e.share(d.time.Idle)
	}
	return total / math.Max(float64(len(used)), 1)
}

// lost tells of devices that stopped answering.
func lost(e *evidence) measured {
	f := Finding{Cores: math.NaN()}
	for _, g := range e.rec.GPUs {
		if g.Lost > 0 && g.Lost <= e.rec.Duration {
			f.Devices = append(f.Devices, g.Index)
			if f.At == 0 || g.Lost < f.At {
				f.At = g.Lost
			}
		}
	}
	if len(f.Devices) == 0 {
		return nothing
	}
	f.Time = e.rec.Duration - f.At
	f.Value = e.share(f.Time)
	return measured{Finding: f, low: f.Value}
}

// someIdle looks for devices that are less than half as busy as the busiest, among
// those the program's processes are on.
func someIdle(e *evidence) measured {
	var there []*device
	for _, d := range e.devices {
		if len(d.windows) > 0 && (d.time.Used || e.holds(d.index)) {
			there = append(there, d)
		}
	}
	if len(there) < 2 {
		return nothing
	}
	busiest := slices.MaxFunc(there, func(a, b *device) int { return cmp.Compare(a.time.Busy, b.time.Busy) })
	f := Finding{Against: e.share(busiest.time.Busy), Advice: BalanceDevices, Cores: math.NaN()}
	var gap, sum timeline.Nanos
	for _, d := range there {
		if 2*d.time.Busy > busiest.time.Busy {
			continue
		}
		f.Devices = append(f.Devices, d.index)
		f.Evidence = append(f.Evidence, d.time.Gaps...)
		gap = max(gap, busiest.time.Busy-d.time.Busy)
		sum += d.time.Busy
	}
	if len(f.Devices) == 0 {
		return nothing
	}
	f.Value = e.share(sum) / float64(len(f.Devices))
	f.Peer = busiest.index
	f.Cost, f.Time = gap, gap
	return measured{Finding: f, low: e.share(gap), rank: e.share(gap)}
}

// holds tells whether a process of the target is on the device.
func (e *evidence) holds(index int) bool {
	for _, g := range e.rec.GPUs {
		if g.Index == index {
			return len(g.PIDs) > 0
		}
	}
	return false
}

// fullest returns the device whose memory came nearest to its limit.
func (e *evidence) fullest() (index int, share float64) {
	share = math.NaN()
	for _, d := range e.used() {
		t := e.gpuTrack(d.index, "mem")
		if t == nil || t.Limit <= 0 || math.IsNaN(t.Peak) {
			continue
		}
		if s := t.Peak / t.Limit; math.IsNaN(share) || s > share {
			index, share = d.index, s
		}
	}
	return index, share
}

func memoryNearFull(e *evidence) measured {
	index, share := e.fullest()
	f := Finding{Value: share, Devices: []int{index}, Advice: SmallerBatch, Cores: math.NaN()}
	return measured{Finding: f, low: share, rank: 0.05}
}

func memoryAndCollectives(e *evidence) measured {
	index, share := e.fullest()
	a := e.accountOf(only(Collective))
	if e.share(a.total) < 0.10 {
		return nothing
	}
	f := a.finding()
	f.Value, f.Devices, f.Advice = share, []int{index}, LeaveRoom
	return measured{Finding: f, low: share, rank: e.share(a.total) / 2}
}

// throttled measures how long devices ran slower than they could, by heat or
// brake, or by nothing but the power cap.
func throttled(capOnly bool) func(*evidence) measured {
	return func(e *evidence) measured {
		f := Finding{Advice: CheckCooling, Cores: math.NaN()}
		weight := heatWeight
		if capOnly {
			f.Advice, weight = PowerLimitIsNormal, 0
		}
		for _, g := range e.rec.GPUs {
			t := e.gpuTrack(g.Index, "throttle")
			onlyCap := len(g.Throttle) == 1 && g.Throttle[0] == timeline.PowerCap
			if t == nil || len(t.Points) == 0 || len(g.Throttle) == 0 || onlyCap != capOnly {
				continue
			}
			on := 0
			for _, p := range t.Points {
				if p.Value >= 1 {
					on++
				}
			}
			f.Devices = append(f.Devices, g.Index)
			f.Value = max(f.Value, float64(on)/float64(len(t.Points)))
			for _, reason := range g.Throttle {
				if !slices.Contains(f.Throttle, reason) {
					f.Throttle = append(f.Throttle, reason)
				}
			}
		}
		if len(f.Devices) == 0 {
			return nothing
		}
		return measured{Finding: f, low: f.Value, rank: 0.05 + weight*f.Value}
	}
}

// heatWeight makes a device that ran hot all the time come before that it was busy,
// and after a fifth of the time that it was idle.
const heatWeight = 0.1

// frameworks are the libraries whose use suggests that a GPU would help.
var frameworks = []string{"/site-packages/torch/", "/dist-packages/torch/", "/site-packages/tensorflow/", "/site-packages/jax/", "/site-packages/keras/"}

// minWorthwhile is the length from which the absence of GPU work is remarkable.
const minWorthwhile = timeline.Nanos(2e9)

// unused measures how much of the time a framework computed on the CPU while a GPU
// was there. Importing the framework and loading data are no such time.
func unused(e *evidence) measured {
	if len(e.devices) == 0 || len(e.used()) > 0 || e.rec.Duration < minWorthwhile || e.thread == nil {
		return nothing
	}
	for _, d := range e.devices {
		if len(d.windows) == 0 {
			return nothing // not known whether it was used
		}
	}
	type key struct {
		node  timeline.NodeID
		state timeline.State
		wait  timeline.Wait
	}
	inside := make(map[key]bool)
	total := timeline.Nanos(0)
	for _, s := range e.thread.Spans {
		k := key{s.Node, s.State, s.Wait}
		in, ok := inside[k]
		if !ok {
			stack := e.stacks.stack(s.Node)
			cause, _ := e.stacks.classify(stack, s.State, s.Wait)
			in = (cause == Python || cause == Native) && slices.ContainsFunc(stack, func(id timeline.FrameID) bool {
				return containsAny(e.rec.Frames[id].File, frameworks)
			})
			inside[k] = in
		}
		if in {
			total += s.End - s.Start
		}
	}
	f := Finding{Time: total, Cost: total, Advice: MoveToGPU, Cores: math.NaN()}
	if len(e.rec.GPUs) > 0 {
		f.Name = e.rec.GPUs[0].Name
	}
	m := e.of(f)
	m.rank *= lossWeight
	return m
}

func gpuBusy(e *evidence) measured {
	used := e.used()
	if len(used) == 0 {
		return nothing
	}
	f := Finding{Advice: FasterKernels, Cores: math.NaN()}
	for _, d := range used {
		f.Value += e.share(d.time.Busy) / float64(len(used))
		f.Devices = append(f.Devices, d.index)
	}
	return measured{Finding: f, low: f.Value, rank: 0.12}
}

// gpuIdle is the main finding where no kind of cause stands out.
func gpuIdle(e *evidence) measured {
	if len(e.used()) == 0 || len(e.diagnosis.Idle.Causes) == 0 {
		return nothing
	}
	idle := e.meanIdle()
	top := e.diagnosis.Idle.Causes[0]
	time := timeline.Nanos(idle * float64(e.rec.Duration))
	f := Finding{
		Devices: e.usedDevices(), Value: idle, Time: time, Cause: top.Cause, Place: top.Place, Against: top.Share,
		PlaceTime: top.Nanos / timeline.Nanos(len(e.used())), Advice: top.Advice, Evidence: top.Evidence, Cost: time, Cores: math.NaN(),
	}
	return measured{Finding: f, low: idle, rank: 0.01}
}
