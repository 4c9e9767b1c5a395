package addtrace

import (
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// maxRows bounds the operators and the kernels of a report, most time first.
const maxRows = 2000

// figuresAsked are the tables that a report takes from traces. A step that a trace holds whole
// counts, also the last one: the profiler ended it before it stopped.
func figuresAsked(byShape bool) analyses.Options {
	return analyses.Options{
		Tables:          []string{analyses.TableOperators, analyses.TableKernels},
		IncludeLastStep: true, GroupByShape: byShape,
	}.WithDefaults()
}

// figures are the operators and kernels of one process's traces, summed up over them, and what m
// knows of where they lie.
func (m *Merged) figures(set *kineto.Set, traced Traced) *report.Torch {
	for _, t := range set.Traces {
		t.Rank = set.Traces[0].Rank // cycles, whatever their files are called
	}
	a := traces.Analyze(set, figuresAsked(traced.ByShape))
	out := &report.Torch{PID: traced.PID, Operators: operators(a.Table(analyses.TableOperators)), KernelTimes: kernelTimes(a.Table(analyses.TableKernels))}
	for i, t := range set.Traces {
		damaged := slices.ContainsFunc(set.Warnings, func(w kineto.Warning) bool { return w.File == t.File && !w.Note })
		out.Traces = append(out.Traces, report.Trace{
			File: filepath.Base(t.File), StartNS: int64(m.Covered[i].Start), EndNS: int64(m.Covered[i].End), Steps: m.Steps[i],
			Events: t.Records, ErrorNS: int64(m.Error), Damaged: damaged,
		})
	}
	return out
}

func operators(t *table.Table) []report.Operator {
	if t == nil {
		return nil
	}
	var out []report.Operator
	for row := range min(t.Len(), maxRows) {
		o := report.Operator{
			Name: t.TextAt("name", row), Calls: t.IntAt("calls", row), SelfCPUNS: nanoseconds(t, "self_cpu_us", row), TotalCPUNS: nanoseconds(t, "total_cpu_us", row),
			SelfCPUBytes: intOf(t, "self_cpu_bytes", row), SelfDeviceBytes: intOf(t, "self_device_bytes", row),
		}
		if t.Column("input_shapes") != nil {
			shapes := t.TextAt("input_shapes", row)
			o.InputShapes = &shapes
		}
		if t.Column("self_device_us") != nil {
			self, total := nanoseconds(t, "self_device_us", row), nanoseconds(t, "total_device_us", row)
			o.SelfDeviceNS, o.TotalDeviceNS = &self, &total
		}
		if flops := t.FloatAt("flops", row); t.Column("flops") != nil && !math.IsNaN(flops) {
			o.Flops = &flops
		}
		out = append(out, o)
	}
	return out
}

func kernelTimes(t *table.Table) []report.KernelTime {
	if t == nil {
		return nil
	}
	var out []report.KernelTime
	for row := range min(t.Len(), maxRows) {
		out = append(out, report.KernelTime{
			Name: t.TextAt("name", row), Kind: strings.ToLower(t.TextAt("kernel_type", row)), Count: t.IntAt("count", row),
			TotalNS: nanoseconds(t, "sum_us", row), MinNS: nanoseconds(t, "min_us", row), MaxNS: nanoseconds(t, "max_us", row),
		})
	}
	return out
}

func nanoseconds(t *table.Table, column string, row int) int64 {
	return int64(math.Round(t.FloatAt(column, row) * 1000))
}

func intOf(t *table.Table, column string, row int) *int64 {
	v := t.IntAt(column, row)
	if v == table.None {
		return nil
	}
	return &v
}
