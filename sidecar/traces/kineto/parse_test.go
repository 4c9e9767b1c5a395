package kineto

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// readText parses a trace from a reader, without a file.
func readText(src io.Reader) (*parser, error) {
	p := newParser(context.Background(), src, "test", &Options{})
	return p, p.parse()
}

func mustRead(t *testing.T, text string) *parser {
	t.Helper()
	p, err := readText(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const kernelEvent = `{"ph":"X","cat":"kernel","name":"k%d","pid":0,"tid":7,"ts":%d,"dur":5,"args":{"correlation":%d,"stream":7}}`

func TestParseReadsAllKinds(t *testing.T) {
	p := mustRead(t, `{"schemaVersion":1,"distributedInfo":{"backend":"nccl","rank":3,"world_size":8},
	 "baseTimeNanoseconds":1700000000000000000,"deviceProperties":[{"id":0,"name":"GPU A"},{"id":1,"name":"GPU B"}],
	 "traceEvents":[
	 {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2,"ts":1.5,"dur":2.25,"args":{"External id":9,"Input Dims":[[1,2],["a]"]]}},
	 {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":2,"dur":1,"args":{"correlation":11,"External id":9}},
	 {"ph":"X","cat":"kernel","name":"gemm \"x\" \u00e9","pid":0,"tid":7,"ts":5.001,"dur":3,"args":{"stream":"0x7","correlation":11}},
	 {"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","pid":0,"tid":7,"ts":9,"dur":1,"args":{"stream":7,"correlation":12,"bytes":64,"memory bandwidth (GB/s)":1.5}},
	 {"ph":"X","cat":"python_function","name":"a.py(3): f","pid":1,"tid":2,"ts":0,"dur":9,"args":{"Python id":1,"Python parent id":null}},
	 {"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":2,"ts":3,"args":{"Total Reserved":10,"Total Allocated":8,"Bytes":-2,"Addr":5,"Device Id":1,"Device Type":1}},
	 {"ph":"s","id":11,"pid":1,"tid":2,"ts":2,"cat":"ac2g","name":"ac2g"},
	 {"name":"thread_name","ph":"M","ts":1,"pid":1,"tid":2,"args":{"name":"main"}}
	 ]}`)
	tr := p.t
	if len(p.warnings) > 0 {
		t.Errorf("got warnings %v", p.warnings)
	}
	if p.rank != 3 || tr.Meta.WorldSize != 8 || tr.Meta.Backend != "nccl" || tr.Meta.BaseTime != 1700000000000000000 {
		t.Errorf("got rank %d and meta %+v", p.rank, tr.Meta)
	}
	if want := []string{"GPU A", "GPU B"}; !reflect.DeepEqual(tr.Meta.Devices, want) {
		t.Errorf("got devices %q, want %q", tr.Meta.Devices, want)
	}
	got := fmt.Sprint(tr.Device.Start, tr.Device.Dur, tr.Device.Stream, tr.Device.Correlation, tr.Device.Bytes, tr.Device.GBps[1],
		tr.Ops.Start, tr.Ops.External, tr.Calls.Correlation, tr.Python.Dur,
		tr.Memory.Bytes, tr.Memory.Allocated, tr.Memory.DeviceID, tr.Records)
	want := "[5001 9000] [3000 1000] [7 7] [11 12] [0 64] 1.5 [1500] [9] [11] [9000] [-2] [8] [1] 8"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if name := tr.Text(tr.Device.Name[0]); name != `gemm "x" é` {
		t.Errorf("got name %q", name)
	}
	if th := tr.Threads[tr.Ops.Thread[0]]; th != (Thread{1, 2, "main"}) {
		t.Errorf("got thread %+v", th)
	}
}

func TestParseSkipsDamagedEvents(t *testing.T) {
	good := func(i int) string { return fmt.Sprintf(kernelEvent, i, 10*i, i) }
	for name, middle := range map[string]string{
		"cut in the middle": `{"ph":"X","cat":"kernel","name":"x","ts":1,"du`,
		"no colon":          `{"ph" "X"}`,
		"newline in a text": "{\"ph\":\"X\",\"name\":\"a\"b\nc\"}",
	} {
		t.Run(name, func(t *testing.T) {
			p := mustRead(t, "["+good(1)+",\n"+middle+",\n"+good(2)+",\n"+good(3)+"]")
			if n := p.t.Device.Len(); n < 2 {
				t.Errorf("got %d events, want at least the last two or three", n)
			}
			if len(p.warnings) != 1 || !strings.Contains(p.warnings[0].String(), "damaged JSON in an event") {
				t.Errorf("got warnings %v", p.warnings)
			}
			if at := p.warnings[0].Byte; at != int64(len(good(1)))+3 {
				t.Errorf("got byte %d, want the damaged event's", at)
			}
		})
	}
}

func TestParseHugeValues(t *testing.T) {
	huge := strings.Repeat("x", 3*windowSize)
	p := mustRead(t, `{"INFO":"`+huge+`","traceEvents":[{"ph":"X","cat":"kernel","name":"`+huge+`","pid":0,"tid":1,"ts":1,"dur":1}]}`)
	if p.t.Device.Len() != 1 || len(p.t.Text(p.t.Device.Name[0])) != len(huge) {
		t.Errorf("got %d events, warnings %.200v", p.t.Device.Len(), p.warnings)
	}
}

// TestTablesAreSmallerThanTheJSON: what stays in memory is less than half of
// the text, growth and rounding up included.
func TestTablesAreSmallerThanTheJSON(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"traceEvents":[`)
	for i := range 60000 {
		if i > 0 {
			text.WriteString(",\n")
		}
		fmt.Fprintf(&text, `{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": %d.125, "dur": 4.5, "args": {"External id": %d, "cbid": 211, "correlation": %d}},`+"\n", 10*i, i, i)
		fmt.Fprintf(&text, `{"ph": "X", "cat": "kernel", "name": "k%d", "pid": 0, "tid": 7, "ts": %d.5, "dur": 4.5, "args": {"External id": %d, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": %d, "registers per thread": 32, "shared memory": 0, "grid": [64, 1, 1], "block": [128, 1, 1]}}`, i%100, 10*i+5, i, i)
	}
	text.WriteString("]}")
	json := text.String()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	p := mustRead(t, json)
	p.rows, p.w = nil, nil
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := p.t.Device.Len(); n != 60000 {
		t.Fatalf("got %d kernels", n)
	}
	kept := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	if kept > int64(len(json))/2 {
		t.Errorf("%d bytes of JSON keep %d bytes in memory", len(json), kept)
	}
	runtime.KeepAlive(p)
	runtime.KeepAlive(json)
}

// FuzzParse: any bytes give a trace or a warning, never a panic; and how the
// bytes arrive makes no difference.
func FuzzParse(f *testing.F) {
	f.Add(`{"traceEvents":[` + fmt.Sprintf(kernelEvent, 1, 2, 3) + `,]}`)
	f.Add(`[` + fmt.Sprintf(kernelEvent, 1, 2, 3) + `,{"ph":"X","name":"a "b" c","cat":"cpu_op","ts":"1","dur":NaN}`)
	f.Add("\xef\xbb\xbf{\"distributedInfo\":{\"rank\":1},\"traceEvents\":[null,{\"ph\":\"M\",\"args\":{\"name\":\"\\ud800\"}}]}")
	f.Add(`{"traceEvents":[{"ph":"X","name":"\"`)
	f.Add(`{"a":[{]},"traceEvents":[{}]`)
	f.Add("[" + pairedEvents + "]")
	f.Add("[{\"ph\":\"B\",\"name\":\"\\ud800\xff\",\"cat\":\"kernel\",\"ts\":1,\"args\":{\"Collective name\":\"\x01\"}},{\"ph\":\"E\",\"ts\":0},{\"ph\":\"E\",\"ts\":0}]")
	f.Fuzz(func(t *testing.T, text string) {
		whole, err := readText(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		dribble := newParser(context.Background(), iotest.OneByteReader(strings.NewReader(text)), "test", &Options{})
		dribble.w.Buf = make([]byte, 0, 64)
		t2 := dribble.t
		if err := dribble.parse(); err != nil {
			t.Fatal(err)
		}
		a := fmt.Sprint(whole.t.Device, whole.t.Calls, whole.t.Ops, whole.t.Records, whole.t.Names.texts, whole.warnings)
		b := fmt.Sprint(t2.Device, t2.Calls, t2.Ops, t2.Records, t2.Names.texts, dribble.warnings)
		if a != b {
			t.Fatalf("in one piece:\n%s\nbyte by byte:\n%s", a, b)
		}
	})
}

// FuzzRaw: an event is handed on as strict JSON, whatever the file has.
func FuzzRaw(f *testing.F) {
	f.Add(`[` + fmt.Sprintf(kernelEvent, 1, 2, 3) + `]`)
	f.Add(`[{"ph":"X","name":"a "b" c","ts":1,"args":{"x":NaN,"y":[1,],"z":{"q":Infinity,"w":"\ud800"}}}]`)
	f.Add("[{\"ph\":\"i\",\"name\":\"[memory]\",\"args\":{\"Bytes\":1,\"\xff\":\"\x01\"}}]")
	f.Fuzz(func(t *testing.T, text string) {
		p := newParser(context.Background(), strings.NewReader(text), "test", &Options{})
		p.raw = func(event []byte) {
			e := p.s.raw(event)
			e.Member("name")
			if out := e.Append(nil, func(_ string, value []byte) []byte { return value }); !json.Valid(out) {
				t.Fatalf("%q became %q", event, out)
			}
		}
		if err := p.parse(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestListsAreEqualHoweverIndented: json.dump(indent=…) spreads shapes over lines.
func TestListsAreEqualHoweverIndented(t *testing.T) {
	for in, want := range map[string]string{
		"[[8944, 1024], [1024, 2816], []]":                             "[[8944, 1024], [1024, 2816], []]",
		"[\n  [\n    8944,\n    1024\n  ],\r\n\t[1024,2816],\n  []\n]": "[[8944, 1024], [1024, 2816], []]",
		"[\"\", \"a , b\",\n\"c\\\" ,\\\\\"  ,\"[1,  2]\"]":            "[\"\", \"a , b\", \"c\\\" ,\\\\\", \"[1,  2]\"]",
		"": "",
	} {
		if got := string(spaced(nil, []byte(in))); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
