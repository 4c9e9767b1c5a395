package kineto

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
)

// columns reads a list of events.
func columns(t *testing.T, opts Options, events ...string) *Trace {
	t.Helper()
	tr, warnings, err := Read(context.Background(), strings.NewReader("["+strings.Join(events, ",\n")+"]"), "test", opts)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	return tr
}

func TestDeviceOfAnEvent(t *testing.T) {
	kernel := func(pid int, args string) string {
		return fmt.Sprintf(`{"ph":"X","cat":"kernel","name":"k","pid":%d,"tid":7,"ts":1,"dur":1,"args":{%s}}`, pid, args)
	}
	for name, c := range map[string]struct {
		events []string
		want   string
	}{
		"stated":                        {[]string{kernel(5, `"device":3`), kernel(6, `"device":4`)}, "[3 4]"},
		"none states one":               {[]string{kernel(0, ""), kernel(1, "")}, "[0 1]"},
		"some state the only one":       {[]string{kernel(0, ""), kernel(0, `"device":3`), kernel(900, "")}, "[3 3 3]"},
		"some state one of several":     {[]string{kernel(1, ""), kernel(9, `"device":3`), kernel(9, `"device":4`)}, "[1 3 4]"},
		"written as a text":             {[]string{kernel(0, `"device":"2"`)}, "[2]"},
		"not of memory (\"Device Id\")": {[]string{kernel(0, `"Device Id":2`)}, "[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(columns(t, Options{}, c.events...).Device.Device); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestInputsAreKeptOfWhatIsWanted(t *testing.T) {
	op := func(name, args string) string {
		return fmt.Sprintf(`{"ph":"X","cat":"cpu_op","name":%q,"pid":1,"tid":1,"ts":1,"dur":1,"args":{%s}}`, name, args)
	}
	events := []string{
		op("aten::mm", `"Input Dims":[[2,3],[3,4]]`),
		op("aten::add", `"Input Dims":[[2],[]],"Concrete Inputs":["","1"]`),
		op("aten::conv", `"Input Dims":[[1,2,3,3],[]],"Concrete Inputs":["","[1, 1]"]`),
		op("aten::conv", ""),
	}
	inputs := func(want func(string) bool) string {
		tr := columns(t, Options{Inputs: want}, events...)
		var kept []string
		for _, in := range tr.Ops.Inputs {
			kept = append(kept, fmt.Sprint(in.Row, " ", tr.Text(in.Dims), " ", tr.Text(in.Concrete)))
		}
		return strings.Join(kept, "; ")
	}
	if got := inputs(nil); got != "" {
		t.Errorf("kept %s", got)
	}
	if got, want := inputs(func(op string) bool { return op == "aten::conv" }), `2 [[1, 2, 3, 3], []] ["", "[1, 1]"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := inputs(func(op string) bool { return op != "aten::conv" }), `0 [[2, 3], [3, 4]] ; 1 [[2], []] ["", "1"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestMemoryWithoutTotals(t *testing.T) {
	memory := func(args string) string {
		return `{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":1,"args":{` + args + `}}`
	}
	m := columns(t, Options{}, memory(`"Bytes":5,"Device Id":-1,"Device Type":0`), memory(`"Bytes":6,"Device Id":0,"Device Type":1,"Total Allocated":0,"Total Reserved":7`)).Memory
	got := fmt.Sprint(m.Bytes, m.DeviceType, m.DeviceID, m.Allocated[0] == None, m.Reserved[0] == None, m.Allocated[1], m.Reserved[1])
	if want := "[5 6] [0 1] [-1 0] true true 0 7"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestTimesOfATrace: from its complete events, and from all.
func TestTimesOfATrace(t *testing.T) {
	tr := columns(t, Options{},
		`{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":5,"dur":10}`,
		`{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":3.5,"dur":2}`,
		`{"ph":"s","id":1,"name":"flow","cat":"ac2g","pid":1,"tid":1,"ts":2}`,
		`{"ph":"M","name":"process_name","pid":1,"tid":1,"ts":0,"args":{"name":"x"}}`)
	if got := fmt.Sprint(tr.First, tr.Last, tr.Earliest); got != "3500 15000 2000" {
		t.Errorf("got %s", got)
	}
	if tr := columns(t, Options{}, `{"ph":"M","name":"process_name","pid":1}`); tr.First != 0 || tr.Last != 0 || tr.Earliest != math.MaxInt64 {
		t.Errorf("got %d, %d, %d of no events", tr.First, tr.Last, tr.Earliest)
	}
}

// TestProcessOfATrace: of most operators; devices have process numbers too.
func TestProcessOfATrace(t *testing.T) {
	event := func(cat string, pid int) string {
		return fmt.Sprintf(`{"ph":"X","cat":%q,"name":"x","pid":%d,"tid":1,"ts":1,"dur":1}`, cat, pid)
	}
	for name, c := range map[string]struct {
		events []string
		pid    int64
	}{
		"operators":              {[]string{event("cpu_op", 8), event("cpu_op", 9), event("cpu_op", 9), event("kernel", 0), event("cuda_runtime", 7), event("cuda_runtime", 7), event("cuda_runtime", 7)}, 9},
		"runtime calls":          {[]string{event("kernel", 0), event("kernel", 0), event("cuda_runtime", 7), event("gpu_user_annotation", 0)}, 7},
		"Python":                 {[]string{event("python_function", 4), event("kernel", 0)}, 4},
		"the device alone":       {[]string{event("kernel", 0)}, -1},
		"annotations of devices": {[]string{event("gpu_user_annotation", 0), event("gpu_user_annotation", 0), event("user_annotation", 4)}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			if got := columns(t, Options{}, c.events...).Process.PID; got != c.pid {
				t.Errorf("got %d, want %d", got, c.pid)
			}
		})
	}
}

// TestFrameOfHTA: the rows with a stream or a correlation, as that program sees
// them, and only where asked for.
func TestFrameOfHTA(t *testing.T) {
	events := []string{
		`{"ph":"X","cat":"cpu_op","name":"first","pid":1,"tid":1,"ts":1,"dur":10}`,
		`{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":2,"dur":1,"args":{"correlation":5}}`,
		`{"ph":"M","name":"process_name","pid":1}`,
		`{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":4,"dur":2,"args":{"stream":7,"correlation":5}}`,
		`{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":7,"dur":2,"args":{"stream":"0x7","correlation":6}}`,
		`{"ph":"X","cat":"cpu_op","name":"triton","pid":1,"tid":1,"ts":8,"dur":1,"args":{"stream":7}}`,
		`{"ph":"X","cat":"cpu_op","name":"neither","pid":1,"tid":1,"ts":9.5,"dur":1,"args":{"stream":-1}}`,
	}
	tr := columns(t, Options{Frame: true}, events...)
	var rows []string
	for _, r := range tr.Frame.Rows {
		rows = append(rows, fmt.Sprint(tr.Text(r.Name), " ", r.Index, " ", r.Stream, " ", r.Correlation, " ", r.Kind, r.Row))
	}
	want := []string{"cudaLaunchKernel 1 -1 5 2 0", "k 3 7 5 1 0", "k 4 -1 6 1 1", "triton 5 7 -1 0 -1"}
	if got := strings.Join(rows, "; "); got != strings.Join(want, "; ") {
		t.Errorf("got  %s\nwant %s", got, strings.Join(want, "; "))
	}
	if !tr.Frame.Decimals || tr.Frame.Zero == nil || tr.Text(tr.Frame.Zero.Name) != "first" {
		t.Errorf("got decimals %v, zero %+v", tr.Frame.Decimals, tr.Frame.Zero)
	}
	if tr := columns(t, Options{}, events...); tr.Frame != nil {
		t.Error("there is a frame that nobody asked for")
	}
}
