package page

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/golden"
	"github.com/omni-perf/omni-perf/sidecar/traces"
	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/changes"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// changesOf is a table of changes against one run: kind, name, before, after, half the width of the bounds, verdict.
func changesOf(rows ...[]any) *table.Table {
	t := changes.New()
	const none = int64(table.None)
	for _, r := range rows {
		before, after, noise := r[2].(float64), r[3].(float64), r[4].(float64)
		change := after - before
		t.Add("yesterday", r[0], r[1], "", changes.PerStep,
			before, after, change, change-noise, change+noise, none, none, none, r[5])
	}
	return t
}

// computation is what all kernels do that are not named otherwise.
func computation(kernel string) string { return analyses.KindOfName(kernel).String() }

func partsOf(d difference) string {
	var list []string
	for _, p := range append(d.parts, d.rest) {
		list = append(list, fmt.Sprintf("%s %g", p.name, p.change))
	}
	return strings.Join(list, "; ")
}

// slower is a step of 100 ms that became 130 ms.
func slower() *table.Table {
	return changesOf(
		[]any{changes.Step, "a step", 100e3, 130e3, 5e3, "more"},
		[]any{changes.Device, "computing", 60e3, 70e3, 2e3, "more"},
		[]any{changes.Device, "only communicating", 10e3, 12e3, 4e3, ""},
		[]any{changes.Device, "only copying", 5e3, 5e3, 0.0, ""},
		[]any{changes.Device, "idle", 20e3, 36e3, 3e3, "more"},
		[]any{changes.IdleCause, analyses.CauseNotLaunched, 15e3, 32e3, 3e3, "more"},
		[]any{changes.IdleCause, analyses.CauseQueued, 5e3, 4e3, 500.0, "less"},
		[]any{changes.Kernel, "gemm", 40e3, 53e3, 1e3, "more"},
		[]any{changes.Kernel, "ncclAllReduce", 20e3, 40e3, 1e3, "more"},
		[]any{changes.Kernel, "softmax", 6e3, 0.0, 1e3, "gone"},
		[]any{changes.Kernel, "reduce", 10e3, 12e3, 3e3, ""},
	)
}

// TestADifferenceAddsUp: a step's change is that of its computing kernels, of the causes of idle time, of what was only
// communicating or copying, of what lies outside of the devices' time, and a rest.
func TestADifferenceAddsUp(t *testing.T) {
	d, ok := differenceOf(slower(), computation)
	want := "idle: not launched yet 17000; gemm 13000; softmax -6000; reduce 2000; only communicating 2000; " +
		"outside of the devices' time 2000; idle: between queued kernels -1000; the rest 1000"
	if got := partsOf(d); !ok || got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !d.ofStep || d.whole.change != 30e3 {
		t.Errorf("the whole changed by %g, of a step: %t", d.whole.change, d.ofStep)
	}
}

// TestWhatDoesNotDivideStaysWhole: kernels that run at the same time do not add up to computing.
func TestWhatDoesNotDivideStaysWhole(t *testing.T) {
	d, _ := differenceOf(changesOf(
		[]any{changes.Device, "computing", 60e3, 70e3, 2e3, "more"},
		[]any{changes.Device, "idle", 20e3, 15e3, 3e3, "less"},
		[]any{changes.Kernel, "gemm", 40e3, 50e3, 1e3, "more"},
		[]any{changes.Kernel, "reduce", 40e3, 50e3, 1e3, "more"},
	), computation)
	if got, want := partsOf(d), "computing 10000; idle -5000; the rest 0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if d.ofStep || d.whole.before != 80e3 {
		t.Errorf("without steps the whole is the devices' time: %+v", d.whole)
	}
}

// TestTheRestHasWhatHasNoBar: of many kernels the largest have a bar, and all of it adds up.
func TestTheRestHasWhatHasNoBar(t *testing.T) {
	rows := [][]any{{changes.Device, "computing", 0.5, 210.5, 2.0, "more"}}
	for i := range 20 {
		rows = append(rows, []any{changes.Kernel, fmt.Sprintf("kernel%d", i), 0.0, float64(i + 1), 0.5, "new"})
	}
	d, _ := differenceOf(changesOf(rows...), computation)
	sum := d.rest.change
	for _, p := range d.parts {
		sum += p.change
	}
	if len(d.parts) != mostParts || math.Abs(sum-210) > 1e-9 || d.rest.change != 36 {
		t.Errorf("%d parts add up to %g with a rest of %g", len(d.parts), sum, d.rest.change)
	}
	if !strings.Contains(d.rest.about, "8 further changes") {
		t.Errorf("the rest is %q", d.rest.about)
	}
}

// TestNothingIsDrawnOfHostsAlone: the parts are those of a device's time.
func TestNothingIsDrawnOfHostsAlone(t *testing.T) {
	if d, ok := differenceOf(changesOf([]any{changes.Step, "a step", 100e3, 130e3, 5e3, "more"}), computation); ok {
		t.Errorf("got %+v", d)
	}
}

// TestTheSameRunHasNoPicture: nothing changed, so that nothing is drawn.
func TestTheSameRunHasNoPicture(t *testing.T) {
	d := drawing{Result: &Result{Name: "today", Analysis: &traces.Analysis{}}, rows: mostRows}
	for want, changed := range map[bool]*table.Table{true: slower(), false: changesOf(
		[]any{changes.Device, "computing", 60e3, 60e3, 0.0, ""}, []any{changes.Device, "idle", 20e3, 20e3 + 1, 0.0, "more"})} {
		if _, drawn := d.difference(changed); drawn != want {
			t.Errorf("drawn: %t, want %t", drawn, want)
		}
	}
}

func TestThePictureOfADifference(t *testing.T) {
	d, _ := differenceOf(slower(), computation)
	golden.Check(t, "difference.svg", d.draw(Auto, "What changed in a step", "today").SVG)
}

// TestAChangeHasTheColourOfItsVerdict: what is within noise, or what nobody judged, is grey.
func TestAChangeHasTheColourOfItsVerdict(t *testing.T) {
	for _, c := range []struct {
		changed
		want paint
	}{
		{changed{change: 5, judged: true, verdict: "more"}, paintLate},
		{changed{change: -5, judged: true, verdict: "gone"}, paintCompute},
		{changed{change: 5, judged: true}, paintOther},
		{changed{change: 5}, paintOther},
	} {
		if got := c.paint(); got != c.want {
			t.Errorf("%+v is %s, want %s", c.changed, got, c.want)
		}
	}
}
