package view

import (
	"fmt"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/torchtrace/analyses"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/findings"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/place"
	"github.com/omni-perf/omni-perf/sidecar/words"
)

// All sentences about findings. Whoever decides or compares reads the finding.

// headline is the findings in sentences, the answer first.
func (r *Result) headline() []string {
	var lines []string
	for _, f := range r.findings() {
		lines = append(lines, sentence(f))
	}
	return lines
}

func sentence(f findings.Finding) string {
	write := map[findings.ID]func(findings.Finding) string{
		findings.DeviceIdle: deviceIdle, findings.CPUOnly: cpuOnly, findings.IdleCause: idleCause, findings.LaunchCalls: launchCalls,
		findings.DataLoading: dataLoading, findings.PythonIdle: pythonIdle, findings.Synchronising: synchronising,
		findings.PythonTime: pythonTime, findings.TopOperator: topOperator, findings.HiddenComm: hiddenCommunication,
		findings.Straggler: straggler, findings.MemoryPeak: memoryPeak, findings.OutOfMemory: outOfMemory,
		findings.UnusedReserved: unusedReserved,
	}[f.ID]
	if write == nil {
		return string(f.ID)
	}
	return write(f)
}

// whose names the rank and device a finding is about, "" where it is about all.
func whose(f findings.Finding) string {
	switch {
	case f.Rank == nil && f.Device == nil:
		return ""
	case f.Rank == nil || f.Evidence["ranks"] == 1:
		return fmt.Sprintf("device %d", *f.Device)
	case f.Device == nil || f.Evidence["ranks"] == f.Evidence["devices"]:
		return fmt.Sprintf("rank %d", *f.Rank)
	}
	return fmt.Sprintf("device %d of rank %d", *f.Device, *f.Rank)
}

// in is a place, with the word before it; "" where there is none.
func in(f findings.Finding) string {
	if f.Place == nil {
		return ""
	}
	return "in " + placeText(*f.Place)
}

// placeText is a place as briefly as it can still be found: of the user's own
// code the file alone, of a package its path in there.
func placeText(p place.Place) string {
	if place.Own(p.File) {
		return plain(p.Base())
	}
	for _, folder := range []string{"/site-packages/", "/dist-packages/"} {
		if _, inside, ok := strings.Cut(p.File, folder); ok {
			p.File = inside
		}
	}
	return plain(p.String())
}

func deviceIdle(f findings.Finding) string {
	ranks, devices := int(f.Evidence["ranks"]), int(f.Evidence["devices"])
	who := "The device was"
	switch {
	case devices == 1:
	case devices == 0 && ranks == 1: // not known
		who = "Devices were"
	case devices == 0:
		who = fmt.Sprintf("The devices of %d ranks were", ranks)
	case ranks == 1:
		who = fmt.Sprintf("The %d devices were", devices)
	case ranks == devices:
		who = fmt.Sprintf("The devices of %d ranks were", ranks)
	default:
		who = fmt.Sprintf("The %d devices of %d ranks were", devices, ranks)
	}
	text := fmt.Sprintf("%s idle %s of the time", who, share(f.Value))
	if w := whose(f); w != "" {
		text += fmt.Sprintf(", %s most (%s)", w, share(f.Evidence["highest_share"]))
	}
	return text + "."
}

func cpuOnly(f findings.Finding) string {
	if n := int(f.Evidence["steps"]); n > 0 {
		each := " each"
		if n == 1 {
			each = ""
		}
		return fmt.Sprintf("Nothing ran on a device: %s took %s%s on the CPU.", plural(n, "step"), length(f.Evidence["mean_step_us"]), each)
	}
	return fmt.Sprintf("Nothing ran on a device in the %s recorded.", length(f.Value))
}

var causeWords = map[string]string{
	analyses.CauseNotLaunched: "the host had not launched the next work",
	analyses.CauseInsideCall:  "the host was inside the call that launches the next work",
	analyses.CauseQueued:      "the next kernel was only queued behind the last",
	analyses.CauseWaited:      "work was launched, but waited for something else (another stream or device, a collective, a copy)",
}

func idleCause(f findings.Finding) string {
	return fmt.Sprintf("%s of the devices' idle time: %s.", share(f.Value), causeWords[f.Name])
}

func launchCalls(f findings.Finding) string {
	text := fmt.Sprintf("The devices were idle %s while launching calls ran, most of it in %s (%s of %s, the longest %s",
		length(f.Evidence["idle_us"]), plain(f.Name), plural(int(f.Evidence["calls"]), "call"), length(f.Evidence["mean_us"]), length(f.Evidence["max_us"]))
	if where := in(f); where != "" {
		text += ", " + where
	}
	return text + ")."
}

func dataLoading(f findings.Finding) string {
	text := fmt.Sprintf("The steps waited for data %s of their time", share(f.Value))
	const more = 0.02 // than all together: less is no difference
	if highest := f.Evidence["highest_share"]; f.Rank != nil && highest >= f.Value+more {
		text += fmt.Sprintf(", rank %d's most (%s)", *f.Rank, share(highest))
	}
	if idle := f.Evidence["device_idle_us"]; idle > 0 {
		text += fmt.Sprintf("; devices were idle for %s of it", length(idle))
	}
	return text + "."
}

func pythonIdle(f findings.Finding) string {
	text := fmt.Sprintf("Python was %s for %s of the devices' idle time", in(f), share(f.Value))
	if inner, ok := place.Parse(f.Name); ok {
		text += fmt.Sprintf(", longest in %s (%s)", placeText(inner), share(f.Evidence["inner_share"]))
	}
	return text + "."
}

func synchronising(f findings.Finding) string {
	text := fmt.Sprintf("Devices ran out of work while the host waited in %s (%s calls, %s",
		plain(f.Name), words.Count(int64(f.Evidence["calls"])), length(f.Evidence["total_us"]))
	if where := in(f); where != "" {
		text += ", most " + where
	}
	return text + fmt.Sprintf("): %s of their idle time followed.", share(f.Value))
}

func pythonTime(f findings.Finding) string {
	return fmt.Sprintf("The main thread was %s for %s of its time, library code called from there included.", in(f), share(f.Value))
}

func topOperator(f findings.Finding) string {
	return fmt.Sprintf("Of the operators %s took most: %s of their time in %s.", plain(f.Name), share(f.Value), plural(int(f.Evidence["calls"]), "call"))
}

func hiddenCommunication(f findings.Finding) string {
	return fmt.Sprintf("%s of the communication is hidden behind computation.", share(f.Value))
}

func straggler(f findings.Finding) string {
	return fmt.Sprintf("Rank %d came last to %.0f of %.0f collectives; the other ranks waited %s for it.",
		*f.Rank, f.Evidence["times_last"], f.Evidence["collectives"], length(f.Value))
}

func memoryPeak(f findings.Finding) string {
	text := fmt.Sprintf("Memory was highest with %s on %s", bytesOf(f.Value), plain(f.On))
	if at, timed := f.Evidence["at_us"]; timed {
		text += fmt.Sprintf(", %s after the history began", length(at))
	}
	var of []string
	if part := f.Evidence["category_share"]; part > 0 && f.Name != "" {
		of = append(of, fmt.Sprintf("%s %s", share(part), plain(f.Name)))
	}
	if where := in(f); where != "" {
		of = append(of, fmt.Sprintf("%s allocated %s", share(f.Evidence["place_share"]), where))
	}
	if len(of) > 0 {
		text += ": " + strings.Join(of, ", ")
	}
	return text + "."
}

func outOfMemory(f findings.Finding) string {
	text := fmt.Sprintf("An allocation of %s on %s failed with %s free", bytesOf(f.Value), plain(f.On), bytesOf(f.Evidence["free_bytes"]))
	if where := in(f); where != "" {
		text += ", " + where
	}
	return text + "."
}

func unusedReserved(f findings.Finding) string {
	return fmt.Sprintf("%s of the memory reserved on %s was unused at the end: %s, the largest free piece %s.",
		share(f.Value), plain(f.On), bytesOf(f.Evidence["free_bytes"]), bytesOf(f.Evidence["largest_free_bytes"]))
}
