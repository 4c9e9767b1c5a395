// Package findings picks out of the tables what matters most.
//
// In flow tables of the analyses and of a memory snapshot, out flow findings as
// data: an id, a value with its unit, a place, and the figures it rests on. Their
// sentences are the view's. A finding is there only if its value reaches its
// threshold; they come in the order in which they should be read.
package findings

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/place"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// ID names a kind of finding.
type ID string

// The findings. How much comes first, then why and where in the program; what
// only describes comes last, and pages fold it first.
const (
	StepChanged    ID = "step_changed"         // µs by which a step is longer or shorter than in the run it is compared with, which Name has
	DeviceIdle     ID = "device_idle"          // share of the devices' time that nothing ran
	Communicating  ID = "communicating"        // share of the devices' time that they only communicated
	Copying        ID = "copying"              // share of the devices' time that they only copied
	CPUOnly        ID = "cpu_only"             // µs recorded of a trace without device events
	WarmUp         ID = "warm_up"              // share of the devices' time that the first cycles were idle beyond what later ones are; Name: their longest call
	IdleCause      ID = "idle_cause"           // share of the devices' idle time by its largest cause, which Name has
	DataLoading    ID = "data_loading"         // share of the steps' time spent waiting for the DataLoader
	PythonIdle     ID = "python_idle"          // share of the device idle time that a place in Python ran for
	HostIdle       ID = "host_idle"            // share of the devices' idle time that the host was in an operator, annotation or call for, which Name has
	Synchronising  ID = "synchronising"        // share of the device idle time that began inside a synchronising call, which Name has
	CriticalPath   ID = "critical_path"        // share by which the steps were shorter if what is in Name took no time; On: host or device
	Straggler      ID = "straggler"            // µs that another rank waited for this one, on average
	LaunchCalls    ID = "launch_calls"         // share of the devices' idle time inside the launching calls; Name: the slowest of them
	PythonTime     ID = "python_time"          // share of the main thread's time in a place in Python
	TopOperator    ID = "top_operator"         // share of the operators' host time; Name: the operator
	MemoryPeak     ID = "memory_peak"          // bytes allocated at most, of a snapshot; Name: what by
	OutOfMemory    ID = "out_of_memory"        // bytes asked for in vain, of a snapshot
	UnusedReserved ID = "unused_reserved"      // share of reserved memory that nothing used at the end, of a snapshot
	Phases         ID = "phases"               // share of the devices' work that the largest phase launched, which Name has
	Efficiency     ID = "efficiency"           // share of what the device's peaks allow that the operators of the kind in Name reached
	ServingIdle    ID = "serving_idle"         // share of the devices' idle time in the phase of serving in Name
	HiddenComm     ID = "hidden_communication" // share of the communication that computation ran beside
)

// Unit of a finding's value.
type Unit string

const (
	Share  Unit = "share" // 0 to 1
	Micros Unit = "us"
	Bytes  Unit = "bytes"
)

// Finding is one.
type Finding struct {
	ID        ID
	Value     float64
	Unit      Unit
	Threshold float64      // from which on it is one
	Rank      *int64       // the rank it is about; nil: all
	Device    *int64       // the device it is about; nil: all
	Place     *place.Place // in Python; nil: none
	Name      string       // of a cause, call, operator or category, as in the tables
	Call      string       // the runtime call that most of the value was spent in
	On        string       // the memory it is about, as in a snapshot's tables
	// Evidence are the figures behind the value, by name with their unit.
	Evidence map[string]float64
	// Lost is the share of the devices' time that it cost, of a trace without device events
	// the share of the host's; 0 of what costs no time. Findings of a group are in its order.
	Lost float64
}

// Tables are what findings are made from.
type Tables []*table.Table

// get is a table by name; an empty one if it is not there.
func (t Tables) get(name string) *table.Table {
	if at := slices.IndexFunc(t, func(t *table.Table) bool { return t.Name == name }); at >= 0 {
		return t[at]
	}
	return &table.Table{}
}

// onDevices notes how many devices a finding is about, where that is known.
func (t Tables) onDevices(evidence map[string]float64) map[string]float64 {
	if n := t.get(analyses.TableTemporalByDevice).Len(); n > 0 {
		evidence["devices"] = float64(n)
	}
	return evidence
}

// group is what a finding answers, in the order of reading.
type group uint8

const (
	against   group = iota // how it compares with another run, which was asked for
	howMuch                // how much time was lost at all
	why                    // what the devices were idle for
	where                  // where in the program, or whose fault
	memory                 // what a snapshot says
	describes              // what costs nothing
)

// rules make findings, most of them one at most. They are read in the order of their groups, within a
// group in that of weight times Lost, then in this order.
var rules = []struct {
	group   group
	weight  float64
	measure func(Tables) []*Finding
}{
	{against, 1, stepChanged},
	{howMuch, 1, one(deviceIdle)},
	{howMuch, 1, one(communicating)},
	{howMuch, 1, one(copying)},
	{howMuch, 1, one(cpuOnly)},
	{why, 1, one(idleCause)},
	{where, 1, one(warmUp)},
	{where, 1, one(dataLoading)},
	{where, 1, one(pythonIdle)},
	{where, 1, one(hostIdle)},
	{where, 1, one(servingIdle)},
	{where, 0.5, one(synchronising)}, // the idle time began there; what the host did then made it as long
	{where, 1, stragglers},
	{where, 0.5, one(criticalPath)}, // nothing takes no time
	{where, 0.5, one(launchCalls)},  // a line is more easily changed than a call of the driver
	{where, 1, one(pythonTime)},
	{where, 0.5, one(topOperator)}, // likewise
	{memory, 1, one(memoryPeak)},
	{memory, 1, one(outOfMemory)},
	{memory, 1, one(unusedReserved)},
	{describes, 1, one(hiddenCommunication)},
	{describes, 1, one(phases)},
	{describes, 1, one(efficiency)},
}

// one is the rule of a measure that finds one thing or nothing.
func one(measure func(Tables) *Finding) func(Tables) []*Finding {
	return func(t Tables) []*Finding {
		if f := measure(t); f != nil {
			return []*Finding{f}
		}
		return nil
	}
}

// Of lists the findings.
func Of(tables Tables) []Finding {
	type ranked struct {
		Finding
		group    group
		priority float64
	}
	var found []ranked
	for _, r := range rules {
		for _, f := range r.measure(tables) {
			if f.Value >= f.Threshold {
				found = append(found, ranked{*f, r.group, r.weight * f.Lost})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(b.priority, a.priority))
	})
	list := make([]Finding, len(found))
	for i, f := range found {
		list[i] = f.Finding
	}
	return list
}

// ofIdle is the share of the devices' time that a share of their idle time is.
func (t Tables) ofIdle(share float64) float64 {
	if idle := deviceIdle(t); idle != nil {
		return share * idle.Value
	}
	return 0
}

func pointer(n int64) *int64 {
	if n == table.None {
		return nil
	}
	return &n
}

// ratio is a share, 0 of nothing.
func ratio(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return part / whole
}
