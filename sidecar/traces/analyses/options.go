package analyses

import (
	"fmt"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/understand/gpuidle"
)

// Mode says by whose rules numbers are computed.
type Mode string

const (
	Exact Mode = "exact"  // integer nanoseconds, no known faults; the default
	HTA   Mode = "hta"    // HolisticTraceAnalysis with its microsecond rounding
	HTANs Mode = "hta-ns" // HolisticTraceAnalysis with HTA_DISABLE_NS_ROUNDING=1
)

// ParseMode accepts the spelling of the command line; "" means Exact.
func ParseMode(text string) (Mode, error) {
	switch m := Mode(text); m {
	case "":
		return Exact, nil
	case Exact, HTA, HTANs:
		return m, nil
	}
	return "", fmt.Errorf("unknown mode %q: use exact, hta or hta-ns", text)
}

// Names of the tables. The first ten are the sections of the JSON that
// HolisticTraceAnalysis knows too.
const (
	TableTemporal        = "temporal_breakdown"
	TableIdle            = "idle_time_breakdown"
	TableOverlap         = "comm_comp_overlap"
	TableLaunch          = "cuda_kernel_launch_stats"
	TableKernels         = "gpu_kernel_breakdown"
	TableKernelTypes     = "gpu_kernel_type_breakdown"
	TableKernelsTop      = "gpu_kernel_breakdown_top10"
	TableIdleIntervals   = "idle_interval_stats"
	TableMemoryBandwidth = "memory_bw_summary"
	TableQueueLength     = "queue_length_summary"

	TableTemporalByDevice   = "temporal_breakdown_by_device"
	TableIdleCauses         = "idle_causes"          // the streams' idle time, divided further: host, launch call, queue, waiting
	TableCalls              = "runtime_calls"        // host calls of the runtime: time, synchronisations, what waited for them
	TableLaunchDelay        = "launch_delay_summary" // percentiles and outliers per rank and call
	TableSteps              = "profiler_step_times"  // one row per rank and step
	TableCollectives        = "collectives"          // the same collective across ranks: straggler, wait, transfer
	TableStragglers         = "straggler_summary"    // per rank: how often and for how long others waited
	TableDataLoader         = "dataloader"           // per step: time in enumerate(DataLoader), device idle under it
	TableOperators          = "operators"            // key_averages
	TableMemoryPeaks        = "memory_peaks"         // per rank and device: peak allocated and reserved
	TablePythonIdle         = "python_idle"          // device idle attributed to Python lines
	TableHostIdle           = "host_idle"            // device idle attributed to operators, annotations and calls of the host
	TablePythonFunctions    = "python_functions"     // what the main thread's time went into
	TableModules            = "modules"              // device and host time by nn.Module, a tree
	TableModuleClasses      = "module_classes"       // the same with the modules of one class and place together
	TableAnnotations        = "annotations"          // device and host time by record_function range, a tree
	TablePhases             = "phases"               // forward, backward, optimizer
	TableEfficiency         = "efficiency"           // operators by shapes: operations, bytes, share of the device's peak
	TableEfficiencyKinds    = "efficiency_by_kind"   // the same by kind: GEMM, attention, …
	TableCommunication      = "collective_bandwidth" // by size, group and type
	TableServingSteps       = "serving_steps"        // an inference engine's forward passes: prefill, decode, batch
	TableServingPhases      = "serving_phases"       // the same by phase, with the devices' idle time
	TableCriticalPath       = "critical_path"        // what the length of the steps depended on
	TableCriticalPathReplay = "critical_path_replay" // how well its graph reproduces them
	TableAcrossRanks        = "across_ranks"         // each headline figure: mean and extremes over the ranks
	TableKernelsTogether    = "gpu_kernel_breakdown_all_ranks"
	TableRecordings         = "recordings"              // the files, by rank and cycle
	TableCycles             = "cycles"                  // per rank and recording of it: steps, idle, the longest call
	TableBandwidthSeries    = "memory_bw_series"        // series: only when asked for by name
	TableQueueSeries        = "queue_length_series"     // series
	TableMemoryTimeline     = "memory_timeline"         // series
	TableLaunchDelayBins    = "launch_delay_histogram"  // counts per delay bin
	TableIdleIntervalBins   = "idle_interval_histogram" // counts per idle-gap bin
)

// DefaultTables is what is computed when not asked otherwise: everything but the
// series, which have a row per event.
func DefaultTables() []string {
	return []string{
		TableTemporal, TableTemporalByDevice, TableIdle, TableIdleCauses, TableOverlap, TableLaunch, TableKernels,
		TableKernelTypes, TableKernelsTop, TableIdleIntervals,
		TableMemoryBandwidth, TableQueueLength,
		TableCalls, TableLaunchDelay, TableSteps, TableCollectives, TableStragglers,
		TableDataLoader, TableEfficiencyKinds, TableEfficiency, TableCommunication, TableOperators, TableServingPhases, TableServingSteps, TablePhases, TableModuleClasses, TableModules, TableAnnotations, TableMemoryPeaks, TablePythonIdle, TableHostIdle, TablePythonFunctions,
		TableLaunchDelayBins, TableIdleIntervalBins,
		TableAcrossRanks, TableKernelsTogether, TableRecordings, TableCycles,
	}
}

// Series have a row per event: for charts and CSV, too long for the JSON unless
// asked for by name.
func Series() []string {
	return []string{TableQueueSeries, TableBandwidthSeries, TableMemoryTimeline}
}

// CriticalPath are the tables of the critical path, which cost as much as all others: only when asked for.
func CriticalPath() []string { return []string{TableCriticalPath, TableCriticalPathReplay} }

// AllTables are the names of all.
func AllTables() []string { return slices.Concat(DefaultTables(), CriticalPath(), Series()) }

// Options: the zero value is exact mode over all steps but an unfinished last
// one of each recording.
type Options struct {
	Mode Mode
	// IncludeLastStep keeps the last ProfilerStep of a recording, which is
	// usually cut off by its end and therefore dropped.
	IncludeLastStep bool
	// Steps keeps only these ProfilerStep numbers (exact mode); empty keeps all.
	Steps []int
	// Tables names the tables to compute; empty means DefaultTables.
	Tables []string
	// KernelWait is the gap up to which a device that had work queued is
	// said to wait for the next kernel only; 0 means 30 µs, as in HTA.
	KernelWait time.Duration
	// TopKernels is how many kernels a folded breakdown names; 0 means 10.
	TopKernels int
	// GroupByShape splits the operator table by input shapes.
	GroupByShape bool
}

// WithDefaults fills in what is not set.
func (opts Options) WithDefaults() Options {
	if opts.Mode == "" {
		opts.Mode = Exact
	}
	if opts.TopKernels <= 0 {
		opts.TopKernels = 10
	}
	if opts.KernelWait <= 0 {
		opts.KernelWait = gpuidle.KernelWait
	}
	if len(opts.Tables) == 0 {
		opts.Tables = DefaultTables()
	}
	return opts
}

// AsHTA reports whether the mode is one of HolisticTraceAnalysis's.
func (opts *Options) AsHTA() bool { return opts.Mode == HTA || opts.Mode == HTANs }

// wants reports whether one of the tables is asked for.
func (opts *Options) wants(tables ...string) bool {
	return slices.ContainsFunc(tables, func(name string) bool { return slices.Contains(opts.Tables, name) })
}

// WantsPython reports whether Python frames are needed.
func (opts *Options) WantsPython() bool {
	return opts.AsHTA() || opts.wants(TablePythonIdle, TablePythonFunctions, TableCalls, TableModules, TableModuleClasses, TablePhases, TableCriticalPath, TableCriticalPathReplay)
}

// Inputs says of which operators the analyses want the input shapes, for
// kineto.Options.Inputs.
func (opts *Options) Inputs() func(operator string) bool {
	switch {
	case !opts.wants(TableOperators, TableEfficiency, TableEfficiencyKinds):
		return nil
	case opts.GroupByShape:
		return func(string) bool { return true }
	}
	return func(operator string) bool {
		return countsFlops(operator) || opts.wants(TableEfficiency, TableEfficiencyKinds) && models[operator].of != nil
	}
}
