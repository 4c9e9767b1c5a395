package report

// Torch is what torch.profiler recorded of the target: rows of a document, in which Build
// cleans names and sets the process.
type Torch struct {
	PID         int // of the process that recorded it; 0: the target's
	Operators   []Operator
	KernelTimes []KernelTime
	Traces      []Trace
}

// Operator is the figures of all calls of one operator, or of one name that the program gave to a
// stretch (record_function), in the traces. Self time is without the operators that it called.
type Operator struct {
	Name        string  `json:"name"`
	InputShapes *string `json:"input_shapes"` // null: calls are not distinguished by their inputs
	Process     int     `json:"process"`
	Calls       int64   `json:"calls"`
	SelfCPUNS   int64   `json:"self_cpu_ns"`
	TotalCPUNS  int64   `json:"total_cpu_ns"`
	// Of the kernels that it launched; null where nothing ran on a device.
	SelfDeviceNS  *int64 `json:"self_device_ns"`
	TotalDeviceNS *int64 `json:"total_device_ns"`
	// Allocated less freed; null where memory was not recorded.
	SelfCPUBytes    *int64   `json:"self_cpu_bytes"`
	SelfDeviceBytes *int64   `json:"self_device_bytes"`
	Flops           *float64 `json:"flops"` // by formula from the inputs' shapes; null: not known
}

// KernelTime is the figures of all kernels, copies or fills of one name in the traces.
type KernelTime struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"` // "computation", "communication" or "memory"
	Process int    `json:"process"`
	Count   int64  `json:"count"`
	TotalNS int64  `json:"total_ns"`
	MinNS   int64  `json:"min_ns"`
	MaxNS   int64  `json:"max_ns"`
}

// MeanSeconds is how long one of them took on average.
func (k *KernelTime) MeanSeconds() float64 {
	return Seconds(k.TotalNS) / float64(max(1, k.Count))
}

// Trace is a stretch of the recording of which there is a trace: the figures of Operators and
// KernelTimes are of these stretches only.
type Trace struct {
	File    string `json:"file"` // its name, without folders
	Process int    `json:"process"`
	StartNS int64  `json:"start_ns"`
	EndNS   int64  `json:"end_ns"`
	Steps   int    `json:"steps"`  // ProfilerSteps in it
	Events  int64  `json:"events"` // records in the file
	ErrorNS int64  `json:"error_ns"`
	Damaged bool   `json:"damaged"`
}

func (b *builder) torch(t *Torch) {
	if t == nil {
		return
	}
	process := b.doc.Targets[0].Process
	if at, known := b.byPID[t.PID]; known {
		process = at
	}
	for _, o := range t.Operators {
		o.Name, o.Process = clean(o.Name), process
		if o.InputShapes != nil {
			o.InputShapes = pointer(clean(*o.InputShapes))
		}
		b.doc.Operators = append(b.doc.Operators, o)
	}
	for _, k := range t.KernelTimes {
		k.Name, k.Process = clean(k.Name), process
		b.doc.KernelTimes = append(b.doc.KernelTimes, k)
	}
	for _, trace := range t.Traces {
		trace.File, trace.Process = clean(trace.File), process
		b.doc.Traces = append(b.doc.Traces, trace)
	}
}

func (c *checker) torch() {
	for i := range c.d.Operators {
		o := &c.d.Operators[i]
		c.index("operators.process", o.Process, len(c.d.Processes))
		for _, v := range []int64{o.Calls, o.SelfCPUNS, o.TotalCPUNS} {
			c.amount("operators", v)
		}
		c.amountOrNull("operators.self_device_ns", o.SelfDeviceNS)
		c.amountOrNull("operators.total_device_ns", o.TotalDeviceNS)
		for _, v := range []*int64{o.SelfCPUBytes, o.SelfDeviceBytes} {
			c.must(v == nil || *v >= -maxInteger && *v <= maxInteger, "operators has more bytes than there can be")
		}
		c.figureOrNull("operators.flops", o.Flops)
	}
	for _, k := range c.d.KernelTimes {
		c.index("kernel_times.process", k.Process, len(c.d.Processes))
		for _, v := range []int64{k.Count, k.TotalNS, k.MinNS, k.MaxNS} {
			c.amount("kernel_times", v)
		}
	}
	for _, t := range c.d.Traces {
		c.index("traces.process", t.Process, len(c.d.Processes))
		c.instant("traces.start_ns", t.StartNS)
		c.instant("traces.end_ns", t.EndNS)
		c.must(t.StartNS <= t.EndNS, "a trace ends before it starts")
		c.count("traces.steps", t.Steps)
		c.amount("traces.events", t.Events)
		c.amount("traces.error_ns", t.ErrorNS)
	}
}
