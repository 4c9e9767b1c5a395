package export

import (
	"encoding/json"
	"fmt"

	"github.com/omni-perf/omni-perf/sidecar/report"
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
	// speedscopeProfile is one thread: stacks, root first, and how long each stood.
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
func Speedscope(r *report.Report) ([]byte, error) {
	h := historyOf(r)
	f := speedscopeFile{
		Schema: "https://www.speedscope.app/file-format-schema.json", Exporter: clean(r.Generator), Name: title(r),
		Shared: speedscopeShared{Frames: []speedscopeFrame{}}, Profiles: []speedscopeProfile{},
	}
	ids := make(map[speedscopeFrame]int)
	frameID := make([]int, len(h.frames))
	for i, fr := range h.frames {
		key := speedscopeFrame{clean(fr.Function), clean(fr.File), max(fr.FirstLine, 0)}
		id, ok := ids[key]
		if !ok {
			id = len(f.Shared.Frames)
			ids[key] = id
			f.Shared.Frames = append(f.Shared.Frames, key)
		}
		frameID[i] = id
	}
	for t, spans := range h.spans {
		if len(spans) == 0 {
			continue
		}
		if h.threads[t].RunsCell {
			f.ActiveProfileIndex = len(f.Profiles)
		}
		f.Profiles = append(f.Profiles, h.speedscopeProfile(h.threadName(r, t), spans, frameID))
	}
	out, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("write the speedscope file: %w", err)
	}
	return out, nil
}

func (h *history) speedscopeProfile(name string, spans []span, frameID []int) speedscopeProfile {
	p := speedscopeProfile{Type: "sampled", Name: name, Unit: "nanoseconds", Samples: [][]int{}, Weights: []int64{}}
	add := func(stack []int, weight int64) {
		p.Samples = append(p.Samples, stack)
		p.Weights = append(p.Weights, weight)
	}
	stacks := make(map[int][]int)
	for _, s := range spans {
		if s.start > p.EndValue {
			add([]int{}, s.start-p.EndValue)
		}
		stack, ok := stacks[s.node]
		if !ok {
			stack = []int{}
			for _, fr := range h.stack(s.node) {
				stack = append(stack, frameID[fr])
			}
			stacks[s.node] = stack
		}
		add(stack, s.end-s.start)
		p.EndValue = s.end
	}
	return p
}
