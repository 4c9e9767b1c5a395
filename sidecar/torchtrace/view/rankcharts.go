package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

func stragglerSentence(t rowsOf) string {
	worst := 0
	for r := range t.Len() {
		if t.float("made_wait_us", r) > t.float("made_wait_us", worst) {
			worst = r
		}
	}
	if !(t.float("made_wait_us", worst) > 0) {
		return ""
	}
	return fmt.Sprintf("Rank %d came last to %d of %d collectives; the other ranks waited %s for it.",
		t.int("rank", worst), t.int("times_last", worst), t.int("collectives", worst), duration(t.float("made_wait_us", worst)))
}

func stragglerChart(t rowsOf, theme Theme) Chart {
	var list []bar
	for r := range t.Len() {
		name := rankName(t.int("rank", r))
		waited, transfer := t.float("waited_us", r), t.float("transfer_us", r)
		figure := ""
		if n := t.int("times_last", r); n > 0 {
			figure = fmt.Sprintf("last %d×", n)
		}
		list = append(list, bar{name, figure, []part{
			{transfer, paintOverhead, name + ": transfers, " + duration(transfer)},
			{waited, paintIdle, name + ": waited for other ranks, " + duration(waited)},
		}})
	}
	return bars(theme, shortNames, "stragglers", "Collectives: who waited for whom", "last: came to a collective after all others", []legend{
		{paintOverhead, "transfer"}, {paintIdle, "waited for other ranks"},
	}, list, 0)
}

// loaderChart shows what part of a rank's steps went into fetching batches.
func loaderChart(t rowsOf, theme Theme) Chart {
	names, groups := byKey(t, func(r int) string { return rankName(t.int("rank", r)) })
	var list []bar
	for _, name := range names {
		var fetching, idle, steps float64
		for _, r := range groups[name] {
			fetching += t.float("dataloader_us", r)
			idle += t.float("device_idle_us", r)
			steps += t.float("step_us", r)
		}
		if !(steps > 0) {
			continue
		}
		idle = min(idle, fetching)
		list = append(list, bar{name, percentText(100 * fetching / steps), []part{
			{idle / steps, paintHost, name + ": fetching with the device idle, " + duration(idle)},
			{(fetching - idle) / steps, paintQueue, name + ": fetching with the device busy, " + duration(fetching-idle)},
		}})
	}
	return bars(theme, shortNames, "dataloader", "Waiting for data", "share of the steps' time in enumerate(DataLoader)", []legend{
		{paintHost, "device idle meanwhile"}, {paintQueue, "device busy"},
	}, list, 1)
}

// stepChart shows the mean of each step over the ranks that have it.
func stepChart(t rowsOf, theme Theme) Chart {
	names, groups := byKey(t, func(r int) string { return strconv.FormatInt(t.int("step", r), 10) })
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	var bins []columnBin
	for _, step := range names {
		var computing, busy, all float64
		for _, r := range groups[step] {
			computing += t.float("compute_us", r)
			busy += t.float("device_busy_us", r)
			all += t.float("duration_us", r)
		}
		n := float64(len(groups[step]))
		bins = append(bins, columnBin{"step " + step, []part{
			{computing / n, paintCompute, "step " + step + ": computing, " + duration(computing/n)},
			{(busy - computing) / n, paintOverhead, "step " + step + ": copying or communicating, " + duration((busy-computing)/n)},
			{(all - busy) / n, paintIdle, "step " + step + ": device idle, " + duration((all-busy)/n)},
		}})
	}
	return histogram(theme, "steps", "Profiler steps", "mean of all ranks", []legend{
		{paintCompute, "computing"}, {paintOverhead, "only copying or communicating"}, {paintIdle, "idle"},
	}, bins, duration)
}

// linesIdle is the idle time charged to one Python function over all ranks.
type linesIdle struct {
	name string
	us   float64
}

func pythonLines(t rowsOf) (list []linesIdle, all float64) {
	names, groups := byKey(t, func(r int) string {
		text := t.text("function", r)
		if file := t.text("file", r); file != "" {
			text = fmt.Sprintf("%s(%d): %s", file, t.int("line", r), text)
		}
		return text
	})
	for _, name := range names {
		sum := 0.0
		for _, r := range groups[name] {
			sum += t.float("idle_us", r)
		}
		list = append(list, linesIdle{name, sum})
		all += sum
	}
	slices.SortStableFunc(list, func(a, b linesIdle) int { return cmp.Compare(b.us, a.us) })
	return list, all
}

func pythonChart(t rowsOf, theme Theme) Chart {
	lines, all := pythonLines(t)
	var list []bar
	for _, l := range lines[:min(12, len(lines))] {
		list = append(list, bar{baseName(l.name), duration(l.us) + " · " + percentText(100*l.us/all),
			[]part{{l.us, paintHost, l.name + ": " + duration(l.us)}}})
	}
	return bars(theme, longNames, "python-idle", "What Python did while the device was idle", "all ranks", nil, list, 0)
}
