package nsys

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/sqlite"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// row is the values of the columns that were asked for.
type row []sqlite.Value

var errIncomplete = errors.New("the row lacks a number")

// number is an integer, or what it is where there is none.
func (v row) number(column int, missing int64) int64 {
	if n, ok := v[column].Int(); ok {
		return n
	}
	return missing
}

// span is the first two columns, start and end; an event that did not end has none.
func (v row) span() (start, end int64, err error) {
	start, ok1 := v[0].Int()
	end, ok2 := v[1].Int()
	if !ok1 || !ok2 {
		return 0, 0, errIncomplete
	}
	return start, end, nil
}

// name is a text of StringIds, or the text itself in exports that have it.
func (r *reader) name(v sqlite.Value) string {
	if v.IsText() {
		return v.Text()
	}
	id, ok := v.Int()
	if !ok {
		return ""
	}
	return r.names[id]
}

// How Nsight Systems numbers processes and threads ("Serialized process and thread identifiers"): the machine's bits
// are above those of the process, and the thread's below.
const (
	threadBits = 24
	idMask     = 1<<threadBits - 1
)

func pidOf(global int64) int64 { return global >> threadBits & idMask }
func tidOf(global int64) int64 { return global & idMask }

// pid is the process of a globalPid; -1 where there is none and there are several.
func (r *reader) pid(v sqlite.Value) int64 {
	if global, ok := v.Int(); ok {
		return pidOf(global)
	}
	if len(r.processes) == 1 {
		for pid := range r.processes {
			return pid
		}
	}
	return -1
}

// mostNames bounds the bytes of all names.
const mostNames = 1 << 29

// strings reads the names, which the other tables refer to.
func (r *reader) strings() {
	size := 0
	r.damage(r.db.Each(StringTable, []string{"id", "value"}, func(v []sqlite.Value) bool {
		if id, ok := v[0].Int(); ok {
			r.names[id] = v[1].Text()
			size += len(r.names[id]) + 32
		}
		return size < mostNames
	}))
}

// session reads when the session began and on which machine.
func (r *reader) session() {
	r.damage(r.db.Each("TARGET_INFO_SESSION_START_TIME", []string{"utcEpochNs"}, func(v []sqlite.Value) bool {
		r.begin = max(0, row(v).number(0, 0))
		return false
	}))
	r.damage(r.db.Each("TARGET_INFO_SYSTEM_ENV", []string{"name", "value"}, func(v []sqlite.Value) bool {
		if v[0].Text() != "Hostname" {
			return true
		}
		r.host = v[1].Text()
		return false
	}))
}

// How grave a diagnostic message is (ENUM_DIAGNOSTIC_SEVERITY_LEVEL).
const (
	diagnosticWarning = 2
	diagnosticError   = 3
)

// mostDiagnostics bounds the messages that are given.
const mostDiagnostics = 5

// diagnostics gives what Nsight Systems itself warned of: what it could not record is nowhere else.
func (r *reader) diagnostics() {
	seen := map[string]bool{}
	r.damage(r.db.Each("DIAGNOSTIC_EVENT", []string{"severity", "text"}, func(v []sqlite.Value) bool {
		severity := row(v).number(0, 0)
		line, _, _ := strings.Cut(v[1].Text(), "\n")
		line = strings.TrimRight(line, ". ")
		if severity != diagnosticWarning && severity != diagnosticError || line == "" || seen[line] {
			return true
		}
		seen[line] = true
		w := r.in.Note(`a message of Nsight Systems: "`+words.Cut(line[:min(len(line), 1000)], 250)+`"`, "")
		w.Note = severity == diagnosticWarning
		r.warnings = append(r.warnings, w)
		return len(seen) < mostDiagnostics
	}))
}

// deviceKey is a device as a process numbers it: CUDA_VISIBLE_DEVICES makes that differ.
type deviceKey struct{ pid, device int64 }

// anyProcess stands for those of which the file has no numbers of their own.
const anyProcess = -1

func (r *reader) deviceNames() {
	names := map[int64]string{}
	r.devices = map[deviceKey]string{}
	r.damage(r.db.Each("TARGET_INFO_GPU", []string{"id", "name"}, func(v []sqlite.Value) bool {
		id := row(v).number(0, 0)
		names[id] = v[1].Text()
		r.devices[deviceKey{anyProcess, id}] = v[1].Text()
		return len(names) < mostDevices
	}))
	r.damage(r.db.Each("TARGET_INFO_CUDA_DEVICE", []string{"gpuId", "cudaId", "pid"}, func(v []sqlite.Value) bool {
		r.devices[deviceKey{row(v).number(2, anyProcess), row(v).number(1, 0)}] = names[row(v).number(0, -1)]
		return len(r.devices) < 1<<16
	}))
}

// mostDevices bounds the devices of a process that have names.
const mostDevices = 1 << 10

// uses notes that a process used a device.
func (r *reader) uses(p *process, device int32) {
	if p.devices[device] {
		return
	}
	p.devices[device] = true
	if device < 0 || device >= mostDevices {
		return
	}
	name, known := r.devices[deviceKey{p.pid, int64(device)}]
	if !known {
		name = r.devices[deviceKey{anyProcess, int64(device)}]
	}
	p.b.Meta().NameDevice(device, name)
}

// version is what CUPTI appends to the name of a call: cudaLaunchKernel_v7000, cudaMemcpyAsync_ptsz_v7000.
var version = regexp.MustCompile(`(?:_pt[sd]s?z?)?_v\d+$`)

// calls reads the calls of the CUDA runtime and driver.
func (r *reader) calls() {
	plain := map[string]string{}
	r.each("CUPTI_ACTIVITY_KIND_RUNTIME", []string{"start", "end", "globalTid", "correlationId", "nameId"}, func(v row) error {
		start, end, err := v.span()
		if err != nil {
			return err
		}
		name := r.name(v[4])
		short, known := plain[name]
		if !known {
			short = version.ReplaceAllString(name, "")
			plain[name] = short
		}
		global := v.number(2, 0)
		p := r.process(pidOf(global))
		p.b.Call(kineto.HostRow{
			Start: start, End: end, Name: p.b.Text(short), Thread: p.b.Thread(p.pid, tidOf(global)), Correlation: v.number(3, kineto.None),
		})
		return nil
	})
}

// threads reads the names of threads.
func (r *reader) threads() {
	r.damage(r.db.Each("ThreadNames", []string{"nameId", "globalTid"}, func(v []sqlite.Value) bool {
		if global, ok := v[1].Int(); ok {
			if p := r.processes[pidOf(global)]; p != nil {
				p.b.NameThread(p.b.Thread(p.pid, tidOf(global)), r.name(v[0]))
			}
		}
		return true
	}))
}

// onDevice are the columns of what runs on a device; a table's own ones follow.
var onDevice = []string{"start", "end", "deviceId", "streamId", "correlationId", "globalPid"}

// ran adds a row of such a table.
func (r *reader) ran(v row, class kineto.DeviceClass, name string, bytes int64) error {
	start, end, err := v.span()
	if err != nil {
		return err
	}
	p := r.process(r.pid(v[5]))
	device := int32(v.number(2, 0))
	r.uses(p, device)
	p.b.Device(kineto.DeviceRow{
		Start: start, End: end, Name: p.b.Text(name), Class: class, Device: device,
		Stream: v.number(3, 0), Correlation: v.number(4, kineto.None), Bytes: max(0, bytes),
	})
	return nil
}

func (r *reader) kernels() {
	r.each("CUPTI_ACTIVITY_KIND_KERNEL", slices.Concat(onDevice, []string{"demangledName", "shortName", "mangledName"}), func(v row) error {
		name := ""
		for _, column := range v[len(onDevice):] {
			if name = r.name(column); name != "" {
				break
			}
		}
		return r.ran(v, kineto.ClassKernel, name, 0)
	})
}

// directions are the kinds of copies (ENUM_CUDA_MEMCPY_OPER) by the names that Kineto gives them.
var directions = map[int64]string{
	1: "Memcpy HtoD", 2: "Memcpy DtoH", 3: "Memcpy HtoA", 4: "Memcpy AtoH", 5: "Memcpy AtoA",
	6: "Memcpy AtoD", 7: "Memcpy DtoA", 8: "Memcpy DtoD", 9: "Memcpy HtoH", 10: "Memcpy PtoP",
	11: "Memcpy HtoD (unified memory)", 12: "Memcpy DtoH (unified memory)", 13: "Memcpy DtoD (unified memory)",
}

func (r *reader) copies() {
	r.each("CUPTI_ACTIVITY_KIND_MEMCPY", slices.Concat(onDevice, []string{"bytes", "copyKind"}), func(v row) error {
		name, known := directions[v.number(7, 0)]
		if !known {
			name = "Memcpy"
		}
		return r.ran(v, kineto.ClassMemcpy, name, v.number(6, 0))
	})
}

func (r *reader) fills() {
	r.each("CUPTI_ACTIVITY_KIND_MEMSET", slices.Concat(onDevice, []string{"bytes"}), func(v row) error {
		return r.ran(v, kineto.ClassMemset, "Memset", v.number(6, 0))
	})
}

// graphs reads runs of CUDA graphs that were recorded as a whole (--cuda-graph-trace=graph, the default).
func (r *reader) graphs() {
	r.each("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", slices.Concat(onDevice, []string{"graphId"}), func(v row) error {
		name := "CUDA graph"
		if id, ok := v[6].Int(); ok {
			name += " " + strconv.FormatInt(id, 10)
		}
		err := r.ran(v, kineto.ClassKernel, name, 0)
		if err == nil {
			r.graphRuns++
		}
		return err
	})
}

// NVTX's events that are ranges (ENUM_NSYS_EVENT_TYPE, and nvtx_sum of nsys stats).
const (
	pushPopRange  = 59
	startEndRange = 60
	// Those that were imported from text (NVTXT).
	pushPopRangeT  = 70
	startEndRangeT = 71
)

// ranges reads NVTX's ranges. What has no end is a mark, or did not end.
func (r *reader) ranges() {
	r.each("NVTX_EVENTS", []string{"start", "end", "eventType", "text", "textId", "globalTid"}, func(v row) error {
		switch v.number(2, pushPopRange) {
		case pushPopRange, startEndRange, pushPopRangeT, startEndRangeT:
		default:
			return nil
		}
		start, end, err := v.span()
		if err != nil {
			return nil
		}
		name := v[3].Text()
		if name == "" {
			name = r.name(v[4])
		}
		global := v.number(5, 0)
		p := r.process(pidOf(global))
		p.b.Annotation(kineto.HostRow{Start: start, End: end, Name: p.b.Text(name), Thread: p.b.Thread(p.pid, tidOf(global))})
		return nil
	})
}
