package wording

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/batches"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/gpuidle"
	"github.com/omni-perf/omni-perf/sidecar/understand/straggler"
)

var update = flag.Bool("update", false, "rewrite the golden page")

const second = timeline.Nanos(time.Second)

// scope is ten seconds of a cell; files that begin with "cell" are it.
var scope = Scope{
	Duration: 10 * second,
	Place: func(p activity.Place) string {
		switch {
		case p.Line == 0:
			return ""
		case p.File == "cell":
			return fmt.Sprintf("line %d", p.Line)
		}
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	},
}

var line3 = activity.Place{File: "cell", Line: 3}

// at is a finding of 4 seconds, so many of them at line 3.
func at(there timeline.Nanos) diagnose.Finding {
	return diagnose.Finding{Time: 4 * second, Low: 4 * second, High: 4 * second, Place: line3, PlaceTime: there, Cores: math.NaN()}
}

// with changes a finding.
func with(f diagnose.Finding, change func(*diagnose.Finding)) diagnose.Finding {
	change(&f)
	return f
}

var (
	whole = at(4 * second)
	most2 = at(3 * second)
	part  = at(1 * second)
	none  = diagnose.Finding{Time: 4 * second, Low: 4 * second, High: 4 * second, Cores: math.NaN()}
)

func cause(c activity.Cause) func(*diagnose.Finding) {
	return func(f *diagnose.Finding) { f.Cause = c }
}

// covers says how much of the loading workers could save.
func covers(share float64) func(*diagnose.Finding) {
	return func(f *diagnose.Finding) { f.Against = share }
}

// ofTraining makes a finding one of a training of 6 s.
func ofTraining(f *diagnose.Finding) { f.Whole = 6 * second }

// ofKind makes several causes of a GPU's idle time.
func ofKind(k activity.Kind, parts ...gpuidle.Part) func(*diagnose.Finding) {
	return func(f *diagnose.Finding) { f.Kind, f.Parts = k, parts }
}

func exactly(c activity.Cause, n timeline.Nanos) gpuidle.Part {
	return gpuidle.Part{Cause: c, Bounded: gpuidle.Bounded{Nanos: n, Low: n, High: n}}
}

func call(function, library string) func(*diagnose.Finding) {
	return func(f *diagnose.Finding) { f.Call = activity.Call{Package: library, Function: function} }
}

func actors(cores float64, list ...activity.Actor) func(*diagnose.Finding) {
	return func(f *diagnose.Finding) { f.Actors, f.Cores, f.CoreLimit = list, cores, 4 }
}

// hasLock makes the thread that was waited for one that had a lock.
func hasLock(list ...activity.Actor) func(*diagnose.Finding) {
	return func(f *diagnose.Finding) {
		f.Actors, f.HasLock, f.Cores, f.CoreLimit = list, true, 0.5, 4
	}
}

func waiting(c activity.Cause) diagnose.Finding {
	return with(whole, func(f *diagnose.Finding) { f.Cause = c })
}

func noneReady(f *diagnose.Finding) {
	f.Queue = batches.Queue{Readings: 100, Mean: 0.1, Empty: 0.93, Most: 4}
}

func manyReady(f *diagnose.Finding) {
	f.Queue = batches.Queue{Readings: 100, Mean: 3.1, Median: 3, Most: 4}
}

// examples are findings of every id, in the forms their sentences have.
var examples = map[diagnose.FindingID][]diagnose.Finding{
	diagnose.GPUWaitsForData: {
		waiting(activity.LoadHere), waiting(activity.LoadWorker), with(waiting(activity.LoadWorker), noneReady), with(most2, cause(activity.Load)),
		with(none, func(f *diagnose.Finding) { f.Cause, f.Low, f.High = activity.Load, 3*second, 5*second }),
		with(most2, func(f *diagnose.Finding) { f.Cause, f.Devices = activity.Load, []int{0, 1, 2} }),
	},
	diagnose.GPUWaitsForLaunches: {waiting(activity.Launch)},
	diagnose.GPUWaitsForHost: {
		waiting(activity.Python), waiting(activity.Native), waiting(activity.Import), waiting(activity.Draw), waiting(activity.Around), waiting(activity.Tracing),
		with(most2, ofKind(activity.Host, exactly(activity.Native, 21*second/10), exactly(activity.Python, 19*second/10))),
	},
	diagnose.GPUWaitsForIO:          {waiting(activity.InOut), waiting(activity.Network), waiting(activity.Database)},
	diagnose.GPUWaitsForCheckpoint:  {waiting(activity.Checkpoint)},
	diagnose.GPUWaitsForCompilation: {waiting(activity.Compile)},
	diagnose.GPUWaitsForRanks:       {waiting(activity.Collective)},
	diagnose.GPUWaitsForWaits: {
		waiting(activity.Sleep), waiting(activity.UserInput), waiting(activity.Child), waiting(activity.Thread), waiting(activity.Lock),
		waiting(activity.EventLoop), waiting(activity.Waiting),
		with(none, ofKind(activity.Waits,
			gpuidle.Part{Cause: activity.Sleep, Bounded: gpuidle.Bounded{Nanos: 2 * second, Low: second / 10, High: 3 * second}}, exactly(activity.Lock, second),
			exactly(activity.Child, second/2), exactly(activity.Thread, 4*second/10), exactly(activity.UserInput, second/10))),
	},
	diagnose.GPUWaitsForContention: {waiting(activity.GIL), waiting(activity.NoCPU)},
	diagnose.GPUWaitsForCopies:     {waiting(activity.Copy)},
	diagnose.GPUWaitsForSync:       {waiting(activity.Sync)},
	diagnose.GPUWaitsAtStart: {
		waiting(activity.SetUp), with(none, cause(activity.StartUp)), with(none, cause(activity.Import)),
		with(most2, ofKind(activity.SettingUp, exactly(activity.Import, 3*second), exactly(activity.SetUp, second))),
	},
	diagnose.GPUWaitsAtExit: {with(none, cause(activity.Exit))},
	diagnose.GPUIdleUndecided: {
		with(none, func(f *diagnose.Finding) {
			f.Alternatives = []gpuidle.Alternative{
				{Kind: activity.Launching, Cause: activity.Launch, Place: line3, Bounded: gpuidle.Bounded{Nanos: second, Low: second / 10, High: 2 * second}},
				{Kind: activity.Host, Bounded: gpuidle.Bounded{Nanos: second, Low: 4 * second / 10, High: 16 * second / 10}},
			}
		}),
		with(none, func(f *diagnose.Finding) {
			for _, k := range []activity.Kind{activity.Host, activity.Starvation, activity.SettingUp, activity.Waits} {
				f.Alternatives = append(f.Alternatives, gpuidle.Alternative{Kind: k, Bounded: gpuidle.Bounded{Nanos: second, Low: second / 10, High: 2 * second}})
			}
		}),
		with(none, func(f *diagnose.Finding) {
			f.Alternatives = []gpuidle.Alternative{
				{Kind: activity.SettingUp, Cause: activity.SetUp, Bounded: gpuidle.Bounded{Nanos: 2 * second, Low: 199 * second / 100, High: 201 * second / 100}},
				{Kind: activity.Ending, Cause: activity.Exit, Bounded: gpuidle.Bounded{Nanos: 2 * second, Low: 199 * second / 100, High: 201 * second / 100}},
			}
		}),
	},
	diagnose.GPUIdle: {
		with(none, func(f *diagnose.Finding) {
			f.Kind, f.Cause, f.Against, f.Place, f.PlaceTime = activity.Host, activity.Python, 0.3, line3, 12*second/10
		}),
		with(none, func(f *diagnose.Finding) {
			f.Kind, f.Against, f.Place, f.PlaceTime = activity.Host, 0.3, line3, 8*second/10
		}),
		none,
	},
	diagnose.GPUBusy: {
		with(none, func(f *diagnose.Finding) { f.Devices, f.Value = []int{0}, 0.92 }),
		with(none, func(f *diagnose.Finding) { f.Devices, f.Value = []int{0, 1, 2, 3}, 0.92 }),
	},
	diagnose.GPULost: {
		with(none, func(f *diagnose.Finding) { f.Devices, f.At = []int{1}, 32*second/10 }),
		with(none, func(f *diagnose.Finding) { f.Devices, f.At, f.AtLast = []int{0, 1}, 32*second/10, 33*second/10 }),
		with(none, func(f *diagnose.Finding) { f.Devices, f.At, f.AtLast = []int{0, 1}, 32*second/10, 8*second }),
	},
	diagnose.GPUError: {
		with(none, func(f *diagnose.Finding) {
			f.Devices, f.Xid, f.At, f.Count, f.Advice = []int{0}, 31, 32*second/10, 1, diagnose.FindFaultyKernel
		}),
		with(none, func(f *diagnose.Finding) {
			f.Devices, f.Xid, f.At, f.Count, f.Advice = []int{0, 3}, 999, 32*second/10, 4, diagnose.CheckDevice
		}),
	},
	diagnose.GPUUnused: {with(none, func(f *diagnose.Finding) { f.Name = "NVIDIA H100" }), none},
	diagnose.GPUMemoryNearFull: {
		with(none, func(f *diagnose.Finding) { f.Devices, f.Value = []int{0}, 0.97 }),
	},
	diagnose.GPUMemoryCollectives: {with(most2, func(f *diagnose.Finding) { f.Devices, f.Value = []int{0}, 0.97 })},
	diagnose.GPUThrottled: {with(none, func(f *diagnose.Finding) {
		f.Devices, f.Value, f.Throttle = []int{0, 2}, 0.3, []timeline.ThrottleReason{timeline.PowerCap, timeline.ThermalHardware}
	})},
	diagnose.GPUPowerCapped: {with(none, func(f *diagnose.Finding) {
		f.Devices, f.Value, f.Throttle = []int{0}, 0.3, []timeline.ThrottleReason{timeline.PowerCap}
	})},
	diagnose.SomeGPUsIdle: {
		with(none, func(f *diagnose.Finding) { f.Devices, f.Peer, f.Value, f.Against = []int{1}, 0, 0.04, 0.92 }),
		with(none, func(f *diagnose.Finding) { f.Devices, f.Peer, f.Value, f.Against = []int{1, 2, 3}, 0, 0.04, 0.92 }),
	},
	diagnose.SyncInLoop:       {with(whole, func(f *diagnose.Finding) { f.Count, f.Against = 1234, 0.25 })},
	diagnose.HostDeviceCopies: {most2},

	diagnose.OneLine: {
		with(whole, cause(activity.Python)), with(whole, cause(activity.Native)), with(whole, call("DataFrame.apply", "pandas")),
		with(whole, func(f *diagnose.Finding) { f.Cause, f.Cores, f.CoreLimit = activity.Native, 3.9, 4 }),
		with(whole, func(f *diagnose.Finding) { f.Place = activity.Place{File: "train.py", Line: 40} }),
		with(whole, func(f *diagnose.Finding) { f.CutTime = 39 * second / 10 }), with(whole, func(f *diagnose.Finding) { f.CutTime = 25 * second / 10 }),
		with(whole, func(f *diagnose.Finding) { f.CutTime = second }),
	},
	diagnose.Computing: {part, with(whole, call("", "sklearn")), with(whole, func(f *diagnose.Finding) { f.Time = 10 * second; f.PlaceTime = 4 * second }),
		with(most2, func(f *diagnose.Finding) { f.CutTime = 3 * second }), with(none, func(f *diagnose.Finding) { f.CutTime = 4 * second }),
		with(part, func(f *diagnose.Finding) { f.Besides = []activity.Cause{activity.Import, activity.LoadHere} })},
	diagnose.NoLineStandsOut: {
		none, with(most2, func(f *diagnose.Finding) { f.Name = "Particle.move" }),
		with(most2, func(f *diagnose.Finding) { f.Name, f.Next = "Particle.move", activity.Place{File: "cell", Line: 7} }),
		with(none, func(f *diagnose.Finding) {
			f.Functions = []activity.FunctionTime{{Name: "winner", Nanos: 2 * second}, {Name: "Board.moves", Nanos: second}}
		}),
		with(none, func(f *diagnose.Finding) {
			f.Lines = []activity.FunctionTime{{Place: activity.Place{File: "cell", Line: 3}, Nanos: 2 * second}, {Place: activity.Place{File: "cell", Line: 5}, Nanos: second}}
		}),
	},
	diagnose.Imports: {
		with(whole, func(f *diagnose.Finding) {
			f.Modules = []activity.ModuleTime{{Module: "sklearn", Nanos: 4 * second}, {Module: "scipy.stats", Nanos: 2 * second, Inside: true}, {Module: "pandas", Nanos: second / 2, Inside: true}}
		}),
		with(whole, func(f *diagnose.Finding) {
			f.Modules = []activity.ModuleTime{{Module: "sklearn", Nanos: 2 * second}, {Module: "pandas", Nanos: second}}
		}),
		with(whole, func(f *diagnose.Finding) { f.Modules = []activity.ModuleTime{{Module: "json", Nanos: 4 * second}} }),
		whole,
	},
	diagnose.Drawing: {
		with(most2, call("savefig", "matplotlib")), with(none, call("", "matplotlib")),
		with(none, func(f *diagnose.Finding) { f.PlaceTime = 4 * second }), with(none, func(f *diagnose.Finding) { f.PlaceTime = 3 * second }),
	},
	diagnose.BusyMachine: {none, with(none, func(f *diagnose.Finding) { f.Cores, f.CoreLimit = 1.9, 4 })},
	diagnose.StacksUnknown: {
		with(none, func(f *diagnose.Finding) { f.Gap = timeline.GapStopped }), with(none, func(f *diagnose.Finding) { f.Gap = timeline.GapExec }),
		with(none, func(f *diagnose.Finding) { f.Gap = timeline.GapTraced }), with(none, func(f *diagnose.Finding) { f.Gap = timeline.GapPermission }),
		with(none, func(f *diagnose.Finding) { f.Gap = timeline.GapUnreadable }), with(none, func(f *diagnose.Finding) { f.Gap = timeline.GapStarting }),
		with(none, func(f *diagnose.Finding) { f.Gap = timeline.GapNoPython }),
	},
	diagnose.Traceback:       {none},
	diagnose.DrawnAfterError: {none},
	diagnose.BegunLate:       {none},
	diagnose.Displaying:      {with(none, call("DataFrame._repr_html_", "pandas")), none},
	diagnose.AroundCell:      {none},
	diagnose.Tracing:         {none},
	diagnose.Compiling:       {most2},
	diagnose.Saving:          {most2, with(most2, call("save", "torch")), with(most2, call("load", "joblib"))},
	diagnose.LoadsData: {with(most2, cause(activity.LoadHere)), with(most2, cause(activity.LoadWorker)), with(with(most2, cause(activity.LoadWorker)), noneReady),
		with(with(most2, cause(activity.LoadWorker)), manyReady), with(most2, cause(activity.LoadSampler)), with(with(most2, cause(activity.LoadHere)), covers(0.6))},
	diagnose.StepsSlowDown: {
		with(none, func(f *diagnose.Finding) { f.Against = 1.4 }),
		with(none, func(f *diagnose.Finding) { f.Against, f.Name, f.Place, f.Bytes = 1.4, "forward", line3, 3<<30 }),
	},
	diagnose.TrainingLoads: {
		with(with(most2, cause(activity.LoadHere)), ofTraining), with(with(with(most2, cause(activity.LoadHere)), ofTraining), covers(0.95)),
		with(with(most2, cause(activity.LoadWorker)), ofTraining),
	},
	diagnose.WaitsForNetwork:  {with(whole, call("get", "requests")), part},
	diagnose.WaitsForDatabase: {with(whole, call("Session.execute", "sqlalchemy")), whole},
	diagnose.WaitsForIO:       {whole, most2},
	diagnose.WaitsForUser:     {whole},
	diagnose.WaitsForChildren: {
		with(whole, actors(0.9, activity.Actor{Process: true, Count: 1, Name: "pip"})),
		with(whole, actors(3.8, activity.Actor{Process: true, Count: 4})),
		with(whole, actors(0.9, activity.Actor{Process: true, Count: 7, Name: "true", AtLeast: true})),
		with(whole, actors(0.9, activity.Actor{Process: true, Count: 7, AtLeast: true}, activity.Actor{Process: true, Count: 1, Name: "make"})),
		with(whole, actors(0.9, activity.Actor{Process: true, Count: 2, Name: "ffmpeg"}, activity.Actor{Process: true, Count: 1, Name: "make"})),
		with(whole, actors(0)),
	},
	diagnose.WaitsForThreads: {
		with(whole, actors(1.9, activity.Actor{Count: 2, Cause: activity.Native, Place: line3})),
		with(whole, actors(1.0, activity.Actor{Count: 1, Name: "loader", Cause: activity.Python, Place: line3})),
		with(whole, actors(0.1, activity.Actor{Count: 8, Name: "ThreadPoolExecutor-0", Cause: activity.Network, Place: line3})),
		with(whole, actors(0.1, activity.Actor{Count: 8, Name: "ThreadPoolExecutor", Cause: activity.Sleep, Place: line3, Queued: 0.87})),
		with(whole, actors(0.1, activity.Actor{Count: 4, Name: "worker", Cause: activity.Sleep, Place: line3, Queued: 0.72, QueuedAt: activity.Place{File: line3.File, Line: 2}})),
		with(whole, actors(0.1, activity.Actor{Count: 4, Name: "worker", Cause: activity.Sleep, Place: line3, Queued: 0.4, QueuedAt: activity.Place{File: line3.File, Line: 2}})),
		with(whole, actors(0.1, activity.Actor{Count: 1, Cause: activity.Sleep, Place: line3})),
		with(whole, actors(1.5, activity.Actor{Count: 1, Cause: activity.Python, Place: line3}, activity.Actor{Count: 1, Cause: activity.Network})),
		with(whole, actors(0)),
		with(whole, hasLock(activity.Actor{Count: 1, Name: "loader", Cause: activity.Sleep, Place: line3})),
		with(whole, hasLock(activity.Actor{Count: 1, Cause: activity.Python})),
		with(whole, hasLock(activity.Actor{Count: 1, Name: "loader", Cause: activity.Sleep, Place: line3, Awaited: 3 * second}, activity.Actor{Count: 1, Awaited: second})),
		with(whole, actors(0, activity.Actor{Count: 1, Name: "loader", Cause: activity.Sleep, Place: line3, Awaited: 3 * second}, activity.Actor{Count: 2, Awaited: second})),
		with(whole, actors(0, activity.Actor{Count: 3, Name: "sleep", Cause: activity.Waiting})),
		with(whole, actors(0, activity.Actor{Count: 2, Cause: activity.Sleep, Place: line3, Awaited: 3 * second}, activity.Actor{Count: 1, Awaited: second})),
	},
	diagnose.RankFailed: {
		with(none, func(f *diagnose.Finding) {
			f.Process, f.Count, f.At, f.Place = failedRank(&timeline.Raised{Type: "ValueError", Message: "bad batch"}), 1, 7*second+second/2, line3
		}),
		with(none, func(f *diagnose.Finding) {
			f.Process, f.Count, f.At = failedRank(&timeline.Raised{Type: "KeyError"}), 1, 7*second+second/2
		}),
		with(none, func(f *diagnose.Finding) {
			f.Process, f.Count, f.At, f.Place = failedRank(nil), 1, 7*second+second/2, line3
		}),
	},
	diagnose.WorkerKilled: {
		with(none, func(f *diagnose.Finding) {
			f.Process, f.Count, f.At, f.Bytes = killedBy(9), 1, 7*second+second/2, 3<<30
		}),
		with(none, func(f *diagnose.Finding) { f.Process, f.Count, f.At = killedBy(11), 3, 7*second+second/2 }),
	},
	diagnose.WaitsForLock: {
		whole, with(whole, call("Event.wait", "threading")), with(whole, call("Queue.get", "queue")), with(whole, call("flock", "fcntl")), with(part, call("Event.wait", "threading")),
		with(whole, hasLock(activity.Actor{Count: 1, Name: "loader", Cause: activity.Lock, Place: line3})),
	},
	diagnose.WaitsForRanks:  {whole, part},
	diagnose.WaitsForEvents: {whole, none},
	diagnose.TasksWait: {
		with(whole, func(f *diagnose.Finding) {
			f.Name, f.Count, f.Against, f.Call = "fetch", 18, 17.2, activity.Call{Package: "httpx", Function: "AsyncClient.get"}
		}),
		with(whole, func(f *diagnose.Finding) { f.Name, f.Count, f.Against = "Crawler.fetch", 18, 4.25 }),
		with(whole, func(f *diagnose.Finding) { f.Name, f.Count, f.Against = "<module>", 2, 2 }),
		with(with(whole, call("Lock.acquire", "asyncio")), func(f *diagnose.Finding) { f.Name, f.Count, f.Against, f.Next = "get", 9, 5, line3 }),
		with(whole, func(f *diagnose.Finding) {
			f.Name, f.Count, f.Against, f.Process, f.Actors = "fetch", 18, 17.2, killedBy(0), []activity.Actor{{Process: true, Count: 3}}
		}),
	},
	diagnose.AwaitsInTurn: {
		with(with(whole, call("sleep", "asyncio")), func(f *diagnose.Finding) { f.Count, f.Against = 20, 0.2 }),
		with(with(whole, call("AsyncClient.get", "httpx")), func(f *diagnose.Finding) { f.Count, f.AtLeast = 20, true }),
		with(with(whole, call("sleep", "asyncio")), func(f *diagnose.Finding) { f.Count, f.Against, f.Together, f.NextTime = 25, 0.1, 20, second/10 }),
		with(with(whole, call("AsyncClient.get", "httpx")), func(f *diagnose.Finding) { f.Count, f.AtLeast, f.Together, f.NextTime = 8, true, 20, second/4 }),
	},
	diagnose.LoopBlocked: {
		with(whole, func(f *diagnose.Finding) { f.Name, f.Count = "checksum", 19 }),
		with(with(most2, call("Session.get", "requests")), func(f *diagnose.Finding) { f.Count = 1 }),
		with(whole, func(f *diagnose.Finding) { f.Name, f.Count = "<module>", 2 }),
		with(whole, func(f *diagnose.Finding) { f.Name, f.Count, f.Process = "checksum", 19, killedBy(0) }),
	},
	diagnose.WaitsUnknown: {whole, part},
	diagnose.Sleeps: {
		whole, with(whole, actors(1.9, activity.Actor{Count: 2, Cause: activity.Native, Place: line3})),
		with(whole, actors(0.9, activity.Actor{Process: true, Count: 1, Name: "make"})),
	},
	diagnose.Straggler: {
		with(whole, func(f *diagnose.Finding) {
			f.Whole, f.Rank, f.Count, f.Collective, f.CollectiveTime = 8*second, 1, 4, straggler.Backward, f.Time
		}),
		with(whole, func(f *diagnose.Finding) {
			f.Whole, f.Rank, f.Count, f.Collective, f.CollectiveTime, f.LateSteps, f.Steps = 8*second, 1, 4, "all_reduce", f.Time, 38, 40
		}),
		with(most2, func(f *diagnose.Finding) {
			f.Whole, f.Rank, f.Count, f.Collective, f.CollectiveTime, f.LateSteps, f.Steps, f.AfterSteps = 8*second, 0, 2, "barrier", f.Time*4/5, 2, 299, f.Time/4
		}),
		with(most2, func(f *diagnose.Finding) { f.Whole, f.Rank, f.Count = 8*second, 0, 2 }),
	},
	diagnose.GILContention: {
		with(whole, actors(1, activity.Actor{Count: 3, Name: "worker", Cause: activity.Python, Place: activity.Place{File: "cell", Line: 7}})), whole,
	},
	diagnose.ThreadsTakeTurns: {with(whole, func(f *diagnose.Finding) {
		f.Count, f.Value, f.Actors = 4, 0.74, []activity.Actor{{Count: 4, Cause: activity.Python, Place: line3}}
	})},
	diagnose.NoFreeCPU:       {with(whole, func(f *diagnose.Finding) { f.Cores, f.CoreLimit = 0.6, 2 }), whole},
	diagnose.CollectsGarbage: {whole, part, with(whole, func(f *diagnose.Finding) { f.PlaceTime = f.Time * 95 / 100 })},
	diagnose.Printing: {
		with(none, func(f *diagnose.Finding) { f.Count, f.Bytes, f.Value = 4000, 160_000, 400 }),
		with(none, func(f *diagnose.Finding) { f.Count, f.Bytes, f.Value, f.AtLeast = 4000, 160_000, 400, true }),
	},
	diagnose.MemoryPressure: {
		with(none, func(f *diagnose.Finding) { f.Name, f.Value = "process", 0.98 }),
		with(none, func(f *diagnose.Finding) { f.Name, f.Value = "machine", 0.98 }),
	},
	diagnose.Swapping:    {with(none, func(f *diagnose.Finding) { f.Bytes = 1 << 30 })},
	diagnose.SlowStartUp: {none},
	diagnose.SlowExit:    {none},
}

// killedBy is a worker that a signal ended.
func killedBy(signal int) *timeline.Process {
	number := 3
	return &timeline.Process{Role: timeline.RoleLoaderWorker, Number: &number, Signal: signal}
}

func failedRank(raised *timeline.Raised) *timeline.Process {
	number, code := 1, 1
	return &timeline.Process{Role: timeline.RoleRank, Rank: &number, Number: &number, Exit: &code, Raised: raised}
}

// certainties are one of each heading of the table of idle time.
var certainties = []gpuidle.Certainty{
	{Method: gpuidle.ByExact, Exact: 10e9, Recorded: 10e9, KernelWait: 30 * time.Microsecond},
	{Method: gpuidle.ByExact, Exact: 9_950_000_000, Recorded: 10e9, KernelWait: 30 * time.Microsecond, Window: 103 * time.Millisecond},
	{Method: gpuidle.ByAverage, Exact: 2e9, Recorded: 10e9, Window: 167 * time.Millisecond, R2: 0.71},
	{Method: gpuidle.ByWindows, Window: 103 * time.Millisecond},
	{Method: gpuidle.ByRepetition, Window: 167 * time.Millisecond, Repeats: 1212, R2: 0.97},
	{Method: gpuidle.ByAverage, Window: 167 * time.Millisecond, R2: 0.71},
	{Method: gpuidle.ByAverage, Window: time.Second, R2: math.NaN()}, {Method: gpuidle.ByAbsence},
}

// Everything a user can read from a diagnosis, on one page.
func TestPage(t *testing.T) {
	var b strings.Builder
	heading := func(text string) { fmt.Fprintf(&b, "\n## %s\n\n", text) }
	b.WriteString("# What a diagnosis can say\n\nWritten by `go test ./sidecar/understand/wording -update`; the recording is of 10 s.\n")
	heading("Headlines without a finding")
	for _, h := range []diagnose.Headline{
		{Finding: -1, NoStacks: true}, {Finding: -1}, {Finding: -1, TooFew: &diagnose.TooFew{}},
		{Finding: -1, TooFew: &diagnose.TooFew{Samples: 1}}, {Finding: -1, TooFew: &diagnose.TooFew{Samples: 7, Interval: timeline.MinInterval}},
	} {
		fmt.Fprintf(&b, "- %s\n", scope.Headline(&diagnose.Diagnosis{Headline: h}))
	}
	for _, part := range []timeline.Nanos{2 * second, 7 * second} { // of which nothing is known
		fmt.Fprintf(&b, "- %s\n", scope.Headline(&diagnose.Diagnosis{
			Findings: []diagnose.Finding{{ID: diagnose.StacksUnknown, Time: part, Value: part.Seconds() / 10, Gap: timeline.GapExec}},
			Headline: diagnose.Headline{Finding: -1, Limits: []int{0}},
		}))
	}
	fmt.Fprintf(&b, "- %s\n", scope.Headline(&diagnose.Diagnosis{ // the cell was over at once
		Findings: []diagnose.Finding{{ID: diagnose.Traceback, Time: 3 * second, Value: 0.99}},
		Headline: diagnose.Headline{Finding: -1, TooFew: &diagnose.TooFew{Samples: 1}, Limits: []int{0}},
	}))
	fmt.Fprintf(&b, "- %s\n", scope.Headline(&diagnose.Diagnosis{ // the cell was nearly over before it was recorded
		Findings: []diagnose.Finding{{ID: diagnose.BegunLate, Time: 3 * second, Value: 0.99}},
		Headline: diagnose.Headline{Finding: -1, TooFew: &diagnose.TooFew{Interval: time.Millisecond}, Limits: []int{0}},
	}))
	heading("Findings")
	for _, id := range diagnose.FindingIDs() {
		fmt.Fprintf(&b, "- `%s`\n", id)
		for _, f := range examples[id] {
			f.ID = id
			fmt.Fprintf(&b, "  - %s\n", scope.Finding(f))
		}
	}
	heading("What to change")
	for _, a := range diagnose.AllAdvice() {
		fmt.Fprintf(&b, "- `%s`: %s\n", a, Advice(a))
	}
	heading("Causes, in the table")
	for _, c := range activity.Causes() {
		fmt.Fprintf(&b, "- `%s`: %s\n", c, Cause(c))
	}
	heading("How idle time was divided")
	for _, c := range certainties {
		fmt.Fprintf(&b, "- `%s`: %s\n", c.Method, Certainty(c))
	}
	heading("Workers of a loader that were started anew")
	for _, n := range [][2]int{{6, 2}, {5, 2}, {3, 1}, {2, 0}} {
		fmt.Fprintf(&b, "- %s\n", Pool(timeline.Pool{Role: timeline.RoleLoaderWorker, Members: make([]int, n[0]), AtOnce: n[1]}))
	}
	heading("What a notebook does around a cell's code")
	for p := timeline.PhaseNone + 1; Phase(p) != ""; p++ {
		fmt.Fprintf(&b, "- `%s`: %s\n", p, Phase(p))
	}
	heading("What slowed a GPU down")
	for _, r := range timeline.ThrottleReasons() {
		fmt.Fprintf(&b, "- `%s`: %s\n", r, ThrottleReason(r))
	}
	compare(t, "testdata/page.md", b.String())
}

// The documentation explains the headings as they are.
func TestHeadingsInTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../../docs/gpu-idle.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range certainties {
		if heading := Certainty(c); !strings.Contains(string(page), "| "+heading+" |") {
			t.Errorf("docs/gpu-idle.md has no row for %q", heading)
		}
	}
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	wanted, lines := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i, line := range lines {
		if i >= len(wanted) || line != wanted[i] {
			t.Errorf("%s:%d: got\n%s", path, i+1, line)
		}
	}
	t.Errorf("%s differs: read it again as a whole and rewrite it with -update", path)
}

// Every id has words, and a sentence is a sentence.
func TestNothingIsWithoutWords(t *testing.T) {
	for _, id := range diagnose.FindingIDs() {
		if len(examples[id]) == 0 {
			t.Errorf("%s has no example", id)
		}
		for _, f := range examples[id] {
			f.ID = id
			text := scope.Finding(f)
			if !strings.HasSuffix(text, ".") || strings.Contains(text, "  ") || strings.Contains(text, "%!") || len(text) < 10 || len(text) > 220 {
				t.Errorf("%s: %q", id, text)
			}
		}
	}
	for _, c := range activity.Causes() {
		if Cause(c) == "" || causes[c].waited == "" {
			t.Errorf("cause %s has no words", c)
		}
		if Kind(c.Kind()) == "" || kinds[c.Kind()].waited == "" {
			t.Errorf("kind %s has no words", c.Kind())
		}
	}
	for _, a := range diagnose.AllAdvice() {
		if Advice(a) == "" {
			t.Errorf("advice %s has no words", a)
		}
	}
	if len(advice) != len(diagnose.AllAdvice())+1 || len(causes) != len(activity.Causes()) {
		t.Error("words for what there is not")
	}
	for _, r := range timeline.ThrottleReasons() {
		if ThrottleReason(r) == "" {
			t.Errorf("throttle reason %s has no words", r)
		}
	}
}

// The sentences that tried users found silly do not come back.
func TestForbidden(t *testing.T) {
	page, err := os.ReadFile("testdata/page.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, phrase := range []string{
		"ran dry", "has nothing to do", "the kernel may be killed", "look into this line first", "is limited by it", "resolved",
		"for for", "with 99 %",
	} {
		if strings.Contains(string(page), phrase) {
			t.Errorf("the page says %q", phrase)
		}
	}
	if got := scope.Finding(diagnose.Finding{ID: diagnose.NoLineStandsOut}); len(strings.Fields(got)) != 5 {
		t.Errorf("%q has more than five words", got)
	}
}

// A name from the user's program cannot break a sentence.
func TestForeignNamesAreCleaned(t *testing.T) {
	bad := "a\x1b[31m\n\u202eb" + strings.Repeat("x", 1000)
	for id, list := range examples {
		for _, f := range list {
			f.ID, f.Name = id, bad
			f.Call = activity.Call{Package: bad, Function: bad}
			f.Modules = []activity.ModuleTime{{Module: bad}}
			f.Actors = []activity.Actor{{Name: bad, Count: 2}, {Name: bad, Count: 1, Process: true}}
			if text := scope.Finding(f); strings.ContainsAny(text, "\x1b\n\u202e") || len(text) > 600 {
				t.Errorf("%s: %q", id, text)
			}
		}
	}
}
