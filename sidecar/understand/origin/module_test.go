package origin

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestModule(t *testing.T) {
	f := New(&timeline.Recording{Target: timeline.Target{Argv: []string{"python", "train.py"}}})
	for file, want := range map[string]string{
		"/v/lib/python3.12/site-packages/scipy/stats/__init__.py": "scipy.stats",
		"/v/lib/python3.12/site-packages/six.py":                  "six",
		"/usr/lib/python3.12/json/decoder.py":                     "json.decoder",
		"/usr/lib/python3.12/threading.py":                        "threading",
		"/home/json/lib/python3.12/json/__init__.py":              "json",
		"/home/ann/work/mine.py":                                  "",
		"train.py":                                                "",
		"<string>":                                                "",
	} {
		if got := f.Module(file); got != want {
			t.Errorf("%s is imported as %q, want %q", file, got, want)
		}
	}
}
