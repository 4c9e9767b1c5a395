package report

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
)

// Subject is whom a document is about. The threads and tables of all displays follow it.
type Subject struct {
	Process int  `json:"process"` // the process that explains where the time went
	Thread  *int `json:"thread"`  // its thread, of the flame chart; null: none is known
	// Program is the process whose own lines and functions are summed up: Process, but where a
	// rank explains its launcher the launcher. Threads are those that run its code.
	Program int    `json:"program"`
	Threads []int  `json:"threads"`
	Why     string `json:"why"` // timeline.SubjectReason
}

// Pool is the workers of one role that work for one process, or the runs of one program.
type Pool struct {
	Role    string `json:"role"`
	Command string `json:"command,omitempty"` // of the runs of one program: what it is called
	Owner   *int   `json:"owner"`             // null: not known
	Members []int  `json:"members"`
	AtOnce  int    `json:"at_once,omitempty"` // how many of them lived at a time, at most; 0: all
	Text    string `json:"text"`              // "4 pool workers"; of one member, what that is called
}

// IsProgram reports whether a pool is the runs of a program, not workers.
func (p *Pool) IsProgram() bool { return p.Role == string(timeline.RoleChild) }

// subject writes whom the recording is about. Of ranks it may be another than the first one:
// the one that the headline names.
func (b *builder) subject() {
	s := Subject{Process: b.placed(b.about.Process), Program: b.program, Threads: []int{}, Why: string(b.about.Why)}
	for i, from := range b.order {
		if from == b.about.Thread {
			s.Thread, s.Process = pointer(i), b.doc.Threads[i].Process
		}
		if slices.Contains(b.about.Runs, from) {
			s.Threads = append(s.Threads, i)
		}
	}
	b.doc.Subject = &s
	b.doc.followHeadline()
}

// followHeadline makes the rank that the headline names the subject, where a rank is.
func (d *Document) followHeadline() {
	s, finding := d.Subject, d.Headline.Finding
	if s.Why != string(timeline.SubjectLeadingRank) || finding == nil || *finding < 0 || *finding >= len(d.Findings) {
		return
	}
	if number, ok := integer(d.Findings[*finding].Args["rank"]); ok {
		d.FollowRank(number)
	}
}

// FollowRank makes a rank the subject, whose main thread is then the flame chart's.
func (d *Document) FollowRank(number int) {
	s := d.Subject
	at := slices.IndexFunc(d.Ranks, func(r Rank) bool { return r.Rank == number })
	if at < 0 || d.Ranks[at].Process == s.Process {
		return
	}
	if thread := d.mainThreadOf(d.Ranks[at].Process); thread >= 0 {
		s.Process, s.Thread, s.Why = d.Ranks[at].Process, &thread, string(timeline.SubjectHeadlineRank)
	}
}

// mainThreadOf is the first main thread of a process, which is the busiest; -1: it has none.
func (d *Document) mainThreadOf(process int) int {
	return slices.IndexFunc(d.Threads, func(t Thread) bool { return t.Main && t.Process == process })
}

// pools writes the pools of the recording.
func (b *builder) pools() {
	for _, p := range interpret.RecordedPools(b.rec) {
		p.Members = slices.Clone(p.Members)
		for i, m := range p.Members {
			p.Members[i] = b.byPlace[m]
		}
		if p.Owner >= 0 {
			p.Owner = b.byPlace[p.Owner]
		}
		b.doc.addPool(p)
	}
}

// addPool writes a pool of the document's processes.
func (d *Document) addPool(p timeline.Pool) {
	out := Pool{Role: clean(string(p.Role)), Command: clean(p.Command), Owner: natural(&p.Owner), Members: p.Members, AtOnce: p.AtOnce}
	if out.Text = clean(wording.Pool(p)); len(p.Members) == 1 {
		out.Text = d.Processes[p.Members[0]].Text
	}
	d.Pools = append(d.Pools, out)
}

// interpreted adds what a document of an older program, or one that was put together from
// others, does not say: whom it is about, by what it says of its first target, and the pools, by
// the roles of its processes.
func (d *Document) interpreted() {
	if d.Subject != nil {
		return
	}
	t := &d.Targets[0]
	s := Subject{Process: t.Process, Program: t.Process, Threads: []int{}, Why: string(timeline.SubjectTarget)}
	if t.Program != nil {
		s.Program = *t.Program
	}
	main := []int{}
	for i, th := range d.Threads {
		if th.RunsCell {
			s.Threads = append(s.Threads, i)
		} else if th.Main && th.Process == s.Program {
			main = append(main, i)
		}
	}
	if len(s.Threads) == 0 {
		s.Threads = main
	}
	s.Process = s.Program
	switch thread := -1; {
	case t.Leading != nil && d.mainThreadOf(*t.Leading) >= 0:
		thread = d.mainThreadOf(*t.Leading)
		s.Process, s.Thread, s.Why = *t.Leading, &thread, string(timeline.SubjectLeadingRank)
	case len(s.Threads) > 0:
		s.Thread, s.Process = pointer(s.Threads[0]), d.Threads[s.Threads[0]].Process
		if t.Program != nil {
			s.Why = string(timeline.SubjectLaunched)
		}
	case len(d.Threads) > 0:
		thread = max(slices.IndexFunc(d.Threads, func(t Thread) bool { return t.Main }), 0)
		s.Thread, s.Process, s.Why = &thread, d.Threads[thread].Process, string(timeline.SubjectLongest)
	}
	d.Subject = &s
	d.followHeadline()
	d.findPools()
}

// findPools groups the processes of a document.
func (d *Document) findPools() {
	processes := make([]timeline.Process, len(d.Processes))
	for i, p := range d.Processes {
		processes[i] = timeline.Process{PID: p.PID, ParentIndex: -1, Role: timeline.Role(p.Role), Number: p.RoleNumber, Rank: p.Rank, Command: p.Command, Start: timeline.Nanos(p.StartNS)}
		if p.EndNS != nil {
			processes[i].End = timeline.Nanos(*p.EndNS)
		}
		if p.Parent != nil {
			processes[i].ParentIndex = *p.Parent
		}
	}
	d.Pools = nil
	for _, p := range interpret.PoolsOf(processes, d.Subject.Program) {
		d.addPool(p)
	}
}

// about checks the subject and the pools; a document that has none was made without them.
func (c *checker) about() {
	d := c.d
	if s := d.Subject; s != nil {
		c.index("subject.process", s.Process, len(d.Processes))
		c.index("subject.program", s.Program, len(d.Processes))
		c.indexOrNull("subject.thread", s.Thread, len(d.Threads))
		if c.err == nil && s.Thread != nil {
			c.must(d.Threads[*s.Thread].Process == s.Process, "subject.thread is of process %d, not %d", d.Threads[*s.Thread].Process, s.Process)
		}
		for _, t := range s.Threads {
			c.index("subject.threads", t, len(d.Threads))
		}
	}
	for _, p := range d.Pools {
		c.indexOrNull("pools.owner", p.Owner, len(d.Processes))
		c.must(len(p.Members) > 0, "a pool has no members")
		c.must(p.AtOnce >= 0 && p.AtOnce <= len(p.Members), "pools.at_once is %d of %d members", p.AtOnce, len(p.Members))
		for _, m := range p.Members {
			c.index("pools.members", m, len(d.Processes))
		}
	}
}
