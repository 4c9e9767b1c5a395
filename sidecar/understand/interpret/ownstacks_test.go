package interpret

import (
	"fmt"
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// frames as multiprocessing, loky and Dask have them, root first.
const (
	bootstrap = "/lib/python3.12/multiprocessing/process.py:BaseProcess._bootstrap:314"
	launch    = "/lib/python3.12/multiprocessing/popen_fork.py:Popen._launch:71"
	spawnMain = "/lib/python3.12/multiprocessing/spawn.py:spawn_main:122"
	poolLoop  = "/lib/python3.12/multiprocessing/pool.py:worker:125"
	dumps     = "/lib/python3.12/multiprocessing/reduction.py:ForkingPickler.dumps:51"
	starts    = "/u/train.py:<module>:20"
	works     = "/u/work.py:crunch:7"
)

// stacksOf are the stacks of a process's threads, root first, "function:line" each.
func stacksOf(rec *timeline.Recording, process int) (out []string) {
	for _, t := range rec.Threads {
		if t.Process != process {
			continue
		}
		for _, s := range t.Spans {
			var path []string
			for n := s.Node; n != timeline.RootNode; n = rec.Nodes[n].Parent {
				f := rec.Frames[rec.Nodes[n].Frame]
				path = append(path, fmt.Sprintf("%s:%d", f.Function, f.Line))
			}
			slices.Reverse(path)
			out = append(out, fmt.Sprint(path))
		}
	}
	return out
}

func TestAWorkersStackBeginsWithWhatItRan(t *testing.T) {
	s := newScene(worker(0, 0), worker(0, 0), worker(0, 0))
	s.worker(0, 0, stint{[]string{starts, launch}, python, 1}, stint{[]string{starts, "/lib/python3.12/multiprocessing/pool.py:Pool.map:367"}, io, 8})
	s.worker(1, 0, stint{[]string{starts, launch}, python, 1}, stint{[]string{starts, launch, bootstrap, poolLoop, works}, python, 3}, stint{[]string{starts, launch, bootstrap, poolLoop, dumps}, python, 5})
	s.worker(2, 0, stint{[]string{"<string>:<module>:1", spawnMain, starts}, python, 1}, stint{[]string{"<string>:<module>:1", spawnMain, bootstrap, poolLoop, works}, python, 8})
	s.worker(3, 0, stint{[]string{starts, works}, python, 9}) // by os.fork: its owner's functions go on in it
	raw := s.b.Snapshot(seconds(9))
	before := fmt.Sprint(stacksOf(raw, 1))
	rec := Identify(raw)
	for process, want := range [][]string{
		{"[<module>:20 Popen._launch:71]", "[<module>:20 Pool.map:367]"},
		{"[Popen._launch:71]", "[BaseProcess._bootstrap:314 worker:125 crunch:7]", "[BaseProcess._bootstrap:314 worker:125 ForkingPickler.dumps:51]"},
		{"[<module>:1 spawn_main:122 <module>:20]", "[BaseProcess._bootstrap:314 worker:125 crunch:7]"},
		{"[<module>:20 crunch:7]"},
	} {
		if got := stacksOf(rec, process); !slices.Equal(got, want) {
			t.Errorf("process %d\n%v\nwant\n%v", process, got, want)
		}
	}
	if after := fmt.Sprint(stacksOf(raw, 1)); after != before {
		t.Errorf("the recording that was handed in has changed: %s", after)
	}
}

// One who attaches to a worker looks at the worker.
func TestATargetThatIsAWorkerIsWhatItRuns(t *testing.T) {
	s := newScene()
	s.worker(0, 0, stint{[]string{starts, launch, bootstrap, poolLoop, works}, python, 3})
	rec := Identify(s.b.Snapshot(seconds(3)))
	if got, want := fmt.Sprint(stacksOf(rec, 0)), "[[BaseProcess._bootstrap:314 worker:125 crunch:7]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A spawned worker imports multiprocessing first; on a slow machine it does nothing else in a cell.
func TestAWorkerThatIsStillBeingStartedHasNoLine(t *testing.T) {
	s := newScene(worker(0, 0))
	s.worker(1, 0, stint{append([]string{"<string>:<module>:1"}, needed[len(needed)-2:]...), python, 8}, stint{[]string{"<string>:<module>:1", spawnMain}, python, 1})
	rec := Identify(s.b.Snapshot(seconds(9)))
	did := During(rec, timeline.Pool{Role: timeline.RoleWorker, Members: []int{1}}, []timeline.Interval{timeline.Between(0, seconds(9))})
	if did.Starting != seconds(9) || len(did.Lines) > 0 {
		t.Errorf("started for %v of 9 s, worked in %v", did.Starting.Seconds(), did.Lines)
	}
}

// The rows of a table of workers: what they worked at, and what else their time went to.
func TestWhatAWorkerDidAddsUp(t *testing.T) {
	s := newScene(worker(0, 0), worker(0, 0))
	take := []string{bootstrap, poolLoop, "/lib/python3.12/multiprocessing/queues.py:SimpleQueue.get:386"}
	s.worker(1, 0, stint{[]string{starts, launch}, python, 1}, stint{[]string{bootstrap, poolLoop, works}, io, 2}, stint{[]string{bootstrap, poolLoop, dumps}, python, 3}, stint{take, io, 4})
	// Dask: the main thread imports the script and then waits in an event loop, threads run the tasks.
	s.worker(2, 0, stint{[]string{"<string>:<module>:1", spawnMain, starts}, python, 1}, stint{[]string{bootstrap, "/v/site-packages/distributed/nanny.py:WorkerProcess._run:900", "/lib/python3.12/selectors.py:EpollSelector.select:468"}, io, 9})
	loop := []string{"/lib/python3.12/threading.py:Thread._bootstrap:1030", "/v/site-packages/distributed/threadpoolexecutor.py:_worker:51"}
	for range 2 {
		s.thread(2, 1, stint{append(loop[:2:2], "/u/work.py:crunch:9"), python, 4}, stint{loop, io, 5})
	}
	rec := Identify(s.b.Snapshot(seconds(10)))
	did := Accounts(rec)
	for process, want := range map[int]Account{
		1: {Alive: seconds(10), Starting: seconds(1), Working: seconds(2), Waiting: seconds(2), InLibrary: seconds(3), Starved: seconds(4)},
		2: {Alive: seconds(19), Starting: seconds(1), Reloading: seconds(1), Working: seconds(8), Starved: seconds(10)},
	} {
		if fmt.Sprint(did[process]) != fmt.Sprint(want) {
			t.Errorf("process %d did %+v, want %+v", process, did[process], want)
		}
	}
	whole := []timeline.Interval{timeline.Between(0, seconds(10))}
	for i, want := range []string{"crunch 7", "crunch 9"} {
		line := During(rec, RecordedPools(rec)[i], whole).Lines[0]
		if got := fmt.Sprint(line.Function, " ", line.Line); got != want {
			t.Errorf("pool %d worked most at %s, want %s", i, got, want)
		}
	}
	if got, want := fmt.Sprint(AtWork(rec)), "[true false true true]"; got != want {
		t.Errorf("at work: %s, want %s", got, want)
	}
}

// A worker that is attached to has its owner's stack below its own, too: it does not wait for the workers of the loader that
// it is one of. A program that forks now and then is no worker.
func TestTheStacksOfAnAttachedWorkerAreItsOwn(t *testing.T) {
	below := []string{"/u/train.py:<module>:20", "/v/site-packages/torch/utils/data/dataloader.py:_MultiProcessingDataLoaderIter.__init__:9"}
	fork := append(below[:2:2], "/lib/python3.12/multiprocessing/popen_fork.py:Popen._launch:71")
	worker := append(fork[:3:3], "/v/site-packages/torch/utils/data/_utils/worker.py:_worker_loop:309", "/u/train.py:Data.__getitem__:12")
	for _, c := range []struct {
		name   string
		stints []stint
		want   int // frames of the longest stack
	}{
		{"a worker", []stint{{worker, timeline.StatePython, 3}}, 3},
		{"a program that forks", []stint{{below, timeline.StateWaiting, 3}, {fork, timeline.StateNative, 0.01}, {worker, timeline.StatePython, 0.1}}, 5},
	} {
		s := newScene()
		s.history(timeline.Thread{PID: 1, Main: true}, 0, c.stints)
		rec := withOwnStacks(s.b.Snapshot(seconds(4)))
		longest := 0
		for _, span := range rec.Threads[0].Spans {
			depth := 0
			for n := span.Node; n != timeline.RootNode; n = rec.Nodes[n].Parent {
				depth++
			}
			longest = max(longest, depth)
		}
		if longest != c.want {
			t.Errorf("%s: stacks of %d frames, want %d", c.name, longest, c.want)
		}
	}
}
