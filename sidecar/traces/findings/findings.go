// Package findings picks out of the tables what matters most.
//
// In flow tables of the analyses and of a memory snapshot, out flow findings as
// data: an id, a value with its unit, a place, and the figures it rests on. Their
// sentences are the view's. A finding is there only if its value reaches its
// threshold; they come in the order in which they should be read.
package findings

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/place"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// ID names a kind of finding.
type ID string

// The findings, in the order of reading: how much, why, where in the program; what
// only describes comes last, and pages fold it first.
const (
	DeviceIdle     ID = "device_idle"          // share of the devices' time that nothing ran
	CPUOnly        ID = "cpu_only"             // µs recorded of a trace without device events
	IdleCause      ID = "idle_cause"           // share of the devices' idle time by its largest cause, which Name has
	DataLoading    ID = "data_loading"         // share of the steps' time spent waiting for the DataLoader
	PythonIdle     ID = "python_idle"          // share of the device idle time that a place in Python ran for
	Synchronising  ID = "synchronising"        // share of the device idle time that began inside a synchronising call, which Name has
	Straggler      ID = "straggler"            // µs that the other ranks waited for one rank
	LaunchCalls    ID = "launch_calls"         // share of the devices' idle time inside the launching calls; Name: the slowest of them
	PythonTime     ID = "python_time"          // share of the main thread's time in a place in Python
	TopOperator    ID = "top_operator"         // share of the operators' host time; Name: the operator
	MemoryPeak     ID = "memory_peak"          // bytes allocated at most, of a snapshot; Name: what by
	OutOfMemory    ID = "out_of_memory"        // bytes asked for in vain, of a snapshot
	UnusedReserved ID = "unused_reserved"      // share of reserved memory that nothing used at the end, of a snapshot
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
	On        string       // the memory it is about, as in a snapshot's tables
	// Evidence are the figures behind the value, by name with their unit.
	Evidence map[string]float64
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

// rule makes at most one finding.
type rule func(Tables) *Finding

// Of lists the findings.
func Of(tables Tables) []Finding {
	list := []Finding{}
	for _, r := range []rule{
		deviceIdle, cpuOnly, idleCause, dataLoading, pythonIdle, synchronising, straggler, launchCalls, pythonTime, topOperator,
		memoryPeak, outOfMemory, unusedReserved, hiddenCommunication,
	} {
		if f := r(tables); f != nil && f.Value >= f.Threshold {
			list = append(list, *f)
		}
	}
	return list
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
