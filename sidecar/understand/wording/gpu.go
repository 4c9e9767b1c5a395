package wording

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/gpuidle"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// theGPU names the devices of a program that uses one, or several on average.
func theGPU(f diagnose.Finding) string {
	if len(f.Devices) > 1 {
		return devices(f.Devices) + ", on average,"
	}
	return "the GPU"
}

// gpuWaited is the idle time of one kind of cause.
func (s Scope) gpuWaited(f diagnose.Finding) string {
	return theGPU(f) + " waited " + s.part(f.Time) + bounds(f.Low, f.Time, f.High) + " " + forWhat(f) + s.where(f) + queue(f)
}

// forWhat says what a GPU waited for: a cause, or a kind with its causes.
func forWhat(f diagnose.Finding) string {
	if f.Cause != "" {
		return causes[f.Cause].waited
	}
	var parts []string
	for _, p := range f.Parts {
		parts = append(parts, causes[p.Cause].name+" "+estimate(p.Low, p.Nanos, p.High))
	}
	text := kinds[f.Kind].waited
	if len(parts) > 0 {
		text += " (" + few(parts) + ")"
	}
	return text
}

// estimate is a length of time, or between what it lies where that is not the same.
func estimate(low, value, high timeline.Nanos) string {
	if bounds(low, value, high) == "" {
		return words.Seconds(value.Seconds())
	}
	return words.Between(low.Seconds(), high.Seconds())
}

// maxListed is how many things a sentence names.
const maxListed = 3

// few lists the first of several and counts the others.
func few(items []string) string {
	if more := len(items) - maxListed; more > 0 {
		return strings.Join(items[:maxListed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(items, ", ")
}

// bounds says between what an estimate lies; nothing where it is exact.
func bounds(low, value, high timeline.Nanos) string {
	const exact = 0.05 // of the value
	if float64(high-low) <= 2*exact*float64(value) {
		return ""
	}
	return " (" + words.Between(low.Seconds(), high.Seconds()) + ")"
}

// gpuUndecided lists the kinds of causes of which any may be the first: they are too
// near to each other, or not known well enough.
func (s Scope) gpuUndecided(f diagnose.Finding) string {
	var parts []string
	exact := true
	for _, a := range f.Alternatives {
		name := Alternative(a)
		if place := s.Place(a.Place); place != "" {
			name += " (" + place + ")"
		}
		parts = append(parts, name+" "+estimate(a.Low, a.Nanos, a.High))
		exact = exact && bounds(a.Low, a.Nanos, a.High) == ""
	}
	text := theGPU(f) + " waited " + s.part(f.Time)
	if !exact {
		text += "; the causes cannot be told apart at this resolution"
	}
	return text + ": " + few(parts)
}

// Alternative names one of several causes that cannot be distinguished, or their kind.
func Alternative(a gpuidle.Alternative) string {
	if a.Cause != "" {
		return causes[a.Cause].name
	}
	return kinds[a.Kind].name
}

func (s Scope) gpuIdle(f diagnose.Finding) string {
	text := theGPU(f) + " waited " + s.part(f.Time)
	if f.Kind == "" {
		return text
	}
	part := f
	part.Time = timeline.Nanos(f.Against * float64(f.Time))
	return text + ", the largest part of it, " + words.Percent(f.Against) + ", " + forWhat(f) + s.where(part)
}

// devices names GPUs: "the GPU" of one program's only one is said by the sentences
// themselves; here "GPU 0", "GPUs 1–3".
func devices(list []int) string {
	if len(list) == 1 {
		return "GPU " + words.Numbers(list)
	}
	return "GPUs " + words.Numbers(list)
}

func was(list []int) string {
	if len(list) == 1 {
		return " was "
	}
	return " were "
}

func (s Scope) gpuBusy(f diagnose.Finding) string {
	if len(f.Devices) > 1 {
		return devices(f.Devices) + " were busy " + words.Percent(f.Value) + " of the time on average"
	}
	return "the GPU was busy " + words.Percent(f.Value) + " of the time"
}

func (s Scope) gpuLost(f diagnose.Finding) string {
	if len(f.Devices) == 1 {
		return devices(f.Devices) + " stopped answering after " + s.part(f.At) + "; nothing is known of it since"
	}
	when := " stopped answering after " + s.part(f.At)
	const together = 0.05 // of the recording
	if float64(f.AtLast-f.At) > together*float64(s.Duration) {
		when = " stopped answering, the first after " + s.part(f.At) + ", the last after " + words.Seconds(f.AtLast.Seconds())
	}
	return devices(f.Devices) + when + "; nothing is known of them since"
}

func (s Scope) gpuError(f diagnose.Finding) string {
	text := devices(f.Devices) + " reported " + Xid(f.Xid) + " after " + s.part(f.At)
	if f.Count > 1 {
		text += ", and " + words.Plural(int(f.Count-1), "error", "errors") + " more"
	}
	return text
}

// xids are what the driver's errors mean, by NVIDIA's table of them.
var xids = map[int]string{
	13: "a graphics engine exception", 31: "a memory page fault", 32: "a corrupted push buffer", 38: "a firmware error", 43: "that it stopped processing", 45: "the end of what still ran, after another error",
	48: "a double-bit memory error", 61: "a warning of its microcontroller", 62: "a halt of its microcontroller", 63: "a memory row that was remapped", 64: "a memory row that could not be remapped",
	68: "a video decoder exception", 69: "a graphics engine class error", 74: "an NVLink error", 79: "that it has fallen off the bus", 92: "many single-bit memory errors",
	94: "a contained memory error", 95: "an uncontained memory error", 109: "a context switch that timed out", 119: "a system processor that does not answer", 120: "an error of its system processor",
	140: "an unrecovered memory error",
}

// Xid is an error of a GPU: "a memory page fault (Xid 31)".
func Xid(code int) string {
	number := "Xid " + strconv.Itoa(code)
	if what, known := xids[code]; known {
		return what + " (" + number + ")"
	}
	return "an error (" + number + ")"
}

func (s Scope) gpuUnused(f diagnose.Finding) string {
	name := ""
	if f.Name != "" {
		name = " (" + words.Clean(f.Name, 60) + ")"
	}
	return "nothing ran on the GPU" + name + " while a framework computed on the CPU for " + s.part(f.Time)
}

func (s Scope) gpuMemory(f diagnose.Finding) string {
	return "the memory of " + devices(f.Devices) + " was " + words.Percent(f.Value) + " full at its peak"
}

func (s Scope) gpuMemoryCollectives(f diagnose.Finding) string {
	return s.gpuMemory(f) + ", and communication between ranks took " + s.part(f.Time) + s.where(f)
}

func (s Scope) gpuThrottled(f diagnose.Finding) string {
	var reasons []string
	for _, r := range f.Throttle {
		reasons = append(reasons, throttleReasons[r])
	}
	most := ""
	if len(f.Devices) > 1 {
		most = "up to "
	}
	text := devices(f.Devices) + " ran below full speed for " + most + words.Percent(f.Value) + " of the time"
	if len(reasons) > 0 {
		text += " because of " + words.List(reasons)
	}
	return text
}

func (s Scope) someGPUsIdle(f diagnose.Finding) string {
	mean := ""
	if len(f.Devices) > 1 {
		mean = " on average"
	}
	return devices(f.Devices) + was(f.Devices) + "busy " + words.Percent(f.Value) + " of the time" + mean + ", GPU " + words.Numbers([]int{f.Peer}) +
		" " + words.Percent(f.Against)
}

func (s Scope) syncInLoop(f diagnose.Finding) string {
	return "the loop waited for the GPU " + words.Plural(int(f.Count), "time", "times") + ", " + s.part(f.Time) + s.where(f) +
		"; the GPU was idle " + words.Percent(f.Against) + " of the time"
}

func (s Scope) copies(f diagnose.Finding) string {
	return "copies between host and device took " + s.part(f.Time) + s.where(f)
}
