package interpret

import (
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// shortLife is how short a process must have lived for which all that was seen of it
// can be the time between its fork and its exec.
const shortLife = timeline.Nanos(100e6)

// isBeforeExec recognises processes that were seen only between their fork and their exec:
// such a one is no worker, though it still was the program that started it. launches
// marks the nodes on which subprocess is about to start a program.
func isBeforeExec(rec *timeline.Recording, launches []bool) func(process int) bool {
	ran := make(map[int]bool) // something of the program that started it
	for i := range rec.Threads {
		t := &rec.Threads[i]
		for _, s := range t.Spans {
			if s.Node != timeline.RootNode && int(s.Node) < len(launches) && !launches[s.Node] {
				ran[t.Process] = true
				break
			}
		}
	}
	return func(process int) bool {
		p := &rec.Processes[process]
		switch p.Stacks.Reason {
		case timeline.StacksNotPython:
			return true
		case timeline.StacksRead, timeline.StacksTooShort:
			return p.End != 0 && p.End-p.Start < shortLife && !ran[process]
		}
		return false // nothing is known of it
	}
}
