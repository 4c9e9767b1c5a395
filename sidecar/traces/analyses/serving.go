package analyses

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// Phases of serving, as TableServingSteps and TableServingPhases have them. A phase that is none of these is an engine's own, in
// lower case: verify.
const (
	Prefill = "prefill"
	Decode  = "decode"
	Mixed   = "mixed"   // both in one batch
	Between = "between" // outside the steps: the scheduler, sampling
)

// servingStep is what an engine's annotation says about one forward pass. A number that it does not say is table.None.
type servingStep struct {
	phase                     string
	requests, prefill, decode int64
	tokens                    int64 // that are computed
	start, end                int64 // ns
	device, idle              int64 // ns of what was launched in it, of the devices being idle in it
	name                      string
}

// Annotations of engines: vLLM (gpu_worker.py annotate_profile, execute_model), SGLang (profile_utils.py build_step_span_name).
var (
	vllmContext = regexp.MustCompile(`^execute_(?:(\d+)_)?context_(\d+)\((?:sq)?(\d*)[^()]*\)_generation_(\d+)\((?:sq)?(\d*)[^()]*\)`)
	vllmNew     = regexp.MustCompile(`^execute_new_(\d+)_cached_(\d+)`)
	stepSpan    = regexp.MustCompile(`^(?:step\[([A-Z_]+)|(prefill|decode)\[)([^\[\]]*)\]`)
)

// sglangPhases are the forward modes of SGLang that have a name in common with others.
var sglangPhases = map[string]string{"EXTEND": Prefill, "PREFILL": Prefill, "DECODE": Decode, "MIXED": Mixed}

// readServingStep reads an annotation; ok is false where it is none of a serving engine's.
func readServingStep(name string) (s servingStep, ok bool) {
	s = servingStep{requests: table.None, prefill: table.None, decode: table.None, tokens: table.None, name: name}
	switch m := vllmContext.FindStringSubmatch(name); {
	case m != nil:
		s.prefill, s.decode = count64(m[2]), count64(m[4])
		s.tokens = sum64(count64(m[3]), count64(m[5]))
	default:
		if m = vllmNew.FindStringSubmatch(name); m != nil {
			s.prefill, s.decode = count64(m[1]), count64(m[2])
			break
		}
		if m = stepSpan.FindStringSubmatch(name); m == nil {
			return s, false
		}
		s.phase = cmp.Or(m[2], sglangPhases[m[1]], strings.ToLower(m[1]))
		s.fields(m[3])
		return s, true
	}
	s.requests = sum64(s.prefill, s.decode)
	switch {
	case s.prefill > 0 && s.decode > 0:
		s.phase = Mixed
	case s.prefill > 0:
		s.phase = Prefill
	default:
		s.phase = Decode
	}
	return s, true
}

// fields reads bs=4 toks=2048.
func (s *servingStep) fields(text string) {
	for _, field := range strings.Fields(text) {
		key, value, _ := strings.Cut(strings.Trim(field, ","), "=")
		switch key {
		case "bs":
			s.requests = count64(value)
		case "toks", "tok":
			s.tokens = count64(value)
		}
	}
	switch s.phase {
	case Prefill:
		s.prefill = s.requests
	case Decode:
		s.decode = s.requests
		if s.tokens == table.None {
			s.tokens = s.requests // one each
		}
	}
}

// count64 is a number of things; table.None where it is none, or too large to be one.
func count64(text string) int64 {
	const most = 1 << 40
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return table.None
	}
	return n
}

// sum64 adds what is known.
func sum64(a, b int64) int64 {
	if a == table.None || b == table.None {
		return max(a, b)
	}
	return a + b
}

// serving is a recording's steps of an inference engine.
type serving struct {
	steps   []servingStep // by start
	between int64         // ns of the devices being idle between them
	outside int64         // ns of device work launched outside them
}

func observeServing(r *recording) serving {
	var all serving
	host := servingSteps(r, kineto.OpAnnotation)
	onHost := len(host) > 0
	if all.steps = host; !onHost { // of a trace without the host's part
		all.steps = servingSteps(r, kineto.OpGPUAnnotation)
	}
	if len(all.steps) == 0 {
		return all
	}
	when := func(s *span) int64 {
		if onHost && s.launch != kineto.None {
			return s.launch
		}
		return s.start
	}
	for i := range r.spans {
		if at := all.at(when(&r.spans[i])); at >= 0 {
			all.steps[at].device += max(0, r.spans[i].dur)
		} else {
			all.outside += max(0, r.spans[i].dur)
		}
	}
	for _, g := range deviceGaps(r) {
		at := all.at(when(g.next))
		if at < 0 {
			all.between += g.End - g.Start
			continue
		}
		before := min(max(all.steps[at].start-g.Start, 0), g.End-g.Start) // the step had not begun
		all.between += before
		all.steps[at].idle += g.End - g.Start - before
	}
	return all
}

// servingSteps lists the steps that annotations of a class name. Those of one name that begin together, of several streams,
// are one.
func servingSteps(r *recording, class kineto.OpClass) (steps []servingStep) {
	o := &r.t.Ops
	known := map[kineto.Sym]*servingStep{}
	for row, name := range o.Name {
		if o.Class[row] != class || !r.keeps(o.Start[row]) {
			continue
		}
		s, seen := known[name]
		if !seen {
			if read, ok := readServingStep(r.t.Text(name)); ok {
				s = &read
			}
			known[name] = s
		}
		if s != nil {
			step := *s
			step.start, step.end = o.Start[row], o.Start[row]+max(0, o.Dur[row])
			steps = append(steps, step)
		}
	}
	slices.SortStableFunc(steps, func(a, b servingStep) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
	return slices.CompactFunc(steps, func(a, b servingStep) bool { return a.name == b.name && b.start < a.end })
}

// at is the step that was in progress at a time, the one that began last; -1 if there was none.
func (s *serving) at(time int64) int {
	at, _ := slices.BinarySearchFunc(s.steps, time, func(step servingStep, time int64) int { return count(step.start > time)*2 - 1 })
	const overlapping = 8 // that an engine has begun
	for i := at - 1; i >= max(0, at-overlapping); i-- {
		if time < s.steps[i].end {
			return i
		}
	}
	return -1
}

// phaseSums are the figures of a phase of serving.
type phaseSums struct {
	steps, requests, tokens, host, device, idle int64
	known                                       int64 // steps with their requests known
}

func answerServing(a asked[serving]) []*table.Table {
	steps := table.New(TableServingSteps, "Steps of the inference engine",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "step", Kind: table.Int}, // from 1 on
		&table.Column{Name: "phase", Kind: table.Text},
		&table.Column{Name: "requests", Kind: table.Int},
		&table.Column{Name: "prefill_requests", Kind: table.Int},
		&table.Column{Name: "decode_requests", Kind: table.Int},
		&table.Column{Name: "tokens", Kind: table.Int},         // computed
		&table.Column{Name: "start_us", Kind: table.Micros},    // since the first one
		&table.Column{Name: "duration_us", Kind: table.Micros}, // on the host; on the device where only that was recorded
		&table.Column{Name: "device_us", Kind: table.Micros},   // what was launched in it, summed
		&table.Column{Name: "idle_us", Kind: table.Micros},     // before what was launched in it
		&table.Column{Name: "annotation", Kind: table.Text})
	phases := table.New(TableServingPhases, "Serving by phase",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "phase", Kind: table.Text},
		&table.Column{Name: "steps", Kind: table.Int},
		&table.Column{Name: "mean_step_us", Kind: table.Micros},
		&table.Column{Name: "mean_requests", Kind: table.Float},
		&table.Column{Name: "tokens", Kind: table.Int},
		&table.Column{Name: "device_us", Kind: table.Micros},
		&table.Column{Name: "idle_us", Kind: table.Micros},
		&table.Column{Name: "idle_share", Kind: table.Ratio}) // of the rank's
	for _, rank := range a.ranks {
		by := map[string]*phaseSums{}
		of := func(phase string) *phaseSums {
			if by[phase] == nil {
				by[phase] = &phaseSums{}
			}
			return by[phase]
		}
		n, idle := 0, int64(0)
		for _, part := range rank.parts {
			for _, s := range part.steps {
				n++
				steps.Add(rank.rank, n, s.phase, s.requests, s.prefill, s.decode, s.tokens,
					micros(s.start-part.steps[0].start), micros(s.end-s.start), micros(s.device), micros(s.idle), s.name)
				sum := of(s.phase)
				sum.steps++
				sum.tokens += max(0, s.tokens)
				sum.host, sum.device, sum.idle = sum.host+s.end-s.start, sum.device+s.device, sum.idle+s.idle
				if s.requests != table.None {
					sum.requests, sum.known = sum.requests+s.requests, sum.known+1
				}
				idle += s.idle
			}
			if part.between+part.outside > 0 {
				sum := of(Between)
				sum.device, sum.idle = sum.device+part.outside, sum.idle+part.between
				idle += part.between
			}
		}
		names := sortedKeys(by)
		slices.SortStableFunc(names, func(a, b string) int {
			return cmp.Or(count(a == Between)-count(b == Between), cmp.Compare(by[b].host, by[a].host))
		})
		for _, phase := range names {
			s := by[phase]
			requests, mean := math.NaN(), math.NaN()
			if s.known > 0 {
				requests = float64(s.requests) / float64(s.known)
			}
			if s.steps > 0 {
				mean = micros(s.host) / float64(s.steps)
			}
			phases.Add(rank.rank, phase, s.steps, mean, requests, known(s.tokens, s.tokens > 0), micros(s.device), micros(s.idle), share(s.idle, idle))
		}
	}
	if steps.Len() == 0 {
		note := "no annotations of an inference engine (vLLM's execute_…, SGLang's step[…])"
		steps.Note, phases.Note = note, note
	}
	return []*table.Table{steps, phases}
}
