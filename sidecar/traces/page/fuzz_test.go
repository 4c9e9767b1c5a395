package page

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// FuzzAnalysis: whatever a trace says, every analysis of every mode answers, and
// what is written of it is well-formed.
func FuzzAnalysis(f *testing.F) {
	const host, device = `"ph":"X","pid":9,"tid":9,`, `"ph":"X","pid":0,"tid":7,`
	for _, events := range [][]string{
		{
			`{` + host + `"cat":"user_annotation","name":"ProfilerStep#1","ts":0,"dur":50}`,
			`{` + host + `"cat":"cuda_runtime","name":"cudaLaunchKernel","ts":1,"dur":2,"args":{"correlation":1}}`,
			`{` + device + `"cat":"kernel","name":"gemm","ts":5,"dur":3.5,"args":{"device":0,"stream":7,"correlation":1}}`,
			`{` + device + `"cat":"gpu_memcpy","name":"Memcpy HtoD","ts":9,"dur":3,"args":{"device":1,"stream":7,"correlation":2,"bytes":64,"memory bandwidth (GB/s)":1.5}}`,
			`{` + host + `"cat":"cuda_runtime","name":"cudaDeviceSynchronize","ts":20,"dur":9,"args":{"correlation":3}}`,
			`{` + host + `"cat":"user_annotation","name":"ProfilerStep#2","ts":60,"dur":50}`,
		},
		{
			`{` + host + `"cat":"cpu_op","name":"aten::mm","ts":1,"dur":8,"args":{"External id":1,"Input Dims":[[2,3],[3,4]],"Concrete Inputs":["",""]}}`,
			`{` + host + `"cat":"python_function","name":"a.py(3): f","ts":0,"dur":9,"args":{"Python id":1,"Python parent id":null}}`,
			`{` + host + `"cat":"python_function","name":"nn.Module: Linear_0","ts":2,"dur":3,"args":{"Python id":2,"Python parent id":1}}`,
			`{` + host + `"cat":"user_annotation","name":"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__","ts":2,"dur":4}`,
			`{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":9,"tid":9,"ts":3,"args":{"Total Reserved":10,"Total Allocated":8,"Bytes":-2,"Addr":5,"Device Id":1,"Device Type":1}}`,
		},
		{
			`{` + device + `"cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL","ts":5,"dur":3,"args":{"stream":20,"Collective name":"allreduce","In msg nelems":5,"dtype":"Float","Process Group Name":"0","Group size":2}}`,
			`{` + device + `"cat":"kernel","name":"k","ts":-9223372036854775.8,"dur":9223372036854775,"args":{"stream":"0x7"}}`,
			`{` + device + `"cat":"kernel","name":"k","ts":9223372036854775,"dur":9223372036854775,"args":{"stream":-1}}`,
		},
	} {
		f.Add(`{"distributedInfo":{"rank":1,"world_size":2},"traceEvents":[` + strings.Join(events, ",\n") + `]}`)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, mode := range []analyses.Mode{analyses.Exact, analyses.HTA, analyses.HTANs} {
			opts := analyses.Options{Mode: mode, GroupByShape: true, Tables: analyses.AllTables()}
			set := &kineto.Set{}
			for range 2 { // a rank of two cycles
				trace, warnings, err := kineto.Read(context.Background(), strings.NewReader(text), "trace.json", kineto.Options{Frame: opts.AsHTA(), Inputs: opts.Inputs()})
				if err != nil {
					t.Fatal(err)
				}
				set.Traces, set.Warnings = append(set.Traces, trace), append(set.Warnings, warnings...)
			}
			r := &Result{Name: "fuzz", Analysis: traces.Analyze(set, opts)}
			var document, page, terminal bytes.Buffer
			if err := r.WriteJSON(&document, func(*table.Table) bool { return true }); err != nil || !json.Valid(document.Bytes()) {
				t.Fatalf("%v: %s", err, document.Bytes())
			}
			for _, c := range r.Charts(Auto) {
				wellFormed(t, c.Name, c.SVG)
				if bytes.Contains(c.SVG, []byte("NaN")) || bytes.Contains(c.SVG, []byte("Inf")) {
					t.Errorf("%s has coordinates that are no numbers", c.Name)
				}
			}
			if err := r.Page(&page); err != nil {
				t.Fatal(err)
			}
			if err := r.Text(&terminal, 100); err != nil {
				t.Fatal(err)
			}
		}
	})
}
