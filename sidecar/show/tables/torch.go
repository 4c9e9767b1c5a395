package tables

import "github.com/omni-perf/omni-perf/sidecar/understand/report"

func (m *maker) operators() Table {
	t := Table{Name: "operators", About: "operators of torch and stretches that the program named, where torch.profiler recorded; the times are of the stretches in traces", Columns: []Column{
		{"name", "as torch names it"}, {"input_shapes", "of its inputs, where calls are distinguished by them"}, {"calls", "how often it was called"},
		{"self_cpu_s", "seconds on the host, without the operators that it called"}, {"total_cpu_s", "with them"},
		{"self_device_s", "of the kernels that it launched itself; none: nothing ran on a device"}, {"total_device_s", "with those of the operators that it called"},
		{"self_cpu_bytes", "allocated less freed on the host, where memory was recorded"}, {"self_device_bytes", "the same on devices"},
		{"flops", "floating-point operations by formula, where shapes were recorded"}, {"process", "that called it"}}}
	for i := range m.Operators {
		o := &m.Operators[i]
		t.Rows = append(t.Rows, []any{o.Name, optional(o.InputShapes), int(o.Calls), report.Seconds(o.SelfCPUNS), report.Seconds(o.TotalCPUNS),
			seconds(o.SelfDeviceNS), seconds(o.TotalDeviceNS), whole(o.SelfCPUBytes), whole(o.SelfDeviceBytes), optional(o.Flops), m.process(o.Process)})
	}
	return t
}

func (m *maker) kernels() Table {
	t := Table{Name: "kernels", About: "what ran on devices in the traces of torch.profiler, by kind and name", Columns: []Column{
		{"name", "as the trace has it"}, {"kind", "computation, communication or memory"}, {"count", "how many"}, {"total_s", "seconds on the device"},
		{"mean_s", "of one"}, {"min_s", "of the shortest"}, {"max_s", "of the longest"}, {"process", "that launched it"}}}
	for _, k := range m.KernelTimes {
		t.Rows = append(t.Rows, []any{k.Name, k.Kind, int(k.Count), report.Seconds(k.TotalNS), k.MeanSeconds(), report.Seconds(k.MinNS), report.Seconds(k.MaxNS), m.process(k.Process)})
	}
	return t
}

func (m *maker) traces() Table {
	t := Table{Name: "traces", About: "the traces of torch.profiler that operators and kernels are of", Columns: []Column{
		{"file", "its name"}, {"start_s", "of its first event"}, {"end_s", "of its last event"}, {"steps", "ProfilerSteps in it"}, {"events", "records in it"},
		{"error_s", "how exactly its place in the recording is known"}, {"damaged", "a part could not be read"}, {"process", "that wrote it"}}}
	for _, tr := range m.Traces {
		t.Rows = append(t.Rows, []any{tr.File, report.Seconds(tr.StartNS), report.Seconds(tr.EndNS), tr.Steps, int(tr.Events), report.Seconds(tr.ErrorNS), tr.Damaged, m.process(tr.Process)})
	}
	return t
}

func whole(v *int64) any {
	if v == nil {
		return nil
	}
	return int(*v)
}
