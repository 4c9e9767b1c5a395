package program

import (
	"bytes"
	"context"
	"regexp"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// A program that a signal ended is said to have died: where, with how much memory, and what its threads did.
func TestAProgramThatDies(t *testing.T) {
	for name, death := range map[string]string{"SIGKILL": "os.kill(os.getpid(), 9)", "SIGSEGV": "ctypes.string_at(0)", "SIGABRT": "os.abort()"} {
		script := write(t, "died.py", "import ctypes, os, threading, time\n"+
			"threading.Thread(target=time.sleep, args=(60,), name='loader', daemon=True).start()\n"+
			"def work():\n    time.sleep(0.5); "+death+"\nwork()\n")
		var messages bytes.Buffer
		o, _ := options(t, &messages)
		if _, err := Run(context.Background(), realTools(), Script{Interpreter: truth.OnPath(t), Args: []string{script}, Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}}, o); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`omni-perf: died.py died by ` + name + `, \d[.\d]* s after its start, last seen \d[.\d]* [mµ]s before in (.*/)?died.py:4, work( → string_at)?\..* It had \d.* resident, of `,
			`MainThread, the innermost call first:\n(      .*string_at\n)?      (.*/)?died.py:4, work\n`, `loader, the innermost call first:`,
		} {
			if !regexp.MustCompile(want).Match(messages.Bytes()) {
				t.Errorf("%s: no %q in\n%s", name, want, messages.String())
			}
		}
	}
}

// One that was asked to end, or that ended by itself, has not died.
func TestAProgramThatEnds(t *testing.T) {
	for _, end := range []string{"os.kill(os.getpid(), 15)", "raise ValueError", "os._exit(3)"} {
		var messages bytes.Buffer
		o, _ := options(t, &messages)
		script := write(t, "ended.py", "import os, time\ntime.sleep(0.2)\n"+end+"\n")
		if _, err := Run(context.Background(), realTools(), Script{Interpreter: truth.OnPath(t), Args: []string{script}, Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}}, o); err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`died`).Match(messages.Bytes()) {
			t.Errorf("%s: %s", end, messages.String())
		}
	}
}
