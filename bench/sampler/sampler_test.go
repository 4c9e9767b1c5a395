package main

import (
	"flag"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/bench/sampler/peer"
	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestRatioOf(t *testing.T) {
	got := ratioOf([]float64{2, 0.5, 2, 0.5})
	if math.Abs(got.Mean-1) > 1e-9 || math.Abs(got.Low*got.High-1) > 1e-9 || got.Low >= 1 {
		t.Errorf("got %v, want a mean of 1 in the middle of the interval, by ratio", got)
	}
	if got := ratioOf([]float64{1.5}); !math.IsInf(got.High, 1) || got.Low != 0 {
		t.Errorf("one pair gives %v, want no bounds", got)
	}
}

// One wild pair among many must not decide.
func TestRatioOfManyPairs(t *testing.T) {
	ratios := slices.Repeat([]float64{1.00, 1.01, 1.02, 1.03, 1.04, 1.01, 1.02, 1.03, 1.02, 1.02}, 3)
	calm := ratioOf(ratios)
	if math.Abs(calm.Mean-1.02) > 0.001 || calm.Low < 1.005 || calm.High > 1.04 {
		t.Errorf("got %v, want about 1.02 [1.01, 1.03]", calm)
	}
	wild := ratioOf(append(ratios, 5))
	if math.Abs(wild.Mean-calm.Mean) > 0.01 || wild.High > 1.04 {
		t.Errorf("one wild pair moves %v to %v", calm, wild)
	}
}

// Student's t for 5 values is 2.776; their standard error here is sqrt(2.5/5).
func TestMeanOf(t *testing.T) {
	got := meanOf([]float64{1, 2, 3, 4, 5})
	if half := 2.7764 * math.Sqrt(0.5); math.Abs(got.Mean-3) > 1e-9 || math.Abs(got.High-3-half) > 1e-3 || math.Abs(3-got.Low-half) > 1e-3 {
		t.Errorf("got %v, want 3 ± %.4f", got, half)
	}
}

func TestDocument(t *testing.T) {
	distance, far, exact, little := 0.0041, 0.2, 1.004, 0.63
	results := &Results{
		Date: "2026-01-02", Command: "go run ./bench/sampler", Rate: 1000, Plan: "30 pairs of 500ms",
		Machine: Machine{CPU: "Example CPU", Cores: 2, Kernel: "6.1", Others: 0.5, Stolen: 0.01},
		Samplers: []SamplerID{
			{Ours, "this commit", "3.12", "3.12.1"}, {"py-spy", "0.4.3", "3.12", "3.12.1"},
			{"pyinstrument", "5.1.3", "3.12", "3.12.1"}, {peer.Floor, "", "3.12", "3.12.1"},
		},
		Missing: []peer.Missing{{Name: "Tachyon", Reason: "no CPython 3.15 here"}},
		Slowdown: []Slowdown{
			{Program: "richards", Minor: "3.12", Sampler: Ours, Pairs: 30, Ratio: Interval{1.003, 0.999, 1.007},
				Work: Interval{1.001, 0.998, 1.004},
				CPU:  Interval{0.03, 0.028, 0.032}, OfFloor: Interval{1.4, 1.3, 1.5}},
			{Program: "richards", Minor: "3.12", Sampler: "py-spy", Pairs: 30, Ratio: Interval{1.2, 1.18, 1.22},
				Work: Interval{1.01, 1.0, 1.02},
				CPU:  Interval{0.2, 0.19, 0.21}, OfFloor: Interval{9, 8.5, 9.5}},
			{Program: "richards", Minor: "3.12", Sampler: "pyinstrument", Pairs: 30, Ratio: Interval{4.1, 4, 4.2}},
			{Program: "richards", Minor: "3.12", Sampler: peer.Floor, Pairs: 30, Ratio: Interval{1, 0.99, 1.01}, CPU: Interval{0.02, 0.02, 0.02}},
			{Program: "160 threads", Minor: "3.12", Sampler: Ours, Pairs: 30, Ratio: Interval{1.03, 1.02, 1.04},
				CPU: Interval{0.04, 0.03, 0.05}, OfFloor: Interval{1.8, 1.7, 1.9}},
			{Program: "160 threads", Minor: "3.12", Sampler: "py-spy", Pairs: 30, Ratio: Interval{1.0, 0.99, 1.01}, CPU: Interval{0.04, 0.03, 0.05}},
		},
		Turns: []Turns{
			{Program: "richards", Minor: "3.12", Pairs: 60, Ratio: Interval{1.004, 0.997, 1.012}, Work: Interval{1.002, 0.998, 1.006}},
			{Program: "160 threads", Minor: "3.12", Error: "it ended before its target"},
		},
		Accuracy: []Accuracy{
			{Workload: "work", Minor: "3.12", Sampler: Ours, Samples: 10000, PerSecond: 999, Truncated: 0.00012},
			{Workload: "work", Minor: "3.12", Sampler: "py-spy", Samples: 9900, PerSecond: 990, Impossible: 0.00001, Lost: 0.5},
			{Workload: "work", Minor: "3.12", Sampler: "pyinstrument", Error: "it took no sample"},
			{Workload: "parts", Minor: "3.12", Sampler: Ours, Distance: &distance},
			{Workload: "parts", Minor: "3.12", Sampler: "py-spy", Distance: &far, WrongCallLines: 0.1},
			{Workload: "lines", Minor: "3.12", Sampler: Ours, Leaves: 1000},
			{Workload: "naps", Minor: "3.12", Sampler: Ours, Computing: &exact},
			{Workload: "naps", Minor: "3.12", Sampler: "py-spy", Computing: &little},
			{Workload: "work", Minor: "3.13", Build: "sid", Sampler: Ours, Samples: 10000, Impossible: 0.002},
			{Workload: "work", Minor: "3.14", Sampler: Ours, Samples: 10000},
		},
		MaxRate: []MaxRate{
			{Minor: "3.12", Sampler: Ours, PerSecond: 150_000},
			{Minor: "3.12", Sampler: "py-spy", PerSecond: 50_000, Impossible: 0.01},
		},
	}
	got := document(results)
	golden := filepath.Join("testdata", "document.md")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the page differs from %s (go test ./bench/sampler -update writes it):\n%s", golden, got)
	}
}

// Runs of one axis each make the page that one run of all makes.
func TestJoined(t *testing.T) {
	times := &Results{Date: "2026-01-02", Command: "a", Plan: "30 pairs", Machine: Machine{Cores: 2, Others: 0.01, Stolen: 0.2},
		Samplers: []SamplerID{{Name: Ours}, {Name: "py-spy"}}, Slowdown: []Slowdown{{Program: "richards"}}}
	stacks := &Results{Date: "2026-01-03", Command: "b", Plan: "10 s", Machine: Machine{Cores: 2, Others: 0.1, Stolen: 0.1},
		Samplers: []SamplerID{{Name: Ours}, {Name: "Austin"}}, Accuracy: []Accuracy{{Workload: "work"}}}
	want := &Results{Date: "2026-01-03", Command: "a; b", Plan: "30 pairs; 10 s", Machine: Machine{Cores: 2, Others: 0.1, Stolen: 0.2},
		Samplers: []SamplerID{{Name: Ours}, {Name: "py-spy"}, {Name: "Austin"}},
		Slowdown: []Slowdown{{Program: "richards"}}, Accuracy: []Accuracy{{Workload: "work"}}}
	if got := joined([]*Results{times, stacks}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Turns are compared by what the program noted within them; a pair without notes is left out.
func TestInTurns(t *testing.T) {
	var paces []truth.Pace
	at, cpu := int64(0), int64(0)
	for round := range int64(400) { // the CPU takes 10 a round, 11 in the second of four hundreds
		paces = append(paces, truth.Pace{AtNs: at, CPUNs: cpu, Rounds: round})
		step := int64(10)
		if round/100 == 1 {
			step = 11
		}
		at, cpu = at+2*step, cpu+step
	}
	of := func(hundred int, samples bool) turn {
		return turn{paces[100*hundred+5].AtNs - 3, paces[100*hundred+95].AtNs + 3, samples}
	}
	late := turn{from: at + 1000, to: at + 2000}
	ratios, works := inTurns([]turn{of(0, false), of(1, true), of(3, true), of(2, false), late, of(3, true), of(0, false)}, paces)
	if !slices.Equal(ratios, []float64{1.1, 1}) || !slices.Equal(works, []float64{1.1, 1}) {
		t.Errorf("ratios %v and %v", ratios, works)
	}
}

// A sampler's process that needs its interrupt, and one that has ended by itself.
func TestProcess(t *testing.T) {
	p, err := startProcess(exec.Command("sh", "-c", "trap 'echo interrupted; exit 3' INT; while :; do sleep 0.01; done"))
	if err != nil {
		t.Fatal(err)
	}
	p.waitUntil(time.Now().Add(100 * time.Millisecond))
	if _, err := p.cpu(); err != nil {
		t.Errorf("CPU time: %v", err)
	}
	if err := p.stop(); err == nil || p.lastWords() != "interrupted" {
		t.Errorf("ended with %v and %q, want exit status 3 and interrupted", err, p.lastWords())
	}
}

// A paced run and a recording with our own sampler in a real interpreter's process.
func TestOursOnRealTarget(t *testing.T) {
	python := truth.Any(t)
	program := filepath.Join(t.TempDir(), "sampler")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := ours(program, python)
	rounds, err := roundsIn(200*time.Millisecond, python.Path, truth.Work)
	if err != nil {
		t.Fatal(err)
	}
	job := peer.Job{Rate: 1000, Out: filepath.Join(t.TempDir(), "out.json")}
	paced, err := pacedRun(&s, python.Path, truth.Work, job, rounds)
	if err != nil {
		if strings.Contains(err.Error(), pystack.ErrPermission.Error()) {
			t.Skipf("this user may not read a process that is not a child of the reader: %v", err)
		}
		t.Fatal(err)
	}
	if paced.round <= 0 || paced.cpu <= 0 {
		t.Errorf("got %+v, want times", paced)
	}
	r, m, err := recordWhole(&s, python.Path, truth.Parts, job, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Samples) == 0 || r.Time < time.Second || len(m.SpentNs) != 5 {
		t.Errorf("got %d samples in %v, shares %v", len(r.Samples), r.Time, m.SpentNs)
	}
	legal, err := truth.Observe(python.Path, truth.Parts)
	if err != nil {
		t.Fatal(err)
	}
	if v := legal.Judge(r.Samples); v.Impossible > v.Samples/100 {
		t.Errorf("%d of %d samples are impossible: %q", v.Impossible, v.Samples, v.Examples)
	}
}
