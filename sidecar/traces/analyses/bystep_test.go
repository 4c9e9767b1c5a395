package analyses

import "testing"

// What was launched in a step counts there, wherever it ran; a kernel is known by its operator and its place among that call's kernels.
func TestWorkByStep(t *testing.T) {
	var s script
	for i := range 3 {
		at := float64(100 * i)
		s.on(1, "user_annotation", []string{"ProfilerStep#4", "ProfilerStep#5", "ProfilerStep#6"}[i], at, 100, "")
		s.on(1, "cpu_op", "aten::mm", at+10, 20, "")
		s.launchFrom(1, at+12, "splitk", at+90, 15)
		s.launchFrom(1, at+16, "reduce", at+105, float64(5+i))
	}
	a := analyze(Options{Tables: []string{TableWorkByStep}}, s.trace(t))
	check(t, "work", cells(a.Table(TableWorkByStep), "step", "kind", "name", "operator", "kernel_type", "position", "us"), `
		4 kernel reduce aten::mm COMPUTATION 1 5
		4 kernel splitk aten::mm COMPUTATION 0 15
		4 operator aten::mm   0 20
		5 kernel reduce aten::mm COMPUTATION 1 6
		5 kernel splitk aten::mm COMPUTATION 0 15
		5 operator aten::mm   0 21
	`)
}
