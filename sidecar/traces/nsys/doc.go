// Package nsys reads the SQLite file that Nsight Systems exports (nsys export --type sqlite).
//
// In flows the database, of any size and of any version: tables and columns that it does not have are absent. Out
// flows a kineto.Trace per process that used a device, with its kernels, copies, fills and graphs, its calls of the
// CUDA runtime and driver, and its NVTX ranges. Times are nanoseconds since the session began, which the file places
// in time. The file knows neither operators nor Python.
//
// The tables are those of NVIDIA's "SQLite Export Schema Reference"; numbers without a source there are CUPTI's
// (cupti_activity.h).
package nsys

import (
	"cmp"
	"context"
	"os"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/sqlite"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// StringTable is the table that every export has.
const StringTable = "StringIds"

// Read reads an export. Its error is non-nil only when ctx ended.
func Read(ctx context.Context, in kineto.Input, opts kineto.Options) (traces []*kineto.Trace, warnings []kineto.Warning, err error) {
	db, err := sqlite.Open(in.At, in.Size)
	if err != nil && db == nil {
		return nil, []kineto.Warning{in.Warn(err.Error(), "nothing could be read")}, nil
	}
	r := &reader{ctx: ctx, in: in, opts: opts, db: db, events: kineto.EventCount{Step: in.Step}, names: map[int64]string{}, processes: map[int64]*process{}}
	r.damage(err)
	for _, read := range []func(){r.strings, r.session, r.deviceNames, r.calls, r.threads, r.kernels, r.copies, r.fills, r.graphs, r.ranges, r.diagnostics} {
		read()
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	chosen := r.chosen()
	for _, p := range chosen {
		traces = append(traces, p.b.Done())
	}
	return traces, r.notes(len(chosen)), nil
}

// reader reads one export.
type reader struct {
	ctx       context.Context
	in        kineto.Input
	opts      kineto.Options
	db        *sqlite.File
	names     map[int64]string // StringIds
	host      string
	begin     int64 // ns since the epoch of the session's begin
	devices   map[deviceKey]string
	processes map[int64]*process
	events    kineto.EventCount
	graphRuns int
	skipped   int // rows without the numbers that they need
	warnings  []kineto.Warning
}

// process is one whose events are read.
type process struct {
	b       *kineto.Builder
	pid     int64
	devices map[int32]bool // that it used
}

// process is that of a number, -1 where it is not known.
func (r *reader) process(pid int64) *process {
	p := r.processes[pid]
	if p == nil {
		p = &process{b: kineto.NewBuilder(r.in.File, r.opts, pid, r.host), pid: pid, devices: map[int32]bool{}}
		p.b.Meta().BaseTime = r.begin
		r.processes[pid] = p
	}
	return p
}

// chosen are the processes that used a device, else all, in the order of their devices: each is a rank.
func (r *reader) chosen() (list []*process) {
	for _, p := range r.processes {
		list = append(list, p)
	}
	if slices.ContainsFunc(list, (*process).onDevice) {
		list = slices.DeleteFunc(list, func(p *process) bool { return !p.onDevice() })
	}
	slices.SortFunc(list, func(a, b *process) int { return cmp.Or(cmp.Compare(a.lowest(), b.lowest()), cmp.Compare(a.pid, b.pid)) })
	return list
}

func (p *process) onDevice() bool { return len(p.devices) > 0 }

// lowest is the first of its devices.
func (p *process) lowest() int32 {
	lowest := int32(1<<31 - 1)
	for d := range p.devices {
		lowest = min(lowest, d)
	}
	return lowest
}

// damage notes what is wrong with the database.
func (r *reader) damage(err error) {
	if err != nil {
		r.warnings = append(r.warnings, r.in.Warn(err.Error(), "the rows there were not read"))
	}
}

// notes are the warnings, and what the file lacks.
func (r *reader) notes(chosen int) []kineto.Warning {
	list := r.warnings
	for _, end := range []string{"-wal", "-journal"} {
		if info, err := os.Stat(r.in.File + end); err == nil && info.Size() > 0 {
			list = append(list, r.in.Warn("the database was not closed: there is "+r.in.File+end, "what is only there was not read"))
		}
	}
	if r.skipped > 0 {
		list = append(list, r.in.Warn(words.Plural(r.skipped, "row", "rows")+" without the numbers that a row has", "these were left out"))
	}
	if r.events.Over {
		list = append(list, r.in.Warn(r.events.TooMany()))
	}
	if r.graphRuns > 0 {
		list = append(list, r.in.Note("CUDA graphs were recorded as a whole ("+words.Plural(r.graphRuns, "run", "runs")+")",
			"their kernels are not known: record with --cuda-graph-trace=node"))
	}
	if chosen == 0 {
		return append(list, r.in.Warn("the export of Nsight Systems has no kernels, copies, calls or ranges", "record with --trace=cuda,nvtx"))
	}
	if left := len(r.processes) - chosen; left > 0 {
		list = append(list, r.in.Note(words.Plural(left, "process", "processes")+" ran nothing on a device", "of these nothing is shown"))
	}
	return append(list, r.in.Note("exported by Nsight Systems", "it knows neither operators nor Python"))
}

// each visits the rows of a table as events.
func (r *reader) each(table string, columns []string, visit func(row) error) {
	err := r.db.Each(table, columns, func(v []sqlite.Value) bool {
		if r.ctx.Err() != nil || !r.events.Next() {
			return false
		}
		if visit(v) != nil {
			r.skipped++
		}
		return true
	})
	r.damage(err)
}
