package program

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// spike touches 300 MiB in one call and gives them back at once; then it says what the kernel
// says of its own peak.
const spike = `
import resource
def spike():
    for turn in range(3):
        b"x" * (300 << 20)
spike()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)
`

// The peak of a program is exactly what the kernel says of it, however short it lasted, and its
// growth is in the line that touched the memory.
func TestThePeakOfAProgramIsExact(t *testing.T) {
	script := write(t, "spike.py", spike)
	for range 3 {
		var out, messages bytes.Buffer
		o, path := options(t, &messages)
		if _, err := Run(context.Background(), realTools(), Script{Interpreter: truth.OnPath(t), Args: []string{script}, Stdout: &out}, o); err != nil {
			t.Fatal(err)
		}
		want, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		r := readReport(t, path)
		if p := r.Processes[0]; p.PeakMemoryBytes == nil || *p.PeakMemoryBytes != want || p.PeakAtLeastBytes != nil {
			t.Errorf("peak %v, the program says %d", p.PeakMemoryBytes, want)
		}
		if len(r.Memory) == 0 || len(r.MemoryReading) != 1 || r.MemoryReading[0].Reads == 0 {
			t.Fatalf("no growth of memory: %+v, %+v", r.Memory, r.MemoryReading)
		}
		if m := r.Memory[0]; m.Line != 5 || m.GrownBytes < 300<<20 {
			t.Errorf("%d bytes at line %d, want some 900 MiB at line 5", m.GrownBytes, m.Line)
		}
	}
}

// launcher waits for a child that needs far more than itself.
const launcher = `
import re, subprocess, sys
subprocess.run([sys.executable, "-c", "import time; a = bytearray(300 << 20); time.sleep(0.5)"])
print(int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) << 10)
`

// Of a program that has waited for a child the kernel says the larger peak of the two.
func TestThePeakOfAChildIsNotTheProgramsOwn(t *testing.T) {
	var out, messages bytes.Buffer
	o, path := options(t, &messages)
	if _, err := Run(context.Background(), realTools(), Script{Interpreter: truth.OnPath(t), Args: []string{write(t, "launcher.py", launcher)}, Stdout: &out}, o); err != nil {
		t.Fatal(err)
	}
	own, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	p := readReport(t, path).Processes[0]
	if p.PeakMemoryBytes != nil {
		t.Errorf("peak %d, though the program's own mark was %d", *p.PeakMemoryBytes, own)
	}
	if p.PeakAtLeastBytes == nil || *p.PeakAtLeastBytes < own/2 || *p.PeakAtLeastBytes > own+timeline.InexactMark {
		t.Errorf("peak at least %v, the program's own mark was %d", p.PeakAtLeastBytes, own)
	}
}

// parent needs more than the child that it waits for.
const parent = `
import resource, subprocess, sys, time
a = bytearray(300 << 20)
time.sleep(0.5)
subprocess.run([sys.executable, "-c", ""])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)
`

// Where the program was itself seen to need as much as the kernel says, that is its own.
func TestAChildThatNeedsLessHidesNoPeak(t *testing.T) {
	var out, messages bytes.Buffer
	o, path := options(t, &messages)
	if _, err := Run(context.Background(), realTools(), Script{Interpreter: truth.OnPath(t), Args: []string{write(t, "parent.py", parent)}, Stdout: &out}, o); err != nil {
		t.Fatal(err)
	}
	want, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if p := readReport(t, path).Processes[0]; p.PeakMemoryBytes == nil || *p.PeakMemoryBytes != want {
		t.Errorf("peak %v, the program says %d", p.PeakMemoryBytes, want)
	}
}

const leak = `
import time
keep = []
for i in range(20):
    keep.append(bytearray(b"x") * (10 << 20))
    time.sleep(0.01)
time.sleep(0.1)
`

// What a program holds to its last line it has kept: that the interpreter gives it back while it ends is not the program's doing.
func TestWhatAProgramHoldsToItsLastLineIsKept(t *testing.T) {
	script := write(t, "leak.py", leak)
	for range 3 {
		var messages bytes.Buffer
		o, path := options(t, &messages)
		if _, err := Run(context.Background(), realTools(), Script{Interpreter: truth.OnPath(t), Args: []string{script}}, o); err != nil {
			t.Fatal(err)
		}
		r := readReport(t, path)
		if kept := r.Processes[0].KeptBytes; kept == nil || *kept < 195<<20 || *kept > 230<<20 {
			t.Errorf("kept %v, want some 200 MiB", kept)
		}
		if len(r.MemoryReading) != 1 || r.MemoryReading[0].ReleasedBytes > 5<<20 {
			t.Errorf("given back: %+v", r.MemoryReading)
		}
	}
}
