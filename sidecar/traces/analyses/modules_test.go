package analyses

import (
	"fmt"
	"strings"
	"testing"
)

// on is an event of a thread.
func (s *script) on(thread int, cat, name string, start, dur float64, more string) {
	s.add(`{"ph":"X","cat":%q,"name":%q,"pid":1,"tid":%d,"ts":%v,"dur":%v,"args":{%s}}`, cat, name, thread, start, dur, more)
}

// launchFrom is a launch of a thread.
func (s *script) launchFrom(thread int, call float64, kernel string, start, dur float64) {
	s.next++
	s.add(`{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":%d,"ts":%v,"dur":2,"args":{"correlation":%d}}`, thread, call, s.next)
	s.add(`{"ph":"X","cat":"kernel","name":%q,"pid":0,"tid":7,"ts":%v,"dur":%v,"args":{"stream":7,"correlation":%d}}`, kernel, start, dur, s.next)
}

// aStep is a net of two layers: forward on thread 1, backward on autograd's thread 2, an optimizer, under annotations.
func aStep() *script {
	var s script
	s.on(1, "user_annotation", "## forward ##", 0, 95, "")
	s.on(1, "python_function", "nn.Module: Net_0", 5, 85, "")
	for i := range 2 {
		at := float64(10 + 40*i)
		s.on(1, "python_function", fmt.Sprintf("nn.Module: Linear_%d", i), at, 30, "")
		s.on(1, "cpu_op", "aten::linear", at+2, 26, fmt.Sprintf(`"Sequence number":%d,"Fwd thread id":0`, i))
		s.on(1, "cpu_op", "aten::addmm", at+4, 20, fmt.Sprintf(`"Sequence number":%d,"Fwd thread id":0`, i))
		s.launchFrom(1, at+6, "gemm", at+10, 10)
	}
	s.launchFrom(1, 82, "scale", 84, 1) // of the net itself
	s.on(1, "user_annotation", "## backward ##", 100, 100, "")
	for i := range 2 {
		at := float64(110 + 40*i)
		args := fmt.Sprintf(`"Sequence number":%d,"Fwd thread id":1`, 1-i)
		s.on(2, "cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", at, 30, args)
		s.on(2, "cpu_op", "AddmmBackward0", at+2, 26, args)
		s.on(2, "cpu_op", "aten::mm", at+4, 20, "")
		s.launchFrom(2, at+6, "gemm_backward", at+10, 20+float64(i))
	}
	s.on(1, "user_annotation", "Optimizer.step#SGD.step", 210, 50, "")
	s.on(1, "cpu_op", "aten::_foreach_add_", 215, 20, "")
	s.launchFrom(1, 220, "multi_tensor", 230, 4)
	s.launchFrom(1, 300, "of nothing", 310, 7)
	return &s
}

// A module has what it launched, its children's too, and what autograd launched for it on another thread.
func TestModules(t *testing.T) {
	a := analyze(Options{}, aStep().trace(t))
	check(t, "modules", cells(a.Table(TableModules), "path", "depth", "class", "calls", "total_cpu_us", "self_cpu_us", "backward_cpu_us",
		"total_device_us", "self_device_us", "forward_device_us", "backward_device_us"), `
		Net_0 0 Net 1 85 25 60 62 1 21 41
		Net_0/Linear_0 1 Linear 1 30 30 30 31 31 10 21
		Net_0/Linear_1 1 Linear 1 30 30 30 30 30 10 20
	`)
	check(t, "classes", cells(a.Table(TableModuleClasses), "path", "instances", "calls", "total_cpu_us", "total_device_us"), `
		Net 1 1 85 62
		Net/Linear 2 2 60 61
	`)
}

// What nothing encloses is of no phase; the host's time of a phase is counted once.
func TestPhases(t *testing.T) {
	a := analyze(Options{}, aStep().trace(t))
	check(t, "phases", cells(a.Table(TablePhases), "phase", "cpu_us", "device_us"), `
		forward 85 21
		backward 60 41
		optimizer 50 4
		other  7
	`)
	var s script
	s.op("cpu_op", "aten::mm", 0, 10, 1)
	if phases := analyze(Options{}, s.trace(t)).Table(TablePhases); phases.Len() > 0 || phases.Note == "" {
		t.Errorf("of an operator alone: %d rows, note %q", phases.Len(), phases.Note)
	}
}

// What autograd's thread launches is of the annotation in which the other one waits for it.
func TestAnnotations(t *testing.T) {
	a := analyze(Options{}, aStep().trace(t))
	check(t, "annotations", cells(a.Table(TableAnnotations), "path", "calls", "total_cpu_us", "total_device_us", "self_device_us"), `
		## backward ## 1 100 41 41
		## forward ## 1 95 21 21
		Optimizer.step#SGD.step 1 50 4 4
	`)
}

// What a checkpoint runs again is of the module that runs, in the backward pass.
func TestModulesOfCheckpoints(t *testing.T) {
	s := aStep()
	s.on(2, "cpu_op", "autograd::engine::evaluate_function: CheckpointFunctionBackward", 400, 100, `"Sequence number":0,"Fwd thread id":1`)
	s.on(2, "python_function", "nn.Module: Block_0", 410, 50, "")
	s.launchFrom(2, 420, "again", 430, 100)
	a := analyze(Options{}, s.trace(t))
	rows := cells(a.Table(TableModules), "path", "forward_device_us", "backward_device_us")
	if !strings.Contains(rows, "Block_0 0 100") {
		t.Errorf("got %s", rows)
	}
	if phases := cells(a.Table(TablePhases), "phase", "cpu_us"); !strings.Contains(phases, "forward 85\n") {
		t.Errorf("the second run of a module is forward: %s", phases)
	}
}

// Two threads that count autograd's operators each for themselves cannot be told apart.
func TestNumbersOfSeveralThreads(t *testing.T) {
	s := aStep()
	s.on(3, "cpu_op", "aten::relu", 20, 5, `"Sequence number":1,"Fwd thread id":0`)
	rows := cells(analyze(Options{}, s.trace(t)).Table(TableModules), "path", "backward_device_us")
	if !strings.Contains(rows, "Net_0/Linear_1 0\n") || !strings.Contains(rows, "Net_0/Linear_0 21\n") {
		t.Errorf("got %s", rows)
	}
}

// TorchScript has no calls of modules: each operator says which it was in.
func TestModulesOfHierarchies(t *testing.T) {
	var s script
	s.on(1, "cpu_op", "aten::conv2d", 0, 20, `"Module Hierarchy":"TOP(Net)::forward.SELF(Net)::stem.conv1(Conv2d)::forward"`)
	s.launchFrom(1, 5, "conv", 10, 6)
	s.on(1, "cpu_op", "aten::add", 30, 20, `"Module Hierarchy":"TOP(Net)::forward."`)
	s.launchFrom(1, 35, "add", 40, 2)
	a := analyze(Options{}, s.trace(t))
	check(t, "modules", cells(a.Table(TableModules), "path", "class", "calls", "total_device_us"), `
		Net TOP Net  8
		Net TOP/Conv2d conv1 Conv2d  6
	`)
}

// A file can have a module in every event, one in the other, with names of any length.
func TestHostileModules(t *testing.T) {
	var s script
	const n = 2000
	for i := range n {
		s.on(1, "python_function", "nn.Module: "+strings.Repeat("ä", 5000)+fmt.Sprint(i), float64(i), float64(2*n-2*i), "")
	}
	s.launchFrom(1, n, "deep", n+2, 5)
	a := analyze(Options{}, s.trace(t))
	modules := a.Table(TableModules)
	if modules.Len() != maxScopeDepth+1 || modules.Note == "" {
		t.Errorf("%d modules, note %q", modules.Len(), modules.Note)
	}
	if got := modules.FloatAt("total_device_us", 0); got != 5 {
		t.Errorf("the outermost module has %g µs, want 5", got)
	}
	for r := range modules.Len() {
		if name := modules.TextAt("name", r); len(name) > maxScopeName || strings.ContainsRune(name, '\uFFFD') {
			t.Fatalf("a name of %d bytes: %q", len(name), name)
		}
	}
}
