package nsys

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/columns"
	"github.com/omni-perf/omni-perf/sidecar/testkit/database"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

func read(t *testing.T, content []byte) ([]*kineto.Trace, string) {
	t.Helper()
	traces, warnings, err := Read(context.Background(), kineto.Input{File: "r.sqlite", At: bytes.NewReader(content), Size: int64(len(content)), Step: func(int64) {}}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return traces, fmt.Sprint(warnings)
}

const (
	pid1 = "((0x12 << 56) | (11 << 24))"
	pid2 = "((0x12 << 56) | (22 << 24))"
)

// twoProcesses is a report of two processes with the same correlation ids, and of a third that only marks a range. Each
// calls its own GPU device 0 or 1; graphs were recorded as a whole.
const twoProcesses = `
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'gemm(float*)'), (2, 'gemm'), (3, 'cudaLaunchKernel_v7000'), (4, 'cudaMemcpyAsync_ptsz_v7000'), (5, 'python'), (6, 'cuGraphLaunch');
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '');
CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT);
INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, '', 'CpuCores', 1, '8'), (0, '', 'Hostname', 2, 'node7');
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA A100'), (1, 'NVIDIA H100');
CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER);
INSERT INTO ThreadNames VALUES (5, 20, ` + pid1 + ` | 12);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100, 150, ` + pid1 + ` | 12, 1, 3), (100, 160, ` + pid2 + ` | 23, 1, 4), (200, 210, ` + pid1 + ` | 12, 2, 6);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (300, 400, 1, 7, 1, ` + pid1 + `, 1, 2), (500, NULL, 1, 7, 9, ` + pid1 + `, 1, 2), (600, 650, 1, 7, 9, ` + pid1 + `, NULL, 2);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (310, 330, 0, 8, 1, ` + pid2 + `, 4000, 2), (340, 350, 0, 8, 1, ` + pid2 + `, 4000, 99);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, value INTEGER, bytes INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (360, 370, 0, 8, 4, ` + pid2 + `, 0, 64);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER, graphExecId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (700, 900, 1, 9, 2, ` + pid1 + `, 5, 6);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER, globalTid INTEGER);
INSERT INTO NVTX_EVENTS VALUES (90, 220, 59, 'step 1', NULL, ` + pid1 + ` | 12), (95, NULL, 59, 'open', NULL, ` + pid1 + ` | 12), (96, 97, 34, 'mark', NULL, ` + pid1 + ` | 12),
 (1, 2, 60, NULL, 5, ((0x12 << 56) | (33 << 24)) | 33);`

func TestRead(t *testing.T) {
	traces, warnings := read(t, database.Make(t, twoProcesses))
	if len(traces) != 2 {
		t.Fatalf("got %d traces, %s", len(traces), warnings)
	}
	var got []string
	for _, tr := range traces {
		for row, name := range tr.Device.Name {
			d := tr.Device
			got = append(got, fmt.Sprint(tr.Process.PID, " ", tr.Text(name), " ", d.Start[row], "+", d.Dur[row], " device ", d.Device[row], " stream ", d.Stream[row], " of ", d.Correlation[row], ", ", d.Bytes[row], " bytes"))
		}
		for row, name := range tr.Calls.Name {
			got = append(got, fmt.Sprint(tr.Process.PID, " ", tr.Text(name), " ", tr.Calls.Start[row], "+", tr.Calls.Dur[row], " of ", tr.Calls.Correlation[row], " ", tr.Threads[tr.Calls.Thread[row]]))
		}
		for row, name := range tr.Ops.Name {
			got = append(got, fmt.Sprint(tr.Process.PID, " ", tr.Text(name), " ", tr.Ops.Start[row], "+", tr.Ops.Dur[row]))
		}
	}
	want := `22 Memcpy DtoH 310+20 device 0 stream 8 of 1, 4000 bytes
22 Memcpy 340+10 device 0 stream 8 of 1, 4000 bytes
22 Memset 360+10 device 0 stream 8 of 4, 64 bytes
22 cudaMemcpyAsync 100+60 of 1 {22 23 }
11 gemm(float*) 300+100 device 1 stream 7 of 1, 0 bytes
11 gemm 600+50 device 1 stream 7 of 9, 0 bytes
11 CUDA graph 5 700+200 device 1 stream 9 of 2, 0 bytes
11 cudaLaunchKernel 100+50 of 1 {11 12 python}
11 cuGraphLaunch 200+10 of 2 {11 12 python}
11 step 1 90+130`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	for _, says := range []string{
		"1 row without the numbers that a row has; these were left out",
		"CUDA graphs were recorded as a whole (1 run); their kernels are not known: record with --cuda-graph-trace=node",
		"1 process ran nothing on a device; of these nothing is shown", "exported by Nsight Systems; it knows neither operators nor Python",
	} {
		if !strings.Contains(warnings, says) {
			t.Errorf("got %s, want %q", warnings, says)
		}
	}
	if tr := traces[1]; tr.Process.Host != "node7" || tr.UnixNs(300) != 1700000000000000300 || fmt.Sprintf("%q", tr.Meta.Devices) != `["" "NVIDIA H100"]` {
		t.Errorf("got %+v, %+v", tr.Process, tr.Meta)
	}
}

// TestOldAndBareExports: columns that are not there, names as texts, and no device at all.
func TestOldAndBareExports(t *testing.T) {
	for statements, want := range map[string]string{
		`CREATE TABLE StringIds (id INTEGER, value TEXT); CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, demangledName TEXT); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 5, 'k');`: "1 trace of process -1 with 1 device rows and 0 ranges",
		`CREATE TABLE StringIds (id INTEGER, value TEXT); CREATE TABLE NVTX_EVENTS (start INT, end INT, text TEXT, globalTid INT); INSERT INTO NVTX_EVENTS VALUES (1, 5, 'r', (9<<24)|9);`:              "1 trace of process 9 with 0 device rows and 1 ranges",
		`CREATE TABLE StringIds (id INTEGER, value TEXT);`: "no kernels, copies, calls or ranges; record with --trace=cuda,nvtx",
	} {
		traces, warnings := read(t, database.Make(t, statements))
		got := warnings
		if len(traces) == 1 {
			got = fmt.Sprintf("1 trace of process %d with %d device rows and %d ranges", traces[0].Process.PID, traces[0].Device.Len(), traces[0].Ops.Len())
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", statements, got, want)
		}
	}
}

// TestWhatNsightSystemsWarnedOf: errors are warnings, warnings are notes, the rest is nothing.
func TestWhatNsightSystemsWarnedOf(t *testing.T) {
	content := database.Make(t, `CREATE TABLE StringIds (id INTEGER, value TEXT); CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER, severity INTEGER, text TEXT);
	INSERT INTO DIAGNOSTIC_EVENT VALUES (1, 1, 'Profiling has started.'), (2, 2, 'Unable to collect samples.' || char(10) || 'Try sudo.'),
	 (3, 3, 'Not all CUDA events might have been collected.'), (4, 3, 'Not all CUDA events might have been collected.');`)
	_, warnings, err := Read(context.Background(), kineto.Input{File: "r.sqlite", At: bytes.NewReader(content), Size: int64(len(content)), Step: func(int64) {}}, kineto.Options{})
	if err != nil || len(warnings) != 3 {
		t.Fatalf("got %v, %v", warnings, err)
	}
	for i, want := range []string{`r.sqlite: a message of Nsight Systems: "Unable to collect samples"`, `r.sqlite: a message of Nsight Systems: "Not all CUDA events might have been collected"`} {
		if got := warnings[i]; got.String() != want || got.Note != (i == 0) {
			t.Errorf("got %v (note: %t), want %s", got, got.Note, want)
		}
	}
}

// TestADatabaseThatWasNotClosed: what its journal has is not read, and that is reported.
func TestADatabaseThatWasNotClosed(t *testing.T) {
	content := database.Make(t, twoProcesses)
	path := filepath.Join(t.TempDir(), "r.sqlite")
	if err := os.WriteFile(path+"-wal", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, warnings, err := Read(context.Background(), kineto.Input{File: path, At: bytes.NewReader(content), Size: int64(len(content)), Step: func(int64) {}}, kineto.Options{})
	if text := fmt.Sprint(warnings); err != nil || !strings.Contains(text, "the database was not closed") {
		t.Errorf("got %s, %v", text, err)
	}
}

// FuzzRead: damaged exports give traces whose tables are whole, or none.
func FuzzRead(f *testing.F) {
	whole, err := os.ReadFile(filepath.Join("testdata", "two-processes.sqlite")) // twoProcesses, in pages of 512 bytes
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
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
