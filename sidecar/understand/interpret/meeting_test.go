package interpret

import (
	"fmt"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

var (
	launching = []string{"/u/train.py:<module>:31", "/v/site-packages/torch/multiprocessing/spawn.py:ProcessContext.join:184"}
	joining   = []string{"/u/train.py:main:7", "/v/site-packages/torch/distributed/distributed_c10d.py:init_process_group:1700"}
	reducing  = []string{"/u/train.py:main:23", "/v/site-packages/torch/distributed/distributed_c10d.py:all_reduce:2800"}
	training  = []string{"/u/train.py:main:22"}
	wrapping  = []string{"/u/train.py:main:20", "/v/site-packages/torch/nn/parallel/distributed.py:DistributedDataParallel.__init__:823"}
	logging   = []string{"/u/train.py:log:40"}
	notYetMet = []string{"/v/lib/python3.12/multiprocessing/spawn.py:_main:135"}
	loads     = []string{"/v/site-packages/torch/utils/data/_utils/worker.py:_worker_loop:309", "/u/train.py:Data.__getitem__:3"}
)

// described is the role, number and rank of each process but the target.
func described(rec *timeline.Recording) (list []string) {
	for _, p := range rec.Processes[1:] {
		text := string(p.Role)
		if p.Number != nil {
			text += fmt.Sprint(" ", *p.Number)
		}
		if p.Rank != nil {
			text += fmt.Sprint(" of ", *p.Rank)
		}
		list = append(list, text)
	}
	return list
}

// Workers of one owner that meet in collectives are ranks, in the order in which they were started, whatever
// started them; what they start is of their rank. Who is in the function that calls a collective for another is one, too:
// the slowest waits for nobody. One alone is none, nor are those that meet nobody.
func TestWorkersThatMeetInCollectivesAreRanks(t *testing.T) {
	worker := func(parent int, start float64) timeline.Process {
		return timeline.Process{Role: timeline.RoleWorker, ParentIndex: parent, Start: seconds(start)}
	}
	server := timeline.Process{Role: timeline.RoleForkServer, ParentIndex: 0}
	for _, c := range []struct {
		name      string
		processes []timeline.Process
		stacks    [][]string
		want      string
	}{
		{"mp.spawn", []timeline.Process{worker(0, 2), worker(0, 1), worker(1, 3)}, [][]string{reducing, reducing, loads}, "[rank 1 of 1 rank 0 of 0 loader-worker 0 of 1]"},
		{"a fork server", []timeline.Process{server, worker(1, 1), worker(1, 2)}, [][]string{nil, joining, reducing}, "[fork-server rank 0 of 0 rank 1 of 1]"},
		{"a worker beside ranks", []timeline.Process{worker(0, 1), worker(0, 1), worker(0, 2)}, [][]string{reducing, logging, reducing}, "[rank 0 of 0 worker 1 rank 1 of 1]"},
		{"the slowest", []timeline.Process{worker(0, 1), worker(0, 2)}, [][]string{reducing, training}, "[rank 0 of 0 rank 1 of 1]"},
		{"a model wrapped for ranks", []timeline.Process{worker(0, 1), worker(0, 2)}, [][]string{wrapping, wrapping}, "[rank 0 of 0 rank 1 of 1]"},
		{"one alone", []timeline.Process{worker(0, 1), worker(0, 2)}, [][]string{reducing, logging}, "[worker 1 worker 2]"},
		{"workers that meet nobody", []timeline.Process{worker(0, 1), worker(0, 2)}, [][]string{training, training}, "[worker 1 worker 2]"},
	} {
		for i := range c.processes {
			c.processes[i].PID = 100 + i + 1
		}
		s := newScene(c.processes...)
		s.history(timeline.Thread{PID: 1, Main: true}, 0, []stint{{launching, timeline.StateWaiting, 10}})
		for i, stack := range c.stacks {
			if stack != nil {
				s.worker(i+1, 4, stint{notYetMet, timeline.StateNative, 2}, stint{stack, timeline.StateWaiting, 2})
			}
		}
		rec := Of(s.b.Snapshot(seconds(10)))
		if got := fmt.Sprint(described(rec)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A second run in one cell has ranks of its own from 0 on.
func TestRanksOfASecondRunAreNumberedAnew(t *testing.T) {
	var processes []timeline.Process
	for i := range 4 {
		run := float64(i / 2 * 5)
		processes = append(processes, timeline.Process{PID: 101 + i, Role: timeline.RoleWorker, Start: seconds(run + 0.1), End: seconds(run + 4)})
	}
	s := newScene(processes...)
	for i := range 4 {
		s.worker(i+1, float64(i/2*5)+1, stint{reducing, timeline.StateWaiting, 2})
	}
	if got, want := fmt.Sprint(described(Of(s.b.Snapshot(seconds(10))))), "[rank 0 of 0 rank 1 of 1 rank 0 of 0 rank 1 of 1]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
