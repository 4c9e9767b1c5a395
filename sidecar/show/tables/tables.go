// Package tables lays a report out as tables with resolved names: a row of lines has
// its file, its number and its text, so that nobody who reads a table joins it with
// another.
//
// In flows a report.View, out flow Tables, which are written as CSV files. Names and units are in the columns: seconds end in _s, bytes in _bytes; what
// is not known is nil.
package tables

import (
	"fmt"
	"math"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Table is named rows; each has a value for each column: nil, bool, int, float64,
// string, or States.
type Table struct {
	Name    string
	About   string
	Columns []Column
	Rows    [][]any
}

// Column is a name and what it means.
type Column struct{ Name, About string }

// States are seconds by the state of a thread, of the states in which there is time.
type States map[string]float64

// Parts are seconds by the id of what took them. In a file they are one cell.
type Parts map[string]float64

// Of makes all tables of a report, in the order of reading.
func Of(v *report.View) []Table {
	m := &maker{v}
	return []Table{
		m.idle(), m.lines(), m.functions(), m.blocked(), m.awaits(), m.memory(), m.memoryFunctions(), m.gpuMemory(), m.torchMemory(), m.allocations(), m.threads(), m.processes(),
		m.devices(), m.findings(),
		m.steps(), m.phases(), m.slowSteps(), m.loaders(), m.regions(), m.ranks(), m.rankLines(), m.operators(), m.kernels(), m.traces(), m.outOfMemory(), m.deviceMemory(), m.tracks(),
	}
}

// maker fills tables from a report.
type maker struct{ *report.View }

var placeColumns = []Column{
	{"file", "source file or cell, as a display names it"},
	{"line", "its line, from 1"},
	{"function", "the function there"},
}

var textColumn = Column{"text", "the line's text, where it is known"}

func (m *maker) place(file, line, function *int) []any {
	row := []any{nil, optional(line), nil}
	if file != nil {
		row[0] = m.FileName(file)
	}
	if function != nil {
		row[2] = m.FunctionName(*function)
	}
	return row
}

func (m *maker) text(file, line *int) any {
	if text := m.LineText(file, line); text != "" {
		return text
	}
	return nil
}

// process names a process the same in every table.
func (m *maker) process(i int) string {
	p := &m.Processes[i]
	if p.Role == string(timeline.RoleRank) && p.Rank != nil {
		return fmt.Sprintf("rank %d (%d)", *p.Rank, p.PID)
	}
	return fmt.Sprintf("%s %d", p.Role, p.PID)
}

func (m *maker) states(times report.StateTimes) States {
	s := States{}
	for i, ns := range times {
		if ns > 0 {
			s[report.State(i).String()] += report.Seconds(ns)
		}
	}
	return s
}

func (m *maker) idle() Table {
	t := Table{Name: "idle", About: "what each GPU waited for, most of it first; the rows of a device add up to its idle time", Columns: concat(
		[]Column{{"cause", "why it was idle, for programs"}, {"name", "the same in words"}, {"kind", "of the cause"}, {"device", "the GPU's number"},
			{"seconds", "idle time"}, {"share", "of the idle time, 0 to 1"},
			{"low_s", "at least, where it is an estimate"}, {"high_s", "at most, where it is an estimate"}},
		placeColumns, []Column{textColumn, {"hint", "what to change"}})}
	if m.Idle == nil {
		return t
	}
	for _, d := range m.Idle.Devices {
		for _, c := range d.Causes {
			t.Rows = append(t.Rows, concat([]any{c.ID, c.Text, c.Kind, m.Devices[d.Device].Number, report.Seconds(c.NS), c.Share, seconds(c.LowNS), seconds(c.HighNS)},
				m.place(c.File, c.Line, c.Function), []any{m.text(c.File, c.Line), c.Hint}))
		}
	}
	return t
}

func (m *maker) lines() Table {
	t := Table{Name: "lines", About: "time of the lines of your own code: cells, the script, your modules", Columns: []Column{
		placeColumns[0], placeColumns[1], textColumn,
		{"self_s", "seconds for which it was the innermost line of your own"}, {"total_s", "seconds with the lines of your own that it called"},
		{"gc_s", "part of self_s in which the garbage collector ran"}, {"idle_s", "idle time of GPUs that it is charged with"}, {"incomplete_s", "part of self_s in which it may have called something that could not be read"},
		{"state_s", "self_s by the thread's state"}, {"process", "that ran it"}}}
	for _, l := range m.Lines {
		t.Rows = append(t.Rows, []any{m.FileName(&l.File), l.Line, m.text(&l.File, &l.Line), report.Seconds(l.SelfNS), report.Seconds(l.TotalNS), report.Seconds(l.GCNS), report.Seconds(l.IdleNS),
			report.Seconds(l.IncompleteNS), m.states(l.StateNS), m.process(l.Process)})
	}
	return t
}

func (m *maker) functions() Table {
	t := Table{Name: "functions", About: "time of functions over all threads of a process; recursion counts once", Columns: []Column{
		{"function", "its qualified name"}, {"file", "where it is"}, {"line", "its first line"}, {"kind", "whose code, and of packages what it does"},
		{"self_s", "seconds in it"}, {"total_s", "seconds with what it called"}, {"incomplete_s", "part of self_s in which it may have called something that could not be read"},
		{"state_s", "self_s by the thread's state"}, {"process", "that ran it"}}}
	for _, f := range m.FunctionTimes {
		fn := &m.Functions[f.Function]
		t.Rows = append(t.Rows, []any{m.FunctionName(f.Function), m.FileName(&fn.File), fn.FirstLine, fn.Code.String(),
			report.Seconds(f.SelfNS), report.Seconds(f.TotalNS), report.Seconds(f.IncompleteNS), m.states(f.StateNS), m.process(f.Process)})
	}
	return t
}

func (m *maker) blocked() Table {
	t := Table{Name: "blocked", About: "what threads were blocked on in system calls, for locks, and for other threads and processes, by the innermost line of your own", Columns: concat(
		placeColumns, []Column{textColumn, {"call", "the system call"}, {"kind", "of what it waited for: file, folder (of files), socket, pipe, lock, thread, future, event, condition, semaphore, barrier, queue (of threads), process, database"},
			{"object", "a file's path, a socket's peer, the thread that had the lock, was to end or computed the future, the name of the process that was to end"}, {"blocked_s", "seconds for which threads were blocked, summed over them"},
			{"main_s", "of it, of the thread that runs the cell, or of the process's main thread"}, {"longest_s", "seconds at once"}, {"times", "how often, as far as readings show"}, {"connections", "how many sockets with this peer, where they could be kept apart"}, {"owner_pid", "the process that had the lock of a file or a database"}, {"process", "whose threads they were"},
			{"holder_file", "where that thread was for most of the time, by the innermost line of your own"}, {"holder_line", "its number"}, {"held_s", "seconds of the wait in which it was there"}})}
	for i := range m.Blocked {
		w := &m.Blocked[i]
		holder, connections, owner := []any{nil, nil, nil}, any(nil), any(nil)
		if h := w.Holder; h != nil {
			holder = []any{m.FileName(&h.File), h.Line, report.Seconds(h.HeldNS)}
		}
		if w.Connections > 0 {
			connections = w.Connections
		}
		if w.OwnerPID > 0 {
			owner = w.OwnerPID
		}
		t.Rows = append(t.Rows, concat(m.place(&w.File, &w.Line, w.Function), []any{m.text(&w.File, &w.Line), w.Call, w.Kind, w.Object,
			report.Seconds(w.BlockedNS), report.Seconds(w.MainNS), report.Seconds(w.LongestNS), w.Times, connections, owner, m.process(w.Process)}, holder))
	}
	return t
}

func (m *maker) awaits() Table {
	t := Table{Name: "awaits", About: "where tasks of event loops waited: at the innermost line of your own among a task's coroutines", Columns: concat(
		placeColumns, []Column{textColumn, {"waiting_s", "seconds for which tasks waited there, summed over the tasks"}, {"some_s", "seconds for which at least one did"},
			{"mean_tasks", "that waited meanwhile"}, {"max_tasks", "at once"}, {"ready_s", "seconds for which tasks were ready there, summed over the tasks: their loop was busy with others"}, {"process", "that runs them"}})}
	for i := range m.Awaits {
		a := &m.Awaits[i]
		t.Rows = append(t.Rows, concat(m.place(&a.File, &a.Line, a.Function), []any{m.text(&a.File, &a.Line),
			report.Seconds(a.WaitingNS), report.Seconds(a.SomeNS), a.MeanTasks(), a.MaxTasks, report.Seconds(a.ReadyNS), m.process(a.Process)}))
	}
	return t
}

func (m *maker) memory() Table {
	t := Table{Name: "memory", About: "lines of your own while which ran the resident memory of their process grew", Columns: concat(
		placeColumns, []Column{textColumn, {"grown_bytes", "resident growth: memory that was touched for the first time, by whatever the line called"},
			{"uncertain_bytes", "part of it that another line may have touched"}, {"at_peak_bytes", "part of it that made the peak, if what was given back is what had grown last"},
			{"process", "whose memory it is"}})}
	for i := range m.Memory {
		l := &m.Memory[i]
		t.Rows = append(t.Rows, concat(m.place(&l.File, &l.Line, l.Function), []any{m.text(&l.File, &l.Line), l.GrownBytes, l.UncertainBytes, l.AtPeakBytes, m.process(l.Process)}))
	}
	return t
}

func (m *maker) memoryFunctions() Table {
	t := Table{Name: "memory_functions", About: "functions in which the resident memory of their process grew by 1 MiB and more, of your own and of libraries", Columns: []Column{
		{"function", "its qualified name"}, {"file", "where it is"}, {"line", "its first line"}, {"kind", "whose code, and of packages what it does"},
		{"self_bytes", "resident growth while it was the innermost Python function"}, {"grown_bytes", "with the functions that it called; recursion counts once"},
		{"uncertain_bytes", "part of that which may have grown before its call or after it"}, {"process", "whose memory it is"}}}
	for _, f := range m.FunctionMemory {
		fn := &m.Functions[f.Function]
		t.Rows = append(t.Rows, []any{m.FunctionName(f.Function), m.FileName(&fn.File), fn.FirstLine, fn.Code.String(), f.SelfBytes, f.TotalBytes, f.UncertainBytes, m.process(f.Process)})
	}
	return t
}

func (m *maker) gpuMemory() Table {
	t := Table{Name: "gpu_memory", About: "lines of your own while which ran the memory of their process on a GPU grew, by the driver's figure", Columns: concat([]Column{{"device", "the GPU's number"}},
		placeColumns, []Column{textColumn, {"grown_bytes", "between two figures, by the lines' computing time"}, {"uncertain_bytes", "part of it that grew while other lines computed, too"},
			{"process", "whose memory it is"}})}
	for i := range m.GPUMemory {
		l := &m.GPUMemory[i]
		t.Rows = append(t.Rows, concat([]any{m.Devices[l.Device].Number}, m.place(&l.File, &l.Line, l.Function), []any{m.text(&l.File, &l.Line), l.GrownBytes, l.UncertainBytes, m.process(l.Process)}))
	}
	return t
}

func (m *maker) allocations() Table {
	t := Table{Name: "allocations", About: "lines of your own that allocated in a cell of which every allocation was recorded", Columns: []Column{
		placeColumns[0], placeColumns[1], textColumn, {"peak_bytes", "what it had allocated when the cell had most"}, {"peak_allocations", "in so many allocations"},
		{"kept_bytes", "what it left at the cell's end"}, {"function", "the innermost one of most of it"}, {"process", "that ran the cell"}}}
	if m.Allocations != nil {
		for i := range m.Allocations.Lines {
			l := &m.Allocations.Lines[i]
			t.Rows = append(t.Rows, []any{m.FileName(&l.File), l.Line, m.text(&l.File, &l.Line), l.PeakBytes, l.PeakAllocations, l.KeptBytes, l.Function, m.process(m.Allocations.Process)})
		}
	}
	return t
}

func (m *maker) torchMemory() Table {
	t := Table{Name: "torch_memory", About: "what torch's allocator said of itself before a cell and after it", Columns: []Column{
		{"device", "the program's number of it"}, {"allocated_before_bytes", "what tensors had before"}, {"allocated_bytes", "what they have after it"},
		{"reserved_before_bytes", "what the allocator had of the device before"}, {"reserved_bytes", "what it has after it"},
		{"peak_bytes", "most that tensors had in the cell, where that is exact"}, {"peak_at_least_bytes", "where not: most that was seen"}, {"process", "whose memory it is"}}}
	for _, d := range m.TorchMemory {
		t.Rows = append(t.Rows, []any{d.Device, d.AllocatedBeforeBytes, d.AllocatedBytes, d.ReservedBeforeBytes, d.ReservedBytes, optional(d.PeakBytes), optional(d.PeakAtLeastBytes), m.process(d.Process)})
	}
	return t
}

func (m *maker) threads() Table {
	t := Table{Name: "threads", About: "the threads, the one that runs the code first", Columns: []Column{
		{"name", "as the program calls it"}, {"role", "of its process"}, {"process", "that it is in"}, {"rank", "of the process"}, {"native_id", "its id for the system"},
		{"main", "the process's main thread"}, {"internal", "the notebook's own machinery"}, {"state_s", "seconds by state: python, native, waiting, io, gil, off, unknown"},
		{"on_cpu_s", "seconds on a CPU"}, {"on_cpu_at_least", "on_cpu_s is a lower bound"}}}
	for _, th := range m.Threads {
		p := &m.Processes[th.Process]
		t.Rows = append(t.Rows, []any{th.Name, p.Role, m.process(th.Process), optional(p.Rank), th.NativeID, th.Main, th.Internal,
			m.states(th.StateNS), seconds(th.OnCPUNS), th.OnCPUAtLeast})
	}
	return t
}

func (m *maker) processes() Table {
	t := Table{Name: "processes", About: "the recorded process and its descendants", Columns: []Column{
		{"pid", "process id"}, {"parent", "process id of its parent, where that is one of these"}, {"role", "kernel, script, worker …"},
		{"command", "what it runs"}, {"rank", "in a distributed run"}, {"start_s", "negative: before the recording"}, {"end_s", "none: it was alive to the last"},
		{"end_reason", "how it ended"}, {"exit_code", "or 128 and the signal"}, {"cpu_s", "that it used"}, {"stacks", `"read", or why not`},
		{"peak_memory_bytes", "most that was resident, where that is exact"}, {"peak_at_least_bytes", "most that was seen to be resident, where not"},
		{"kept_bytes", "that its resident memory grew by until its own code had ended, less what was given back"}, {"own_bytes", "at the end, what no other process had (USS)"}, {"pss_bytes", "and its part of what it shared (PSS)"},
		{"exception", "that ended its Python program"}, {"message", "its first line"}, {"file", "where it was raised, of the user's own"}, {"line", "of the file"}}}
	for _, p := range m.Processes {
		stacks := "read"
		if !p.Stacks.Read {
			stacks = p.Stacks.Text
		}
		raised := [4]any{}
		if e := p.Exception; e != nil {
			raised = [4]any{e.Type, e.Message, m.place(e.File, e.Line, nil)[0], optional(e.Line)}
		}
		var parent any
		if p.Parent != nil {
			parent = m.Processes[*p.Parent].PID
		}
		t.Rows = append(t.Rows, []any{p.PID, parent, p.Role, p.Command, optional(p.Rank), report.Seconds(p.StartNS), seconds(p.EndNS),
			optional(p.EndReason), optional(p.ExitCode), seconds(p.CPUNS), stacks,
			optional(p.PeakMemoryBytes), optional(p.PeakAtLeastBytes), optional(p.KeptBytes), optional(p.OwnBytes), optional(p.PSSBytes), raised[0], raised[1], raised[2], raised[3]})
	}
	return t
}

func (m *maker) devices() Table {
	t := Table{Name: "devices", About: "the GPUs; busy, idle and unknown time add up to the duration", Columns: []Column{
		{"device", "its number"}, {"uuid", "its identity"}, {"name", "its model"}, {"busy_s", "seconds at work"}, {"idle_s", "seconds without work"},
		{"unknown_s", "seconds of which nothing is known"}, {"used", "by the recorded program"}, {"simulated", "by a driver for tests"},
		{"source", "of the activity"}, {"resolution_s", "of the activity"}, {"other_processes", "most at once that were not the program's"},
		{"energy_j", "joules that it used, whoever used it; none: it does not count them"}}}
	for _, d := range m.Devices {
		t.Rows = append(t.Rows, []any{d.Number, d.UUID, d.Name, report.Seconds(d.BusyNS), report.Seconds(d.IdleNS), report.Seconds(d.UnknownNS), d.Used, d.Simulated,
			d.Source, seconds(d.ResolutionNS), optional(d.Others), optional(d.EnergyJ)})
	}
	return t
}

func (m *maker) findings() Table {
	t := Table{Name: "findings", About: "what is worth knowing, the main thing first", Columns: concat(
		[]Column{{"id", "for programs"}, {"severity", "warning or info"}, {"text", "the sentence"}, {"hint", "what to change"}}, placeColumns,
		[]Column{{"value", "the figure it rests on"}, {"unit", "of the value"}, {"cost_s", "seconds that mending it could save at most"}})}
	for _, f := range m.Findings {
		t.Rows = append(t.Rows, concat([]any{f.ID, f.Severity, f.Text, f.Hint}, m.place(f.File, f.Line, f.Function),
			[]any{optional(f.Value), optional(f.Unit), seconds(f.CostNS)}))
	}
	return t
}

func (m *maker) steps() Table {
	t := Table{Name: "steps", About: "training steps", Columns: []Column{
		{"start_s", "since the recording began"}, {"end_s", "since the recording began"}, {"name", "as marked"}, {"epoch", "number"}, {"data_wait_s", "waiting for data"},
		{"busy_s", "mean of the GPUs in use"}, {"idle_s", "mean of the GPUs in use"}, {"collective_s", "of a rank: in collectives, by its stacks"}, {"source", "marked, optimizer or sampled"},
		{"process", "whose step it is"}, {"rank", "of the process"}, {"samples", "that it worked on, as the program reported or its loader shows"}, {"tokens", "where the program reported it"}}}
	for _, s := range m.Steps {
		t.Rows = append(t.Rows, []any{report.Seconds(s.StartNS), report.Seconds(s.EndNS), s.Name, optional(s.Epoch), report.Seconds(s.DataWaitNS), seconds(s.BusyNS), seconds(s.IdleNS), seconds(s.CollectiveNS), s.Source,
			m.process(s.Process), optional(m.Processes[s.Process].Rank), optional(s.Samples), optional(s.Tokens)})
	}
	return t
}

func (m *maker) phases() Table {
	t := Table{Name: "phases", About: "what each phase of a training took, by the stacks of its process's main thread", Columns: []Column{
		{"name", "of the phase"}, {"epoch", "none: of all"}, {"count", "steps that had it, or its stretches where no steps are known; none: too short to be counted"},
		{"total_s", "in all the recording"}, {"mean_s", "of those that count counts; without a count of all steps"}, {"p50_s", "half lasted no longer"},
		{"p95_s", "95 % lasted no longer"}, {"max_s", "the longest"}, {"share", "of the time in all phases but start-up"}, {"idle_s", "mean of the GPUs in use"},
		{"process", "whose training it is"}, {"rank", "of the process"}}}
	for _, p := range m.TrainingPhases {
		t.Rows = append(t.Rows, []any{p.ID, optional(p.Epoch), optional(p.Count), report.Seconds(p.TotalNS), seconds(p.MeanNS), seconds(p.P50NS), seconds(p.P95NS), seconds(p.MaxNS),
			optional(p.Share), seconds(p.IdleNS), m.process(p.Process), optional(m.Processes[p.Process].Rank)})
	}
	return t
}

func (m *maker) slowSteps() Table {
	t := Table{Name: "slow_steps", About: "steps that were long for the same reason", Columns: []Column{
		{"phase", "that took most of what they were longer"}, {"file", "where most of it was"}, {"line", "of the file"}, {"count", "how many steps"}, {"steps", "which, counted from 1"},
		{"extra_s", "by which the phase was longer than in the median step, together"}, {"process", "whose steps they are"}, {"rank", "of the process"}}}
	for _, s := range m.SlowSteps {
		place := m.place(s.File, s.Line, nil)
		t.Rows = append(t.Rows, []any{s.ID, place[0], optional(s.Line), s.Count, s.Steps, report.Seconds(s.ExtraNS), m.process(s.Process), optional(m.Processes[s.Process].Rank)})
	}
	return t
}

func (m *maker) loaders() Table {
	t := Table{Name: "loaders", About: "loaders of torch that processes train with, as their iterators show in memory", Columns: []Column{
		{"batch_size", "samples of a whole batch; none: not known, or batches differ"}, {"workers", "processes that load"}, {"drop_last", "whether a last batch that is not whole is left out"},
		{"batches_per_step", "none: not known"}, {"epochs", "passes by which steps are numbered"}, {"steps", "made in passes over it"}, {"counted_steps", "whose samples are by its batches"},
		{"ready_mean", "batches that lay ready in the queue of its workers, on average; none: not known"}, {"ready_median", "likewise, half of the time no more"},
		{"ready_most", "that there can be"}, {"queue_empty", "share of the time with none"},
		{"worker_batch_s", "that a worker took for a batch, on average; none: not known"}, {"slowest_worker_batch_s", "likewise, of the slowest of them"},
		{"process", "that trains with it"}, {"rank", "of the process"}}}
	for _, l := range m.Loaders {
		queue := []any{nil, nil, nil, nil}
		if q := l.Queue; q != nil {
			queue = []any{q.Mean, q.Median, q.Most, q.Empty}
		}
		took := []any{nil, nil}
		if mean, _, most, known := l.WorkerBatch(); known {
			took = []any{mean / 1e9, report.Seconds(most)}
		}
		t.Rows = append(t.Rows, []any{optional(l.BatchSize), l.Workers, l.DropLast, optional(l.BatchesPerStep), l.Epochs, l.Steps, l.CountedSteps,
			queue[0], queue[1], queue[2], queue[3], took[0], took[1],
			m.process(l.Process), optional(m.Processes[l.Process].Rank)})
	}
	return t
}

func (m *maker) regions() Table {
	t := Table{Name: "regions", About: "stretches that the program named, or tasks that an engine ran", Columns: []Column{
		{"name", "as marked"}, {"count", "how often"}, {"total_s", "together"}, {"p50_s", "half lasted no longer"}, {"p95_s", "95 % lasted no longer"}, {"process", "that was in them"}}}
	for _, r := range m.Regions {
		t.Rows = append(t.Rows, []any{r.Name, r.Count, report.Seconds(r.TotalNS), report.Seconds(r.P50NS), report.Seconds(r.P95NS), m.process(r.Process)})
	}
	return t
}

func (m *maker) ranks() Table {
	t := Table{Name: "ranks", About: "the processes of a distributed run, by their main threads", Columns: []Column{
		{"rank", "in the run"}, {"process", "that it is"}, {"known_s", "for which its stacks are known"}, {"computing_s", "of that, in Python or native code outside of collectives"},
		{"steps", "training steps"}, {"step_s", "the median one"}, {"collectives_s", "seconds by what it waited for others in: all_reduce, barrier, backward …"}}}
	for _, r := range m.Ranks {
		collectives := make(Parts, len(r.Collectives))
		for _, c := range r.Collectives {
			collectives[c.ID] = report.Seconds(c.NS)
		}
		t.Rows = append(t.Rows, []any{r.Rank, m.process(r.Process), report.Seconds(r.KnownNS), report.Seconds(r.ComputingNS), r.Steps, seconds(r.StepNS), collectives})
	}
	return t
}

func (m *maker) rankLines() Table {
	t := Table{Name: "rank_lines", About: "the ranks compared by their time in one line per step, outside of collectives", Columns: []Column{
		{"file", "source file or cell"}, {"line", "of it"}, textColumn, {"ranks", "that were compared"}, {"median_s", "per step, of the rank in the middle"},
		{"p95_s", "per step; 95 % of the ranks spent no more"}, {"rank", "that spent most"}, {"most_s", "per step, of that rank"}, {"steps", "that it had"},
		{"above", "of its steps, in which it spent more than halfway from the others' mean to its own"},
		{"low_s", "by how much it spent more per step than the others, at least"}, {"high_s", "at most"}, {"more", "the difference is beyond chance"}}}
	for i := range m.RankLines {
		l := &m.RankLines[i]
		t.Rows = append(t.Rows, []any{m.FileName(&l.File), l.Line, m.text(&l.File, &l.Line), l.Ranks, report.Seconds(l.MedianNS),
			report.Seconds(l.P95NS), l.Rank, report.Seconds(l.MostNS), l.Steps, l.Above, report.Seconds(l.LowNS), report.Seconds(l.HighNS), l.More})
	}
	return t
}

func (m *maker) tracks() Table {
	t := Table{Name: "tracks", About: "figures over time, a row per point", Columns: []Column{
		{"id", "what is measured"}, {"name", "of the coroutine or region that it is about, where that is not in id"}, {"kind", "rate (mean over the time since the point before) or gauge"}, {"unit", "of value: B, B/s, %, cores …"}, {"device", "of which GPU"},
		{"process", "of which process"}, {"thread", "of which thread"}, {"t_s", "since the recording began"}, {"value", "none: unknown"}}}
	for _, tr := range m.Tracks {
		var name, device, process, thread any
		if tr.Name != "" {
			name = tr.Name
		}
		if tr.Device != nil {
			device = m.Devices[*tr.Device].Number
		}
		if tr.Process != nil {
			process = m.process(*tr.Process)
		}
		if tr.Thread != nil {
			thread = m.Threads[*tr.Thread].Name
		}
		for i, at := range tr.AtUS {
			t.Rows = append(t.Rows, []any{tr.ID, name, string(tr.Kind), tr.Unit, device, process, thread, float64(at) / 1e6, number(tr.Value[i])})
		}
	}
	return t
}

// optional is a value that may not be known.
func optional[T any](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}

func seconds(ns *int64) any {
	if ns == nil {
		return nil
	}
	return report.Seconds(*ns)
}

func number(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return v
}

func concat[T any](parts ...[]T) (all []T) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}
