package answers

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

func (a *asked) threads() (string, []Row) {
	var rows []Row
	for _, t := range a.View.Threads {
		if t.Internal {
			continue
		}
		r := spent(t.StateNS.Sum()-t.StateNS.Of(report.State.Idle), 0)
		r.Name = words.Clean(t.Name, 60)
		if t.Process != a.Program() {
			r.Name += " of " + a.processName(t.Process)
		}
		r.Says = statesOf(t.StateNS)
		if t.OnCPUNS != nil {
			r.Says += ", " + words.Seconds(report.Seconds(*t.OnCPUNS)) + " on a CPU"
			if t.OnCPUAtLeast {
				r.Says += " at least"
			}
		}
		rows = append(rows, r)
	}
	return "threads; seconds are those in which they did not wait", rows
}

func (a *asked) processes() (string, []Row) {
	var rows []Row
	for i, p := range a.View.Processes {
		r := Row{Name: a.processName(i)}
		if p.CPUNS != nil {
			r = spent(*p.CPUNS, 0)
			r.Name = a.processName(i)
		}
		var says []string
		if p.StartNS > 0 {
			says = append(says, "began at "+words.Seconds(report.Seconds(p.StartNS)))
		}
		if p.EndNS != nil {
			says = append(says, cmp.Or(a.View.Ended(&p), "ended")+" at "+words.Seconds(report.Seconds(*p.EndNS)))
		}
		if !p.Stacks.Read && p.Stacks.Text != "" {
			says = append(says, p.Stacks.Text)
		}
		r.Says = strings.Join(says, ", ")
		rows = append(rows, r)
	}
	return "processes; seconds are CPU time", rows
}

func (a *asked) devices() (string, []Row) {
	var rows []Row
	for _, d := range a.View.Devices {
		r := spent(d.BusyNS, a.DurationNS)
		r.Name = fmt.Sprintf("GPU %d (%s)", d.Number, words.Clean(d.Name, 60))
		r.Says = "busy, idle " + words.Seconds(report.Seconds(d.IdleNS))
		if d.UnknownNS > 0 {
			r.Says += ", unknown " + words.Seconds(report.Seconds(d.UnknownNS))
		}
		if !d.Used {
			r.Says += ", not used by the program"
		}
		rows = append(rows, r)
	}
	return "GPUs; seconds are those at work", rows
}

func (a *asked) steps() (string, []Row) {
	leading, others := a.LeadingSteps()
	steps := slices.Clone(leading)
	if len(steps) == 0 {
		return "training steps: none are known", nil
	}
	length := func(s report.Step) int64 { return s.EndNS - s.StartNS }
	for i := range steps {
		if steps[i].Name == "" {
			steps[i].Name = strconv.Itoa(i + 1)
		}
	}
	sorted := slices.Clone(steps)
	slices.SortStableFunc(sorted, func(a, b report.Step) int { return cmp.Compare(length(b), length(a)) })
	var all, wait int64
	for _, s := range steps {
		all += length(s)
		wait += s.DataWaitNS
	}
	n := len(steps)
	median, mean := spent(length(sorted[n/2]), 0), spent(all/int64(n), 0)
	median.Name, mean.Name = "median step", "mean step"
	data := spent(wait, all)
	data.Name, data.Says = "waiting for data", "all steps together"
	rows := []Row{median, mean, data}
	for _, s := range sorted {
		r := spent(length(s), 0)
		r.Name = "step " + words.Clean(s.Name, 60)
		r.Says = "from " + words.Seconds(report.Seconds(s.StartNS))
		if s.IdleNS != nil {
			r.Says += ", GPU idle " + words.Seconds(report.Seconds(*s.IdleNS))
		}
		rows = append(rows, r)
	}
	about := words.Plural(n, "training step", "training steps") + ", the slowest first"
	if e := a.StepsElsewhere(); e.Processes > 0 {
		about += "; of " + words.Clean(a.ProcessName(leading[0].Process), 60) + ", " + wording.Elsewhere(e)
	}
	if others {
		about += "; of one rank, the others have steps, too"
	}
	return about, rows
}

func (a *asked) ranks() (string, []Row) {
	var rows []Row
	for _, rank := range a.View.Ranks {
		r := spent(rank.ComputingNS, rank.KnownNS)
		r.Name = fmt.Sprintf("rank %d", rank.Rank)
		says := []string{"computing"}
		for _, c := range rank.Collectives {
			says = append(says, c.Text+" "+words.Seconds(report.Seconds(c.NS)))
		}
		if rank.StepNS != nil {
			says = append(says, fmt.Sprintf("%s of %s", words.Plural(rank.Steps, "step", "steps"), words.Seconds(report.Seconds(*rank.StepNS))))
		}
		r.Says = strings.Join(says, ", ")
		rows = append(rows, r)
	}
	return "ranks by their main threads; waiting in a collective is for other ranks", rows
}

func (a *asked) notes() (string, []Row) {
	var rows []Row
	for _, n := range a.View.Notes {
		rows = append(rows, Row{Name: n.ID, Says: n.Text})
	}
	unknown := make(map[string]int64)
	for _, g := range a.Gaps {
		unknown[a.processName(g.Process)+", "+g.Reason] += g.EndNS - g.StartNS
	}
	for _, name := range sortedKeys(unknown) {
		r := spent(unknown[name], 0)
		r.Name, r.Says = name, "stacks unknown"
		rows = append(rows, r)
	}
	return "what could not be measured", rows
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (a *asked) operators() (string, []Row) {
	if len(a.View.Operators) == 0 {
		return "operators of torch: no trace of torch.profiler is in the report", nil
	}
	var rows []Row
	for _, o := range a.View.Operators {
		r := spent(o.SelfCPUNS, 0)
		r.Name = words.Clean(o.Name, maxText)
		if o.InputShapes != nil {
			r.Name += " " + words.Clean(*o.InputShapes, maxText)
		}
		says := []string{words.Plural(int(o.Calls), "call", "calls"), words.Seconds(report.Seconds(o.TotalCPUNS)) + " with what it called"}
		if o.SelfDeviceNS != nil && *o.SelfDeviceNS > 0 {
			says = append(says, words.Seconds(report.Seconds(*o.SelfDeviceNS))+" on the device")
		}
		r.Says = strings.Join(says, ", ")
		rows = append(rows, r)
	}
	return "operators of torch; seconds are those of their own on the CPU", rows
}

func (a *asked) kernels() (string, []Row) {
	if len(a.View.KernelTimes) == 0 {
		return "kernels: no trace with work of a device is in the report", nil
	}
	var rows []Row
	for _, k := range a.View.KernelTimes {
		r := spent(k.TotalNS, 0)
		r.Name, r.Says = words.Clean(k.Name, maxText), words.Plural(int(k.Count), "time", "times")
		rows = append(rows, r)
	}
	return "kernels, copies and fills; seconds are those on the devices", rows
}
