package diagnose

import (
	"fmt"
	"math"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// cpuRules hold for any program. Where the program uses a GPU, time the thread
// spends waiting for it is no finding, so most of them ask for none.
var cpuRules = []rule{
	{id: "gil-contention", severity: Warning, threshold: 0.10, hint: hintGIL, measure: gilContention},
	{id: "io-bound", severity: Warning, threshold: 0.30, hint: hintIO,
		measure: hostRule("waited for input or output", func(s hostState) bool { return s.cause == InputOutput })},
	{id: "data-loading", severity: Warning, threshold: 0.30, hint: hintLoaderMore,
		measure: hostRule("was loading data", func(s hostState) bool { return s.cause == DataLoading })},
	{id: "no-free-cpu", severity: Warning, threshold: 0.15, hint: hintCPU,
		measure: hostRule("waited for a free CPU", func(s hostState) bool { return s.cause == NoCPU })},
	{id: "compilation", severity: Info, threshold: 0.20, hint: hintCompile,
		measure: hostRule("was compiling", func(s hostState) bool { return s.cause == Compilation })},
	{id: "printing", severity: Warning, threshold: 100, measure: printing, // messages a second
		hint: "print every 100th time, or use tqdm with mininterval=1: each message goes through the kernel's socket to the browser"},
	{id: "imports", severity: Info, threshold: 0.30, measure: imports,
		hint: "the first import of a session is slow: put imports in a cell of their own"},
	{id: "memory-pressure", severity: Warning, threshold: 0.95, measure: memoryPressure, // share of the memory
		hint: "free what is no longer needed (del, gc.collect()), load in parts or with memory mapping, smaller dtypes"},
	{id: "swapping", severity: Warning, threshold: 64 << 20, measure: swapping, // bytes swapped out during the recording
		hint: "the machine is out of memory and works from disk: use less, or close other programs"},
	{id: "waits-for-children", severity: Info, threshold: 0.30, measure: waitsForChildren,
		hint: "the work is done in child processes: more of them if CPUs are free, larger chunks if they are short"},
	{id: "waiting", severity: Info, threshold: 0.40, measure: waiting,
		hint: "the CPU has nothing to do here: run such waits together (asyncio, threads), or shorten the sleep"},
	{id: "one-line", severity: Info, threshold: 0.50, measure: oneLine},
	{id: "cpu-bound", severity: Info, threshold: 0.30, fallback: true, measure: cpuBound},
}

// hostRule measures a part of the main thread's time, for programs without GPU.
func hostRule(did string, fits func(hostState) bool) func(*evidence) measured {
	return func(e *evidence) measured {
		if len(e.used()) > 0 {
			return nothing
		}
		total, at, hint, _, where := e.hostWhere(fits)
		return measured{
			value: e.share(total), at: at, hint: hint, evidence: where, cost: total,
			text: fmt.Sprintf("The program %s for %s, %s of the time%s.", did, seconds(total), percent(e.share(total)), e.where(at)),
		}
	}
}

// gilContention holds with and without GPU: the thread that feeds it waits too.
func gilContention(e *evidence) measured {
	total, at, _, _, where := e.hostWhere(func(s hostState) bool { return s.cause == GILWait })
	return measured{
		value: e.share(total), at: at, evidence: where, cost: total,
		text: fmt.Sprintf("The main thread waited for the GIL for %s, %s of the time%s.", seconds(total), percent(e.share(total)), e.where(at)),
	}
}

// minMessages keeps a short burst of output from counting as printing a lot.
const minMessages = 300

func printing(e *evidence) measured {
	out := e.rec.Output
	if out == nil || out.Messages < minMessages {
		return nothing
	}
	rate := float64(out.Messages) / e.rec.Duration.Seconds()
	least := ""
	if out.AtLeast {
		least = "at least "
	}
	total, at, where := e.stackTime(func(f timeline.Frame) bool {
		return strings.HasSuffix(f.File, "/ipykernel/iostream.py") || strings.HasSuffix(f.File, "/ipykernel/displayhook.py")
	})
	return measured{
		value: rate, at: at, evidence: where, cost: total,
		text: fmt.Sprintf("The cell printed %s%d messages, %.0f a second (%.1f MB).", least, out.Messages, rate, float64(out.Bytes)/1e6),
	}
}

// stackTime sums the main thread's time under frames that fit, with the line
// that has most of it.
func (e *evidence) stackTime(fits func(timeline.Frame) bool) (total timeline.Nanos, top line, where []Interval) {
	t := responsible(e.rec, -1)
	if t == nil {
		return 0, line{}, nil
	}
	type found struct {
		in bool
		at line
	}
	known := make(map[timeline.NodeID]found)
	byLine := make(map[line]timeline.Nanos)
	for _, s := range t.Spans {
		f, ok := known[s.Node]
		if !ok {
			frames := e.stacks.frames(s.Node)
			f.at = e.stacks.charged(frames)
			for _, frame := range frames {
				f.in = f.in || fits(frame)
			}
			known[s.Node] = f
		}
		if !f.in {
			continue
		}
		total += s.End - s.Start
		where = append(where, Interval{s.Start, s.End})
		byLine[f.at] += s.End - s.Start
		if byLine[f.at] > byLine[top] || byLine[top] == 0 {
			top = f.at
		}
	}
	return total, top, where
}

func imports(e *evidence) measured {
	total, at, where := e.stackTime(func(f timeline.Frame) bool { return strings.HasPrefix(f.File, "<frozen importlib") })
	return measured{
		value: e.share(total), at: at, evidence: where, cost: total,
		text: fmt.Sprintf("The program was importing modules for %s, %s of the time%s.", seconds(total), percent(e.share(total)), e.where(at)),
	}
}

func memoryPressure(e *evidence) measured {
	worst, what := math.NaN(), ""
	for id, name := range map[string]string{"rss": "The program's memory", "mem.system": "The machine's memory"} {
		t := e.track(id)
		if t == nil || t.Limit <= 0 || math.IsNaN(t.Peak) {
			continue
		}
		if s := t.Peak / t.Limit; math.IsNaN(worst) || s > worst || s == worst && name > what {
			worst, what = s, name
		}
	}
	return measured{value: worst, text: fmt.Sprintf("%s was %s full at its peak: the kernel may be killed.", what, percent(worst))}
}

// swapping measures by how much swap grew: memory that lies there from before is
// nobody's problem now.
func swapping(e *evidence) measured {
	t := e.track("swap")
	if t == nil || len(t.Points) == 0 || math.IsNaN(t.Peak) {
		return nothing
	}
	grown := t.Peak - t.Points[0].Value
	return measured{value: grown, text: fmt.Sprintf("%.0f MB of memory were swapped out while this ran.", grown/1e6)}
}

// busyChildren is how many cores the children must use for a wait to be theirs.
const busyChildren = 0.5

func (e *evidence) hostWaits() (timeline.Nanos, line, []Interval) {
	total, at, _, _, where := e.hostWhere(func(s hostState) bool { return s.cause == Waiting })
	return total, at, where
}

func waitsForChildren(e *evidence) measured {
	cores := meanOf(e.track("cpu.children"))
	total, at, where := e.hostWaits()
	if math.IsNaN(cores) || cores < busyChildren {
		return nothing
	}
	return measured{
		value: e.share(total), at: at, evidence: where,
		text: fmt.Sprintf("The main thread waited %s of the time while child processes kept %.1f cores busy%s.", percent(e.share(total)), cores, e.where(at)),
	}
}

func waiting(e *evidence) measured {
	if cores := meanOf(e.track("cpu.children")); cores >= busyChildren || len(e.used()) > 0 {
		return nothing
	}
	total, at, where := e.hostWaits()
	if base(at.file) == "selectors.py" { // an event loop at rest: what it awaits is on no stack
		return measured{
			value: e.share(total), evidence: where, cost: total, hint: hintAwait,
			text: fmt.Sprintf("The event loop had nothing to do for %s, %s of the time: every task was awaiting.", seconds(total), percent(e.share(total))),
		}
	}
	return measured{
		value: e.share(total), at: at, evidence: where, cost: total,
		text: fmt.Sprintf("The program slept or waited for another thread for %s, %s of the time%s.", seconds(total), percent(e.share(total)), e.where(at)),
	}
}

// onCPU is the main thread's time on the CPU by line, and the largest of them.
func (e *evidence) onCPU() (total timeline.Nanos, top line, most timeline.Nanos) {
	byLine := make(map[line]timeline.Nanos)
	for _, s := range e.main.stretches {
		st := e.main.states[s.state]
		if st.cause != PythonCPU && st.cause != NativeCPU {
			continue
		}
		total += s.end - s.start
		byLine[st.at] += s.end - s.start
	}
	for at, n := range byLine {
		if n > most || n == most && (at.file < top.file || at.file == top.file && at.number < top.number) {
			top, most = at, n
		}
	}
	return total, top, most
}

// minLines is how many lines a program must have for one to stand out.
const minLines = 2

// oneLine measures the share of one line in all the time. A cell of one line
// has no line that stands out.
func oneLine(e *evidence) measured {
	_, top, most := e.onCPU()
	lines := make(map[line]bool)
	for _, st := range e.main.states[1:] {
		lines[st.at] = true
	}
	if len(e.used()) > 0 || len(lines) < minLines {
		return nothing
	}
	return measured{
		value: e.share(most), at: top, cost: most,
		hint: "look into this line first: vectorise it, cache its result, or move it out of the loop",
		text: fmt.Sprintf("One line takes %s of the time (%s)%s.", percent(e.share(most)), seconds(most), strings.Replace(e.where(top), ", most in", ":", 1)),
	}
}

// cpuBound is the main finding where nothing else stands out.
func cpuBound(e *evidence) measured {
	total, top, most := e.onCPU()
	if len(e.used()) > 0 {
		return nothing
	}
	return measured{
		value: e.share(total), at: top, cost: most,
		hint: "no single line stands out; the flame chart shows which functions they share",
		text: fmt.Sprintf("The program computed on the CPU for %s of the time%s with %s.", percent(e.share(total)), e.where(top), percent(e.share(most))),
	}
}
