package chart

import (
	"github.com/omni-perf/omni-perf/sidecar/show/chart/flame"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// maxDepth bounds the rows of a flame chart; deeper callees are counted.
const maxDepth = 24

// functions are those of a report, as the chart shows them.
type functions struct {
	list    []function
	program flame.Program
}

// function is one as the chart shows it.
type function struct {
	name, file string // clean
	line       int    // first line
	module     bool   // a file's own level, whose name says the file
	paint      Paint
	selfS      float64 // over all threads of the target, where the report has it
	totalS     float64
	states     report.StateTimes // of selfS
}

func functionsOf(r *report.View) *functions {
	f := &functions{list: make([]function, len(r.Functions)), program: programOf(r)}
	for i, fn := range r.Functions {
		f.list[i] = function{
			name: functionName(r, i), file: words.Clean(r.FileName(&fn.File), words.MaxName), line: fn.FirstLine, paint: paintOf(fn.Code),
			module: fn.Name == "<module>",
		}
	}
	for _, t := range r.FunctionTimes {
		if t.Process != r.Program() {
			continue
		}
		f.list[t.Function].selfS += report.Seconds(t.SelfNS)
		f.list[t.Function].totalS += report.Seconds(t.TotalNS)
		f.list[t.Function].states = t.StateNS
	}
	return f
}

// programOf is a report as package flame sees it.
func programOf(r *report.View) flame.Program {
	n := len(r.Nodes.Parent)
	p := flame.Program{Parent: make([]int32, n), Function: make([]int32, n), Functions: make([]flame.Function, len(r.Functions))}
	for i := 1; i < n; i++ {
		p.Parent[i], p.Function[i] = r.Parent(int32(i)), int32(r.FunctionOf(r.FrameOf(int32(i))))
	}
	for i, fn := range r.Functions {
		file := &r.Files[fn.File]
		p.Functions[i] = flame.Function{Own: file.Code.Own() || fn.Code.Own()}
		if file.Package != nil {
			p.Functions[i].Package = *file.Package
		}
	}
	return p
}

func functionName(r *report.View, function int) string {
	return words.Clean(r.FunctionName(function), words.MaxName)
}
