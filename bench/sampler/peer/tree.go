package peer

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
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

// readScalene reads the stacks of Scalene's JSON: frames "/tmp/work.py Class.leaf:12;", how often each stack
// was seen, and its share of the time, which is more than how often: a signal that waited for a C call
// to end stands for all of it.
func readScalene(path, _ string) (Recording, error) {
	var profile struct {
		Stacks [][2]json.RawMessage `json:"stacks"`
	}
	if err := readJSON(path, &profile); err != nil {
		return Recording{}, err
	}
	var r Recording
	var stacks []truth.Sample
	var shares []float64
	for _, stack := range profile.Stacks {
		var frames []string
		var seen struct {
			Count int     `json:"count"`
			Share float64 `json:"cpu_samples"`
		}
		if err := json.Unmarshal(stack[0], &frames); err != nil {
			return r, fmt.Errorf("%s: frames: %w", path, err)
		}
		if err := json.Unmarshal(stack[1], &seen); err != nil {
			return r, fmt.Errorf("%s: counts: %w", path, err)
		}
		var s truth.Sample
		for _, frame := range frames {
			before, line, _ := cutLast(strings.TrimSuffix(frame, ";"), ":")
			_, function, _ := cutLast(before, " ")
			number, _ := strconv.Atoi(line)
			s.Functions = append(s.Functions, function)
			s.Lines = append(s.Lines, number)
		}
		stacks, shares = append(stacks, s), append(shares, seen.Share)
		r.Ticks += seen.Count
	}
	for i, s := range stacks {
		if err := r.repeat(s, math.Round(shares[i]*float64(r.Ticks))); err != nil {
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
