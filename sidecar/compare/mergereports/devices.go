package mergereports

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// deviceKey identifies a GPU in several reports: by its identity, else by its number.
type deviceKey struct {
	uuid         string
	host, number int
}

func (m *merging) keyOf(i int, d *report.Device) deviceKey {
	if d.UUID != "" {
		return deviceKey{uuid: d.UUID}
	}
	return deviceKey{host: m.clocks.host[i], number: d.Number}
}

// chooseDevices decides which report describes each GPU, which all of them have seen: the
// one whose target used it, of several the longest.
func (m *merging) chooseDevices() {
	best := make(map[deviceKey]int)
	used := func(i int, key deviceKey) (bool, int64) {
		for k := range m.reports[i].Devices {
			if d := &m.reports[i].Devices[k]; m.keyOf(i, d) == key {
				return d.Used, m.reports[i].DurationNS
			}
		}
		return false, 0
	}
	for i, r := range m.reports {
		for k := range r.Devices {
			d := &r.Devices[k]
			key := m.keyOf(i, d)
			at, known := best[key]
			if !known {
				best[key] = i
				m.devices[key] = len(m.doc.Devices)
				m.doc.Devices = append(m.doc.Devices, *d)
				continue
			}
			if was, length := used(at, key); d.Used && !was || d.Used == was && r.DurationNS > length {
				best[key] = i
			}
		}
	}
	for key, i := range best {
		m.owner[m.devices[key]] = i
	}
	for at := range m.doc.Devices {
		m.doc.Devices[at].Processes = []int{}
	}
}

// addDevices fills in the GPUs that this report describes, and who used them.
func (p *part) addDevices() {
	for k := range p.r.Devices {
		d := p.r.Devices[k]
		at := p.devices[p.keyOf(p.at, &d)]
		into := &p.doc.Devices[at]
		processes := into.Processes
		for _, process := range d.Processes {
			if at := p.process[process]; !slices.Contains(processes, at) {
				processes = append(processes, at)
			}
		}
		if p.owner[at] == p.at {
			*into = d
			into.Host = p.host
			into.UnknownNS += p.doc.DurationNS - p.r.DurationNS
			into.LostAtNS = p.instant(d.LostAtNS)
			into.Xids = slices.Clone(d.Xids)
			for i := range into.Xids {
				into.Xids[i].AtNS += p.shift
			}
		}
		into.Processes = processes
	}
	for _, k := range p.r.Kernels {
		if at, ours := p.device(k.Device); ours {
			k.Device = at
			k.GapNS = slices.Clone(k.GapNS)
			if len(k.GapNS) > 0 {
				k.GapNS[0] += p.shift
			}
			k.Launcher = slices.Clone(k.Launcher)
			for i, thread := range k.Launcher {
				if thread >= 0 {
					k.Launcher[i] = int64(p.thread[thread])
				}
			}
			p.doc.Kernels = append(p.doc.Kernels, k)
		}
	}
	p.idle()
}

// device is the merged index of a device of this report; ours reports whether this report
// describes it.
func (p *part) device(i int) (at int, ours bool) {
	at = p.devices[p.keyOf(p.at, &p.r.Devices[i])]
	return at, p.owner[at] == p.at
}

func (p *part) idle() {
	if p.r.Idle == nil {
		return
	}
	for _, d := range p.r.Idle.Devices {
		at, ours := p.device(d.Device)
		if !ours {
			continue
		}
		if p.doc.Idle == nil {
			p.doc.Idle = &report.Idle{Certainty: p.r.Idle.Certainty, Causes: []report.Cause{}, Devices: []report.DeviceIdle{}}
		}
		d.Device, d.Intervals, d.Causes = at, p.intervals(d.Intervals), p.causes(d.Causes)
		p.doc.Idle.Devices = append(p.doc.Idle.Devices, d)
	}
}

func (p *part) causes(list []report.Cause) []report.Cause {
	out := make([]report.Cause, len(list))
	for i, c := range list {
		c.File, c.Function, c.Evidence = p.code.file(c.File), p.code.function(c.Function), p.intervals(c.Evidence)
		out[i] = c
	}
	return out
}

// finishIdle adds the devices up: a cause at one place is one cause.
func (m *merging) finishIdle() {
	type key struct {
		id         string
		file, line int
	}
	number := func(i *int) int {
		if i == nil {
			return -1
		}
		return *i
	}
	idle := m.doc.Idle
	index := make(map[key]int)
	for _, d := range idle.Devices {
		idle.IdleNS += d.IdleNS
		for _, c := range d.Causes {
			k := key{c.ID, number(c.File), number(c.Line)}
			at, known := index[k]
			if !known {
				index[k] = len(idle.Causes)
				idle.Causes = append(idle.Causes, c)
				continue
			}
			into := &idle.Causes[at]
			into.NS += c.NS
			into.LowNS, into.HighNS = sum(into.LowNS, c.LowNS), sum(into.HighNS, c.HighNS)
			into.Evidence = append(slices.Clone(into.Evidence), c.Evidence...)
			slices.SortFunc(into.Evidence, func(a, b report.Interval) int { return cmp.Compare(a[0], b[0]) })
		}
	}
	for i := range idle.Causes {
		idle.Causes[i].Share = float64(idle.Causes[i].NS) / float64(max(idle.IdleNS, 1))
	}
	slices.SortStableFunc(idle.Causes, func(a, b report.Cause) int { return cmp.Compare(b.NS, a.NS) })
}

func sum(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	v := *a + *b
	return &v
}
