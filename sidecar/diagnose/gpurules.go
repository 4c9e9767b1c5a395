package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// gpuRules need a GPU the program used, or could have used.
var gpuRules = []rule{
	{id: "dataloader-bound", severity: Warning, threshold: 0.10, hint: hintLoader,
		measure: idleRule("waited for the data loader", func(c CauseIdle) bool { return c.Cause == DataLoading })},
	{id: "launch-bound", severity: Warning, threshold: 0.15, hint: hintLaunch,
		measure: idleRule("waited for the host to launch its kernels", isLaunch)},
	{id: "host-bound", severity: Warning, threshold: 0.15, hint: hintPython,
		measure: idleRule("waited for computations on the CPU", func(c CauseIdle) bool {
			return (c.Cause == PythonCPU || c.Cause == NativeCPU) && !isLaunch(c)
		})},
	{id: "sync-in-loop", severity: Warning, threshold: 0.05, hint: hintSync, measure: syncInLoop},
	{id: "host-device-copies", severity: Warning, threshold: 0.08, hint: hintCopy, measure: copies},
	{id: "gpu-waits-for-io", severity: Warning, threshold: 0.10, hint: hintIO,
		measure: idleRule("waited for input or output", func(c CauseIdle) bool { return c.Cause == InputOutput })},
	{id: "gpu-waits-for-checkpoint", severity: Warning, threshold: 0.05, hint: hintCheckpoint,
		measure: idleRule("waited while a checkpoint was written or read", func(c CauseIdle) bool { return c.Cause == Checkpoint })},
	{id: "gpu-waits-for-compilation", severity: Info, threshold: 0.10, hint: hintCompile,
		measure: idleRule("waited for compilation", func(c CauseIdle) bool { return c.Cause == Compilation })},
	{id: "gpu-waits-for-ranks", severity: Warning, threshold: 0.10, hint: hintRanks,
		measure: idleRule("waited for other ranks", func(c CauseIdle) bool { return c.Cause == Communicate })},
	{id: "gpu-waits-for-sleep", severity: Warning, threshold: 0.15, hint: hintSleep,
		measure: idleRule("waited while the program slept or waited for a lock", func(c CauseIdle) bool { return c.Cause == Waiting })},
	{id: "slow-start", severity: Info, threshold: 0.20, hint: hintSetUp,
		measure: idleRule("had nothing to do before its first kernel", func(c CauseIdle) bool { return c.Cause == BeforeFirst })},
	{id: "one-gpu-idle", severity: Warning, threshold: 0.40, measure: oneIdle,
		hint: "balance the work: DistributedDataParallel in place of DataParallel, equal shards, or leave the device to others (CUDA_VISIBLE_DEVICES)"},
	{id: "gpu-memory-near-full", severity: Warning, threshold: 0.92, measure: memoryNearFull, // share of the device's memory
		hint: "smaller batch, activation checkpointing, or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; allocations begin to retry here"},
	{id: "gpu-memory-and-collectives", severity: Warning, threshold: 0.92, measure: memoryAndCollectives,
		hint: "a full device makes the allocator flush its cache in one rank while the others wait in the collective: give it 10 % of room"},
	{id: "gpu-throttled", severity: Warning, threshold: 0.05, measure: throttled(false),
		hint: "the device is too hot or its power supply too weak: check the cooling, neighbours and nvidia-smi -q -d PERFORMANCE"},
	{id: "gpu-power-capped", severity: Info, threshold: 0.25, measure: throttled(true),
		hint: "normal under full load; nvidia-smi -q -d POWER shows the limit"},
	{id: "gpu-unused", severity: Warning, threshold: 0.50, measure: unused, // share of the time in a framework's code
		hint: `move model and data there: model.to("cuda"), batch.to("cuda"); torch.cuda.is_available() tells whether the build can`},
	{id: "gpu-busy", severity: Info, threshold: 0.85, measure: gpuBusy,
		hint: "the device is the limit: mixed precision (bfloat16), torch.compile, better kernels, or a larger device"},
	{id: "gpu-idle", severity: Info, threshold: 0.20, fallback: true, measure: gpuIdle},
}

// idleRule measures the idle time of some causes.
func idleRule(did string, fits func(CauseIdle) bool) func(*evidence) measured {
	return func(e *evidence) measured {
		if len(e.used()) == 0 {
			return nothing
		}
		total, top, where := e.idleWhere(fits)
		return measured{
			value: e.share(total), at: line{top.File, top.Line}, hint: top.Hint, evidence: where, cost: total,
			text: fmt.Sprintf("The GPU %s for %s, %s of the time%s.", did, seconds(total), percent(e.share(total)), e.where(line{top.File, top.Line})),
		}
	}
}

func isLaunch(c CauseIdle) bool {
	return (c.Cause == PythonCPU || c.Cause == NativeCPU) && c.Hint == hintLaunch
}

// minVisits is how often a thread comes back to a line in a loop, at least.
const minVisits = 8

// minSyncIdle is the idle share below which a loop that waits for its device
// keeps it busy all the same.
const minSyncIdle = 0.15

// syncInLoop looks for a thread that keeps waiting for the device although the
// device is idle at other times: it has nothing queued when the wait is over.
func syncInLoop(e *evidence) measured {
	idle := e.meanIdle()
	total, at, _, visits, where := e.hostWhere(func(s hostState) bool { return s.cause == Transfer && s.hint == hintSync })
	if idle < minSyncIdle || visits < minVisits {
		return nothing
	}
	cost := min(total, timeline.Nanos(idle*float64(e.rec.Duration)))
	return measured{
		value: e.share(total), at: at, evidence: where, cost: cost,
		text: fmt.Sprintf("The loop waited for the GPU %d times, %s of the time, and the GPU ran dry each time%s.", visits, percent(e.share(total)), e.where(at)),
	}
}

func copies(e *evidence) measured {
	if len(e.used()) == 0 {
		return nothing
	}
	total, at, _, _, where := e.hostWhere(func(s hostState) bool { return s.cause == Transfer && s.hint == hintCopy })
	return measured{
		value: e.share(total), at: at, evidence: where, cost: total,
		text: fmt.Sprintf("Copies between host and GPU held the program up for %s, %s of the time%s.", seconds(total), percent(e.share(total)), e.where(at)),
	}
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

// oneIdle measures by how much one device is less busy than the busiest, among
// those the program's processes are on.
func oneIdle(e *evidence) measured {
	var most, least *device
	for _, d := range e.devices {
		if len(d.windows) == 0 || !(d.time.Used || e.holds(d.index)) {
			continue
		}
		if most == nil || d.time.Busy > most.time.Busy {
			most = d
		}
		if least == nil || d.time.Busy < least.time.Busy {
			least = d
		}
	}
	if most == nil || most == least || e.share(most.time.Busy) < 2*e.share(least.time.Busy) {
		return nothing
	}
	gap := most.time.Busy - least.time.Busy
	return measured{
		value: e.share(gap), evidence: least.time.Gaps, cost: gap,
		text: fmt.Sprintf("GPU %d was busy %s of the time while GPU %d was busy %s.",
			least.index, percent(e.share(least.time.Busy)), most.index, percent(e.share(most.time.Busy))),
	}
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
		t := e.track(fmt.Sprintf("gpu%d.mem", d.index))
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
	return measured{value: share, text: fmt.Sprintf("The memory of GPU %d was %s full at its peak.", index, percent(share))}
}

func memoryAndCollectives(e *evidence) measured {
	index, share := e.fullest()
	total, at, _, _, where := e.hostWhere(func(s hostState) bool { return s.cause == Communicate })
	if e.share(total) < 0.10 {
		return nothing
	}
	return measured{
		value: share, at: at, evidence: where, cost: total,
		text: fmt.Sprintf("The memory of GPU %d was %s full while %s of the time went into collectives%s.", index, percent(share), percent(e.share(total)), e.where(at)),
	}
}

// throttled measures how long a device ran slower than it could, by heat or
// brake, or by nothing but its power cap.
func throttled(capOnly bool) func(*evidence) measured {
	return func(e *evidence) measured {
		for _, d := range e.devices {
			t := e.track(fmt.Sprintf("gpu%d.throttle", d.index))
			if t == nil || len(t.Points) == 0 {
				continue
			}
			var reasons []string
			for _, n := range e.rec.Notes {
				if n.What == t.ID {
					reasons = append(reasons, n.Reason)
				}
			}
			on := 0
			for _, p := range t.Points {
				if p.Value >= 1 {
					on++
				}
			}
			onlyCap := !slices.ContainsFunc(reasons, func(r string) bool { return r != "power cap" })
			if on == 0 || onlyCap != capOnly {
				continue
			}
			share := float64(on) / float64(len(t.Points))
			return measured{
				value: share,
				text:  fmt.Sprintf("GPU %d ran below its clock for %s of the time (%s).", d.index, percent(share), strings.Join(reasons, "; ")),
			}
		}
		return nothing
	}
}

// frameworks are the libraries whose use suggests that a GPU would help.
var frameworks = []string{"/site-packages/torch/", "/dist-packages/torch/", "/site-packages/tensorflow/", "/site-packages/jax/", "/site-packages/keras/"}

// unused measures how much of the time went into a framework's code on the CPU
// while a GPU was there.
func unused(e *evidence) measured {
	if len(e.devices) == 0 || len(e.used()) > 0 || e.rec.Duration < minWorthwhile {
		return nothing
	}
	for _, d := range e.devices {
		if len(d.windows) == 0 {
			return nothing // not known whether it was used
		}
	}
	t := responsible(e.rec, -1)
	if t == nil {
		return nothing
	}
	inside := make(map[timeline.NodeID]bool)
	total := timeline.Nanos(0)
	for _, s := range t.Spans {
		in, ok := inside[s.Node]
		if !ok {
			for _, f := range e.stacks.frames(s.Node) {
				in = in || containsAny(f.File, frameworks) && !strings.Contains(f.File, "/utils/data/")
			}
			inside[s.Node] = in
		}
		if in && (s.State == timeline.StatePython || s.State == timeline.StateNative) {
			total += s.End - s.Start
		}
	}
	name := ""
	if len(e.rec.GPUs) > 0 {
		name = " (" + e.rec.GPUs[0].Name + ")"
	}
	return measured{
		value: e.share(total), cost: total,
		text: fmt.Sprintf("A GPU%s is there, but nothing ran on it while the framework computed on the CPU for %s.", name, seconds(total)),
	}
}

// minWorthwhile is the length from which the absence of GPU work is remarkable.
const minWorthwhile = timeline.Nanos(2e9)

func gpuBusy(e *evidence) measured {
	used := e.used()
	if len(used) == 0 {
		return nothing
	}
	busy := 0.0
	for _, d := range used {
		busy += e.share(d.time.Busy) / float64(len(used))
	}
	return measured{value: busy, text: fmt.Sprintf("The GPU was busy %s of the time: the program is limited by it.", percent(busy))}
}

// gpuIdle is the main finding where no single cause stands out.
func gpuIdle(e *evidence) measured {
	if len(e.used()) == 0 || len(e.diagnosis.Idle.Causes) == 0 {
		return nothing
	}
	idle := e.meanIdle()
	top := e.diagnosis.Idle.Causes[0]
	at := line{top.File, top.Line}
	return measured{
		value: idle, at: at, hint: top.Hint, evidence: top.Evidence, cost: timeline.Nanos(idle * float64(e.rec.Duration)),
		text: fmt.Sprintf("The GPU was idle %s of the time; the largest part, %s of it, is %s%s.", percent(idle), percent(top.Share), top.Cause, e.where(at)),
	}
}
