package diagnose

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/gpuidle"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// idleAdvice is what to change where a GPU waits for a cause.
var idleAdvice = map[activity.Cause]Advice{
	activity.Load: Prefetch, activity.LoadHere: UseWorkers, activity.LoadWorker: SpeedUpWorkers, activity.LoadSampler: CheapSampler, activity.Launch: LaunchLess, activity.Python: UseGPU, activity.Native: UseGPU,
	activity.Sync: SyncLess, activity.Copy: CopyAsync, activity.Compile: CompileOnce, activity.Checkpoint: SaveAside, activity.Collective: BalanceRanks,
	activity.Network: ReadAhead, activity.Database: ReadAhead, activity.InOut: ReadAhead, activity.GIL: AvoidGIL, activity.SetUp: SetUpApart,
	activity.Sleep: QueueWork, activity.Lock: QueueWork, activity.Thread: QueueWork, activity.Waiting: QueueWork, activity.Child: QueueWork,
}

// idleOfKind measures the idle time of a kind of cause, as a mean over the used
// devices.
func (e *evidence) idleOfKind(kind activity.Kind) measured {
	n := timeline.Nanos(len(e.used()))
	if n == 0 {
		return nothing
	}
	i := slices.IndexFunc(e.diagnosis.Idle.Kinds, func(k gpuidle.KindTime) bool { return k.Kind == kind && k.Nanos > 0 })
	if i < 0 {
		return nothing
	}
	k := e.diagnosis.Idle.Kinds[i].Over(n)
	f := Finding{Devices: e.usedDevices(), Cost: k.Nanos, Value: e.share(k.Nanos), Cores: math.NaN()}
	f.explain(k)
	if f.Advice == CompileOnce {
		f.Advice = e.adviceOnCompiling(f.Place)
	}
	if f.Cause == activity.LoadWorker {
		if f.Queue = e.queue(); f.Queue.LieReady() {
			f.Advice = NoAdvice
		}
	}
	f.Evidence = e.idleEvidence(f)
	return measured{Finding: f, low: e.share(k.Low), lost: f.Value}
}

// AdviceForIdle is what to change where a GPU waits for a cause.
func AdviceForIdle(c activity.Cause) Advice { return idleAdvice[c] }

// idleEvidence is where a finding's kind of cause, or its cause, left devices idle.
func (e *evidence) idleEvidence(f Finding) (where []timeline.Interval) {
	for _, c := range e.diagnosis.Idle.Causes {
		if c.Cause.Kind() == f.Kind && (f.Cause == "" || c.Cause == f.Cause) {
			where = append(where, c.Evidence...)
		}
	}
	return where
}

// worthNaming is the share of a kind's idle time that a cause must reach to be named
// beside others.
const worthNaming = 0.05

// explain describes a kind's idle time by the cause that surely has nearly all of it, else
// by its causes.
func (f *Finding) explain(k gpuidle.KindTime) {
	f.Kind, f.Time, f.Low, f.High = k.Kind, k.Nanos, k.Low, k.High
	if c, ok := k.MainCause(); ok {
		f.Cause, f.Time, f.Low, f.High = c.Cause, c.Nanos, c.Low, c.High
	} else {
		f.Parts = slices.DeleteFunc(k.Causes, func(c gpuidle.Part) bool { return float64(c.High) < worthNaming*float64(k.Nanos) })
	}
	if l, ok := k.MainLine(); ok {
		f.Place, f.PlaceTime = l.Place, min(l.Nanos, f.Time)
	}
	f.Advice = adviceAgainst(&k)
}

// adviceAgainst is what helps against the cause that surely has most of the kind's time, or
// against all of them.
func adviceAgainst(k *gpuidle.KindTime) Advice {
	if c, ok := gpuidle.First(k.Causes); ok {
		return AdviceForIdle(c.Cause)
	}
	advice := AdviceForIdle(k.Causes[0].Cause)
	if slices.ContainsFunc(k.Causes, func(c gpuidle.Part) bool { return c.Nanos > 0 && AdviceForIdle(c.Cause) != advice }) {
		return NoAdvice
	}
	return advice
}

// undecidedIdle holds where the kind of cause with most idle time is not surely the
// one with most: others reach its lower bound.
func undecidedIdle(e *evidence) measured {
	n := timeline.Nanos(len(e.used()))
	if n == 0 {
		return nothing
	}
	kinds := e.diagnosis.Idle.Kinds
	others := gpuidle.Rivals(kinds)
	if len(others) == 0 {
		return nothing
	}
	idle := timeline.Nanos(e.meanIdle() * float64(e.rec.Duration))
	f := Finding{Devices: e.usedDevices(), Time: idle, Value: e.meanIdle(), Cores: math.NaN(), Advice: RecordTrace}
	for _, k := range append(kinds[:1:1], others...) {
		a := k.Over(n).Alternative()
		a.Share = float64(k.Nanos) / float64(max(e.diagnosis.Idle.Total, 1))
		f.Alternatives = append(f.Alternatives, a)
	}
	return measured{Finding: f, low: f.Value, lost: f.Value}
}

// minSyncIdle is the idle share below which a loop that waits for its device
// keeps it busy all the same.
const minSyncIdle = 0.15

// syncInLoop looks for a thread that keeps waiting for the device although the
// device is idle at other times: it has nothing queued when the wait is over. What the
// host computes and launches after such a wait could be done during it. Other idle time,
// as that of a compilation, would not become less.
func syncInLoop(e *evidence) measured {
	idle := e.meanIdle()
	a := e.main.AccountOf(activity.Only(activity.Sync))
	if idle < minSyncIdle || a.Visits < minVisits {
		return nothing
	}
	m := e.of(findingOf(a))
	m.Against, m.Count, m.Advice = idle, int64(a.Visits), SyncLess
	most, saved := e.idleAtMost(activity.Synchronisation), e.idleAtMost(activity.Synchronisation, activity.Launching, activity.Host)
	m.Cost = min(a.Total, saved, timeline.Nanos(idle*float64(e.rec.Duration)))
	n := timeline.Nanos(len(e.used()))
	m.lost = e.share(min(a.Total, most))
	if slices.ContainsFunc(e.diagnosis.Idle.Kinds, func(k gpuidle.KindTime) bool { return k.Low/n > most }) {
		m.lost = 0 // something else surely costs more, be it a finding of its own or not
	}
	return m
}

// idleAtMost is the upper bound of the idle time of some kinds of causes, as a mean
// over the used devices.
func (e *evidence) idleAtMost(kinds ...activity.Kind) timeline.Nanos {
	most := timeline.Nanos(0)
	for _, k := range e.diagnosis.Idle.Kinds {
		if slices.Contains(kinds, k.Kind) {
			most += k.High
		}
	}
	return most / timeline.Nanos(len(e.used()))
}

func copies(e *evidence) measured {
	a := e.main.AccountOf(activity.Only(activity.Copy))
	if len(e.used()) == 0 {
		return nothing
	}
	m := e.of(findingOf(a))
	m.Advice = CopyAsync
	return m
}

func (e *evidence) usedDevices() []int {
	var list []int
	for _, d := range e.used() {
		list = append(list, d.Index)
	}
	return list
}

// meanIdle is the share of the time the used devices were idle; 0 without any.
func (e *evidence) meanIdle() float64 {
	used := e.used()
	total := 0.0
	for _, d := range used {
		total += e.share(d.Time.Idle)
	}
	return total / math.Max(float64(len(used)), 1)
}

// lost names devices that stopped answering.
func lost(e *evidence) measured {
	f := Finding{Cores: math.NaN()}
	for _, g := range e.rec.GPUs {
		if g.Lost > 0 && g.Lost <= e.rec.Duration {
			f.Devices = append(f.Devices, g.Index)
			if f.At == 0 || g.Lost < f.At {
				f.At = g.Lost
			}
			f.AtLast = max(f.AtLast, g.Lost)
		}
	}
	if len(f.Devices) == 0 {
		return nothing
	}
	f.Time = e.rec.Duration - f.At
	f.Value = e.share(f.Time)
	return measured{Finding: f, low: f.Value}
}

// programErrors are the kinds of error that a program makes, by NVIDIA's numbers: of an illegal address as a rule.
var programErrors = []int{13, 31, 43, 69}

// followUp is the error that what still ran on a device was ended, after another one.
const followUp = 45

// gpuError names devices whose driver reported errors; of the first it says which.
func gpuError(e *evidence) measured {
	f := Finding{Cores: math.NaN(), Advice: CheckDevice}
	first := timeline.Xid{At: e.rec.Duration + 1}
	for _, g := range e.rec.GPUs {
		if len(g.Xids) == 0 {
			continue
		}
		f.Devices = append(f.Devices, g.Index)
		f.Count += int64(len(g.Xids))
		for _, x := range g.Xids {
			if x.At < first.At && (x.Code != followUp || first.Code == 0) || first.Code == followUp && x.Code != followUp {
				first = x
			}
		}
	}
	if len(f.Devices) == 0 {
		return nothing
	}
	if slices.Contains(programErrors, first.Code) {
		f.Advice = FindFaultyKernel
	}
	f.Xid, f.At, f.Value = first.Code, first.At, float64(f.Count)
	return measured{Finding: f, low: f.Value, lost: 1}
}

// someIdle looks for devices that are less than half as busy as the busiest, among
// those the program's processes are on.
func someIdle(e *evidence) measured {
	var there []*gpuidle.Device
	for _, d := range e.devices {
		if d.IsMeasured() && (d.Time.Used || e.holds(d.Index)) {
			there = append(there, d)
		}
	}
	if len(there) < 2 {
		return nothing
	}
	busiest := slices.MaxFunc(there, func(a, b *gpuidle.Device) int { return cmp.Compare(a.Time.Busy, b.Time.Busy) })
	f := Finding{Against: e.share(busiest.Time.Busy), Advice: BalanceDevices, Cores: math.NaN()}
	var gap, sum timeline.Nanos
	for _, d := range there {
		if 2*d.Time.Busy > busiest.Time.Busy {
			continue
		}
		f.Devices = append(f.Devices, d.Index)
		f.Evidence = append(f.Evidence, d.Time.Gaps...)
		gap = max(gap, busiest.Time.Busy-d.Time.Busy)
		sum += d.Time.Busy
	}
	if len(f.Devices) == 0 {
		return nothing
	}
	f.Value = e.share(sum) / float64(len(f.Devices))
	f.Peer = busiest.Index
	f.Cost, f.Time = gap, gap
	return measured{Finding: f, low: e.share(gap), lost: e.share(gap)}
}

// holds reports whether a process of the target is on the device.
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
		t := e.gpuTrack(d.Index, "mem")
		if t == nil || t.Limit <= 0 || math.IsNaN(t.Peak) {
			continue
		}
		if s := t.Peak / t.Limit; math.IsNaN(share) || s > share {
			index, share = d.Index, s
		}
	}
	return index, share
}

func memoryNearFull(e *evidence) measured {
	index, share := e.fullest()
	f := Finding{Value: share, Devices: []int{index}, Advice: SmallerBatch, Cores: math.NaN()}
	return measured{Finding: f, low: share, lost: share}
}

func memoryAndCollectives(e *evidence) measured {
	index, share := e.fullest()
	a := e.main.AccountOf(activity.Only(activity.Collective))
	if e.share(a.Total) < 0.10 {
		return nothing
	}
	f := findingOf(a)
	f.Value, f.Devices, f.Advice = share, []int{index}, LeaveRoom
	return measured{Finding: f, low: share, lost: e.share(a.Total)}
}

// throttled measures how long devices ran slower than they could, by heat or
// brake, or by nothing but the power cap.
func throttled(capOnly bool) func(*evidence) measured {
	return func(e *evidence) measured {
		f := Finding{Advice: CheckCooling, Cores: math.NaN()}
		if capOnly {
			f.Advice = PowerLimitIsNormal
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
		return measured{Finding: f, low: f.Value, lost: f.Value}
	}
}

// minWorthwhile is the length from which the absence of GPU work is remarkable.
const minWorthwhile = timeline.Nanos(2e9)

// unused measures how much of the time a framework computed on the CPU while a GPU
// was there. Importing the framework and loading data are no such time.
func unused(e *evidence) measured {
	if len(e.devices) == 0 || len(e.used()) > 0 || e.rec.Duration < minWorthwhile || e.main.Thread == nil {
		return nothing
	}
	for _, d := range e.devices {
		if !d.IsMeasured() {
			return nothing // not known whether it was used
		}
	}
	total := timeline.Nanos(0)
	for length, inside := range activity.EachSpan(e.main, func(stack []timeline.FrameID, cause activity.Cause, _ activity.Place) bool {
		return (cause == activity.Python || cause == activity.Native) && slices.ContainsFunc(stack, func(id timeline.FrameID) bool {
			return e.stacks.Means(id, origin.RunsModels)
		})
	}) {
		if inside {
			total += length
		}
	}
	f := Finding{Time: total, Cost: total, Advice: MoveToGPU, Cores: math.NaN()}
	if len(e.rec.GPUs) > 0 {
		f.Name = e.rec.GPUs[0].Name
	}
	return e.of(f)
}

func gpuBusy(e *evidence) measured {
	used := e.used()
	if len(used) == 0 {
		return nothing
	}
	f := Finding{Advice: FasterKernels, Cores: math.NaN()}
	for _, d := range used {
		f.Value += e.share(d.Time.Busy) / float64(len(used))
		f.Devices = append(f.Devices, d.Index)
	}
	return measured{Finding: f, low: f.Value, lost: f.Value}
}

// gpuIdle is the main finding where no kind of cause stands out. It names the kind with
// most of the idle time where one surely has it.
func gpuIdle(e *evidence) measured {
	n := timeline.Nanos(len(e.used()))
	if n == 0 || len(e.diagnosis.Idle.Kinds) == 0 {
		return nothing
	}
	f := Finding{Devices: e.usedDevices(), Value: e.meanIdle(), Cores: math.NaN()}
	idle := timeline.Nanos(f.Value * float64(e.rec.Duration))
	if kinds := e.diagnosis.Idle.Kinds; len(gpuidle.Rivals(kinds)) == 0 {
		f.explain(kinds[0].Over(n))
		f.Against = float64(f.Time) / float64(max(idle, 1))
		f.Evidence = e.idleEvidence(f)
	}
	f.Time, f.Low, f.High, f.Cost, f.Parts = idle, idle, idle, idle, nil
	return measured{Finding: f, low: f.Value, lost: f.Value}
}
