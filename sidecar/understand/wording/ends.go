package wording

import (
	"fmt"

	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// signals are the names of those that end processes, by Linux's number (signal(7)).
var signals = map[int]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 10: "SIGUSR1",
	11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS",
}

// Signal names a signal: "SIGKILL", "signal 34".
func Signal(number int) string {
	if name, known := signals[number]; known {
		return name
	}
	return fmt.Sprintf("signal %d", number)
}

// interrupt is the number of the signal that Ctrl-C sends.
const interrupt = 2

// Ended says how a process ended by its exit code, which is 128 and the signal where one ended it:
// "exit code 1", "ended by SIGKILL", "interrupted"; empty where it ended well.
func Ended(code int, bySignal bool) string {
	switch {
	case bySignal && code == 128+interrupt:
		return "interrupted"
	case bySignal:
		return "ended by " + Signal(code-128)
	case code != 0:
		return fmt.Sprintf("exit code %d", code)
	}
	return ""
}

// workerKilled names the worker that a signal ended, and its memory before.
func (s Scope) workerKilled(f diagnose.Finding) string {
	text := Process(*f.Process) + " was ended by " + Signal(f.Process.Signal) + " after " + words.Seconds(f.At.Seconds())
	if f.Bytes > 0 {
		text += ", when it held " + words.Quantity(float64(f.Bytes), "B") + " of memory"
	}
	switch {
	case f.Count == 2:
		text += "; another worker was ended so, too"
	case f.Count > 2:
		text += fmt.Sprintf("; %d other workers were ended so, too", f.Count-1)
	}
	return text
}
