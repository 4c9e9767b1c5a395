package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// place in a tree of modules or annotations, over all ranks.
type treeNode struct {
	path, name       string
	depth            int
	instances, calls int64
	total, own       float64 // µs on the device, on the host where nothing ran on one
	backward         float64 // of the total
}

// treeOf sums ranks up. The order is that of the table: depth first, of the first rank that has a node.
func treeOf(t *table.Table) (nodes []treeNode, onDevice bool) {
	onDevice = t.Column("total_device_us") != nil
	total, own, backward := "total_cpu_us", "self_cpu_us", "backward_cpu_us"
	if onDevice {
		total, own, backward = "total_device_us", "self_device_us", "backward_device_us"
	}
	paths, groups := byKey(t, func(r int) string { return t.TextAt("path", r) })
	for _, path := range paths {
		n := treeNode{path: path}
		for _, r := range groups[path] {
			n.name, n.depth = t.TextAt("name", r), int(t.IntAt("depth", r))
			n.instances = max(n.instances, t.IntAt("instances", r))
			n.calls += max(0, t.IntAt("calls", r))
			n.backward += orZero(t.FloatAt(backward, r))
			n.total += orZero(t.FloatAt(total, r))
			n.own += orZero(t.FloatAt(own, r))
			if !onDevice { // where the calls' time is the forward pass
				n.total += orZero(t.FloatAt(backward, r))
			}
		}
		nodes = append(nodes, n)
	}
	return nodes, onDevice
}

// orZero is a number that may be missing.
func orZero(v float64) float64 {
	if v != v {
		return 0
	}
	return v
}

// all is the time of the outermost nodes.
func all(nodes []treeNode) (sum float64) {
	for _, n := range nodes {
		if n.depth == 0 {
			sum += n.total
		}
	}
	return sum
}

// smallest is the share of all from which on a node has a line in a terminal.
const smallest = 0.01

// condensedScopes is a tree as lines, those of at least a hundredth of the time.
func condensedScopes(t *table.Table, title, what string) *table.Table {
	nodes, onDevice := treeOf(t)
	whole := all(nodes)
	name := &table.Column{Name: what, Kind: table.Text}
	instances := &table.Column{Name: "modules", Kind: table.Int}
	calls := &table.Column{Name: "calls", Kind: table.Int}
	total := &table.Column{Name: "cpu", Kind: table.Micros}
	own := &table.Column{Name: "self_cpu", Kind: table.Micros}
	backward := &table.Column{Name: "backward", Kind: table.Micros}
	if onDevice {
		total.Name, own.Name = "device", "self_device"
	}
	trains := false
	for _, n := range nodes {
		if n.total < smallest*whole || n.total == 0 {
			continue
		}
		trains = trains || n.backward > 0
		name.Text = append(name.Text, strings.Repeat("| ", n.depth)+n.name)
		instances.Ints, calls.Ints = append(instances.Ints, n.instances), append(calls.Ints, n.calls)
		total.Floats, own.Floats, backward.Floats = append(total.Floats, n.total), append(own.Floats, n.own), append(backward.Floats, n.backward)
	}
	columns := []*table.Column{total, own, backward, instances, calls, name}
	if !trains {
		columns = slices.Delete(columns, 2, 3)
	}
	if t.Column("instances") == nil {
		columns = slices.DeleteFunc(columns, func(c *table.Column) bool { return c == instances })
	}
	return condensed(t.Name, title, columns...)
}

// phases shows what the devices worked for, of traces of the CPU alone what the host was in.
func (d drawing) phases(t *table.Table) (Chart, bool) {
	value := "cpu_us"
	title := "Time of the host by phase"
	if t.Column("device_us") != nil {
		value, title = "device_us", "Work of the device by phase"
	}
	names, groups := byKey(t, func(r int) string { return fmt.Sprintf("rank %d", t.IntAt("rank", r)) })
	paints := map[string]legend{
		analyses.Forward.String(): {paintCompute, "forward"}, analyses.Backward.String(): {paintOverhead, "backward"},
		analyses.Optimizer.String(): {paintMemory, "optimizer"}, analyses.OtherPhase.String(): {paintOther, "other"},
	}
	used := map[string]bool{}
	var list []bar
	for _, name := range names {
		b := bar{name: name}
		if !d.severalRanks() {
			b.name = "phases"
		}
		byPhase := map[string]float64{}
		for _, r := range groups[name] {
			byPhase[t.TextAt("phase", r)] += orZero(t.FloatAt(value, r))
		}
		for phase := analyses.Forward; phase <= analyses.OtherPhase; phase++ {
			us := byPhase[phase.String()]
			used[phase.String()] = used[phase.String()] || us > 0
			b.parts = append(b.parts, part{us, paints[phase.String()].paint, fmt.Sprintf("%s: %s, %s", b.name, phase, length(us))})
		}
		b.weight = b.sum()
		b.figure = length(b.weight)
		list = append(list, b)
	}
	var legends []legend
	for phase := analyses.Forward; phase <= analyses.OtherPhase; phase++ {
		if used[phase.String()] {
			legends = append(legends, paints[phase.String()])
		}
	}
	return bars(d.theme, shortNames, "phases", title, "", legends, list, 0), len(legends) > 1
}

func (d drawing) modules(t *table.Table) (Chart, bool) {
	return d.tree(t, "modules", "Modules")
}

func (d drawing) annotations(t *table.Table) (Chart, bool) {
	return d.tree(t, "annotations", "Annotations")
}

// treeDepth is how many levels of a tree are drawn; the tables have them all.
const treeDepth = 9

// tree draws nested boxes: the width is the time of a node, below it are those in it, the rest being its own.
func (d drawing) tree(t *table.Table, name, title string) (Chart, bool) {
	nodes, onDevice := treeOf(t)
	whole := all(nodes)
	if whole <= 0 {
		return Chart{}, false
	}
	title += " by host time"
	if onDevice {
		title = strings.TrimSuffix(title, " by host time") + " by device time"
	}
	deepest := 0
	for _, n := range nodes {
		if n.total > smallest*whole {
			deepest = max(deepest, min(n.depth, treeDepth-1))
		}
	}
	const row, gap, room = 22.0, 2.0, 16.0
	aside := strings.TrimPrefix(d.ofAll("all ranks")+"; a box is as wide as the time of it and of what is in it", "; ")
	c := newCanvas(d.theme, row*float64(deepest+1), title, aside, nil)
	from := make([]float64, treeDepth+1) // where the next box of a depth begins
	shown := make([]bool, treeDepth+1)   // whether the last node of a depth has a box
	for _, n := range nodes {
		if n.depth > deepest || n.depth > 0 && !shown[n.depth-1] {
			continue
		}
		width := n.total / whole * chartWidth
		x := from[n.depth]
		from[n.depth] += width
		shown[n.depth] = width >= 1.5
		if n.depth+1 < len(from) {
			from[n.depth+1] = x
		}
		if !shown[n.depth] {
			continue
		}
		label := n.name
		if n.instances > 1 {
			label = fmt.Sprintf("%s ×%d", n.name, n.instances)
		}
		about := fmt.Sprintf("%s: %s (%s), its own %s", n.path, length(n.total), share(n.total/whole), length(n.own))
		if n.backward > 0 {
			about += ", backward pass " + length(n.backward)
		}
		y := c.y + row*float64(n.depth)
		c.box(x, y, max(1, min(width, chartWidth-x)-1), row-gap, treePaints[n.depth%len(treePaints)], about)
		if columns := int((width - room) / charWidth); columns >= 3 {
			c.Text(x+4, y+row/2+3, cut(label, columns), `class="opt"`)
		}
	}
	return c.chart(name, title), true
}

// treePaints distinguish neighbouring levels; text is read on both.
var treePaints = []paint{paintIdle, paintQueue}

// serving shows the devices' idle time by the phase of the inference engine.
func (d drawing) serving(t *table.Table) (Chart, bool) {
	list, all := placeTimes(t, "idle_us", func(r int) string { return t.TextAt("phase", r) })
	for i := range list {
		if list[i].name == analyses.Between {
			list[i].name = "between the steps"
		}
	}
	return d.placeBars("serving", "Idle time by phase of serving", d.ofAll("all ranks"), paintHost, list, all), len(list) > 0 && all > 0
}
