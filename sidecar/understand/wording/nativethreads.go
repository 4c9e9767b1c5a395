package wording

import (
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// maxNative is how many names of native threads a sentence has.
const maxNative = 3

// NativeThreads says which threads without Python were busy: "native threads: 'feeder' used 6.0 s of CPU time while no Python
// thread computed in native code; it runs no Python, and its stacks are not read".
func NativeThreads(list []activity.NativeThreads) string {
	var parts []string
	for _, n := range list[:min(len(list), maxNative)] {
		who := words.Plural(n.Count, "thread", "threads")
		if name := words.Clean(n.Name, words.MaxName); name != "" {
			who = "'" + name + "'"
			if n.Count > 1 {
				who = words.Plural(n.Count, "thread", "threads") + " " + who
			}
		}
		parts = append(parts, who+" used "+words.Seconds(n.CPU.Seconds())+" of CPU time")
	}
	end := "they run no Python, and their stacks are not read"
	if len(list) == 1 && list[0].Count == 1 {
		end = "it runs no Python, and its stacks are not read"
	}
	return "native threads: " + words.List(parts) + " while no Python thread computed in native code; " + end
}
