package host

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// python starts an interpreter that has run a program's first lines.
func python(t *testing.T, program string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(truth.OnPath(t), "-c", program+"\nimport _bisect, sys, time\nprint('ready', flush=True)\ntime.sleep(600)")
	ready, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if n, _ := ready.Read(make([]byte, 6)); n == 0 {
		t.Fatal("python3 said nothing")
	}
	return cmd
}

// rules are simple ones: what lies in a site-packages folder is not the user's own.
var rules = CodeRules{
	Own: func(*timeline.Recording) func(string) bool {
		return func(file string) bool {
			return !strings.HasPrefix(file, "<") && !strings.Contains(file, "/site-packages/")
		}
	},
	Defines: func(lines []string, first int, function string) bool {
		return first <= len(lines) && strings.Contains(lines[first-1], "def "+function)
	},
}

func describe(c *Code, files ...string) *timeline.Recording {
	rec := &timeline.Recording{}
	for _, file := range files {
		rec.Frames = append(rec.Frames, timeline.Frame{File: file})
	}
	c.Describe(rec)
	return rec
}

func TestFilesOfCode(t *testing.T) {
	before := time.Now()
	cmd := python(t, "")
	c := NewCode(timeline.Target{PID: cmd.Process.Pid}, rules)
	folder := t.TempDir()
	own := filepath.Join(folder, "own.py")
	if err := os.WriteFile(own, []byte("x = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rec := describe(c, own, filepath.Join(folder, "gone.py"), "<string>", "/v/lib/python3.12/site-packages/torch/x.py", own)
	if len(rec.CodeFiles) != 2 {
		t.Fatalf("files %+v, want those two that may be the user's own", rec.CodeFiles)
	}
	if f := rec.CodeFiles[0]; f.Name != own || f.Missing || f.Modified.Before(before.Add(-time.Second)) || f.Compiled != nil {
		t.Errorf("own.py is %+v", f)
	}
	if f := rec.CodeFiles[1]; !f.Missing {
		t.Errorf("gone.py is %+v", f)
	}
	if d := rec.Target.Started.Sub(before); d < -time.Second || d > 10*time.Second {
		t.Errorf("the process started %v after it was started", d)
	}
}

// exec and compile are given what their caller likes for a file's name, as "string".
func TestRelativeNamesBeginInTheTargetsFolder(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "own.py"), []byte("x = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "source"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := python(t, fmt.Sprintf("import os; os.chdir(%q)", folder))
	rec := describe(NewCode(timeline.Target{PID: cmd.Process.Pid}, rules), "own.py", "string", "source")
	if len(rec.CodeFiles) != 3 || rec.CodeFiles[0].Missing || rec.CodeFiles[0].Modified.IsZero() || !rec.CodeFiles[1].Missing || !rec.CodeFiles[2].Missing {
		t.Errorf("files %+v, want own.py, no string and no source", rec.CodeFiles)
	}
}

func TestBytecodeTellsWhatItWasMadeOf(t *testing.T) {
	cmd := python(t, "")
	c := NewCode(timeline.Target{PID: cmd.Process.Pid}, rules)
	own := filepath.Join(t.TempDir(), "own.py")
	if err := os.WriteFile(own, []byte("x = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Add(time.Hour).Truncate(time.Second)
	if err := os.Chtimes(own, now, now); err != nil {
		t.Fatal(err)
	}
	pyc := filepath.Join(filepath.Dir(own), "__pycache__", "own.cpython-312.pyc")
	if err := os.Mkdir(filepath.Dir(pyc), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct {
		name        string
		flags, size uint32
		modified    time.Time
		length      int
		want        *timeline.Bytecode
	}{
		{"of this text", 0, 6, now, 16, &timeline.Bytecode{Matches: true}},
		{"of an older text", 0, 6, now.Add(-time.Minute), 16, &timeline.Bytecode{}},
		{"of another length", 0, 7, now, 16, &timeline.Bytecode{}},
		{"with a hash in place of a time", 1, 6, now, 16, &timeline.Bytecode{}},
		{"cut off", 0, 6, now, 9, nil},
	} {
		head := binary.LittleEndian.AppendUint32([]byte{1, 2, 3, 4}, k.flags)
		head = binary.LittleEndian.AppendUint32(head, uint32(k.modified.Unix()))
		head = binary.LittleEndian.AppendUint32(head, k.size)
		if err := os.WriteFile(pyc, head[:k.length], 0o600); err != nil {
			t.Fatal(err)
		}
		got := describe(c, own).CodeFiles[0].Compiled
		if (got == nil) != (k.want == nil) || got != nil && got.Matches != k.want.Matches {
			t.Errorf("%s: %+v, want %+v", k.name, got, k.want)
		}
	}
}

// A copy with the time of its original is looked at like one that was written now.
func TestAFileThatTookThePlaceOfAnother(t *testing.T) {
	cmd := python(t, "")
	c := NewCode(timeline.Target{PID: cmd.Process.Pid}, rules)
	folder := t.TempDir()
	own := filepath.Join(folder, "own.py")
	if err := os.WriteFile(own, []byte("import time\n\ndef slow():\n    time.sleep(1)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(own, old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "__pycache__"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "__pycache__", "own.cpython-312.pyc"), make([]byte, 16), 0o600); err != nil {
		t.Fatal(err)
	}
	rec := &timeline.Recording{}
	for first, want := range map[int]bool{3: false, 2: true} {
		rec.Frames, rec.CodeFiles = []timeline.Frame{{File: own, Function: "<module>", FirstLine: 1}, {File: own, Function: "slow", FirstLine: first}}, nil
		c.Describe(rec)
		f := rec.CodeFiles[0]
		if f.Placed.Before(rec.Target.Started) || !f.Modified.Before(rec.Target.Started) || f.Compiled == nil {
			t.Errorf("the file is %+v of a process that started at %v", f, rec.Target.Started)
		}
		if f.Contradicts != want {
			t.Errorf("a function of line %d: contradicts is %v, want %v", first, f.Contradicts, want)
		}
		if got := len(f.Elsewhere) == 1 && f.Elsewhere[0] == (timeline.FunctionStart{Function: "slow", FirstLine: first}); got != want {
			t.Errorf("a function of line %d: elsewhere are %v", first, f.Elsewhere)
		}
	}
}

func TestWherePythonLies(t *testing.T) {
	cmd := python(t, "")
	i := describe(NewCode(timeline.Target{PID: cmd.Process.Pid}, rules)).Installation
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	prefix := filepath.Dir(filepath.Dir(exe))
	if len(i.Prefixes) == 0 || i.Prefixes[len(i.Prefixes)-1] != prefix && i.Prefixes[0] != prefix {
		t.Errorf("prefixes %q, want %s among them", i.Prefixes, prefix)
	}
	for _, folder := range i.Standard {
		if _, err := os.Stat(filepath.Join(folder, "os.py")); err != nil {
			t.Errorf("%s is no standard library: %v", folder, err)
		}
	}
}

func TestCodeOfAProcessThatHasEnded(t *testing.T) {
	cmd := python(t, "")
	c := NewCode(timeline.Target{PID: cmd.Process.Pid}, rules)
	cmd.Process.Kill()
	cmd.Wait()
	rec := describe(c, filepath.Join(t.TempDir(), "gone.py"))
	if len(rec.Installation.Prefixes) == 0 || rec.Target.Started.IsZero() || len(rec.CodeFiles) != 1 || !rec.CodeFiles[0].Missing {
		t.Errorf("%+v started %v, files %+v", rec.Installation, rec.Target.Started, rec.CodeFiles)
	}
}
