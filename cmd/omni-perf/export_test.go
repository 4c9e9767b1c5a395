package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/omni-perf/omni-perf/sidecar/output"
	"github.com/omni-perf/omni-perf/sidecar/program"
)

func FuzzSavedReport(f *testing.F) {
	const small = `{"schema_version": 1, "duration_s": 1, "headline": "h"}`
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	zip.Write([]byte(small))
	zip.Close()
	f.Add([]byte(small))
	f.Add(packed.Bytes())
	f.Add(packed.Bytes()[:packed.Len()/2])
	dir := f.TempDir()
	naming, err := program.Name(formats(), dir+"/r", []string{"json", "collapsed", "speedscope", "pprof", "chrome", "svg"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, saved []byte) {
		file := t.TempDir() + "/saved"
		if err := os.WriteFile(file, saved, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := readReport(file)
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
