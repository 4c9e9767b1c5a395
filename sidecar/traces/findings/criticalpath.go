package findings

import (
	"math"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// leastSaved is the share of a step that must be saved for a cause to be worth a sentence.
const leastSaved = 0.05

// criticalPath is the cause that would shorten the steps most if it took no time, of those that somebody can change: an operator, a kernel,
// a line. What Name has none of is not recorded, and delays are between the others.
func criticalPath(t Tables) *Finding {
	path, replays := t.get(analyses.TableCriticalPath), t.get(analyses.TableCriticalPathReplay)
	longest, recorded, steps := longestReplay(replays)
	f := &Finding{ID: CriticalPath, Unit: Share, Threshold: leastSaved, Evidence: map[string]float64{}}
	saved := 0.0
	for r := range path.Len() {
		if path.IntAt("rank", r) != longest {
			continue
		}
		where, name, share := path.TextAt("where", r), path.TextAt("name", r), path.FloatAt("path_share", r)
		switch by := path.TextAt("by", r); {
		case by == analyses.PathPart:
			f.Evidence[name+"_share"] += share
		case by == analyses.PathCollective && name == analyses.CollectiveWaiting:
			f.Evidence["waiting_share"] = share
		case by == analyses.PathCause && where != analyses.InDelay && name != "":
			if of := path.FloatAt("saved_share", r); !math.IsNaN(of) && of > f.Value {
				f.Value, f.Name, f.On, saved = of, name, where, path.FloatAt("saved_us", r)
				f.Evidence["path_share"] = share
			}
		}
	}
	if f.Name == "" {
		return nil
	}
	f.Lost, f.Evidence["recorded_us"], f.Evidence["saved_us"] = f.Value, recorded, saved
	if steps > 0 {
		f.Evidence["step_us"], f.Evidence["step_saved_us"] = recorded/float64(steps), saved/float64(steps)
	}
	if replays.Len() > 1 {
		f.Rank = pointer(longest)
	}
	return f
}

// longestReplay is the rank whose steps took longest, for how long these were recorded and how many they are.
func longestReplay(replays *table.Table) (rank int64, us float64, steps int64) {
	rank = -1
	for r := range replays.Len() {
		if recorded := replays.FloatAt("recorded_us", r); recorded > us {
			rank, us, steps = replays.IntAt("rank", r), recorded, replays.IntAt("steps", r)
		}
	}
	return rank, us, steps
}
