package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// byKey groups rows by a key, in the order of first appearance.
func byKey(t rowsOf, key func(row int) string) (names []string, groups map[string][]int) {
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

// seriesChart draws one curve per key for the first rank; the others are in the
// table, for many ranks over each other show nothing.
func seriesChart(t rowsOf, theme Theme, name, title, key, value string, unit func(float64) string) Chart {
	rank := t.int("rank", 0)
	names, groups := byKey(t, func(r int) string {
		if t.int("rank", r) != rank {
			return ""
		}
		if c := t.text(key, r); c != "" {
			return c
		}
		return fmt.Sprintf("%s %d", key, t.int(key, r))
	})
	var lines []line
	for _, n := range names {
		if n == "" || len(lines) == len(linePaints) {
			continue
		}
		l := line{name: short(n, 26), paint: linePaints[len(lines)]}
		for _, r := range groups[n] {
			l.x = append(l.x, t.float("ts_us", r))
			l.y = append(l.y, t.float(value, r))
		}
		lines = append(lines, l)
	}
	return curves(theme, name, title, rankName(rank), lines, unit)
}

func queueChart(t rowsOf, theme Theme) Chart {
	return seriesChart(t, theme, "queue", "Launched and not finished", "stream", "queue_length",
		func(v float64) string { return counted(int64(v)) })
}

func bandwidthChart(t rowsOf, theme Theme) Chart {
	return seriesChart(t, theme, "bandwidth", "Memory bandwidth of copies", "name", "memory_bw_gbps",
		func(v float64) string { return digits(v) + " GB/s" })
}

func memoryChart(t rowsOf, theme Theme) Chart {
	rank, device := t.int("rank", 0), t.int("device", 0)
	reserved := line{name: "reserved", paint: paintOther}
	allocated := line{name: "allocated", paint: paintMemory, filled: true}
	for r := range t.Len() {
		if t.int("rank", r) != rank || t.int("device", r) != device {
			continue
		}
		x := t.float("ts_us", r)
		allocated.x, allocated.y = append(allocated.x, x), append(allocated.y, t.float("allocated_bytes", r))
		reserved.x, reserved.y = append(reserved.x, x), append(reserved.y, t.float("reserved_bytes", r))
	}
	return curves(theme, "memory", "Memory of the caching allocator", rankName(rank), []line{allocated, reserved}, bytesText)
}

var categoryPaint = map[string]paint{
	"parameters": paintCompute, "activations": paintMemory, "backward": paintOverhead, "optimizer": paintHost,
	"communication": paintLate, "data": paintQueue,
}

// snapshotChart stacks the categories of the first device.
func snapshotChart(t rowsOf, theme Theme) Chart {
	device := t.int("device", 0)
	values := map[float64]map[string]float64{}
	total := map[string]float64{}
	reserved := map[float64]float64{}
	for r := range t.Len() {
		if t.int("device", r) != device {
			continue
		}
		at := t.float("time_us", r)
		if values[at] == nil {
			values[at] = map[string]float64{}
		}
		category := t.text("category", r)
		values[at][category] += t.float("allocated_bytes", r)
		total[category] += t.float("allocated_bytes", r)
		reserved[at] = t.float("reserved_bytes", r)
	}
	times := slices.Sorted(maps.Keys(values))
	categories := slices.SortedFunc(maps.Keys(total), func(a, b string) int {
		if total[a] != total[b] && total[a] > total[b] {
			return -1
		}
		if total[a] != total[b] {
			return 1
		}
		return 0
	})
	// The sum of all is drawn first, then what is below it.
	var lines []line
	for i := len(categories) - 1; i >= 0; i-- {
		l := line{name: categories[i], paint: paintOther, filled: true}
		if p, ok := categoryPaint[categories[i]]; ok {
			l.paint = p
		}
		for _, at := range times {
			sum := 0.0
			for _, below := range categories[:i+1] {
				sum += values[at][below]
			}
			l.x, l.y = append(l.x, at), append(l.y, sum)
		}
		lines = append(lines, l)
	}
	return curves(theme, "snapshot", "Memory over time, by what allocated it", fmt.Sprintf("device %d, from the memory snapshot", device), lines, bytesText)
}

func peakChart(t rowsOf, theme Theme) Chart {
	var list []bar
	for r := range min(t.Len(), 12) {
		bytes := t.float("bytes", r)
		p, ok := categoryPaint[t.text("category", r)]
		if !ok {
			p = paintOther
		}
		list = append(list, bar{baseName(t.text("place", r)), bytesText(bytes) + " · " + percentText(t.float("share", r)),
			[]part{{bytes, p, t.text("place", r) + ": " + bytesText(bytes)}}})
	}
	return bars(theme, longNames, "snapshot-peak", "At the peak: what had allocated most", "", nil, list, 0)
}

// baseName leaves the folders out of "folder/file.py(12): function".
func baseName(place string) string {
	if end := strings.IndexByte(place, '('); end > 0 {
		if i := strings.LastIndexByte(place[:end], '/'); i >= 0 {
			return place[i+1:]
		}
	}
	return place
}
