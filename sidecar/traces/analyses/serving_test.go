package analyses

import (
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// TestServingAnnotations: names that vLLM and SGLang wrote, and what is none of theirs.
func TestServingAnnotations(t *testing.T) {
	const none = table.None
	for name, want := range map[string]servingStep{
		"execute_context_1(888_788544)_generation_0(0)":                                                        {phase: Prefill, requests: 1, prefill: 1, decode: 0, tokens: 888},
		"execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)": {phase: Mixed, requests: 46, prefill: 9, decode: 37, tokens: 8192},
		"execute_context_0(0)_generation_64(64)":                                                               {phase: Decode, requests: 64, prefill: 0, decode: 64, tokens: 64},
		"execute_new_3_cached_0":                                                                               {phase: Prefill, requests: 3, prefill: 3, decode: 0, tokens: none},
		"execute_new_0_cached_12":                                                                              {phase: Decode, requests: 12, prefill: 0, decode: 12, tokens: none},
		"step[EXTEND bs=2 toks=12 c_sqsq=80 c_sqsk=120 c_sk=20]":                                               {phase: Prefill, requests: 2, prefill: 2, decode: none, tokens: 12},
		"step[DECODE bs=16]":                                                                                   {phase: Decode, requests: 16, prefill: none, decode: 16, tokens: 16},
		"step[MIXED bs=2]":                                                                                     {phase: Mixed, requests: 2, prefill: none, decode: none, tokens: none},
		"step[TARGET_VERIFY bs=4]":                                                                             {phase: "target_verify", requests: 4, prefill: none, decode: none, tokens: none},
		"decode[bs=8 tok=8]":                                                                                   {phase: Decode, requests: 8, prefill: none, decode: 8, tokens: 8},
		"step[DECODE bs=99999999999999999999]":                                                                 {phase: Decode, requests: none, prefill: none, decode: none, tokens: none},
		"step[DECODE]":                                                                                         {phase: Decode, requests: none, prefill: none, decode: none, tokens: none},
		"execute_diffusion_1_256x256":                                                                          {},
		"## forward ##":                                                                                        {},
		"step":                                                                                                 {},
		"ProfilerStep#3":                                                                                       {},
	} {
		got, ok := readServingStep(name)
		if ok != (want.phase != "") {
			t.Errorf("%s: %v", name, ok)
			continue
		}
		if want.name = name; ok && got != want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
		}
	}
}

// The devices' idle time is the phase's in which what ended it was launched, from the step's begin on; before, and for what was
// launched outside, it is between them.
func TestServing(t *testing.T) {
	var s script
	s.on(1, "user_annotation", "step[EXTEND bs=2 toks=12]", 0, 100, "")
	s.launchFrom(1, 10, "prefill", 20, 60)
	s.on(1, "user_annotation", "step[DECODE bs=2]", 200, 100, "")
	s.launchFrom(1, 220, "decode", 230, 10) // idle for 150: 120 before the step
	s.launchFrom(1, 260, "decode", 270, 10) // 30
	s.launchFrom(1, 400, "sample", 410, 5)  // 130, outside
	a := analyze(Options{}, s.trace(t))
	check(t, "steps", cells(a.Table(TableServingSteps), "step", "phase", "requests", "tokens", "start_us", "duration_us", "device_us", "idle_us"), `
		1 prefill 2 12 0 100 60 0
		2 decode 2 2 200 100 20 60
	`)
	check(t, "phases", cells(a.Table(TableServingPhases), "phase", "steps", "mean_step_us", "mean_requests", "tokens", "device_us", "idle_us"), `
		decode 1 100 2 2 20 60
		prefill 1 100 2 12 60 0
		between 0    5 250
	`)
}

// A trace of the device alone has its own annotations of the steps, one for each stream.
func TestServingOfTheDeviceAlone(t *testing.T) {
	var s script
	for stream := range 2 {
		s.on(stream+7, "gpu_user_annotation", "step[DECODE bs=4]", float64(100+stream), 80, "")
	}
	s.add(`{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":110,"dur":10,"args":{"stream":7}}`)
	s.add(`{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":140,"dur":10,"args":{"stream":7}}`)
	check(t, "steps", cells(analyze(Options{}, s.trace(t)).Table(TableServingSteps), "phase", "requests", "device_us", "idle_us"), "decode 4 20 20\n")
}

func TestNoServing(t *testing.T) {
	var s script
	s.launch(0, 7, "k", 5, 5, "")
	if steps := analyze(Options{}, s.trace(t)).Table(TableServingSteps); steps.Len() > 0 || steps.Note == "" {
		t.Errorf("%d steps, note %q", steps.Len(), steps.Note)
	}
}

func FuzzServingAnnotations(f *testing.F) {
	f.Add("execute_context_1(888_788544)_generation_0(0)")
	f.Add("step[EXTEND bs=2 toks=12]")
	f.Add("execute_new_99999999999999999999_cached_1")
	f.Fuzz(func(t *testing.T, name string) {
		s, ok := readServingStep(name)
		if ok && (s.phase == "" || s.phase != strings.ToLower(s.phase)) {
			t.Errorf("%q is of the phase %q", name, s.phase)
		}
		for _, n := range []int64{s.requests, s.prefill, s.decode, s.tokens} {
			if n < 0 && n != table.None {
				t.Errorf("%q has %d", name, n)
			}
		}
	})
}
