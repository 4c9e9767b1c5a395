package marks

import (
	"os"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/magics"
)

// WriteStepHook writes the archive with the step hook, for WithStepHook.
func WriteStepHook(path string) error {
	archive, err := magics.StepHook()
	if err != nil {
		return err
	}
	return os.WriteFile(path, archive, 0o600)
}

// WithStepHook returns an environment in which Pythons find the archive before anything else.
func WithStepHook(environ []string, archive string) []string {
	const variable = "PYTHONPATH="
	var path string
	out := slices.Clone(environ)
	out = slices.DeleteFunc(out, func(v string) bool {
		value, found := strings.CutPrefix(v, variable)
		if found {
			path = value // the last one counts, as in exec.Cmd
		}
		return found
	})
	if path != "" { // an empty one would be the current folder
		path = string(os.PathListSeparator) + path
	}
	return append(out, variable+archive+path)
}
