package pystack

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// naps are programs that compute for a short while between short sleeps.
var naps = []struct{ nap, item time.Duration }{
	{time.Millisecond, 80 * time.Microsecond},
	{time.Millisecond, 400 * time.Microsecond},
	{200 * time.Microsecond, 60 * time.Microsecond},
	{700 * time.Microsecond, 100 * time.Microsecond},
	{5 * time.Millisecond, 140 * time.Microsecond},
	{time.Millisecond, 20 * time.Microsecond},
}

// ratios compares a recording of such a program with its own clock: the time of the function
// that computes, and all time on a CPU.
func ratios(t testing.TB, r run) (line, computing, off float64) {
	main := mainThread(t, r.rec)
	spent := weights(r.rec, main, func(s timeline.Span, stack truth.Sample) string {
		if !s.State.Computes() {
			return ""
		}
		return firstOf("compute", "nap")(s, stack)
	})
	states := weights(r.rec, main, func(s timeline.Span, _ truth.Sample) string {
		if s.State.Computes() {
			return "computing"
		}
		return s.State.String()
	})
	all := 0.0
	for _, ns := range states {
		all += ns
	}
	known := 1 - states["unknown"]/all // where the sampler had no CPU, nothing is said of computing
	return spent["compute"] / r.measured.SpentNs["compute"] / known, states["computing"] / float64(r.rec.Threads[main].OnCPU) / known,
		states["off"] / all
}

// A sampler that wakes up where its target runs is run when that stops, and sees a tenth of
// such computing.
func TestShortComputingBetweenShortSleepsKeepsItsTime(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		retry.Again(t, func(try *retry.Attempt) {
			r := sampleHeld(try, python, truth.Naps(naps[0].nap, naps[0].item), 3*time.Second, SampleOptions{})
			line, computing, off := ratios(t, r)
			t.Logf("line %.2f, computing %.3f, off %.2f of the time", line, computing, off)
			if line < .7 || line > 1.4 || computing < .85 || computing > 1.15 {
				try.Errorf("the computing function has %.2f of its time, computing states %.2f of the CPU time", line, computing)
			}
		})
	})
}

// The whole table, by make truth on a machine with nothing else to do: OMNI_PERF_NAPS is the number
// of runs of each program. With one CPU the sampler cannot be kept off its target's, so that only the
// thread's sum is exact there, which is the scheduler's count.
func TestTableOfNaps(t *testing.T) {
	runs, _ := strconv.Atoi(os.Getenv("OMNI_PERF_NAPS"))
	if runs == 0 {
		t.Skip("OMNI_PERF_NAPS is the number of runs of each program")
	}
	python := truth.Any(t)
	for _, c := range naps {
		t.Run(fmt.Sprint(c.nap, " ", c.item), func(t *testing.T) {
			var lines, computings, offs float64
			for range runs {
				line, computing, off := ratios(t, sampleHeld(t, python, truth.Naps(c.nap, c.item), 10*time.Second, SampleOptions{}))
				lines, computings, offs = lines+line/float64(runs), computings+computing/float64(runs), offs+off/float64(runs)
			}
			t.Logf("mean of %d: line %.3f, computing %.3f, off %.2f", runs, lines, computings, offs)
			if math.Abs(computings-1) > .02 {
				t.Errorf("computing is %.3f of the CPU time, want 0.98 to 1.02", computings)
			}
			if runtime.NumCPU() > 1 && math.Abs(lines-1) > .03 {
				t.Errorf("the line has %.3f of its time, want 0.97 to 1.03", lines)
			}
		})
	}
}
