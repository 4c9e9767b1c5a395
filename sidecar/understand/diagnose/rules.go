package diagnose

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// rule is one finding as data: what is measured, from which figure on it is worth
// saying, and what it comes before.
type rule struct {
	id        FindingID
	severity  Severity
	unit      Unit // zero: Share
	threshold float64
	group     findingGroup
	weight    float64 // of the share of time that measure finds lost, beside other rules of the group
	measure   func(e *evidence) measured
}

// A finding's place in the list follows from its rule's group and weight, and from the share
// of the subject's wall time that the rule measured as lost: findings are in the order of
// their groups, and within a group in that of weight times share. Rules that come out the
// same are in the order of the table. The test's table of pairs, priority_test.go, says
// what must come before what.

// findingGroup is what a finding answers.
type findingGroup uint8

const (
	broken    findingGroup = iota // what broke the program: it comes before where the time went
	undecided                     // it is not known which of several causes has most of the time: nothing else may claim it
	timeSpent                     // where the time went
	hazard                        // what may slow or break the program; what it costs is not known
	limits                        // what can be said of the recording at all: qualifies the headline, and is none
)

// The weights that several rules have, with their reason.
const (
	plainly  = 1   // the time was spent so
	wasted   = 2   // it served no purpose: without it the same work is done in less time
	moreThan = 1.2 // says of the same time more than another finding does
	partly   = 0.5 // a part of the time was needed, or lost to something else
)

// The weights that one rule has.
const (
	slower = 0.15 // by how much a hot device is slower: all of the time comes before that it was busy, and after a sixth that it was idle
	atWork = 0.12 // a busy device is what one wants: all that a GPU waited for comes first
	inSum  = 0.01 // the sum of what other findings have kinds for; the first where none stands out
)

// rules for programs that use a GPU come first, then those for any program.
var rules = slices.Concat(gpuRules, cpuRules)

// cpuRules hold for any program. Where the program uses a GPU, time the thread
// spends is explained by what the GPU waits for, so most of them ask for none.
var cpuRules = []rule{
	{id: RankFailed, severity: Warning, threshold: 1, unit: Count, group: broken, weight: plainly, measure: rankFailed}, // not after a killed one
	{id: WorkerKilled, severity: Warning, threshold: 1, unit: Count, group: broken, weight: plainly, measure: workerKilled},
	{id: OneLine, severity: Info, threshold: 0.30, group: timeSpent, weight: plainly, measure: computing}, // or Computing, or NoLineStandsOut
	{id: CollectsGarbage, severity: Warning, threshold: 0.30, group: timeSpent, weight: wasted, measure: collectsGarbage},
	{id: Imports, severity: Info, threshold: 0.30, group: timeSpent, weight: plainly, measure: hostRule(imports, activity.Import)},
	{id: Drawing, severity: Info, threshold: 0.20, group: timeSpent, weight: plainly, measure: hostRule(withCall, activity.Draw)},
	{id: Displaying, severity: Info, threshold: 0.20, group: timeSpent, weight: plainly, measure: hostRule(withCall, activity.Display)},
	{id: AroundCell, severity: Info, threshold: 0.20, group: timeSpent, weight: plainly, measure: hostRule(nil, activity.Around)},
	{id: Tracing, severity: Info, threshold: 0.20, group: timeSpent, weight: plainly, measure: hostRule(nil, activity.Tracing)},
	{id: Compiling, severity: Info, threshold: 0.20, group: timeSpent, weight: plainly, measure: hostRule(compiling, activity.Compile)},
	{id: Saving, severity: Info, threshold: 0.20, group: timeSpent, weight: plainly, measure: hostRule(withCall, activity.Checkpoint)},
	{id: LoadsData, severity: Warning, threshold: loadsShare, group: timeSpent, weight: plainly, measure: loadsData},
	{id: TrainingLoads, severity: Warning, threshold: loadsShare, group: timeSpent, weight: plainly, measure: trainingLoads},
	{id: StepsSlowDown, severity: Warning, threshold: 0.05, group: timeSpent, weight: wasted, measure: stepsSlowDown},
	{id: WaitsForNetwork, severity: Warning, threshold: 0.30, group: timeSpent, weight: plainly, measure: hostRule(requests, activity.Network)},
	{id: WaitsForDatabase, severity: Warning, threshold: 0.30, group: timeSpent, weight: plainly, measure: hostRule(queries, activity.Database)},
	{id: WaitsForIO, severity: Warning, threshold: 0.30, group: timeSpent, weight: plainly, measure: hostRule(reading, activity.InOut)},
	{id: Sleeps, severity: Info, threshold: 0.30, group: timeSpent, weight: plainly, measure: hostRule(sleeping, activity.Sleep)},
	{id: WaitsForUser, severity: Info, threshold: 0.30, group: timeSpent, weight: plainly, measure: hostRule(nil, activity.UserInput)},
	{id: WaitsForChildren, severity: Info, threshold: 0.30, group: timeSpent, weight: plainly, measure: hostRule(waitingForChildren, activity.Child)},
	{id: WaitsForThreads, severity: Info, threshold: 0.30, group: timeSpent, weight: plainly, measure: hostRule(waitingForThreads, activity.Thread)},
	{id: WaitsForLock, severity: Info, threshold: 0.30, group: timeSpent, weight: plainly, measure: hostRule(waitingForLock, activity.Lock)},
	{id: WaitsForRanks, severity: Info, threshold: 0.30, group: timeSpent, weight: plainly, measure: waitsForRanks},
	{id: WaitsForEvents, severity: Info, threshold: waitsForEventsShare, group: timeSpent, weight: plainly, measure: waitsForEvents},
	{id: TasksWait, severity: Info, threshold: inTurnShare, group: timeSpent, weight: moreThan, measure: ofLoops(tasksWait)},
	{id: AwaitsInTurn, severity: Warning, threshold: inTurnShare, group: timeSpent, weight: moreThan, measure: ofLoops(awaitsInTurn)},
	{id: LoopBlocked, severity: Warning, threshold: 0.20, group: timeSpent, weight: wasted, measure: ofLoops(loopBlocked)},
	{id: WaitsUnknown, severity: Info, threshold: 0.30, group: timeSpent, weight: plainly, measure: hostRule(nil, activity.Waiting)},
	{id: Straggler, severity: Warning, threshold: stragglerShare, group: timeSpent, weight: wasted, measure: findStraggler},
	{id: GILContention, severity: Warning, threshold: 0.10, group: timeSpent, weight: wasted, measure: gilContention},
	{id: ThreadsTakeTurns, severity: Warning, threshold: 0.30, group: timeSpent, weight: moreThan, measure: threadsTakeTurns},
	{id: NoFreeCPU, severity: Warning, threshold: noFreeCPUShare, group: timeSpent, weight: wasted, measure: noFreeCPU},
	{id: BusyMachine, severity: Limit, threshold: 0.30, group: limits, weight: plainly, measure: busyMachine},
	{id: StacksUnknown, severity: Limit, threshold: 0.10, group: limits, weight: plainly, measure: stacksUnknown},
	{id: BegunLate, severity: Limit, threshold: 0.10, group: limits, weight: plainly, measure: begunLate},
	{id: Traceback, severity: Limit, threshold: 0.10, group: limits, weight: plainly, measure: afterTheError(func(r *timeline.Recording) timeline.Nanos { return r.Traceback })},
	{id: DrawnAfterError, severity: Limit, threshold: 0.10, group: limits, weight: plainly, measure: afterTheError(func(r *timeline.Recording) timeline.Nanos { return r.Figures })},
	{id: Printing, severity: Warning, threshold: 100, unit: PerSecond, group: timeSpent, weight: plainly, measure: printing},
	{id: MemoryPressure, severity: Warning, threshold: 0.95, unit: Fullness, group: hazard, weight: 0.5, measure: memoryPressure},
	{id: Swapping, severity: Warning, threshold: 64 << 20, unit: Bytes, group: hazard, weight: 1, measure: swapping},
	{id: SlowStartUp, severity: Info, threshold: 0.30, group: timeSpent, weight: plainly, measure: hostRule(nil, activity.StartUp)},
	{id: SlowExit, severity: Info, threshold: 0.10, group: timeSpent, weight: plainly, measure: hostRule(nil, activity.Exit)},
}

// gpuRules need a GPU the program used, or could have used.
var gpuRules = slices.Concat([]rule{
	{id: GPULost, severity: Limit, group: limits, weight: plainly, measure: lost},
	{id: GPUError, severity: Warning, threshold: 1, unit: Count, group: broken, weight: plainly, measure: gpuError},
	{id: GPUIdleUndecided, severity: Warning, threshold: 0.10, group: undecided, weight: plainly, measure: undecidedIdle},
}, idleRules(), []rule{
	{id: SyncInLoop, severity: Warning, threshold: 0.05, group: timeSpent, weight: partly, measure: syncInLoop},
	{id: HostDeviceCopies, severity: Warning, threshold: 0.08, group: timeSpent, weight: partly, measure: copies},
	{id: SomeGPUsIdle, severity: Warning, threshold: 0.40, group: timeSpent, weight: plainly, measure: someIdle},
	{id: GPUMemoryNearFull, severity: Warning, threshold: 0.92, unit: Fullness, group: hazard, weight: 0.4, measure: memoryNearFull},
	{id: GPUMemoryCollectives, severity: Warning, threshold: 0.92, unit: Fullness, group: timeSpent, weight: partly, measure: memoryAndCollectives},
	{id: GPUThrottled, severity: Warning, threshold: 0.05, group: timeSpent, weight: slower, measure: throttled(false)},
	{id: GPUPowerCapped, severity: Info, threshold: 0.25, group: hazard, weight: 0.1, measure: throttled(true)},
	{id: GPUUnused, severity: Warning, threshold: 0.50, group: timeSpent, weight: wasted, measure: unused},
	{id: GPUBusy, severity: Info, threshold: 0.85, group: timeSpent, weight: atWork, measure: gpuBusy},
	{id: GPUIdle, severity: Info, threshold: 0.20, group: timeSpent, weight: inSum, measure: gpuIdle},
})

// idleKinds are the kinds of cause a GPU waits for, each a finding of its own.
var idleKinds = []struct {
	kind      activity.Kind
	id        FindingID
	severity  Severity
	threshold float64 // share of the recording
}{
	{activity.Starvation, GPUWaitsForData, Warning, 0.10},
	{activity.Launching, GPUWaitsForLaunches, Warning, 0.15},
	{activity.Host, GPUWaitsForHost, Warning, 0.15},
	{activity.InputOutput, GPUWaitsForIO, Warning, 0.10},
	{activity.Checkpoints, GPUWaitsForCheckpoint, Warning, 0.05},
	{activity.Compilation, GPUWaitsForCompilation, Info, 0.10},
	{activity.Collectives, GPUWaitsForRanks, Warning, 0.10},
	{activity.Waits, GPUWaitsForWaits, Warning, 0.15},
	{activity.Contention, GPUWaitsForContention, Warning, 0.15},
	{activity.Copying, GPUWaitsForCopies, Warning, 0.10},
	{activity.Synchronisation, GPUWaitsForSync, Warning, 0.10},
	{activity.SettingUp, GPUWaitsAtStart, Info, 0.20},
	{activity.Ending, GPUWaitsAtExit, Info, 0.20},
}

func idleRules() []rule {
	var list []rule
	for _, k := range idleKinds {
		list = append(list, rule{id: k.id, severity: k.severity, threshold: k.threshold, group: timeSpent, weight: plainly, measure: func(e *evidence) measured { return e.idleOfKind(k.kind) }})
	}
	return list
}

// ranked is a finding with what it is ordered by.
type ranked struct {
	Finding
	group    findingGroup
	priority float64
}

func compareRanked(a, b ranked) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(b.priority, a.priority))
}
