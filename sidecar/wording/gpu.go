package wording

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
	"github.com/omni-perf/omni-perf/sidecar/words"
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
	return theGPU(f) + " waited " + s.part(f.Time) + bounds(f.Low, f.Time, f.High) + " " + causes[f.Cause].waited + s.where(f)
}

// bounds says between what an estimate lies; nothing where it is exact.
func bounds(low, value, high timeline.Nanos) string {
	const exact = 0.05 // of the value
	if float64(high-low) <= 2*exact*float64(value) {
		return ""
	}
	return " (" + words.Between(low.Seconds(), high.Seconds()) + ")"
}

func (s Scope) gpuUndecided(f diagnose.Finding) string {
	var parts []string
	for _, c := range f.Alternatives {
		name := causes[c.Cause].name
		if place := s.Place(c.Place); place != "" {
			name += " (" + place + ")"
		}
		parts = append(parts, name+" "+words.Between(c.Low.Seconds(), c.High.Seconds()))
	}
	return theGPU(f) + " waited " + s.part(f.Time) + "; the causes cannot be told apart at this resolution: " + strings.Join(parts, ", ")
}

func (s Scope) gpuIdle(f diagnose.Finding) string {
	text := theGPU(f) + " waited " + s.part(f.Time) + ", the largest part of it, " + words.Percent(f.Against) + ", " + causes[f.Cause].waited
	if place := s.Place(f.Place); place != "" {
		text += " in " + place
	}
	return text
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
	return devices(f.Devices) + " stopped answering after " + s.part(f.At) + "; nothing is known of it since"
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
	return devices(f.Devices) + was(f.Devices) + "busy " + words.Percent(f.Value) + " of the time, GPU " + words.Numbers([]int{f.Peer}) +
		" " + words.Percent(f.Against)
}

func (s Scope) syncInLoop(f diagnose.Finding) string {
	return "the loop waited for the GPU " + words.Plural(int(f.Count), "time", "times") + ", " + s.part(f.Time) + s.where(f) +
		"; the GPU was idle " + words.Percent(f.Against) + " of the time"
}

func (s Scope) copies(f diagnose.Finding) string {
	return "copies between host and device took " + s.part(f.Time) + s.where(f)
}
