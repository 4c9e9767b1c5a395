package chart

import (
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// What earlier cells have left behind and does nothing is one line; a worker that sleeps in a task has its lane.
func TestLeftoversOfEarlierCellsAreOneLine(t *testing.T) {
	for name, c := range map[string]struct {
		asleep bool // one worker in a task
		lanes  int
		more   string
		rows   []string
	}{
		"idle":             {false, 1, "+ 3 idle processes", []string{"busy.py", "3 idle processes"}},
		"one is at a task": {true, 4, "+ 1 idle process", []string{"busy.py", "pool worker 1", "pool worker 2", "1 idle process"}},
	} {
		p := newProgram("python", "/u/train.py")
		main := p.Thread(timeline.Thread{PID: 1, NativeID: 1, Name: "MainThread", Main: true, RunsCell: true, OnCPU: -1})
		p.Set(main, 0, p.stack(own("<module>", 9)), timeline.StatePython, false)
		loop := timeline.Frame{Function: "worker", File: "/usr/lib/python3.12/multiprocessing/pool.py", Line: 125}
		wait := timeline.Frame{Function: "SimpleQueue.get", File: "/usr/lib/python3.12/multiprocessing/queues.py", Line: 3}
		for i := range 2 {
			number := i + 1
			w := p.start(timeline.Process{Role: timeline.RolePoolWorker, Number: &number, Command: "train.py", Start: -second, Stacks: read})
			p.Set(w, 0, p.stack(loop, wait), timeline.StateWaiting, false)
			if c.asleep && i == 0 {
				p.Set(w, 2*second, p.stack(loop, own("crunch", 4)), timeline.StateWaiting, false)
			}
		}
		served := p.start(timeline.Process{Role: timeline.RoleChild, Command: "serve.py", Start: -second, Stacks: read})
		p.Set(served, 0, p.stack(own("serve", 5)), timeline.StateWaiting, false)
		busy := p.start(timeline.Process{Role: timeline.RoleChild, Command: "busy.py", Start: -second, CPU: 9 * second, Stacks: read})
		p.Set(busy, 0, p.stack(own("run", 5)), timeline.StatePython, false)
		r := p.report(t, 10*second)
		lanes, more := lanesOf(r, 0, historiesOf(r), poolsOf(r), 10)
		if len(lanes) != c.lanes || more != c.more {
			t.Errorf("%s: %d lanes and %q, want %d and %q", name, len(lanes), more, c.lanes, c.more)
		}
		var rows []string
		for _, row := range processesTable(r, 10).rows {
			rows = append(rows, row.name)
		}
		if !slices.Equal(rows, c.rows) {
			t.Errorf("%s: rows %q, want %q", name, rows, c.rows)
		}
	}
}

// A thread that waited for connections for all of a cell is another cell's; one that waited now and then is not.
func TestThreadsThatWaitedThroughoutHaveNoRow(t *testing.T) {
	p := newProgram("python", "/u/train.py")
	p.Describe(func(r *timeline.Recording) { r.Target.Cell = &timeline.Cell{} })
	main := p.Thread(timeline.Thread{PID: 1, NativeID: 1, Name: "MainThread", Main: true, RunsCell: true, OnCPU: -1})
	p.Set(main, 0, p.stack(own("<module>", 9)), timeline.StatePython, false)
	for i, until := range []timeline.Nanos{10 * second, 4 * second} {
		th := p.Thread(timeline.Thread{PID: 1, NativeID: 2 + i, OnCPU: -1})
		p.Set(th, 0, p.stack(own("serve", 5+i)), timeline.StateWaiting, false)
		p.SetWait(th, 0, timeline.WaitSocket, p.Object(timeline.Object{Call: "accept", Kind: timeline.ObjectSocket, Name: []string{":80", ":81"}[i]}))
		p.Set(th, until, p.stack(own("serve", 7)), timeline.StatePython, false)
	}
	rows := blockedTable(p.report(t, 10*second), 10).rows
	if len(rows) != 1 || rows[0].name != "accept at :81" {
		t.Errorf("%+v", rows)
	}
}
