package torchtrace

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// resnet is the V100 trace as JSON text.
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

// BenchmarkParse reads 54 MB of JSON from memory on one core.
func BenchmarkParse(b *testing.B) {
	text := resnet(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if p, err := readText(bytes.NewReader(text)); err != nil || p.t.Records != 216092 {
			b.Fatal(err, p.t.Records)
		}
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
	p, err := readText(bytes.NewReader(resnet(b)))
	if err != nil {
		b.Fatal(err)
	}
	set := &TraceSet{Traces: []*Trace{p.t}}
	b.ReportAllocs()
	for b.Loop() {
		Analyze(set, AnalyzeOptions{})
	}
}
