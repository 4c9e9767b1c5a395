package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
)

// of100 plays the act of a finding's own case for so many hundredths of ten seconds, beside
// others: pairs of (finding, hundredths).
func of100(parts ...any) scene {
	s := scene{times: 10}
	for i := 0; i < len(parts); i += 2 {
		a, known := pairActs[parts[i].(FindingID)]
		if !known {
			a = findingCases[parts[i].(FindingID)].fires.acts[0]
		}
		a.length = timeline.Nanos(parts[i+1].(int)) * 10 * ms
		s.acts = append(s.acts, a)
	}
	return s
}

func (s scene) with(changes ...func(*timeline.Builder)) scene {
	s.change = both(changes...)
	return s
}

func (s scene) onGPU() scene {
	s.gpus = 1
	return s
}

// pairActs are the acts of those findings whose own case is made of more than its first act.
var pairActs = map[FindingID]act{
	Computing:              one(8, "", "", timeline.StatePython, 0),
	NoLineStandsOut:        one(4, "", "", timeline.StatePython, 0),
	WaitsForChildren:       one(8, "/usr/lib/python3.12/subprocess.py", "Popen.wait", timeline.StateWaiting, 0),
	Printing:               one(3, site+"ipykernel/iostream.py", "OutStream.write", timeline.StatePython, 0),
	GPUBusy:                training,
	GPUWaitsForHost:        one(8, "", "", timeline.StatePython, 0),
	GPUWaitsForIO:          one(8, "", "", timeline.StateIO, 0),
	GPUWaitsForCompilation: one(3, dynamo, "compile", timeline.StatePython, 0),
	GPUWaitsForRanks:       one(7, c10d, "all_reduce", timeline.StateWaiting, 0),
	GPUWaitsForWaits:       one(10, "", "", timeline.StateWaiting, 0),
	GPUWaitsForContention:  one(8, "", "", timeline.StateGIL, 0),
	GPUWaitsForCopies:      one(2, "", "", timeline.StateNative, 0),
	GPUWaitsForSync:        one(6, "", "", timeline.StateNative, 40),
	GPUUnused:              {sec, 3, torchModule, "f", timeline.StateNative, 0},
}

// training of ranks: each loads data for so many hundredths of a step, works for its own
// number of them, and waits for the others in backward() for the rest.
func ranks(load int, work ...int) func(*timeline.Builder) {
	return func(b *timeline.Builder) {
		for rank, own := range work {
			number, place := rank, 0
			b.Describe(func(r *timeline.Recording) {
				place = len(r.Processes)
				r.Processes = append(r.Processes, timeline.Process{PID: 50 + rank, Parent: 1, Role: timeline.RoleRank, Rank: &number, Number: &number})
			})
			id := b.Thread(timeline.Thread{PID: 50 + rank, Process: place, NativeID: 50 + rank, Main: true})
			node := func(line int, file, function string) timeline.NodeID {
				n := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "train", File: cellFile, Line: line}))
				if file != "" {
					n = b.Child(n, b.Frame(timeline.Frame{Function: function, File: file, Line: 1}))
				}
				return n
			}
			loads, works, backward := node(5, dataloaderFile, inline), node(3, "", ""), node(7, site+"torch/autograd/graph.py", "_engine_run_backward")
			for at := timeline.Nanos(0); at < 10*sec; at += sec {
				next := at
				for _, part := range []struct {
					node     timeline.NodeID
					hundreds int
					state    timeline.State
				}{{loads, load, timeline.StatePython}, {works, own, timeline.StateNative}, {backward, 100 - load - own, timeline.StateWaiting}} {
					if part.hundreds > 0 {
						b.Set(id, next, part.node, part.state, false)
						next += timeline.Nanos(part.hundreds) * sec / 100
					}
				}
			}
		}
	}
}

// launcher is a script of the user's own: it computes for so many tenths of ten seconds, and
// waits for its ranks for the rest.
func launcher(tenths int) scene {
	acts := []act{{timeline.Nanos(10-tenths) * sec, 8, "/usr/lib/python3.12/subprocess.py", "Popen.wait", timeline.StateWaiting, 0}}
	if tenths > 0 {
		acts = append([]act{{timeline.Nanos(tenths) * sec, 2, "", "", timeline.StatePython, 0}}, acts...)
	}
	return scene{acts: acts, script: true}
}

// What comes before what. Both findings are there, or it says so.
var pairs = []struct {
	first, then FindingID
	in          scene
}{
	// Where the time went: more of it comes first, whatever it was.
	{OneLine, LoadsData, of100(OneLine, 60, LoadsData, 40)},
	{LoadsData, Computing, of100(LoadsData, 60, Computing, 40)},
	{OneLine, Sleeps, of100(OneLine, 55, Sleeps, 45)},
	{Sleeps, Computing, of100(Sleeps, 55, Computing, 45)},
	{WaitsForNetwork, Computing, of100(WaitsForNetwork, 55, Computing, 45)},
	{OneLine, WaitsForNetwork, of100(OneLine, 55, WaitsForNetwork, 45)},
	{WaitsForDatabase, Computing, of100(WaitsForDatabase, 55, Computing, 45)},
	{OneLine, WaitsForDatabase, of100(OneLine, 55, WaitsForDatabase, 45)},
	{WaitsForIO, Sleeps, of100(WaitsForIO, 55, Sleeps, 45)},
	{Sleeps, WaitsForIO, of100(Sleeps, 55, WaitsForIO, 45)},
	{WaitsForUser, Computing, of100(WaitsForUser, 60, Computing, 40)},
	{OneLine, WaitsForUser, of100(OneLine, 60, WaitsForUser, 40)},
	{Imports, Computing, of100(Imports, 60, Computing, 40)},
	{CollectsGarbage, OneLine, of100(CollectsGarbage, 60, OneLine, 40)},
	{OneLine, CollectsGarbage, of100(OneLine, 68, CollectsGarbage, 32)},
	{OneLine, Imports, of100(OneLine, 60, Imports, 40)},
	{Imports, LoadsData, of100(Imports, 55, LoadsData, 45)},
	{LoadsData, Imports, of100(LoadsData, 55, Imports, 45)},
	{Drawing, Computing, of100(Drawing, 55, Computing, 45)},
	{OneLine, Drawing, of100(OneLine, 75, Drawing, 25)},
	{Displaying, Computing, of100(Displaying, 60, Computing, 40)},
	{OneLine, Displaying, of100(OneLine, 70, Displaying, 30)},
	{Compiling, Computing, of100(Compiling, 60, Computing, 40)},
	{OneLine, Compiling, of100(OneLine, 70, Compiling, 30)},
	{Saving, Compiling, of100(Saving, 60, Compiling, 40)},
	{Compiling, Saving, of100(Compiling, 60, Saving, 40)},
	{WaitsForLock, Computing, of100(WaitsForLock, 60, Computing, 40)},
	{OneLine, WaitsForLock, of100(OneLine, 60, WaitsForLock, 40)},
	{WaitsForEvents, Computing, of100(WaitsForEvents, 60, Computing, 40)},
	{OneLine, WaitsForEvents, of100(OneLine, 60, WaitsForEvents, 40)},
	{OneLine, TasksWait, of100(OneLine, 60, WaitsForEvents, 40).with(tasksAt(timeline.AwaitsOther, 4, 18, 1, 0, 10*sec))},
	{OneLine, AwaitsInTurn, of100(OneLine, 60, WaitsForEvents, 40).with(tasksAt(timeline.AwaitsOther, 4, 1, 20, 0, 10*sec))},
	{LoopBlocked, OneLine, of100(OneLine, 60, WaitsForEvents, 40).with(tasksAt(timeline.AwaitsTurn, 4, 19, 1, 0, 9*sec))},
	{LoopBlocked, Sleeps, of100(Sleeps, 60, WaitsForEvents, 40).with(tasksAt(timeline.AwaitsTurn, 4, 19, 1, 0, 9*sec))},
	{OneLine, LoopBlocked, of100(OneLine, 80, WaitsForEvents, 20).with(tasksAt(timeline.AwaitsTurn, 4, 19, 1, 0, 3*sec))},
	{WaitsUnknown, Computing, of100(WaitsUnknown, 60, Computing, 40)},
	{OneLine, WaitsUnknown, of100(OneLine, 60, WaitsUnknown, 40)},
	{WaitsForChildren, Computing, scene{acts: []act{ // 0.22 s and 0.18 s, as in a cell of joblib
		{220 * ms, 8, site + "joblib/parallel.py", "Parallel._retrieve", timeline.StateWaiting, 0},
		{180 * ms, 7, "", "", timeline.StatePython, 0},
	}}.with(cores(1.5), child("", "pool-worker"))},
	{OneLine, WaitsForChildren, of100(OneLine, 60, WaitsForChildren, 40).with(cores(1.5), child("ffmpeg", "child"))},
	{WaitsForChildren, Imports, of100(WaitsForChildren, 60, Imports, 40).with(cores(1.5), child("ffmpeg", "child"))},

	// Time that served no purpose counts twice; a little of it is not the first thing.
	{GILContention, OneLine, of100(GILContention, 40, OneLine, 60)},
	{OneLine, GILContention, of100(OneLine, 80, GILContention, 20)},
	{GILContention, LoadsData, of100(GILContention, 40, LoadsData, 60)},
	{LoadsData, GILContention, of100(LoadsData, 85, GILContention, 15)},
	{NoFreeCPU, OneLine, of100(NoFreeCPU, 40, OneLine, 60)},
	{OneLine, NoFreeCPU, of100(OneLine, 80, NoFreeCPU, 20)},
	{NoFreeCPU, Imports, of100(NoFreeCPU, 40, Imports, 60)},
	{WaitsForNetwork, NoFreeCPU, of100(WaitsForNetwork, 80, NoFreeCPU, 20)},
	{ThreadsTakeTurns, WaitsForThreads, findingCases[ThreadsTakeTurns].fires}, // says more of the same wait

	// Ranks: a straggler is measured as all else, and a launcher's own code hides nothing.
	{LoadsData, Straggler, launcher(0).with(ranks(80, 3, 16, 3, 3))},
	{LoadsData, Straggler, launcher(1).with(ranks(80, 3, 16, 3, 3))},
	{LoadsData, Straggler, launcher(4).with(ranks(80, 3, 16, 3, 3))},
	{LoadsData, Straggler, launcher(0).with(ranks(50, 10, 30, 10, 10))},
	{Straggler, Computing, launcher(0).with(ranks(0, 40, 90, 40, 40))},
	{Straggler, OneLine, launcher(0).with(ranks(0, 55, 95, 55, 55))},
	{OneLine, Straggler, launcher(0).with(ranks(0, 75, 95, 75, 75))},
	{OneLine, Straggler, launcher(2).with(ranks(0, 75, 95, 75, 75))},

	// What broke the program comes before where the time went.
	{WorkerKilled, OneLine, of100(OneLine, 100).with(endedWorker(9, 2*sec))},
	{WorkerKilled, Imports, of100(Imports, 100).with(endedWorker(11, 2*sec))},

	// What was printed, and what memory is left, do not come before the time's.
	{OneLine, Printing, of100(OneLine, 60, Sleeps, 36, Printing, 4).with(printed(4000))},
	{Sleeps, Printing, of100(Sleeps, 60, WaitsForIO, 36, Printing, 4).with(printed(4000))},
	{WaitsForIO, Printing, of100(WaitsForIO, 40, Sleeps, 35, Printing, 25).with(printed(4000))},
	{Printing, Sleeps, of100(Printing, 60, Sleeps, 40).with(printed(4000))},
	{OneLine, MemoryPressure, of100(OneLine, 60, Sleeps, 40).with(gauge("rss", 16e9, 8e9, 15.9e9))},
	{Sleeps, MemoryPressure, of100(Sleeps, 35, OneLine, 25, NoLineStandsOut, 20, Imports, 20).with(gauge("rss", 16e9, 8e9, 15.9e9))},
	{OneLine, Swapping, of100(OneLine, 60, Sleeps, 40).with(gauge("swap", 8e9, 1e9, 2e9))},
	{Swapping, MemoryPressure, of100(OneLine, 60, Sleeps, 40).with(gauge("swap", 8e9, 1e9, 2e9), gauge("rss", 16e9, 8e9, 15.9e9))},
	{Sleeps, Swapping, of100(Sleeps, 60, OneLine, 40).with(gauge("swap", 8e9, 1e9, 2e9))},

	// What can be said at all is no headline.
	{OneLine, StacksUnknown, of100(OneLine, 60, Sleeps, 40).with(stoppedFor(5 * sec))},
	{MemoryPressure, StacksUnknown, of100(OneLine, 60, Sleeps, 40).with(stoppedFor(5*sec), gauge("rss", 16e9, 8e9, 15.9e9))},
	{OneLine, Traceback, of100(OneLine, 60, Sleeps, 40).with(formatted(50 * sec))},
	{OneLine, DrawnAfterError, of100(OneLine, 60, Sleeps, 40).with(figures(50 * sec))},
	{OneLine, BegunLate, of100(OneLine, 60, Sleeps, 40).with(late(50 * sec))},
	{OneLine, BusyMachine, of100(OneLine, 60, Imports, 40).with(machine(2, 2))},

	// GPUs: what they waited for, by how long they did.
	{GPUWaitsForData, GPUWaitsForHost, of100(GPUBusy, 40, GPUWaitsForData, 40, GPUWaitsForHost, 20).onGPU()},
	{GPUWaitsForHost, GPUWaitsForData, of100(GPUBusy, 40, GPUWaitsForData, 20, GPUWaitsForHost, 40).onGPU()},
	{GPUWaitsForIO, GPUWaitsForData, of100(GPUBusy, 40, GPUWaitsForIO, 40, GPUWaitsForData, 20).onGPU()},
	{GPUWaitsForData, GPUWaitsForCheckpoint, of100(GPUBusy, 40, GPUWaitsForData, 40, GPUWaitsForCheckpoint, 20).onGPU()},
	{GPUWaitsForCheckpoint, GPUWaitsForData, of100(GPUBusy, 40, GPUWaitsForCheckpoint, 40, GPUWaitsForData, 20).onGPU()},
	{GPUWaitsForRanks, GPUWaitsForHost, of100(GPUBusy, 40, GPUWaitsForRanks, 40, GPUWaitsForHost, 20).onGPU()},
	{GPUWaitsForWaits, GPUWaitsForData, of100(GPUBusy, 40, GPUWaitsForWaits, 40, GPUWaitsForData, 20).onGPU()},
	{GPUWaitsForContention, GPUWaitsForData, of100(GPUBusy, 40, GPUWaitsForContention, 40, GPUWaitsForData, 20).onGPU()},
	{GPUWaitsForCopies, GPUWaitsForHost, of100(GPUBusy, 40, GPUWaitsForCopies, 40, GPUWaitsForHost, 20).onGPU()},
	{GPUWaitsForCompilation, GPUWaitsForHost, of100(GPUBusy, 40, GPUWaitsForCompilation, 40, GPUWaitsForHost, 20).onGPU()},
	{GPUWaitsForData, GPUIdle, of100(GPUBusy, 60, GPUWaitsForData, 40).onGPU()},
	{GPUWaitsForCopies, HostDeviceCopies, of100(GPUBusy, 60, GPUWaitsForCopies, 40).onGPU()},
	{GPUWaitsForData, HostDeviceCopies, of100(GPUBusy, 30, GPUWaitsForData, 50, GPUWaitsForCopies, 20).onGPU()},
	{GPUWaitsForData, SyncInLoop, of100(GPUBusy, 30, GPUWaitsForData, 50, GPUWaitsForSync, 20).onGPU()},
	{GPUIdle, SyncInLoop, of100(GPUBusy, 58, GPUWaitsForCheckpoint, 4, GPUWaitsForHost, 14, GPUWaitsForIO, 9, GPUWaitsForSync, 15).onGPU()}, // no kind is worth a finding of its own
	{GPUWaitsForData, GPUMemoryNearFull, of100(GPUBusy, 60, GPUWaitsForData, 40).onGPU().with(gauge("gpu0.mem", 80e9, 79e9))},
	{GPUBusy, GPUMemoryNearFull, of100(GPUBusy, 100).onGPU().with(gauge("gpu0.mem", 80e9, 79e9))},
	{GPUIdle, GPUMemoryNearFull, of100(GPUBusy, 60, GPUWaitsForData, 40).onGPU().with(gauge("gpu0.mem", 80e9, 79e9))},
	{GPUThrottled, GPUBusy, of100(GPUBusy, 100).onGPU().with(gauge("gpu0.throttle", 1, 1, 1, 1), throttledBy(timeline.ThermalHardware))},
	{GPUBusy, GPUThrottled, of100(GPUBusy, 100).onGPU().with(gauge("gpu0.throttle", 1, 1, 0, 0, 0, 0), throttledBy(timeline.ThermalHardware))},
	{GPUWaitsForData, GPUThrottled, of100(GPUBusy, 60, GPUWaitsForData, 40).onGPU().with(gauge("gpu0.throttle", 1, 1, 1, 1), throttledBy(timeline.ThermalHardware))},
	{GPUBusy, GPUPowerCapped, of100(GPUBusy, 100).onGPU().with(gauge("gpu0.throttle", 1, 1, 1, 1), throttledBy(timeline.PowerCap))},
	{GPUIdleUndecided, GPUIdle, findingCases[GPUIdleUndecided].fires},
	{GPUUnused, OneLine, of100(GPUUnused, 100).onGPU()},
	{GPUError, GPUBusy, of100(GPUBusy, 100).onGPU().with(reports(timeline.Xid{At: 9 * sec, Code: 79}))},
	{GPUBusy, GPULost, of100(GPUBusy, 100).onGPU().with(lostAt(9 * sec))},
}

func TestWhatComesBeforeWhat(t *testing.T) {
	for i, p := range pairs {
		t.Run(fmt.Sprintf("%d %s %s", i, p.first, p.then), func(t *testing.T) {
			found := ids(Run(p.in.record()).Findings)
			first, then := slices.Index(found, p.first), slices.Index(found, p.then)
			if first < 0 || then < 0 || first > then {
				t.Errorf("%s does not come before %s: %v", p.first, p.then, found)
			}
		})
	}
}

// Every task waits while the loop does, whatever it is for: a sleep is the cause of some of it.
func TestEveryTaskWaitsWhileTheLoopDoes(t *testing.T) {
	asleep := one(8, "/usr/lib/python3.12/asyncio/tasks.py", "sleep", timeline.StateWaiting, 0)
	selects := act{sec, 8, selecting.file, selecting.fn, timeline.StateWaiting, 0}
	for _, a := range []struct {
		acts []act
		want timeline.Nanos
	}{{[]act{selects, other}, sec}, {[]act{selects, asleep, other}, 2 * sec}} {
		d := Run(suspended(scene{acts: a.acts}.record()))
		if got := findingOfID(t, &d, WaitsForEvents); got.Time != a.want || got.Value != float64(a.want)/float64(a.want+sec) {
			t.Errorf("every task waited for %v, want %v", got.Time, a.want)
		}
	}
}

// suspended makes coroutines of asyncio's functions.
func suspended(rec *timeline.Recording) *timeline.Recording {
	for i := range rec.Frames {
		rec.Frames[i].Suspended = strings.HasSuffix(rec.Frames[i].File, "asyncio/tasks.py")
	}
	return rec
}

// Where it is known what tasks waited for, the thread's line is that at which one of them waits for the others.
func TestAnIdleLoopIsSaidOnce(t *testing.T) {
	idle := of100(WaitsForEvents, 60, Computing, 40)
	for want, in := range map[FindingID]scene{
		WaitsForEvents: idle,
		TasksWait:      idle.with(tasksAt(timeline.AwaitsOther, 4, 18, 1, 0, 10*sec)),
		AwaitsInTurn:   idle.with(tasksAt(timeline.AwaitsOther, 4, 1, 20, 0, 10*sec)),
	} {
		found := ids(Run(in.record()).Findings)
		if !slices.Contains(found, want) || want != WaitsForEvents && slices.Contains(found, WaitsForEvents) {
			t.Errorf("found %v, want %s alone of an idle loop", found, want)
		}
	}
}

// The table's columns are complete, and what qualifies all the rest is in the last group.
func TestRulesHaveAPlaceInTheOrder(t *testing.T) {
	for _, r := range rules {
		if r.weight <= 0 {
			t.Errorf("%s has no weight", r.id)
		}
		if (r.severity == Limit) != (r.group == limits) {
			t.Errorf("%s is of severity %s and in group %d", r.id, r.severity, r.group)
		}
	}
}

// The headline of a launcher whose ranks load data for most of the time says so, whether or not
// the launcher has code of its own; a launcher that works for longer than it waits is explained itself.
func TestALaunchersOwnCodeHidesNoLoading(t *testing.T) {
	for tenths := range 6 {
		rec := launcher(tenths).with(ranks(80, 3, 16, 3, 3)).record()
		d := Run(rec)
		main, ok := d.Main()
		if f := d.Findings[main]; !ok || f.ID != LoadsData || !f.OfRank || f.Rank != 0 || f.Place.Line != 5 || f.Time != 8*sec || interpret.SubjectOf(rec).Process != 1 {
			t.Errorf("a launcher that computes for %d s: the headline is %+v", tenths, f)
		}
	}
	rec := launcher(6).with(ranks(80, 3, 16, 3, 3)).record()
	d := Run(rec)
	if main, ok := d.Main(); !ok || d.Findings[main].ID != OneLine || d.Findings[main].OfRank || interpret.SubjectOf(rec).Process != 0 {
		t.Errorf("a launcher that computes for 6 of 10 s: the headline is %+v", d.Findings)
	}
}
