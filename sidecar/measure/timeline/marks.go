package timeline

import "slices"

// LeadingMarks are those of the process whose steps are reported: the subject, or where it has
// marked none the first process that has, which of ranks is the least. Steps that were
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
	return r.MarksOf(leader)
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
