package rocprof

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// record is one of buffer_records, of whichever list; what a list does not have is zero.
type record struct {
	Kind        int   `json:"kind"`
	Operation   int   `json:"operation"`
	Thread      int64 `json:"thread_id"`
	Correlation struct {
		Internal int64 `json:"internal"`
	} `json:"correlation_id"`
	Start    *int64 `json:"start_timestamp"` // ns
	End      *int64 `json:"end_timestamp"`
	Dispatch *struct {
		Agent  handle `json:"agent_id"`
		Queue  handle `json:"queue_id"`
		Kernel uint64 `json:"kernel_id"`
	} `json:"dispatch_info"`
	Stream *handle `json:"stream_id"` // since ROCm 7
	To     handle  `json:"dst_agent_id"`
	From   handle  `json:"src_agent_id"`
	Bytes  int64   `json:"bytes"`
}

// records reads one list of buffer_records.
func (p *process) records(list string) bool {
	var add func(record)
	switch {
	case list == "kernel_dispatch":
		add = p.kernel
	case list == "memory_copy":
		add = p.copy
	case list == "marker_api":
		add = p.marker
	case strings.HasSuffix(list, "_api"): // hip_api, hsa_api, rccl_api, …
		add = p.call
	default:
		return true
	}
	return p.each(func(value []byte) {
		if !p.events.Next() {
			return
		}
		var r record
		if err := json.Unmarshal(value, &r); err != nil || r.Start == nil || r.End == nil {
			p.damaged++
			return
		}
		add(r)
	}) && !p.events.Over && p.ctx.Err() == nil
}

// device is a GPU's number. An agent that is not listed is the first GPU.
func (p *process) device(of handle) int32 { return p.devices[of.Handle] }

// copyStream is where copies lie in files that do not say a copy's stream; queues count from 1.
const copyStream = 0

func (p *process) kernel(r record) {
	if r.Dispatch == nil {
		p.damaged++
		return
	}
	b := p.builder()
	stream := int64(r.Dispatch.Queue.Handle)
	if r.Stream != nil && !p.byQueue {
		stream = int64(r.Stream.Handle)
	}
	name, known := p.kernels[r.Dispatch.Kernel]
	if !known {
		name = "kernel " + strconv.FormatUint(r.Dispatch.Kernel, 10)
	}
	b.Device(kineto.DeviceRow{
		Start: *r.Start, End: *r.End, Name: b.Text(name), Class: kineto.ClassKernel,
		Device: p.device(r.Dispatch.Agent), Stream: stream, Correlation: correlation(r),
	})
}

// correlation is a record's; 0 is none.
func correlation(r record) int64 {
	if r.Correlation.Internal == 0 {
		return kineto.None
	}
	return r.Correlation.Internal
}

// directions are rocprofiler's operations of MEMORY_COPY by the names that Kineto gives copies.
var directions = map[string]string{
	"MEMORY_COPY_HOST_TO_HOST": "Memcpy HtoH", "MEMORY_COPY_HOST_TO_DEVICE": "Memcpy HtoD",
	"MEMORY_COPY_DEVICE_TO_HOST": "Memcpy DtoH", "MEMORY_COPY_DEVICE_TO_DEVICE": "Memcpy DtoD",
}

// copy adds a copy by a device's engine; one from host to host has no device.
func (p *process) copy(r record) {
	device, onDevice := p.devices[r.To.Handle]
	if !onDevice {
		device, onDevice = p.devices[r.From.Handle]
	}
	if !onDevice {
		return
	}
	b := p.builder()
	name, known := directions[p.operation(r)]
	if !known {
		name = "Memcpy"
	}
	stream := int64(copyStream)
	if r.Stream != nil {
		stream = int64(r.Stream.Handle)
	}
	b.Device(kineto.DeviceRow{
		Start: *r.Start, End: *r.End, Name: b.Text(name), Class: kineto.ClassMemcpy,
		Device: device, Stream: stream, Correlation: correlation(r), Bytes: max(0, r.Bytes),
	})
}

// operation is the name of what a record is about.
func (p *process) operation(r record) string {
	k, known := p.kinds[r.Kind]
	if known && r.Operation >= 0 && r.Operation < len(k.Operations) {
		return k.Operations[r.Operation]
	}
	if known && k.Kind != "" {
		return k.Kind + " " + strconv.Itoa(r.Operation)
	}
	return "operation " + strconv.Itoa(r.Operation)
}

func (p *process) call(r record) {
	b := p.builder()
	b.Call(kineto.HostRow{
		Start: *r.Start, End: *r.End, Name: b.Text(p.operation(r)), Thread: b.Thread(p.pid, r.Thread), Correlation: correlation(r),
	})
}

// marker adds a ROCTx range. Marks, names of threads and the profiler's own pauses have no length or no message.
func (p *process) marker(r record) {
	message, known := p.ranges[r.Correlation.Internal]
	if !known || *r.End <= *r.Start {
		return
	}
	b := p.builder()
	b.Annotation(kineto.HostRow{Start: *r.Start, End: *r.End, Name: b.Text(message), Thread: b.Thread(p.pid, r.Thread)})
}
