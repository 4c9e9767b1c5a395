package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/omni-perf/omni-perf/sidecar/doors/program"
	"github.com/omni-perf/omni-perf/sidecar/doors/saved"
	"github.com/omni-perf/omni-perf/sidecar/show/output"
)

func FuzzSavedReport(f *testing.F) {
	small, err := os.ReadFile(savedReport(f))
	if err != nil {
		f.Fatal(err)
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	zip.Write(small)
	zip.Close()
	f.Add(small)
	f.Add(packed.Bytes())
	f.Add(packed.Bytes()[:packed.Len()/2])
	dir := f.TempDir()
	naming, err := program.Name(formats(), dir+"/r", []string{"json", "collapsed", "speedscope", "pprof", "chrome", "otlp", "svg"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		file := t.TempDir() + "/saved"
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := saved.Read(file)
		if err != nil {
			return
		}
		var results output.Results
		program.Write(r, naming.Files(""), &results)
		for _, failed := range results.Failed {
			t.Errorf("%s: %v", failed.Path, failed.Err)
		}
	})
}
