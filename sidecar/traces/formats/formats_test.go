package formats

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/omni-perf/omni-perf/sidecar/testkit/database"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// message is a protobuf message of one field.
func message(field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), content)
}

func number(field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), value)
}

// samples are beginnings of files and what they are, part of the sentence; "" is what torch.profiler's reader takes.
var samples = []struct {
	name, head string
	is         string
}{
	{"rank0.json", `{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [`, ""},
	{"list.json", `[{"ph": "X", "name": "k"}`, ""},
	{"empty.json", "", ""},
	{"blank.json", " \n\t", ""},
	{"odd.json", `{"traceEvents": [], "nodes": [], "schema": "x"}`, ""},
	{"908_results.json", `{"rocprofiler-sdk-tool":[{"metadata":{"pid":`, "the JSON of rocprofv3"},
	{"et.json", `{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "2024", "start_ts": 3, "nodes": [{"id": 1`, "a Chakra execution graph"},
	{"x.cpuprofile", `{"nodes":[{"id":1}],"startTime":1,"endTime":2}`, "a CPU profile of Chrome"},
	{"x.json", `{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{},"profiles":[`, "a speedscope profile"},
	{"x.ipynb", "\xef\xbb\xbf" + `{"cells": [], "metadata": {}, "nbformat": 4}`, "a notebook"},
	{"report.json", `{"document":"omni-perf report","version":2,"generator":{}`, "a report of omni-perf"},
	{"x.hatchet", `[{"children": [], "frame": {"name": "ROOT"}, "metrics": {}}`, "a tree of Triton's Proton"},
	{"run.sqlite", "SQLite format 3\x00\x10\x00", "an SQLite database"},
	{"x.zip", "PK\x03\x04...", "a zip archive"},
	{"x.json.zst", "\x28\xb5\x2f\xfd..", "compressed by zstd"},
	{"x.json.bz2", "BZh9", "compressed by bzip2"},
	{"x.json.xz", "\xfd7zXZ\x00", "compressed by xz"},
	{"x.tar.gz", "rank0.json" + strings.Repeat("\x00", 247) + "ustar  ", "a tar archive"},
	{"a.out", "\x7fELF\x02", "a program or a library"},
	{"perf.data", "PERFILE2", "a recording of perf"},
	{"x.ncu-rep", "NVR\x00\x01", "a report of Nsight Compute"},
	{"other.ncu-rep", "\x01\x02", "a report of Nsight Compute"},
	{"snapshot.pickle", "\x80\x04\x95\x10", "a Python pickle"},
	{"saved.html", "<!DOCTYPE html>", "an HTML or XML page"},
	{"profile.pb.gz", string(message(1, append(number(1, 1), number(2, 2)...))), "a profile in pprof's format"},
	{"x.bin", string(message(1, append(number(8, 1000), number(10, 1)...))), "a Perfetto trace"},
	{"x", string(message(1, append(number(1, 3), message(2, []byte("/device:GPU:0"))...))), "a profile of JAX or TensorFlow"},
	{"host.xplane.pb.gz", "", "a profile of JAX or TensorFlow"},
	{"trace.pftrace", "\x00\x01", "a Perfetto trace"},
	{"run.NSYS-REP", "\x00\x01\x02", "a report of Nsight Systems"},
	{"run.qdstrm", "\x00\x01\x02", "that was not imported"},
	{"kernel_trace.csv", `"Kind","Agent_Id"`, "a table in CSV"},
	{"named.csv", `{"traceEvents": [`, ""},
}

func TestEachFormatIsRecognised(t *testing.T) {
	for _, s := range samples {
		f := Recognise(s.name, []byte(s.head))
		switch {
		case f == nil && s.is != "":
			t.Errorf("%s: not recognised, want %q", s.name, s.is)
		case f != nil && (s.is == "" || !strings.Contains(f.What, s.is)):
			t.Errorf("%s: got %q, want %q", s.name, f.What, s.is)
		}
	}
}

// TestEveryFormatHasASample, and each that is not read has advice.
func TestEveryFormatHasASample(t *testing.T) {
	seen := map[*kineto.Foreign]bool{}
	for _, s := range samples {
		seen[Recognise(s.name, []byte(s.head))] = true
	}
	for i := range table {
		if f := &table[i].Foreign; !seen[f] {
			t.Errorf("no sample is %q", f.What)
		} else if f.What == "" || f.Read == nil && f.Advice == "" {
			t.Errorf("%+v has no name or no advice", f)
		}
	}
}

// TestRefusalsAreSentences: with what the file is and what to do, gzip or not.
func TestRefusalsAreSentences(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write([]byte(`{"schema":"1","nodes":[]}`))
	z.Close()
	for name, c := range map[string]struct{ content, want string }{
		"run.nsys-rep": {"\x01\x02", "run.nsys-rep: a report of Nsight Systems; export it with nsys export --type sqlite, and analyse the .sqlite"},
		"et.json.gz":   {zipped.String(), "et.json.gz: a Chakra execution graph, not a trace; it has operators without times"},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, asked := range []string{path, filepath.Dir(path)} {
			if _, err := Load(context.Background(), []string{asked}, kineto.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		}
	}
}

// TestDatabasesAreRecognisedByTheirTables, and those that are not read refused by name.
func TestDatabasesAreRecognisedByTheirTables(t *testing.T) {
	const nsight = `CREATE TABLE StringIds (id INTEGER, value TEXT); CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, demangledName TEXT);
		INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 5, 'k');`
	for statements, want := range map[string]string{
		nsight: "",
		`CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY, value TEXT);`: "a profile of nvprof; record with nsys",
		`CREATE TABLE rocpd_kernel_dispatch_00 (id INTEGER);`:              "a rocpd database of rocprofv3; record with --output-format json",
		`CREATE TABLE runs (id INTEGER);`:                                  "an SQLite database that is no trace; of databases the exports of Nsight Systems are read",
	} {
		content := database.Make(t, statements)
		path := filepath.Join(t.TempDir(), "x.db")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		set, err := Load(context.Background(), []string{path}, kineto.Options{})
		if want == "" && (err != nil || set.Traces[0].Device.Len() != 1) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, %v, want %q", statements, set, err, want)
		}
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		z.Write(content)
		z.Close()
		if err := os.WriteFile(path, zipped.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(context.Background(), []string{path}, kineto.Options{}); err == nil || !strings.Contains(err.Error(), "a compressed SQLite database; gunzip it") {
			t.Errorf("compressed: got %v", err)
		}
	}
}

func TestWhatAFolderLists(t *testing.T) {
	folder := t.TempDir()
	session := filepath.Join(folder, "jax", "plugins", "profile")
	for _, dir := range []string{"2026_01_02", "2026_01_10"} {
		if err := os.MkdirAll(filepath.Join(session, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"h.xplane.pb", "h.trace.json.gz", "perfetto_trace.json.gz", "more.json"} {
			if err := os.WriteFile(filepath.Join(session, dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct{ names, want string }{
		{"b.json a.json.gz notes.txt", "b.json a.json.gz"},
		{"run.nsys-rep run.sqlite", "run.sqlite"},
		{"run.nsys-rep notes.txt", "run.nsys-rep"},
		{"h.xplane.pb.gz k.xplane.pb h.trace.json.gz perfetto_trace.json.gz", "h.xplane.pb.gz k.xplane.pb h.trace.json.gz"},
		{"h.xplane.pb h.trace.json.gz", "h.xplane.pb"},
		{"ep0-ba5-rank0.json node0.json.gz rank0.5.pt.trace.json.gz rank1.5.pt.trace.json", "rank0.5.pt.trace.json.gz rank1.5.pt.trace.json"},
		{"ep0-ba5-rank0.json node0.json.gz", "ep0-ba5-rank0.json node0.json.gz"},
		{"notes.txt", ""},
	} {
		var got []string
		for _, path := range listed("/d", strings.Fields(c.names)) {
			got = append(got, filepath.Base(path))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %v, want %s", c.names, got, c.want)
		}
	}
	got := listed(filepath.Join(folder, "jax"), nil)
	last := filepath.Join(session, "2026_01_10")
	if len(got) != 2 || got[0] != filepath.Join(last, "h.xplane.pb") || got[1] != filepath.Join(last, "more.json") {
		t.Errorf("of JAX's log directory: got %v", got)
	}
}

// FuzzRecognise: any bytes are some format or none, whatever is missing.
func FuzzRecognise(f *testing.F) {
	for _, s := range samples {
		f.Add(s.name, []byte(s.head))
	}
	f.Fuzz(func(t *testing.T, name string, head []byte) {
		if found := Recognise(name, head); found != nil && found.What == "" {
			t.Errorf("%q is a format without a name", head)
		}
	})
}
