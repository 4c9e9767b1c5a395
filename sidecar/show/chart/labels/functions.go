// Package labels gives the names and colours by which pictures show what is in a report: its functions, the
// states of threads, kinds of code.
package labels

import (
	"fmt"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/flame"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// MaxDepth bounds the rows of a flame chart; deeper callees are counted.
const MaxDepth = 24

// codePaints are the colours of kinds of code.
var codePaints = map[report.Code]scene.Paint{
	report.CodeCell: scene.PaintCell, report.CodeUser: scene.PaintUser, report.CodeData: scene.PaintData, report.CodeFramework: scene.PaintFramework,
	report.CodeDevice: scene.PaintDevice, report.CodeIO: scene.PaintIO, report.CodePicture: scene.PaintPicture,
}

// paintOf is the colour of a kind of code; what has none is other.
func paintOf(c report.Code) scene.Paint {
	if p, ok := codePaints[c]; ok {
		return p
	}
	return scene.PaintOther
}

// Functions are those of a report, as the chart shows them.
type Functions struct {
	List    []Function
	Program flame.Program
}

// Function is one as the chart shows it.
type Function struct {
	Name, File string // clean
	Line       int    // first line
	Module     bool   // a file's own level, whose name says the file
	Paint      scene.Paint
	SelfS      float64 // over all threads of the target, where the report has it
	TotalS     float64
	States     report.StateTimes // of selfS
}

// FunctionsOf are the functions of a report, with their own time in its program.
func FunctionsOf(r *report.View) *Functions {
	f := &Functions{List: make([]Function, len(r.Functions)), Program: programOf(r)}
	for i, fn := range r.Functions {
		f.List[i] = Function{
			Name: FunctionName(r, i), File: words.Clean(r.FileName(&fn.File), words.MaxName), Line: fn.FirstLine, Paint: paintOf(fn.Code),
			Module: fn.Name == "<module>",
		}
	}
	for _, t := range r.FunctionTimes {
		if t.Process != r.Program() {
			continue
		}
		f.List[t.Function].SelfS += report.Seconds(t.SelfNS)
		f.List[t.Function].TotalS += report.Seconds(t.TotalNS)
		f.List[t.Function].States = t.StateNS
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

// FunctionName is what a function is called, clean.
func FunctionName(r *report.View, function int) string {
	return words.Clean(r.FunctionName(function), words.MaxName)
}

// Place is a function's file and line: "train.py:12".
func (f *Function) Place() string {
	if f.Module {
		return ""
	}
	file := words.ShortFile(f.File)
	if f.Line > 0 && file != "" {
		return fmt.Sprintf("%s:%d", file, f.Line)
	}
	return file
}

// Names are ways to name a function that calls itself so many times, the most
// informative first.
func (f *Function) Names(calls int) []string {
	name, short := f.Name, f.Name
	if i := strings.LastIndexByte(name, '.'); i > 0 && i+1 < len(name) && f.Place() != "" {
		short = name[i+1:] // the method without its class
	}
	if calls > 1 {
		times := fmt.Sprintf(" ×%d", calls)
		name, short = name+times, short+times
	}
	if place := f.Place(); place != "" {
		return []string{name + "  " + place, name, short}
	}
	return []string{name, strings.TrimPrefix(short, "import ")}
}
