package xplane

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/omni-perf/omni-perf/sidecar/testkit/columns"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// The messages of a file, in the order in which protobuf writes fields: names behind the events that use them.

func message(field protowire.Number, parts ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), slices.Concat(parts...))
}

func number(field protowire.Number, value int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), uint64(value))
}

// named is an entry of the names of events (4) or stats (5).
func named(field protowire.Number, id int64, name string) []byte {
	return message(field, number(1, id), message(2, number(1, id), message(2, []byte(name))))
}

// of is an event of a name, from ps to ps.
func of(name, offset, duration int64, stats ...[]byte) []byte {
	return message(4, number(1, name), number(2, offset), number(3, duration), slices.Concat(stats...))
}

func stat(id int64, value []byte) []byte { return message(4, number(1, id), value) }

func threadOf(id int64, name string, begin int64, events ...[]byte) []byte {
	return message(3, number(1, id), message(2, []byte(name)), number(3, begin), slices.Concat(events...))
}

// sample is a profile of a GPU's two streams, a TPU's core with a loop, and a thread of the host.
var sample = slices.Concat(
	message(1, message(2, []byte("/host:metadata")), named(4, 1, "jit_f")),
	message(1, number(1, 1), message(2, []byte("/device:GPU:1")),
		threadOf(13, "Stream #13(Compute)", 1000, of(1, 500_999, 2_000_001, stat(1, number(3, 7))), of(9, 9_000_000, 1000)),
		threadOf(14, "Stream #14(MemcpyH2D)", 1000,
			of(2, 100_000, 50_000, stat(2, message(5, []byte("kind_src:pinned kind_dst:device size:4096 dest:0 async:1")))),
			of(3, 200_000, 50_000, stat(3, number(7, 4)))),
		threadOf(99, "XLA Modules", 1000, of(1, 0, 90_000_000)),
		named(4, 1, "gemm_fusion.kd"), named(4, 2, "MemcpyH2D"), named(4, 3, "Memset32"),
		named(5, 1, "correlation_id"), named(5, 2, "memcpy_details"), named(5, 3, "memset_details"), named(5, 4, "kind:device size:64")),
	message(1, message(2, []byte("/device:TPU:0")),
		threadOf(1, "XLA Ops", 2000, of(2, 10_000, 5_000), of(1, 0, 100_000), of(3, 40_000, 30_000), of(2, 45_000, 5_000), of(2, 120_000, 5_000)),
		threadOf(2, "Steps", 2000, of(1, 0, 100_000)),
		named(4, 1, "while.1"), named(4, 2, "dot.2"), named(4, 3, "fusion.3")),
	message(1, message(2, []byte("/device:CUSTOM:Megascale Trace")), threadOf(1, "x", 1, of(1, 0, 5_000)), named(4, 1, "y")),
	message(1, message(2, []byte("/host:CPU")),
		threadOf(-7, "python", 1000, of(1, 0, 400_000), of(2, 100_000, 20_000, stat(1, number(4, 7))), of(3, 50_000, 300_000),
			of(4, 0, 390_000, stat(2, number(3, 12))), of(5, 60_000, 0), of(6, 20_000, 1_000)),
		named(4, 1, "$train.py:42 step <lambda>"), named(4, 2, "cuLaunchKernel"), named(4, 3, "PjitFunction(f)"), named(4, 4, "train"), named(4, 5, "a mark"), named(4, 6, "$len"),
		named(5, 1, "correlation_id"), named(5, 2, "step_num")),
	message(1, message(2, []byte("Task Environment")), named(5, 1, "profile_start_time"), message(6, number(1, 1), number(3, 1_700_000_000_000_000_000))),
	message(4, []byte("node7")),
)

var update = flag.Bool("update", false, "write testdata/node7.xplane.pb, which cmd/omni-perf analyses")

func TestTheSampleIsCommitted(t *testing.T) {
	path := filepath.Join("testdata", "node7.xplane.pb")
	if *update {
		if err := os.WriteFile(path, sample, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if content, err := os.ReadFile(path); err != nil || !slices.Equal(content, sample) {
		t.Errorf("%s is not the sample (%v): go test ./sidecar/traces/xplane -update", path, err)
	}
}

func read(t *testing.T, content []byte) ([]*kineto.Trace, string) {
	t.Helper()
	in := kineto.Input{File: "h.xplane.pb", Reader: strings.NewReader(string(content)), Step: func(int64) {}}
	traces, warnings, err := Read(context.Background(), in, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return traces, fmt.Sprint(warnings)
}

func TestRead(t *testing.T) {
	traces, warnings := read(t, sample)
	if len(traces) != 1 || warnings != "[h.xplane.pb: recorded by JAX or TensorFlow; it knows no operators of torch]" {
		t.Fatalf("got %d traces, %s", len(traces), warnings)
	}
	tr := traces[0]
	var got []string
	for row, name := range tr.Device.Name {
		d := tr.Device
		got = append(got, fmt.Sprint(tr.Text(name), " ", d.Start[row], "+", d.Dur[row], " device ", d.Device[row], " stream ", d.Stream[row], " class ", d.Class[row], " ", d.Bytes[row], " bytes"))
	}
	for row, name := range tr.Python.Name {
		got = append(got, fmt.Sprint(tr.Text(name), " ", tr.Python.Start[row], "+", tr.Python.Dur[row]))
	}
	for row, name := range tr.Calls.Name {
		got = append(got, fmt.Sprint(tr.Text(name), " ", tr.Calls.Start[row], "+", tr.Calls.Dur[row], " of ", tr.Calls.Correlation[row], " ", tr.Threads[tr.Calls.Thread[row]]))
	}
	for row, name := range tr.Ops.Name {
		got = append(got, fmt.Sprint(tr.Text(name), " ", tr.Ops.Start[row], "+", tr.Ops.Dur[row]))
	}
	// Picoseconds are rounded down: 500,999 to 2,501,000 ps behind 1000 ns. The loop has what it did outside its operations.
	want := `gemm_fusion 1500+2001 device 1 stream 13 class 0 0 bytes
 10000+1 device 1 stream 13 class 0 0 bytes
Memcpy HtoD 1100+50 device 1 stream 14 class 1 4096 bytes
Memset32 1200+50 device 1 stream 14 class 2 64 bytes
while.1 2000+10 device 0 stream 0 class 0 0 bytes
dot.2 2010+5 device 0 stream 0 class 0 0 bytes
while.1 2015+25 device 0 stream 0 class 0 0 bytes
fusion.3 2040+5 device 0 stream 0 class 0 0 bytes
dot.2 2045+5 device 0 stream 0 class 0 0 bytes
fusion.3 2050+20 device 0 stream 0 class 0 0 bytes
while.1 2070+30 device 0 stream 0 class 0 0 bytes
dot.2 2120+5 device 0 stream 0 class 0 0 bytes
train.py(42): step <lambda> 1000+400
len 1020+1
cuLaunchKernel 1100+20 of 7 {-1 -7 python}
PjitFunction(f) 1050+300
ProfilerStep#12 1000+390`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if tr.Process != (kineto.Process{Host: "node7", PID: -1}) || tr.UnixNs(5) != 1_700_000_000_000_000_005 || tr.Device.Correlation[0] != 7 || tr.Device.Correlation[1] != kineto.None {
		t.Errorf("got %+v, %d, correlations %v", tr.Process, tr.UnixNs(5), tr.Device.Correlation)
	}
}

// TestLinesThatCountFromTheEpoch have no other base.
func TestLinesThatCountFromTheEpoch(t *testing.T) {
	const epoch = 1_700_000_000_000_000_000
	content := slices.Concat(
		message(1, message(2, []byte("Task Environment")), named(5, 1, "profile_start_time"), message(6, number(1, 1), number(3, epoch))),
		message(1, message(2, []byte("/device:GPU:0")), threadOf(1, "Stream #1", epoch, of(1, 5000, 1000)), named(4, 1, "k")))
	traces, _ := read(t, content)
	if got := traces[0].UnixNs(traces[0].Device.Start[0]); got != epoch+5 {
		t.Errorf("got %d", got)
	}
}

// TestDamage: what is whole is kept, wherever the file was cut off.
func TestDamage(t *testing.T) {
	for n := range len(sample) {
		traces, warnings := read(t, sample[:n])
		if warnings == "[]" || len(traces) > 1 {
			t.Fatalf("cut at %d: %d traces, %s", n, len(traces), warnings)
		}
	}
	if _, warnings := read(t, sample[:len(sample)-3]); !strings.Contains(warnings, "damaged protobuf, or the file is cut off") {
		t.Errorf("got %s", warnings)
	}
	if _, warnings := read(t, message(1, message(2, []byte("/host:CPU")))); !strings.Contains(warnings, "has no events; the profiler recorded nothing") {
		t.Errorf("got %s", warnings)
	}
	if _, warnings := read(t, append(slices.Clone(sample), message(2, []byte("CUPTI was taken"))...)); !strings.Contains(warnings, "the profiler says: CUPTI was taken; something may be missing") {
		t.Errorf("got %s", warnings)
	}
}

// FuzzRead: any bytes give traces whose tables are whole, or none.
func FuzzRead(f *testing.F) {
	f.Add(sample)
	f.Add(sample[:len(sample)/2])
	f.Fuzz(func(t *testing.T, content []byte) {
		traces, warnings := read(t, content)
		if warnings == "[]" {
			t.Error("no note says what the file is")
		}
		for _, tr := range traces {
			columns.Check(t, tr)
		}
	})
}

func TestFunctionsHaveTheNamesThatTorchGivesThem(t *testing.T) {
	for text, want := range map[string]string{
		"train.py:42 step <lambda>": "train.py(42): step <lambda>", "time sleep": "time.sleep", "<unknown> __exit__": "__exit__",
		"len": "len", "a b c": "a b c", "x.py:y f": "x.py:y.f",
	} {
		if got := functionOf(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
