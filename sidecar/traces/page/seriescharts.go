package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/snapshot"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// byKey groups rows by a key, in the order of first appearance.
func byKey(t *table.Table, key func(row int) string) (names []string, groups map[string][]int) {
	groups = map[string][]int{}
	for r := range t.Len() {
		k := key(r)
		if groups[k] == nil {
			names = append(names, k)
		}
		groups[k] = append(groups[k], r)
	}
	return names, groups
}

var linePaints = []paint{paintCompute, paintOverhead, paintHost, paintMemory, paintLate, paintOther}

// first reports whether a row of a series is of the first rank's first file; the
// others are in the table: many ranks over each other show nothing, and between
// two cycles nothing was recorded.
func first(t *table.Table, row int) bool {
	cycle := t.IntAt("cycle", row)
	return t.IntAt("rank", row) == t.IntAt("rank", 0) && (cycle == 1 || cycle == table.None)
}

// ofFirst is the aside of charts of the first rank's first file.
func (d drawing) ofFirst(t *table.Table, more string) string {
	var parts []string
	if d.severalRanks() {
		parts = append(parts, fmt.Sprintf("rank %d", t.IntAt("rank", 0)))
	}
	for r := range t.Len() {
		if t.IntAt("cycle", r) > 1 {
			parts = append(parts, "first cycle")
			break
		}
	}
	if more != "" {
		parts = append(parts, more)
	}
	return strings.Join(parts, ", ")
}

// series draws one curve per key of the first rank.
func (d drawing) series(t *table.Table, name, title string, key func(row int) string, value string, unit func(float64) string) Chart {
	names, groups := byKey(t, func(r int) string {
		if !first(t, r) {
			return ""
		}
		return key(r)
	})
	var lines []line
	for _, n := range names {
		if n == "" || len(lines) == len(linePaints) {
			continue
		}
		l := line{name: cut(n, 26), paint: linePaints[len(lines)]}
		for _, r := range groups[n] {
			l.x = append(l.x, t.FloatAt("ts_us", r))
			l.y = append(l.y, t.FloatAt(value, r))
		}
		lines = append(lines, l)
	}
	return curves(d.theme, name, title, d.ofFirst(t, ""), lines, unit)
}

func (d drawing) queue(t *table.Table) (Chart, bool) {
	key := func(r int) string {
		if d.severalDevices() {
			return fmt.Sprintf("device %d, stream %d", t.IntAt("device", r), t.IntAt("stream", r))
		}
		return fmt.Sprintf("stream %d", t.IntAt("stream", r))
	}
	return d.series(t, "queue", "Launched and not started", key, "queue_length",
		func(v float64) string { return words.Count(int64(v)) }), true
}

func (d drawing) bandwidth(t *table.Table) (Chart, bool) {
	var copies []int
	for r := range t.Len() {
		if t.TextAt("name", r) != "Memset" { // fills are many times as fast as what comes over a bus
			copies = append(copies, r)
		}
	}
	if len(copies) == 0 {
		return Chart{}, false
	}
	t = t.Rows(copies)
	const visible = 0.01 // GB/s; a copy of a few bytes has none to speak of
	most := 0.0
	for r := range t.Len() {
		most = max(most, t.FloatAt("memory_bw_gbps", r))
	}
	key := func(r int) string {
		if d.severalDevices() {
			return fmt.Sprintf("device %d, %s", t.IntAt("device", r), t.TextAt("name", r))
		}
		return t.TextAt("name", r)
	}
	return d.series(t, "bandwidth", "Memory bandwidth of copies", key, "memory_bw_gbps",
		func(v float64) string { return digits(v) + " GB/s" }), most >= visible
}

// memory shows the memory of the first rank that has most: of an accelerator
// where there is one, for that is what runs out.
func (d drawing) memory(t *table.Table) (Chart, bool) {
	device, most := "", int64(-1)
	for r := range t.Len() {
		name, bytes := t.TextAt("device", r), t.IntAt("allocated_bytes", r)
		if !first(t, r) || bytes == table.None {
			continue
		}
		if better := name != "cpu" && device == "cpu"; device == "" || better || bytes > most && (name == "cpu") == (device == "cpu") {
			device, most = name, bytes
		}
	}
	reserved := line{name: "reserved", paint: paintOther}
	allocated := line{name: "allocated", paint: paintMemory, filled: true}
	for r := range t.Len() {
		if !first(t, r) || t.TextAt("device", r) != device {
			continue
		}
		x := t.FloatAt("ts_us", r)
		allocated.x, allocated.y = append(allocated.x, x), append(allocated.y, t.FloatAt("allocated_bytes", r))
		if t.IntAt("reserved_bytes", r) != table.None {
			reserved.x, reserved.y = append(reserved.x, x), append(reserved.y, t.FloatAt("reserved_bytes", r))
		}
	}
	lines := []line{allocated}
	if len(reserved.x) > 0 {
		lines = append(lines, reserved)
	}
	return curves(d.theme, "memory", "Memory of the allocator", d.ofFirst(t, device), lines, bytesOf), most > 0
}

var categoryPaint = map[string]paint{
	"parameters": paintCompute, "activations": paintMemory, "backward": paintOverhead, "optimizer": paintHost,
	"communication": paintLate, "data": paintQueue,
}

// snapshot stacks the categories of the device that had most.
func (d drawing) snapshot(t *table.Table) (Chart, bool) {
	device := t.TextAt("device", 0)
	if peaks := d.table(snapshot.TablePeaks); peaks != nil {
		device = peaks.SortBy("peak_bytes", true).TextAt("device", 0)
	}
	values := map[float64]map[string]float64{}
	total := map[string]float64{}
	for r := range t.Len() {
		if t.TextAt("device", r) != device {
			continue
		}
		at := t.FloatAt("time_us", r)
		if values[at] == nil {
			values[at] = map[string]float64{}
		}
		category := t.TextAt("category", r)
		values[at][category] += t.FloatAt("allocated_bytes", r)
		total[category] += t.FloatAt("allocated_bytes", r)
	}
	times := slices.Sorted(maps.Keys(values))
	categories := slices.Sorted(maps.Keys(total))
	slices.SortStableFunc(categories, func(a, b string) int { return cmp.Compare(total[b], total[a]) })
	// The sum of all is drawn first, then what is below it.
	var lines []line
	for i := len(categories) - 1; i >= 0; i-- {
		l := line{name: categories[i], paint: paintOf(categories[i]), filled: true}
		for _, at := range times {
			sum := 0.0
			for _, below := range categories[:i+1] {
				sum += values[at][below]
			}
			l.x, l.y = append(l.x, at), append(l.y, sum)
		}
		lines = append(lines, l)
	}
	return curves(d.theme, "snapshot", "Memory over time, by what allocated it", device+", from the memory snapshot", lines, bytesOf), len(times) > 1
}

func paintOf(category string) paint {
	if p, ok := categoryPaint[category]; ok {
		return p
	}
	return paintOther
}

// peak shows what one device had allocated when it had most, by place.
func (d drawing) peak(t *table.Table) (Chart, bool) {
	device, all := t.TextAt("device", 0), 0.0
	if peaks := d.table(snapshot.TablePeaks); peaks != nil {
		device = peaks.SortBy("peak_bytes", true).TextAt("device", 0)
	}
	type sums struct {
		bytes    float64
		category string
	}
	var names []string
	by := map[string]*sums{}
	used := map[string]bool{}
	for r := range t.Len() {
		if t.TextAt("device", r) != device {
			continue
		}
		bytes, category := t.FloatAt("bytes", r), t.TextAt("category", r)
		key := category + "\x00" + t.TextAt("place", r)
		if by[key] == nil {
			by[key] = &sums{category: category}
			names = append(names, key)
		}
		by[key].bytes += bytes
		all += bytes
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(by[b].bytes, by[a].bytes) })
	var list []bar
	for _, key := range names[:min(d.rows, len(names))] {
		_, where, _ := strings.Cut(key, "\x00")
		s := by[key]
		used[s.category] = true
		list = append(list, bar{baseName(where), bytesOf(s.bytes) + " · " + share(s.bytes/all),
			[]part{{s.bytes, paintOf(s.category), where + ": " + bytesOf(s.bytes)}}, s.bytes})
	}
	var legends []legend
	for _, category := range slices.Sorted(maps.Keys(used)) {
		if category != "" {
			legends = append(legends, legend{paintOf(category), category})
		}
	}
	return bars(d.theme, longNames, "snapshot-peak", "At the peak: what had allocated most", device, legends, list, 0), len(list) > 0
}
