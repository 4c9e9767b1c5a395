package page

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// kindPaints are the colours of kinds of operators that are told apart.
var kindPaints = []struct {
	kind  string
	paint paint
	text  string
}{
	{analyses.KindGEMM, paintCompute, "matrix products"},
	{analyses.KindAttention, paintOverhead, "attention"},
	{analyses.KindConvolution, paintMemory, "convolutions"},
	{"", paintHost, "others"}, // elementwise and the like
}

func paintOfKind(kind string) int {
	for i, k := range kindPaints {
		if k.kind == kind {
			return i
		}
	}
	return len(kindPaints) - 1
}

// kinds shows the devices' work by kind of operator.
func (d drawing) kinds(t *table.Table) (Chart, bool) {
	names, groups := byKey(t, func(r int) string { return t.TextAt("kind", r) })
	whole := 0.0
	sums := map[string]float64{}
	for r := range t.Len() {
		sums[t.TextAt("kind", r)] += t.FloatAt("device_us", r)
		whole += t.FloatAt("device_us", r)
	}
	slices.SortStableFunc(names, func(a, b string) int { return int(sums[b] - sums[a]) })
	var list []bar
	anyRated, anyUnknown := false, false
	for _, name := range names {
		allowed, rated := 0.0, 0.0
		for _, r := range groups[name] {
			if of := t.FloatAt("roofline_share", r); !math.IsNaN(of) {
				known := t.FloatAt("device_us", r) * t.FloatAt("known_share", r)
				allowed, rated = allowed+of*known, rated+known
			}
		}
		figure, about := length(sums[name])+" · "+share(sums[name]/whole), name+": "+length(sums[name])
		if rated > 0 {
			about += ", at " + share(allowed/rated) + " of what the device's peaks allow"
		}
		list = append(list, bar{name, figure, []part{
			{allowed, paintCompute, about}, {rated - allowed, paintQueue, about}, {sums[name] - rated, paintOther, about},
		}, sums[name]})
		anyRated, anyUnknown = anyRated || rated > 0, anyUnknown || sums[name] > 1.001*rated
	}
	var legends []legend
	if anyRated {
		legends = []legend{{paintCompute, "what the device's peaks allow"}, {paintQueue, "longer than that"}}
		if anyUnknown {
			legends = append(legends, legend{paintOther, "not known"})
		}
	}
	return bars(d.theme, longNames, "efficiency-kinds", "Work of the device by kind", d.ofAll("all ranks"), legends, list, 0), whole > 0
}

// dot is an operator in the roofline picture.
type dot struct {
	x, y, us float64 // operations per byte, operations per second, µs
	kind     int
	about    string
}

// Bounds of the picture, in powers of ten: what lies outside is no figure of a device.
const (
	leastIntensity, mostIntensity = -3.0, 6.0
	leastRate, mostRate           = 6.0, 17.0
	mostDots                      = 150
)

// dots of the operators on one device, the longest first.
func dots(t *table.Table, device string) (list []dot, types map[string]float64) {
	types = map[string]float64{}
	for r := range t.Len() {
		x, y := math.Log10(t.FloatAt("intensity", r)), math.Log10(t.FloatAt("flops_per_s", r))
		if t.TextAt("device_name", r) != device || !(x > leastIntensity && x < mostIntensity && y > leastRate && y < mostRate) {
			continue
		}
		us, kind := t.FloatAt("device_us", r), t.TextAt("kind", r)
		about := fmt.Sprintf("%s %s: %s", t.TextAt("operator", r), t.TextAt("input_shapes", r), length(us))
		if of := t.FloatAt("roofline_share", r); !math.IsNaN(of) {
			about += ", " + share(of) + " of what is possible, bound by " + map[string]string{"memory": "memory", "compute": "computing"}[t.TextAt("bound", r)]
		}
		list = append(list, dot{x, y, us, paintOfKind(kind), about})
		if paintOfKind(kind) < len(kindPaints)-1 {
			types[t.TextAt("dtype", r)] += us
		}
	}
	slices.SortStableFunc(list, func(a, b dot) int { return int(math.Copysign(1, b.us-a.us)) })
	return list[:min(len(list), mostDots)], types
}

// roofline shows operations per second against operations per byte, on logarithmic axes; the lines are what the device's peaks allow.
func (d drawing) roofline(t *table.Table) (Chart, bool) {
	if t.Len() == 0 {
		return Chart{}, false
	}
	device := t.TextAt("device_name", 0)
	list, types := dots(t, device)
	if len(list) == 0 {
		return Chart{}, false
	}
	peak, known := analyses.PeakOf(device)
	const high, right = 200.0, chartWidth - 6
	x0, x1, y0, y1 := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, p := range list {
		x0, x1, y0, y1 = min(x0, p.x), max(x1, p.x), min(y0, p.y), max(y1, p.y)
	}
	roofs := roofsOf(peak, types)
	for _, roof := range roofs {
		y1 = max(y1, math.Log10(roof.most))
		x1 = max(x1, math.Log10(roof.most/peak.Bandwidth))
	}
	x0, x1, y0, y1 = math.Floor(x0), math.Ceil(x1+0.01), math.Floor(y0), math.Ceil(y1+0.01)
	aside := "each dot an operator with its shapes, as large as its time; lines: what the device's peaks allow"
	if !known {
		aside = "each dot an operator with its shapes, as large as its time; the device's peaks are not known here"
	}
	var used []legend
	for i, k := range kindPaints {
		if slices.ContainsFunc(list, func(p dot) bool { return p.kind == i }) {
			used = append(used, legend{k.paint, k.text})
		}
	}
	c := newCanvas(d.theme, high+52, "Roofline", aside, used)
	top := c.y + 10
	place := func(x, y float64) (float64, float64) {
		return plotLeft + (x-x0)/(x1-x0)*(right-plotLeft), top + high - (y-y0)/(y1-y0)*high
	}
	for x := x0; x <= x1; x++ {
		px, _ := place(x, y0)
		c.Line(px, top, px, top+high, `class="opl"`)
		c.Text(px, top+high+16, power(x), `class="opd opm"`)
	}
	for y := y0; y <= y1; y++ {
		_, py := place(x0, y)
		c.Line(plotLeft, py, right, py, `class="opl"`)
		c.Text(plotLeft-8, py+4, flopText(math.Pow(10, y), "/s"), `class="opd opr"`)
	}
	c.Text((plotLeft+right)/2, top+high+34, "operations per byte", `class="opd opm"`)
	for _, roof := range roofs {
		knee := math.Log10(roof.most / peak.Bandwidth)
		from := max(x0, y0-math.Log10(peak.Bandwidth)) // where the slope enters the picture
		if ax, ay := place(from, from+math.Log10(peak.Bandwidth)); from < knee {
			bx, by := place(knee, math.Log10(roof.most))
			c.Line(ax, ay, bx, by, `class="ops-late"`)
		}
		ax, ay := place(max(x0, knee), math.Log10(roof.most))
		c.Line(ax, ay, right, ay, `class="ops-late"`)
		c.Text(right, ay-4, fmt.Sprintf("%s %s", roof.dtype, flopText(roof.most, "/s")), `class="opd opr"`)
	}
	longest := list[0].us
	for _, p := range slices.Backward(list) { // the longest in front
		x, y := place(p.x, p.y)
		c.Group(class(kindPaints[p.kind].paint))
		c.SVG.Title(plain(p.about))
		c.Circle(x, y, 2.5+5.5*math.Sqrt(p.us/longest), `fill-opacity="0.75"`)
		c.Gend()
	}
	return c.chart("roofline", "Roofline"), true
}

// roof is a peak of one type.
type roof struct {
	dtype string
	most  float64
}

// roofsOf are the peaks of the types that most time was computed in, two at most.
func roofsOf(peak analyses.Peak, types map[string]float64) (list []roof) {
	if peak.Bandwidth <= 0 {
		return nil
	}
	var names []string
	for name := range types {
		if peak.Flops[name] > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if types[a] != types[b] {
			return int(math.Copysign(1, types[b]-types[a]))
		}
		return strings.Compare(a, b)
	})
	for _, name := range names[:min(2, len(names))] {
		list = append(list, roof{name, peak.Flops[name]})
	}
	return list
}

// power writes a power of ten.
func power(exponent float64) string {
	return words.Fixed(math.Pow(10, exponent), max(0, int(-exponent)))
}
