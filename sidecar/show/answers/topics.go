package answers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Topic is one thing that a report is asked about.
type Topic string

// The topics.
const (
	Headline  Topic = "headline"
	Findings  Topic = "findings"
	Lines     Topic = "lines"
	Functions Topic = "functions"
	Idle      Topic = "idle"
	Threads   Topic = "threads"
	Processes Topic = "processes"
	Devices   Topic = "devices"
	Steps     Topic = "steps"
	Ranks     Topic = "ranks"
	Operators Topic = "operators"
	Kernels   Topic = "kernel-times"
	Notes     Topic = "notes"
	Stretch   Topic = "stretch"
)

// order is that of reading.
var order = []Topic{Headline, Findings, Lines, Functions, Idle, Threads, Processes, Devices, Steps, Ranks, Operators, Kernels, Notes, Stretch}

// topic is how one is described, and what it finds: what the rows are, and the rows.
type topic struct {
	about string
	rows  func(*asked) (string, []Row)
}

var topics = map[Topic]topic{
	Headline:  {"what to read first: the main finding, and how exact it is", (*asked).headline},
	Findings:  {"everything worth a change, the most important first", (*asked).findings},
	Lines:     {"seconds of the lines of the user's own code", (*asked).lines},
	Functions: {"seconds of functions over all threads of the program", (*asked).functions},
	Idle:      {"what the GPUs in use waited for, and in which line", (*asked).idle},
	Threads:   {"what each thread did", (*asked).threads},
	Processes: {"the program's processes, their CPU time and how they ended", (*asked).processes},
	Devices:   {"busy and idle seconds of each GPU", (*asked).devices},
	Steps:     {"training steps: how many, how long, the slowest", (*asked).steps},
	Ranks:     {"the ranks of a distributed run, and for how long they waited for each other", (*asked).ranks},
	Operators: {"operators of torch in the program's traces, by the CPU time of their own", (*asked).operators},
	Kernels:   {"kernels, copies and fills in the program's traces, by their time on the devices", (*asked).kernels},
	Notes:     {"what could not be measured, and why", (*asked).notes},
	Stretch:   {"threads, lines and figures of a part of the recording", (*asked).stretch},
}

// Names are the topics, in the order of reading.
func Names() []string {
	names := make([]string, len(order))
	for i, t := range order {
		names[i] = string(t)
	}
	return names
}

// About describes a topic; empty: there is none of that name.
func (t Topic) About() string { return topics[t].about }

// asked is a report with the question.
type asked struct {
	*report.View
	q Question
}

func (a *asked) place(file, line *int) string {
	name := words.Clean(a.FileName(file), words.MaxName)
	if name == "" || line == nil || *line < 1 {
		return name
	}
	return fmt.Sprintf("%s:%d", name, *line)
}

const maxText = 160

func (a *asked) code(file, line *int) string { return words.Clean(a.LineText(file, line), maxText) }

func (a *asked) headline() (string, []Row) {
	first := Row{Says: a.Headline.Text, Advice: a.Headline.Hint}
	if f := a.MainFinding(); f != nil {
		first.Place, first.Code = a.place(f.File, f.Line), a.code(f.File, f.Line)
	}
	rows := []Row{first}
	if a.Idle != nil && len(a.Idle.Devices) > 0 {
		r := spent(a.Idle.IdleNS, 0)
		r.Name, r.Says = words.Plural(len(a.Idle.Devices), "GPU", "GPUs")+" idle", a.Idle.Text
		rows = append(rows, r)
	}
	s := a.Target().Sampling
	rows = append(rows, Row{Name: "samples", Says: words.Count(s.Ticks) + ", " + words.Clean(s.Text, maxText)})
	return "the main finding", rows
}

func (a *asked) findings() (string, []Row) {
	var rows []Row
	for _, f := range a.View.Findings {
		r := Row{Name: f.ID}
		if f.CostNS != nil {
			r = spent(*f.CostNS, a.DurationNS)
			r.Name = f.ID
		}
		r.Place, r.Says, r.Advice = a.place(f.File, f.Line), f.Text, f.Hint
		rows = append(rows, r)
	}
	return "findings; seconds are what a change could save at most", rows
}

func (a *asked) lines() (string, []Row) {
	var rows []Row
	for _, process := range a.programFirst() {
		for _, l := range a.Lines {
			if l.Process != process || l.SelfNS == 0 && l.IdleNS == 0 {
				continue
			}
			r := spent(l.SelfNS, a.threadTime())
			r.Place, r.Code, r.Says = a.place(&l.File, &l.Line), a.code(&l.File, &l.Line), statesOf(l.StateNS)
			if process != a.Program() {
				r.Name, r.Share = a.processName(process), nil
			}
			if l.IdleNS > 0 {
				r.Says = strings.TrimPrefix(r.Says+", GPU idle "+words.Seconds(report.Seconds(l.IdleNS)), ", ")
			}
			rows = append(rows, r)
		}
	}
	return "own lines by the time in which they were the innermost one of the user's own on the stack; shares of the program's threads", rows
}

// programFirst are the processes, that of the program before the others.
func (a *asked) programFirst() []int {
	all := []int{a.Program()}
	for i := range a.View.Processes {
		if i != a.Program() {
			all = append(all, i)
		}
	}
	return all
}

// threadTime is what shares of lines and functions are of.
func (a *asked) threadTime() int64 { return cmp.Or(a.Target().ThreadNS, a.DurationNS) }

func (a *asked) processName(i int) string {
	p := &a.View.Processes[i]
	return fmt.Sprintf("%s (%d)", words.Clean(cmp.Or(p.Text, p.Command, p.Role), 60), p.PID)
}

func (a *asked) functions() (string, []Row) {
	var rows []Row
	for _, f := range a.FunctionTimes {
		if f.Process != a.Program() || f.SelfNS == 0 {
			continue
		}
		fn := &a.View.Functions[f.Function]
		r := spent(f.SelfNS, a.threadTime())
		r.Place, r.Name = a.place(&fn.File, &fn.FirstLine), words.Clean(a.FunctionName(f.Function), words.MaxName)
		r.Says = statesOf(f.StateNS)
		if f.TotalNS > f.SelfNS {
			r.Says = strings.TrimPrefix(r.Says+", "+words.Seconds(report.Seconds(f.TotalNS))+" with what it called", ", ")
		}
		rows = append(rows, r)
	}
	bySeconds(rows)
	return "functions by their own time, all threads of the program", rows
}

func bySeconds(rows []Row) {
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(*b.Seconds, *a.Seconds) })
}

// statesOf names the states that have at least a twentieth of a time.
func statesOf(times report.StateTimes) string {
	all := times.Sum()
	var parts []string
	for i, ns := range times {
		if ns > 0 && ns >= all/20 {
			parts = append(parts, report.State(i).String()+" "+words.Percent(float64(ns)/float64(all)))
		}
	}
	return strings.Join(parts, ", ")
}

func (a *asked) idle() (string, []Row) {
	if a.Idle == nil {
		return "idle time of GPUs: no GPU's activity is known", nil
	}
	var rows []Row
	for _, c := range a.Idle.Causes {
		r := spent(c.NS, a.Idle.IdleNS)
		r.Place, r.Name, r.Code, r.Advice = a.place(c.File, c.Line), c.Text, a.code(c.File, c.Line), c.Hint
		if c.LowNS != nil && c.HighNS != nil && *c.LowNS < *c.HighNS {
			r.Says = "estimated, " + words.Between(report.Seconds(*c.LowNS), report.Seconds(*c.HighNS))
		}
		rows = append(rows, r)
	}
	return "idle time of all GPUs in use, by cause; " + strings.TrimSuffix(a.Idle.Text, "."), rows
}
