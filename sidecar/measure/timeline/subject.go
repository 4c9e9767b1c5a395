package timeline

// Subject is whom a recording is about. Package interpret decides it, everything after
// reads it.
type Subject struct {
	Process int   // index in Recording.Processes: the process that explains where the time went
	Thread  int   // its thread, index in Recording.Threads; -1: none was seen
	Program int   // the process whose own lines are summed up: Process, but where a rank explains its launcher the launcher
	Runs    []int // the threads that run the program's code, in Recording.Threads
	Why     SubjectReason
	// Launcher: the target runs no Python itself, processes that descend from it do.
	Launcher bool
}

// SubjectReason is why a process is the subject.
type SubjectReason string

// The reasons.
const (
	SubjectTarget       SubjectReason = "target"        // it is what was recorded
	SubjectLaunched     SubjectReason = "launched"      // the target only starts it
	SubjectLeadingRank  SubjectReason = "leading-rank"  // the target only starts ranks, and it is the first one
	SubjectHeadlineRank SubjectReason = "headline-rank" // likewise, and it is the one that the headline names
	SubjectLongest      SubjectReason = "longest"       // no thread of the target was seen; it was seen the longest
)

// Pool is the workers of one role that work for one process, or the runs of one program.
type Pool struct {
	Role    Role
	Command string // what the runs of a program are runs of; empty of workers
	// Owner is the process that they work for, index in Recording.Processes: of ranks and runs
	// that several have started, the nearest one from which all of these descend; -1: not known.
	Owner   int
	Members []int // likewise, by number, then by start
	// AtOnce is how many workers of a loader lived at a time, at most, where it has started them anew; 0: all members.
	AtOnce int
}

// slice moves a subject to the recording that a part of its recording is.
func (s *Subject) slice(process, thread func(int) int) *Subject {
	if s == nil {
		return nil
	}
	out := *s
	out.Process, out.Program, out.Thread, out.Runs = max(process(s.Process), 0), max(process(s.Program), 0), thread(s.Thread), nil
	for _, t := range s.Runs {
		if at := thread(t); at >= 0 {
			out.Runs = append(out.Runs, at)
		}
	}
	return &out
}

// slicePools moves pools likewise, without the members that the part does not have.
func slicePools(pools []Pool, process func(int) int) (out []Pool) {
	for _, p := range pools {
		p.Owner = process(p.Owner)
		var members []int
		for _, m := range p.Members {
			if at := process(m); at >= 0 {
				members = append(members, at)
			}
		}
		if p.Members = members; len(members) > 0 {
			out = append(out, p)
		}
	}
	return out
}
