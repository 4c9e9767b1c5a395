package changes

import (
	"fmt"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
)

// gathered are figures while they are added up.
type gathered struct {
	n     float64 // what they are divided by
	sums  map[key]float64
	ranks map[key]map[int64]float64 // the same by rank
	noise map[key]float64           // where it is known from steps
}

func (g *gathered) add(k key, rank int64, us float64) {
	if math.IsNaN(us) {
		return
	}
	g.sums[k] += us
	if g.ranks[k] == nil {
		g.ranks[k] = map[int64]float64{}
	}
	g.ranks[k][rank] += us
}

// byName adds a column by the names in another.
func (g *gathered) byName(kind string, from *table.Table, name func(row int) string, value string) {
	for r := range from.Len() {
		if text := name(r); text != "" {
			g.add(key{kind, text}, from.IntAt("rank", r), from.FloatAt(value, r))
		}
	}
}

// figures are a run's, each divided by n. Its noise is the standard error of the mean: over the steps of all ranks where it is known of
// each, else over the ranks.
func figures(t Tables, n float64, per string) map[key]significance.Reading {
	g := &gathered{n, map[key]float64{}, map[key]map[int64]float64{}, map[key]float64{}}
	devices := t.get(analyses.TableTemporalByDevice)
	for column, name := range map[string]string{
		"idle_time_us": Idle, "compute_time_us": Computing, "exposed_communication_us": "only communicating", "copying_us": "only copying",
	} {
		g.byName(Device, devices, func(int) string { return name }, column)
	}
	column := func(of, name string) (*table.Table, func(int) string) {
		from := t.get(of)
		return from, func(r int) string { return from.TextAt(name, r) }
	}
	add := func(kind, of, name, value string) {
		from, text := column(of, name)
		g.byName(kind, from, text, value)
	}
	add(IdleCause, analyses.TableIdleCauses, "cause", "device_idle_us")
	add(Host, analyses.TableHostIdle, "name", "idle_us")
	add(Kernel, analyses.TableKernels, "name", "sum_us")
	pick := func(device, host string) string {
		if t.get(analyses.TableOperators).Column("self_device_us") != nil {
			return device
		}
		return host
	}
	add(Phase, analyses.TablePhases, "phase", pick("device_us", "cpu_us"))
	add(Module, analyses.TableModuleClasses, "path", pick("self_device_us", "self_cpu_us"))
	operators := t.get(analyses.TableOperators)
	g.byName(Operator, operators, func(r int) string {
		if analyses.IsAnnotation(operators.TextAt("name", r)) {
			return ""
		}
		return operatorName(operators, r)
	}, pick("self_device_us", "self_cpu_us"))
	stragglers := t.get(analyses.TableStragglers)
	g.byName(Communication, stragglers, func(int) string { return "waiting for other ranks" }, "waited_us")
	g.byName(Communication, stragglers, func(int) string { return "transfer" }, "transfer_us")
	if per == PerStep {
		g.spreadOverSteps(t)
	}
	list := g.readings()
	if lengths := steps(t); len(lengths) > 0 {
		mean, noise := meanOf(lengths)
		list[key{Step, "a step"}] = significance.Reading{Value: mean, Noise: noise}
	}
	collectives(t.get(analyses.TableCommunication), list)
	memory(t.get(analyses.TableMemoryPeaks), list)
	return list
}

// operatorName names a row, with its shapes where operators are split by them.
func operatorName(t *table.Table, row int) string {
	name := t.TextAt("name", row)
	if shapes := t.TextAt("input_shapes", row); shapes != "" {
		name += " " + shapes
	}
	return name
}

// readings divides the sums.
func (g *gathered) readings() map[key]significance.Reading {
	list := make(map[key]significance.Reading, len(g.sums))
	for k, sum := range g.sums {
		r := significance.Reading{Value: sum / g.n}
		if noise, known := g.noise[k]; known {
			r.Noise = noise
		} else if of := g.ranks[k]; len(of) > 1 {
			var values []float64
			for _, us := range of {
				values = append(values, us*float64(len(of))/g.n)
			}
			slices.Sort(values) // a sum of floats depends on their order
			_, r.Noise = meanOf(values)
		}
		list[k] = r
	}
	return list
}

// spreadOverSteps finds out how much figures differ between the steps.
func (g *gathered) spreadOverSteps(t Tables) {
	type stepOf struct{ rank, number int64 }
	counted := map[stepOf]bool{}
	devices := map[key][]float64{}
	length := t.get(analyses.TableSteps)
	for r := range length.Len() {
		if length.TextAt("counted", r) != "yes" {
			continue
		}
		counted[stepOf{length.IntAt("rank", r), length.IntAt("step", r)}] = true
		for column, name := range map[string]string{"device_idle_us": Idle, "compute_us": Computing, "communication_us": "only communicating"} {
			devices[key{Device, name}] = append(devices[key{Device, name}], length.FloatAt(column, r))
		}
	}
	work, by := t.get(analyses.TableWorkByStep), map[key]map[stepOf]float64{}
	for r := range work.Len() {
		step := stepOf{work.IntAt("rank", r), work.IntAt("step", r)}
		k := key{Operator, operatorName(work, r)}
		if work.TextAt("kind", r) == analyses.WorkKernel {
			k = key{Kernel, work.TextAt("name", r)}
		}
		if !counted[step] {
			continue
		}
		if by[k] == nil {
			by[k] = map[stepOf]float64{}
		}
		by[k][step] += work.FloatAt("us", r)
	}
	for k, of := range by {
		var values []float64
		for _, us := range of {
			values = append(values, us)
		}
		slices.Sort(values)
		values = append(values, make([]float64, max(0, len(counted)-len(values)))...) // steps without it
		_, g.noise[k] = meanOf(values)
	}
	for k, values := range devices {
		_, g.noise[k] = meanOf(values)
	}
}

// collectives has the median time of those of each size.
func collectives(t *table.Table, list map[key]significance.Reading) {
	for r := range t.Len() {
		name := fmt.Sprintf("%s of %d bytes", t.TextAt("collective", r), t.IntAt("size_bytes", r))
		if dtype := t.TextAt("dtype", r); dtype != "" {
			name += ", " + dtype
		}
		if ranks := t.IntAt("group_size", r); ranks != table.None {
			name += fmt.Sprintf(", %d ranks", ranks)
		}
		k := key{Collective, name}
		if us := t.FloatAt("median_us", r); !math.IsNaN(us) && us > list[k].Value { // of several groups the slowest
			list[k] = significance.Reading{Value: us}
		}
	}
}

// leastBytes is what a peak must be to have a row.
const leastBytes = 1 << 20

// memory has the highest peaks of all ranks.
func memory(t *table.Table, list map[key]significance.Reading) {
	for r := range t.Len() {
		for column, what := range map[string]string{"peak_allocated_bytes": "most allocated", "peak_reserved_bytes": "most reserved"} {
			n := t.IntAt(column, r)
			if k := (key{Memory, what + ", " + t.TextAt("device", r)}); n >= leastBytes && float64(n) > list[k].Value {
				list[k] = significance.Reading{Value: float64(n)}
			}
		}
	}
}
