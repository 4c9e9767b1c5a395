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

const (
	Interrupt  = 2 // the number of the signal that Ctrl-C sends
	ExitRaised = 1 // the exit code of a Python program that an exception ended
)

// End is how a process ended.
type End struct {
	Code      *int   // its exit code, or 128 and the signal; nil: not known
	BySignal  bool   // a signal ended it
	Exception string // that ended its Python program; empty: none, or it is not known
	Place     string // where that was raised; may be empty
}

// String is "exit code 1", "ended by SIGKILL", "interrupted", "ended by ValueError at train.py:31"; empty where it ended well,
// or nothing is known.
func (e End) String() string {
	at := ""
	if e.Place != "" {
		at = " at " + e.Place
	}
	switch {
	case e.BySignal && e.Code != nil && *e.Code == 128+Interrupt:
		return "interrupted" + at
	case e.BySignal && e.Code != nil:
		return "ended by " + Signal(*e.Code-128)
	case e.Exception != "":
		return "ended by " + e.Exception + at
	case e.Code != nil && *e.Code != 0:
		return fmt.Sprintf("exit code %d", *e.Code)
	}
	return ""
}

// rankFailed names the rank that failed first, with its exception where that is known.
func (s Scope) rankFailed(f diagnose.Finding) string {
	text, after := Process(*f.Process), " after "+words.Seconds(f.At.Seconds())
	place := s.Place(f.Place)
	if e := f.Process.Raised; e != nil {
		text += " was ended by " + words.Clean(e.Type, words.MaxName)
		if place != "" {
			text += " in " + place
		}
		if text += after; e.Message != "" {
			text += ": " + words.Clean(e.Message, maxMessage)
		}
		return text
	}
	text += fmt.Sprintf(" ended with exit code %d", *f.Process.Exit) + after
	if place != "" {
		text += ", and was seen last in " + place
	}
	return text
}

// maxMessage bounds the message of an exception in a sentence, in runes.
const maxMessage = 100

// workerKilled names the worker that a signal ended, and its memory before.
func (s Scope) workerKilled(f diagnose.Finding) string {
	text := Process(*f.Process) + " was ended by " + Signal(f.Process.Signal) + " after " + words.Seconds(f.At.Seconds())
	if place := s.Place(f.Place); place != "" {
		text += ", " + lastIn(place, f.Process.SeenBefore().Seconds())
	}
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
