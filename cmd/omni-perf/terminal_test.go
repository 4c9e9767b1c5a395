package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// saidInTerminal are the lines that the summary of a script that only sleeps may have, in
// order: a machine's load adds what is optional.
var saidInTerminal = []struct {
	line     string
	optional bool
}{
	{`^script\.py  [0-9.]+ s  ((computing|no free CPU|waiting|waiting for I/O|unknown) +<?[0-9.]+ %( +|$))+$`, false},
	{`^Slept for (all|[0-9.]+) of [0-9.]+ s in script\.py:7\. · (time\.sleep\(1\.5\)( · For [0-9.]+ .*)?$|For [0-9.]+ )`, false},
	{`^(no CPU was free|time\.sleep|.* no CPU was free\.)`, true},
	{`^$`, false},
	{`^CPU +[▁▂▃▄▅▆▇█ ]+  [0-9.]+ cores of [0-9.]+$`, false},
	{`^RSS +[▁▂▃▄▅▆▇█ ]+  ((≥ )?[0-9.]+ MiB peak, (of [0-9.]+ GiB|\+[0-9.]+ MiB)|[0-9.]+ – [0-9.]+ MiB)$`, false},
	{`^(disk (read|write)|net (in|out), machine) +[▁▂▃▄▅▆▇█ ]+  [0-9.]+ [kM]B/s peak [0-9.]+ [kMG]B/s$`, true}, // a cold page cache, others' traffic
	{`^$`, false},
	{`^Where the time went  \(by your own lines, the innermost one on the stack\)$`, false},
	{`^  script\.py:7 +[0-9.]+ s  █+ +[0-9.]+ %  time\.sleep\(1\.5\)( +waiting)?$`, false},
	{`^      [a-zA-Z]`, true},
	{`^  script\.py:2 +[0-9.]+ m?s +█* +[0-9.]+ %  import os, |^      [a-zA-Z]`, true}, // and what its time was
	{`^$`, false},
	{`^Busiest functions  \(own time, all threads\)$`, false},
	{`^  script\.py +[0-9.]+ s  █+ +[0-9.]+ %  script\.py:[0-9]+ +(waiting|[0-9.]+ s in all)?$`, false},
	{`^  (import )?[A-Za-z0-9_.<>: ]+ +[0-9.]+ m?s +█* +[0-9.]+ %  |^      [a-zA-Z]`, true}, // and what a row's time was
	{`^$`, false},
	{`^process_vm_readv, read twice · [0-9,]+ samples, one every [0-9.]+ ms · `, false},
	{`unreadable|of a core`, true},
	{`^stack sampling: slower than one every 1 ms`, true},
	{`^stacks: unknown for `, true},
	{`^omni-perf: wrote .*/r\.json$`, false},
}

// The whole of what a terminal shows of a run on an ordinary machine: nothing about what
// the machine does not have.
func TestTheTerminalShowsTheSummaryAndNothingElse(t *testing.T) {
	got, r := profiled(t, "time.sleep(1.5)\n")
	if !slices.ContainsFunc(r.Notes, func(n report.Note) bool { return n.ID == string(timeline.NoteAbsent) }) {
		t.Skip("this machine has an NVIDIA driver")
	}
	said := strings.Split(strings.TrimRight(got.stderr, "\n"), "\n")
	next := 0
	for _, want := range saidInTerminal {
		fits := regexp.MustCompile(want.line)
		switch {
		case next < len(said) && fits.MatchString(said[next]):
			next++
			for want.optional && next < len(said) && fits.MatchString(said[next]) {
				next++
			}
		case !want.optional:
			line := "its end"
			if next < len(said) {
				line = said[next]
			}
			t.Fatalf("%q, want %s, in\n%s", line, want.line, got.stderr)
		}
	}
	if next < len(said) {
		t.Errorf("%q is said besides, in\n%s", said[next], got.stderr)
	}
}
