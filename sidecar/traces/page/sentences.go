package page

import (
	"fmt"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/findings"
	"github.com/omni-perf/omni-perf/sidecar/traces/place"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
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
		findings.StepChanged: stepChanged, findings.WarmUp: warmUp, findings.DeviceIdle: deviceIdle, findings.Communicating: communicating, findings.Copying: copying, findings.CPUOnly: cpuOnly, findings.IdleCause: idleCause, findings.LaunchCalls: launchCalls,
		findings.DataLoading: dataLoading, findings.PythonIdle: pythonIdle, findings.HostIdle: hostIdle, findings.Synchronising: synchronising,
		findings.PythonTime: pythonTime, findings.TopOperator: topOperator, findings.HiddenComm: hiddenCommunication, findings.Phases: phases, findings.ServingIdle: servingIdle, findings.Efficiency: efficiency,
		findings.CriticalPath: criticalPath, findings.Straggler: straggler, findings.MemoryPeak: memoryPeak, findings.OutOfMemory: outOfMemory,
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
	if p.Own() {
		return plain(p.Base())
	}
	p.File = origin.Below(p.File)
	return plain(p.String())
}

// those are the devices that a finding is about.
type those struct{ noun, were, owning, their string }

// devices are one, or several, or as many as there may be.
func devices(f findings.Finding) those {
	if f.Evidence["devices"] == 1 {
		return those{"the device", "the device was", "the device's", "its"}
	}
	return those{"the devices", "the devices were", "the devices'", "their"}
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
	if f.Value == 0 && f.Evidence["device_us"] > 0 {
		text = who + " never idle"
	}
	outside := outsideOfDevices(f)
	if outside != "" {
		their := "their"
		if devices == 1 {
			their = "its"
		}
		text += fmt.Sprintf(" from %s first event to %s last", their, their)
	}
	if w := whose(f); w != "" {
		text += fmt.Sprintf(", %s most (%s)", w, share(f.Evidence["highest_share"]))
	}
	return text + outside + "."
}

// muchOutside is the share of the time that was analysed from which on it is said that it lies before or after the devices' events.
const muchOutside = 0.1

// outsideOfDevices is what of the time lies before the first and after the last device event, which is not counted as idle; "" if
// that is little.
func outsideOfDevices(f findings.Finding) string {
	before, after, inside := f.Evidence["before_us"], f.Evidence["after_us"], f.Evidence["device_us"]
	whole := before + inside + after
	if before+after < muchOutside*whole || before+after == 0 {
		return ""
	}
	var parts []string
	const worthSaying = 0.01
	if before >= worthSaying*whole {
		parts = append(parts, share(before/whole)+" of what was analysed is before")
	}
	if after >= worthSaying*whole {
		text := share(after/whole) + " after"
		if len(parts) == 0 {
			text = share(after/whole) + " of what was analysed is after"
		}
		parts = append(parts, text)
	}
	text := "; " + strings.Join(parts, " and ")
	if f.Evidence["devices"] == 1 {
		text = fmt.Sprintf(" (%s of %s)", length(inside), length(whole)) + text
	}
	return text + " that"
}

func stepChanged(f findings.Finding) string {
	before, after := f.Evidence["before_us"], f.Evidence["after_us"]
	text := fmt.Sprintf("A step took %s, ", length(after))
	switch {
	case f.Evidence["noise"] > 0:
		return text + fmt.Sprintf("in %s %s: no more than noise.", plain(f.Name), length(before))
	case after < before:
		text += share(f.Value/before) + " less"
	default:
		text += share(f.Value/before) + " more"
	}
	return text + fmt.Sprintf(" than in %s (%s).", plain(f.Name), length(before))
}

func communicating(f findings.Finding) string { return insteadOfComputing(f, "communicated") }

func copying(f findings.Finding) string { return insteadOfComputing(f, "copied") }

func insteadOfComputing(f findings.Finding, did string) string {
	text := fmt.Sprintf("%s only %s for %s of the time and computed for %s", capital(devices(f).noun), did, share(f.Value), share(f.Evidence["compute_share"]))
	const more = 0.02 // than all together: less is no difference
	if highest := f.Evidence["highest_share"]; f.Rank != nil && highest >= f.Value+more {
		text += fmt.Sprintf("; %s most (%s)", whose(f), share(highest))
	}
	return text + "."
}

func cpuOnly(f findings.Finding) string {
	steps, launches := int(f.Evidence["steps"]), int(f.Evidence["launches"])
	if steps == 0 && launches == 0 && f.Value == 0 {
		const inactive = 10 // what Kineto writes about the process and itself
		if events := f.Evidence["events"]; events > 0 && events <= inactive*f.Evidence["recordings"] {
			return "Nothing was recorded: the profiler was waiting or warming up when this was written. Export in on_trace_ready, which is called at the end of each active cycle."
		}
		return "Nothing was recorded."
	}
	which, have, together := "trace", "has", ""
	if f.Evidence["recordings"] > 1 {
		which, have, together = "traces", "have", " together"
	}
	if steps == 0 {
		which += " of " + length(f.Value) + together
	}
	text := fmt.Sprintf("The %s %s no device events", which, have)
	if launches > 0 {
		text = fmt.Sprintf("Kernels were launched (%s), but not recorded: the %s %s no device events", plural(launches, "call"), which, have)
	}
	switch steps {
	case 0:
		return text + "."
	case 1:
		return fmt.Sprintf("%s; 1 step took %s.", text, length(f.Evidence["mean_step_us"]))
	}
	return fmt.Sprintf("%s; %s took %s each.", text, plural(steps, "step"), length(f.Evidence["mean_step_us"]))
}

var causeWords = map[string]string{
	analyses.CauseNotLaunched: "the host had not launched the next work",
	analyses.CauseInsideCall:  "the host was inside the call that launches the next work",
	analyses.CauseQueued:      "the next kernel was only queued behind the last",
	analyses.CauseWaited:      "work was launched, but waited for something else (another stream or device, a collective, a copy)",
	analyses.CauseUnknown:     "the call that launched the next work was not recorded",
}

func idleCause(f findings.Finding) string {
	return fmt.Sprintf("%s of %s idle time: %s.", capital(howMuch(f.Value)), devices(f).owning, causeWords[f.Name])
}

func launchCalls(f findings.Finding) string {
	text := fmt.Sprintf("%s idle %s while launching calls ran, most of it in %s (%s of %s",
		capital(devices(f).were), length(f.Evidence["idle_us"]), plain(f.Name), plural(int(f.Evidence["calls"]), "call"), length(f.Evidence["mean_us"]))
	if f.Evidence["calls"] > 1 {
		text += ", the longest " + length(f.Evidence["max_us"])
	}
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
		text += fmt.Sprintf("; %s idle for %s of it", devices(f).were, length(idle))
	}
	return text + "."
}

func pythonIdle(f findings.Finding) string {
	text := fmt.Sprintf("Python was %s for %s of %s idle time", in(f), howMuch(f.Value), devices(f).owning)
	if inner, ok := place.Parse(f.Name); ok {
		text += fmt.Sprintf(", longest in %s (%s)", placeText(inner), share(f.Evidence["inner_share"]))
	}
	return text + "."
}

func hostIdle(f findings.Finding) string {
	text := fmt.Sprintf("The host was in %s for %s of %s idle time", plain(f.Name), howMuch(f.Value), devices(f).owning)
	if f.Call != "" {
		text += fmt.Sprintf(", most of it in %s", plain(f.Call))
	}
	return text + "."
}

func synchronising(f findings.Finding) string {
	text := fmt.Sprintf("%s ran out of work while the host waited in %s (%s, %s",
		capital(devices(f).noun), plain(f.Name), plural(int(f.Evidence["calls"]), "call"), length(f.Evidence["total_us"]))
	if where := in(f); where != "" {
		text += ", most " + where
	}
	return text + fmt.Sprintf("): %s of %s idle time followed.", howMuch(f.Value), devices(f).their)
}

func pythonTime(f findings.Finding) string {
	return fmt.Sprintf("The main thread was %s for %s of its time, library code called from there included.", in(f), share(f.Value))
}

func topOperator(f findings.Finding) string {
	return fmt.Sprintf("Of the operators %s took most: %s of their CPU time in %s.", plain(f.Name), share(f.Value), plural(int(f.Evidence["calls"]), "call"))
}

func warmUp(f findings.Finding) string {
	text := "Cycle 1 was warm-up"
	if n := int(f.Evidence["cycles"]); n > 1 {
		text = fmt.Sprintf("The first %d cycles were warm-up", n)
	}
	if f.Rank != nil {
		text += fmt.Sprintf(", of rank %d most", *f.Rank)
	}
	text += fmt.Sprintf(": %s idle %s of the time, later %s", devices(f).were, share(f.Evidence["idle_share"]), share(f.Evidence["usual_share"]))
	if f.Name != "" {
		text += fmt.Sprintf("; %s were in one %s", length(f.Evidence["call_us"]), plain(f.Name))
	}
	return text + "."
}

func hiddenCommunication(f findings.Finding) string {
	text := capital(howMuch(f.Value)) + " of the communication"
	if us := f.Evidence["communication_us"]; us > 0 {
		text += fmt.Sprintf(" (%s)", length(us))
	}
	return text + " is hidden behind computation."
}

func straggler(f findings.Finding) string {
	which := words.Count(int64(f.Evidence["times_last"])) + " of " + words.Count(int64(f.Evidence["collectives"])) + " collectives"
	if f.Evidence["collectives"] == 1 {
		which = "the only collective"
	}
	others := "the other ranks"
	if f.Evidence["ranks"] == 2 {
		others = "the other rank"
	}
	text := fmt.Sprintf("Rank %d came last to %s; %s waited %s for it", *f.Rank, which, others, length(f.Value))
	if f.Evidence["ranks"] > 2 {
		text += " on average"
	}
	if part := f.Value / f.Evidence["device_us"]; f.Evidence["device_us"] > 0 {
		text += fmt.Sprintf(" (%s of the time)", share(part))
	}
	return text + "."
}

func memoryPeak(f findings.Finding) string {
	text := fmt.Sprintf("Memory was highest with %s on %s", bytesOf(f.Value), plain(f.On))
	if blocks := f.Evidence["max_memory_allocated_bytes"]; blocks > 0 {
		text = fmt.Sprintf("Memory was highest with %s requested on %s (max_memory_allocated: %s or more)", bytesOf(f.Value), plain(f.On), bytesOf(blocks))
	}
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

// phaseWords name what the devices worked for.
var phaseWords = map[analyses.Phase]string{
	analyses.Forward: "the forward pass", analyses.Backward: "the backward pass", analyses.Optimizer: "the optimizer", analyses.OtherPhase: "none of these",
}

func phases(f findings.Finding) string {
	var parts []string
	for phase := analyses.Forward; phase <= analyses.OtherPhase; phase++ {
		if part := f.Evidence[phase.String()+"_share"]; part >= 0.005 {
			parts = append(parts, share(part)+" for "+phaseWords[phase])
		}
	}
	last := len(parts) - 1
	parts[0] = strings.Replace(parts[0], " for", " was for", 1)
	return fmt.Sprintf("Of the work on %s %s and %s.", devices(f).noun, strings.Join(parts[:last], ", "), parts[last])
}

// kindWords name kinds of operators.
var kindWords = map[string]string{
	analyses.KindGEMM: "matrix products", analyses.KindAttention: "attention", analyses.KindConvolution: "convolutions",
}

func efficiency(f findings.Finding) string {
	which := capital(kindWords[f.Name])
	were := "were"
	if f.Name == analyses.KindAttention {
		were = "was"
	}
	return fmt.Sprintf("%s %s %s of the work on %s and ran at %s of what %s peaks allow.",
		which, were, share(f.Evidence["work_share"]), devices(f).noun, share(f.Value), devices(f).their)
}

func servingIdle(f findings.Finding) string {
	text := fmt.Sprintf("%s of %s idle time was ", capital(howMuch(f.Value)), devices(f).owning)
	if f.Name == analyses.Between {
		return text + "between the inference engine's steps."
	}
	if f.Evidence["steps"] == 1 {
		return text + fmt.Sprintf("in the only %s step (%s).", plain(f.Name), length(f.Evidence["mean_step_us"]))
	}
	text += fmt.Sprintf("in %s steps (%s of %s", plain(f.Name), words.Count(int64(f.Evidence["steps"])), length(f.Evidence["mean_step_us"]))
	if n := f.Evidence["mean_requests"]; n > 0 {
		each := " requests each"
		if n == 1 {
			each = " request each"
		}
		text += ", " + digits(n) + each
	}
	return text + ")."
}
