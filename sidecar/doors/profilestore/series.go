package profilestore

import (
	"fmt"
	"strconv"
	"time"
	"unicode"

	"github.com/omni-perf/omni-perf/sidecar/show/export"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// series is the profile of one process, with the labels that it is found by.
type series struct {
	name        string  // of the application
	labels      []label // each name once
	from, until time.Time
	profile     []byte // pprof, compressed by gzip
}

// seriesOf makes a series of each process whose stacks were read.
func seriesOf(r *report.View, p Place) (list []series, err error) {
	for process := range r.Processes {
		profile, err := export.PprofOfProcess(r, process)
		if err != nil {
			return nil, err
		}
		if profile == nil {
			continue
		}
		s := series{
			name: applicationName(p.name), from: r.StartedAt, until: r.StartedAt.Add(time.Duration(r.DurationNS)),
			labels: labelsOf(r, process, p.labels), profile: profile,
		}
		if p.name == "" {
			s.name = nameOf(r, &r.Targets[r.Processes[process].Target])
		}
		list = append(list, s)
	}
	return list, nil
}

// nameOf is what a report calls its application: the same in every run of a program.
func nameOf(r *report.View, t *report.Target) string {
	switch {
	case r.Name != "":
		return applicationName(r.Name)
	case t.Kind == report.TargetCell:
		return "notebook"
	case t.Kind == report.TargetProcess: // its name is its number
		return "python"
	}
	return applicationName(t.Name)
}

// labelsOf are the labels of a process. The user's own go before ours.
func labelsOf(r *report.View, process int, own []label) []label {
	p := &r.Processes[process]
	var labels []label
	taken := make(map[string]bool)
	add := func(name, value string) {
		if value = labelValue(value); value != "" && !taken[name] {
			taken[name] = true
			labels = append(labels, label{name, value})
		}
	}
	for _, l := range own {
		add(l.name, l.value)
	}
	if host := r.Hosts[p.Host].Name; host != nil {
		add("hostname", *host)
	}
	add("pid", strconv.Itoa(p.PID))
	if p.Rank != nil {
		add("rank", strconv.Itoa(*p.Rank))
	}
	if cell := r.Targets[p.Target].Cell; cell != nil && cell.ExecutionCount != nil {
		add("cell", strconv.Itoa(*cell.ExecutionCount))
	}
	role := p.Role
	if p.RoleNumber != nil {
		role = fmt.Sprintf("%s %d", role, *p.RoleNumber)
	}
	add("role", role)
	return labels
}

// maxValue bounds a label's value, in characters: Pyroscope's limit is 2,048 bytes.
const maxValue = 256

// labelValue makes a value that has a meaning in neither protocol.
func labelValue(text string) string {
	var value []rune
	for _, r := range text {
		if len(value) == maxValue {
			break
		}
		if r == ',' || r == '{' || r == '}' || r == '=' || r == unicode.ReplacementChar || unicode.IsControl(r) {
			r = '_'
		}
		value = append(value, r)
	}
	return string(value)
}
