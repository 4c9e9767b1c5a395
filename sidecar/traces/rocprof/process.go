package rocprof

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// process is one element of the file while it is read.
type process struct {
	*reader
	b       *kineto.Builder
	pid     int64
	devices map[uint64]int32  // of agents that are GPUs: its number among the GPUs
	kernels map[uint64]string // names by kernel_id
	kinds   map[int]kind
	ranges  map[int64]string // ROCTx messages by correlation id
	byQueue bool             // asked for: streams are queues
}

// kind is a sort of buffer record, with the names of its operations.
type kind struct {
	Kind       string   `json:"kind"`
	Operations []string `json:"operations"`
}

func newProcess(r *reader) *process {
	return &process{reader: r, pid: -1, devices: map[uint64]int32{}, kernels: map[uint64]string{}, kinds: map[int]kind{}, ranges: map[int64]string{}}
}

// builder begins the trace when it is first needed: metadata, which has the process, come before the records.
func (p *process) builder() *kineto.Builder {
	if p.b == nil {
		p.b = kineto.NewBuilder(p.in.File, p.opts, p.pid, "")
	}
	return p.b
}

func (p *process) done() *kineto.Trace { return p.builder().Done() }

// read reads the element; false where the text ends or a limit is reached.
func (p *process) read() bool {
	return p.w.Members(func(key string) bool {
		switch key {
		case "metadata":
			return p.metadata()
		case "agents":
			return p.each(p.agent)
		case "strings":
			return p.w.Members(p.strings)
		case "kernel_symbols":
			return p.each(p.symbol)
		case "buffer_records":
			return p.w.Members(p.records)
		}
		return true
	})
}

// each visits the elements of a list that fit the window.
func (p *process) each(visit func(value []byte)) bool {
	return p.w.Elements(func() bool {
		value, whole, ok := p.w.Value()
		switch {
		case !ok:
		case whole:
			visit(value)
		default:
			p.larger++
		}
		return ok
	})
}

func (p *process) metadata() bool {
	value, whole, ok := p.w.Value()
	if !ok || !whole {
		return ok
	}
	var m struct {
		PID    *int64 `json:"pid"`
		Node   struct{ Hostname string }
		Config struct {
			ByQueue bool `json:"group_by_queue"`
		}
	}
	if json.Unmarshal(value, &m) == nil && p.b == nil {
		if m.PID != nil && *m.PID >= 0 {
			p.pid = *m.PID
		}
		p.b = kineto.NewBuilder(p.in.File, p.opts, p.pid, m.Node.Hostname)
		p.byQueue = m.Config.ByQueue
	}
	return true
}

// handle is how the file refers to agents, queues and streams.
type handle struct {
	Handle uint64 `json:"handle"`
}

// gpuAgent is agents' type of a GPU (ROCPROFILER_AGENT_TYPE_GPU).
const gpuAgent = 2

// mostDevices bounds the names of devices.
const mostDevices = 1 << 10

func (p *process) agent(value []byte) {
	var a struct {
		ID      handle `json:"id"`
		Type    int    `json:"type"`
		Number  *int32 `json:"logical_node_type_id"` // among the agents of its type
		Name    string `json:"name"`                 // gfx942
		Product string `json:"product_name"`
	}
	if json.Unmarshal(value, &a) != nil || a.Type != gpuAgent || len(p.devices) == mostDevices {
		return
	}
	number := int32(len(p.devices))
	if a.Number != nil && *a.Number >= 0 && *a.Number < mostDevices {
		number = *a.Number
	}
	p.devices[a.ID.Handle] = number
	p.builder().Meta().NameDevice(number, cmp.Or(a.Product, a.Name))
}

// strings reads the lists of names.
func (p *process) strings(key string) bool {
	switch key {
	case "buffer_records":
		number := -1 // a kind's number is its place
		return p.each(func(value []byte) {
			number++
			var k kind
			if json.Unmarshal(value, &k) == nil {
				p.kinds[number] = k
			}
		})
	case "marker_api":
		return p.each(func(value []byte) {
			var m struct {
				Key   int64  `json:"key"`
				Value string `json:"value"`
			}
			if json.Unmarshal(value, &m) == nil {
				p.ranges[m.Key] = m.Value
			}
		})
	}
	return true
}

// text is a string that the writer leaves a number where it is empty.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &s); err != nil {
			return fmt.Errorf("a text of a kernel: %w", err)
		}
	}
	*t = text(s)
	return nil
}

func (p *process) symbol(value []byte) {
	var s struct {
		ID        uint64 `json:"kernel_id"`
		Formatted text   `json:"formatted_kernel_name"`
		Demangled text   `json:"demangled_kernel_name"`
		Name      text   `json:"kernel_name"`
	}
	if json.Unmarshal(value, &s) != nil {
		return
	}
	for _, name := range []text{s.Formatted, s.Demangled, s.Name} {
		if name != "" {
			p.kernels[s.ID] = strings.TrimSuffix(string(name), ".kd") // kernel descriptor
			return
		}
	}
}
