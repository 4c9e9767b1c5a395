package export

import (
	"encoding/json"
	"fmt"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// The file format of https://www.speedscope.app, version 0.0.1.
type (
	speedscopeFile struct {
		Schema             string              `json:"$schema"`
		Exporter           string              `json:"exporter"`
		Name               string              `json:"name"`
		ActiveProfileIndex int                 `json:"activeProfileIndex"`
		Shared             speedscopeShared    `json:"shared"`
		Profiles           []speedscopeProfile `json:"profiles"`
	}
	speedscopeShared struct {
		Frames []speedscopeFrame `json:"frames"`
	}
	speedscopeFrame struct {
		Name string `json:"name"`
		File string `json:"file,omitempty"`
		Line int    `json:"line,omitempty"`
	}
	// speedscopeProfile is one thread: stacks, root first, and how long each lasted.
	speedscopeProfile struct {
		Type       string  `json:"type"`
		Name       string  `json:"name"`
		Unit       string  `json:"unit"`
		StartValue int64   `json:"startValue"`
		EndValue   int64   `json:"endValue"`
		Samples    [][]int `json:"samples"`
		Weights    []int64 `json:"weights"`
	}
)

// Speedscope writes one profile per thread, in nanoseconds of wall time. Frames
// are functions: which line of one ran does not split it.
func Speedscope(r *report.View) ([]byte, error) {
	frames := framesOf(r)
	f := speedscopeFile{
		Schema: "https://www.speedscope.app/file-format-schema.json", Exporter: generator(r), Name: title(r),
		Shared: speedscopeShared{Frames: []speedscopeFrame{}}, Profiles: []speedscopeProfile{},
	}
	ids := make(map[speedscopeFrame]int)
	frameID := make([]int, len(frames))
	for i, fr := range frames {
		key := speedscopeFrame{fr.function, fr.file, fr.firstLine}
		id, ok := ids[key]
		if !ok {
			id = len(f.Shared.Frames)
			ids[key] = id
			f.Shared.Frames = append(f.Shared.Frames, key)
		}
		frameID[i] = id
	}
	for t := range r.Threads {
		if len(r.History(t)) == 0 {
			continue
		}
		if t == r.MainThread() {
			f.ActiveProfileIndex = len(f.Profiles)
		}
		f.Profiles = append(f.Profiles, speedscopeOf(r, t, frameID))
	}
	out, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("write the speedscope file: %w", err)
	}
	return out, nil
}

func speedscopeOf(r *report.View, thread int, frameID []int) speedscopeProfile {
	p := speedscopeProfile{Type: "sampled", Name: threadName(r, thread), Unit: "nanoseconds", Samples: [][]int{}, Weights: []int64{}}
	add := func(stack []int, weight int64) {
		p.Samples = append(p.Samples, stack)
		p.Weights = append(p.Weights, weight)
	}
	stacks := make(map[int32][]int)
	for _, s := range r.History(thread) {
		if s.Start > p.EndValue {
			add([]int{}, s.Start-p.EndValue)
		}
		stack, ok := stacks[s.Node]
		if !ok {
			stack = []int{}
			for _, fr := range r.Stack(s.Node, maxDepth) {
				stack = append(stack, frameID[fr])
			}
			stacks[s.Node] = stack
		}
		add(stack, s.End-s.Start)
		p.EndValue = s.End
	}
	return p
}
