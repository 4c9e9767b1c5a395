package timeline

import "slices"

// NewBatch is a batch without what makes no sense.
func NewBatch(samples, tokens int64, epoch *int) Batch {
	const most = 1 << 40
	b := Batch{Samples: max(samples, 0), Tokens: max(tokens, 0), Epoch: epoch}
	if b.Samples > most {
		b.Samples = 0
	}
	if b.Tokens > most {
		b.Tokens = 0
	}
	if epoch != nil && (*epoch < 0 || *epoch > most) {
		b.Epoch = nil
	}
	return b
}

// LeadingMarks are those of the process whose steps are reported: the subject, or where it has
// marked none the first process that has, which of ranks is the least. Where that is one of the processes that a program started,
// as for a training of their own each, it is the one that marked most. Steps that were
// marked by a call take precedence over those that a hook found.
func (r *Recording) LeadingMarks() []Mark {
	leader := -1
	for _, m := range r.Marks {
		if r.Subject != nil && m.Process == r.Subject.Process {
			return r.MarksOf(m.Process)
		}
		if leader < 0 || m.Process < leader {
			leader = m.Process
		}
	}
	if leader < 0 || leader >= len(r.Processes) || r.Processes[leader].Rank != nil || r.Processes[leader].ParentIndex < 0 {
		return r.MarksOf(leader)
	}
	most := r.MarksOf(leader)
	for process := leader + 1; process < len(r.Processes); process++ {
		if own := r.MarksOf(process); len(own) > len(most) {
			most = own
		}
	}
	return most
}

// MarksOf are those of one process.
func (r *Recording) MarksOf(process int) (out []Mark) {
	called := slices.ContainsFunc(r.Marks, func(m Mark) bool { return m.Process == process && m.Kind == "step" && m.Source != StepOptimizer })
	for _, m := range r.Marks {
		if m.Process == process && !(called && m.Source == StepOptimizer) {
			out = append(out, m)
		}
	}
	return out
}
