package program

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Worker is what a process is to the engine that hands tasks to it.
type Worker struct {
	Role   timeline.Role // one of timeline.EngineRoles
	Number *int          // that the engine has given it; nil: none
}

// ParseWorker reads ROLE or ROLE:NUMBER.
func ParseWorker(text string) (*Worker, error) {
	role, number, numbered := strings.Cut(text, ":")
	w := &Worker{Role: timeline.Role(role)}
	if !slices.Contains(timeline.EngineRoles, w.Role) {
		return nil, fmt.Errorf("%s is none of %v", role, timeline.EngineRoles)
	}
	if numbered {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%s has no number behind the colon", text)
		}
		w.Number = &n
	}
	return w, nil
}

// ReadSources reads the cells whose functions a worker runs, as an engine's adapter writes them
// (magics/omni_perf/engines); of no file: none.
func ReadSources(file string) (out []timeline.Source, err error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var cells []struct {
		File, Text     string
		ExecutionCount int
		Lines          []int
		Nested         bool
	}
	if err := json.Unmarshal(text, &cells); err != nil {
		return nil, fmt.Errorf("read the cells in %s: %w", file, err)
	}
	for _, c := range cells {
		out = append(out, timeline.Source{File: c.File, ExecutionCount: c.ExecutionCount, Text: c.Text, Lines: c.Lines, Nested: c.Nested})
	}
	return out, nil
}
