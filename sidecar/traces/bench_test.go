package traces

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// resnet is the V100 trace as JSON text, 54 MB of 216,092 events.
func resnet(b *testing.B) []byte {
	b.Helper()
	f, err := os.Open(filepath.Join(sharedTraces(b), "v100-resnet-2gpu-rank1", "df_index_resolver.json.gz"))
	if err != nil {
		b.Skip(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		b.Fatal(err)
	}
	return text
}

func load(b *testing.B, text []byte) *kineto.Set {
	b.Helper()
	trace, _, err := kineto.Read(context.Background(), bytes.NewReader(text), "resnet", kineto.Options{Parallel: 1})
	if err != nil || trace.Records != 216092 {
		b.Fatal(err)
	}
	return &kineto.Set{Traces: []*kineto.Trace{trace}}
}

// BenchmarkParse reads the JSON from memory on one core.
func BenchmarkParse(b *testing.B) {
	text := resnet(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		load(b, text)
	}
}

// BenchmarkEncodingJSON is the baseline: the standard library, typed.
func BenchmarkEncodingJSON(b *testing.B) {
	text := resnet(b)
	b.SetBytes(int64(len(text)))
	type event struct {
		Ph, Cat, Name string
		TS, Dur       json.Number
		PID, TID      any
		Args          struct {
			Correlation, Stream int64
			External            int64 `json:"External id"`
		}
	}
	for b.Loop() {
		var doc struct{ TraceEvents []event }
		if err := json.Unmarshal(text, &doc); err != nil || len(doc.TraceEvents) != 216092 {
			b.Fatal(err, len(doc.TraceEvents))
		}
	}
}

// BenchmarkAnalyze computes the default tables.
func BenchmarkAnalyze(b *testing.B) {
	set := load(b, resnet(b))
	b.ReportAllocs()
	for b.Loop() {
		Analyze(set, analyses.Options{})
	}
}
