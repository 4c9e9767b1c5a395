package program

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestWhereAKernelIs(t *testing.T) {
	const (
		shell  = "/v/lib/python3.12/site-packages/IPython/core/interactiveshell.py"
		cell   = "/tmp/ipykernel_1/222.py"
		other  = "/tmp/ipykernel_1/111.py"
		module = "/home/ann/train.py"
		torch  = "/v/lib/python3.12/site-packages/torch/nn/modules/module.py"
	)
	f := func(file, function string, line int) timeline.Frame {
		return timeline.Frame{File: file, Function: function, Line: line}
	}
	loop := f("/usr/lib/python3.12/asyncio/base_events.py", "BaseEventLoop.run_forever", 638)
	for name, c := range map[string]struct {
		stack      []timeline.Frame
		cell, want string
		own        bool
	}{
		"idle":                    {[]timeline.Frame{loop}, "", "", false},
		"the cell itself":         {[]timeline.Frame{loop, f(shell, "run_code", 1), f(cell, "<module>", 7)}, cell, "line 7", true},
		"its function":            {[]timeline.Frame{loop, f(cell, "<module>", 7), f(cell, "spin", 3), f(torch, "forward", 9)}, cell, "line 3, spin", true},
		"an earlier cell's":       {[]timeline.Frame{loop, f(cell, "<module>", 7), f(other, "step", 2)}, cell, "line 2 of another cell, step", true},
		"a module":                {[]timeline.Frame{loop, f(cell, "<module>", 7), f(module, "fit", 40)}, cell, "train.py:40, fit", true},
		"a callback":              {[]timeline.Frame{loop, f(other, "clicked", 2)}, "", "", true},
		"a cell with a name":      {[]timeline.Frame{loop, f("<my cell>", "<module>", 4)}, "<my cell>", "line 4", true},
		"a cell that runs a cell": {[]timeline.Frame{loop, f(cell, "<module>", 7), f(shell, "run_cell", 1), f(other, "<module>", 2)}, cell, "line 2 of another cell, <module>", true},
	} {
		got := positionIn(c.stack, "<my cell>")
		if got.cell != c.cell || got.own != c.own || got.String() != c.want {
			t.Errorf("%s: cell %q, %q, own %v; want %q, %q, %v", name, got.cell, got, got.own, c.cell, c.want, c.own)
		}
	}
}

func TestAKernelThatExecutesNothingIsIdle(t *testing.T) {
	frames := func(functions ...string) (stack []timeline.Frame) {
		for _, function := range functions {
			stack = append(stack, timeline.Frame{Function: function, File: "/x.py"})
		}
		return stack
	}
	for name, c := range map[string]struct {
		stack []timeline.Frame
		idle  bool
	}{
		"its loop waits":              {frames("BaseEventLoop.run_forever", "EpollSelector.select"), true},
		"a cell runs":                 {frames("BaseEventLoop.run_forever", "Kernel.execute_request", "<module>"), false},
		"a cell runs a loop":          {frames("BaseEventLoop.run_forever", "Kernel.execute_request", "BaseEventLoop.run_forever"), false},
		"another greenlet has it all": {frames("Hub.run"), false},
		"nothing is known":            {nil, false},
	} {
		if got := positionIn(c.stack, ""); got.idle != c.idle {
			t.Errorf("%s: idle %v", name, got.idle)
		}
	}
}
