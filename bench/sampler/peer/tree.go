package peer

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/pystack/truth"
)

// A pyinstrumentFrame is a node of pyinstrument's JSON: seconds in a function, those below included.
// Its line is where the function begins, which says nothing of where it was.
type pyinstrumentFrame struct {
	Function string              `json:"function"`
	File     string              `json:"file_path"`
	Time     float64             `json:"time"`
	Children []pyinstrumentFrame `json:"children"`
}

func readPyinstrument(path, _ string) (Recording, error) {
	var session struct {
		Duration float64            `json:"duration"`
		Samples  int                `json:"sample_count"`
		Root     *pyinstrumentFrame `json:"root_frame"`
	}
	if err := readJSON(path, &session); err != nil {
		return Recording{}, err
	}
	if session.Root == nil || session.Samples == 0 {
		return Recording{}, fmt.Errorf("%s holds no sample", path)
	}
	r := Recording{}
	if err := session.Root.expand(nil, session.Duration/float64(session.Samples), &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// expand turns the time in f itself into that many samples. Built-in functions are their caller's time:
// no other sampler has frames for them.
func (f *pyinstrumentFrame) expand(above []string, interval float64, r *Recording) error {
	stack := above
	if f.File != "<built-in>" && !strings.HasPrefix(f.Function, "[") {
		stack = append(slices.Clip(above), f.Function)
	}
	self := f.Time
	for i := range f.Children {
		self -= f.Children[i].Time
		if err := f.Children[i].expand(stack, interval, r); err != nil {
			return err
		}
	}
	return r.repeat(truth.Sample{Functions: stack}, math.Round(max(self, 0)/interval))
}

// readScalene reads the stacks of Scalene's JSON: pairs of frames, Python's first, and a count.
func readScalene(path, _ string) (Recording, error) {
	var profile struct {
		Stacks [][2]json.RawMessage `json:"combined_stacks"`
	}
	if err := readJSON(path, &profile); err != nil {
		return Recording{}, err
	}
	var r Recording
	for _, stack := range profile.Stacks {
		var frames []struct {
			Kind string `json:"kind"`
			Name string `json:"display_name"`
			Line *int   `json:"line"`
		}
		var count float64
		if err := json.Unmarshal(stack[0], &frames); err != nil {
			return r, fmt.Errorf("%s: frames: %w", path, err)
		}
		if err := json.Unmarshal(stack[1], &count); err != nil {
			return r, fmt.Errorf("%s: count: %w", path, err)
		}
		if len(frames) == 0 || strings.HasPrefix(frames[0].Name, "[await] ") {
			continue // a task that waits is no stack
		}
		var s truth.Sample
		for _, frame := range frames {
			if frame.Kind != "py" {
				continue
			}
			line := 0
			if frame.Line != nil {
				line = *frame.Line
			}
			s.Functions = append(s.Functions, frame.Name)
			s.Lines = append(s.Lines, line)
		}
		if err := r.repeat(s, count); err != nil {
			return r, fmt.Errorf("%s: %w", path, err)
		}
	}
	return r, nil
}

func readJSON(path string, into any) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(document, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
