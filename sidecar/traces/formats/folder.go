package formats

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// profileSessions is where jax.profiler.start_trace(LOGDIR) writes, a folder a session, named by its time.
const profileSessions = "plugins/profile"

// traceNames are how traces of other tools end, without .gz.
var traceNames = []string{".sqlite", ".xplane.pb"}

// listed are the traces of a folder. Of a log directory of JAX they are those of its last session. Where there is
// none, what is recognised by its name alone is listed, so that it is refused by its own name.
func listed(folder string, names []string) []string {
	chosen := keep(names, func(name string) bool { return isTrace(name) && !isTwin(name, names) && !isMade(name, names) })
	if len(chosen) == 0 {
		if sessions, _ := filepath.Glob(filepath.Join(folder, profileSessions, "*")); len(sessions) > 0 { // the pattern is well-formed
			last := slices.Max(sessions)
			if entries, err := os.ReadDir(last); err == nil {
				var inside []string
				for _, e := range entries {
					inside = append(inside, e.Name())
				}
				folder, chosen = last, keep(inside, func(name string) bool { return isTrace(name) && !isTwin(name, inside) })
			}
		}
	}
	if len(chosen) == 0 {
		chosen = keep(names, func(name string) bool { return Recognise(name, nil) != nil })
	}
	for i, name := range chosen {
		chosen[i] = filepath.Join(folder, name)
	}
	return chosen
}

func keep(names []string, wanted func(string) bool) (kept []string) {
	for _, name := range names {
		if wanted(name) {
			kept = append(kept, name)
		}
	}
	return kept
}

func isTrace(name string) bool {
	plain := strings.TrimSuffix(strings.ToLower(name), ".gz")
	return kineto.IsTraceName(name) || slices.ContainsFunc(traceNames, func(end string) bool { return strings.HasSuffix(plain, end) })
}

var (
	profilerTrace = regexp.MustCompile(`\.pt\.trace\.json(\.gz)?$`)
	// madeBeside are files that --prof_dir and Composer write beside torch's traces: host figures of a cycle, and all traces in one.
	madeBeside = regexp.MustCompile(`^(ep\d+-ba\d+-rank\d+\.json|(node\d+|merged_trace)\.json)(\.gz)?$`)
)

// isMade reports whether a file is made of the traces of torch.profiler beside it, or has what the host did meanwhile.
func isMade(name string, names []string) bool {
	return madeBeside.MatchString(name) && slices.ContainsFunc(names, profilerTrace.MatchString)
}

// isTwin reports whether a JSON file is the copy for a viewer of an .xplane.pb beside it, of which it has a part:
// JAX writes HOST.trace.json.gz and perfetto_trace.json.gz.
func isTwin(name string, names []string) bool {
	host, ok := strings.CutSuffix(name, ".trace.json.gz")
	return (ok || name == "perfetto_trace.json.gz") && slices.ContainsFunc(names, func(other string) bool {
		return strings.HasSuffix(other, ".xplane.pb") && (!ok || other == host+".xplane.pb")
	})
}
