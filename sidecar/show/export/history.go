// Package export writes a report in the formats of other people's viewers:
// speedscope, Chrome's and Perfetto's trace events, pprof, OpenTelemetry's profiles and collapsed stacks.
//
// In flows a report.View, which was checked, out flow a file's bytes. What a format
// cannot hold is left out: only the trace has tracks and steps beside the stacks.
package export

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// maxDepth bounds stacks for viewers; frames further from the root are left out.
const maxDepth = 1000

// frame is a frame as every format here names it.
type frame struct {
	function, file  string
	line, firstLine int
}

// framesOf names all frames of a report.
func framesOf(r *report.View) []frame {
	frames := make([]frame, len(r.Frames.Function))
	for i := range frames {
		id := r.FunctionOf(i)
		f := &r.Functions[id]
		frames[i] = frame{clean(r.FunctionName(id)), clean(r.FileName(&f.File)), r.LineOf(i), f.FirstLine}
	}
	return frames
}

// threadName distinguishes threads by more than a name.
func threadName(r *report.View, t int) string {
	th := &r.Threads[t]
	name := clean(th.Name)
	if name == "" {
		name = "thread"
	}
	if th.Process != r.Target().Process {
		return fmt.Sprintf("%s (pid %d, thread %d)", name, r.Processes[th.Process].PID, th.NativeID)
	}
	return fmt.Sprintf("%s (%d)", name, th.NativeID)
}

// title names what was recorded.
func title(r *report.View) string {
	if r.Name != "" {
		return clean(r.Name)
	}
	return clean(r.Target().Name)
}

// generator names the program that wrote a report.
func generator(r *report.View) string {
	return clean(strings.TrimSpace(r.Generator.Name + " " + r.Generator.Version))
}

// clean makes text valid UTF-8 of one line.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}
