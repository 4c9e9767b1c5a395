package interpret

import (
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/usercode"
)

// Of returns a recording as it is reported: with the roles of processes, the stacks of the
// program alone, those of an engine's tasks under the tasks' names, the pools, and the subject. Whoever shows a recording, at its end or while it
// is in progress, takes it through here first. It shares with rec what it does not change.
func Of(rec *timeline.Recording) *timeline.Recording {
	return Decide(withTasks(usercode.Strip(Identify(withSentCode(rec)))))
}

// Decide returns a recording, whose roles are known and whose stacks are the program's own,
// with its pools and its subject.
func Decide(rec *timeline.Recording) *timeline.Recording {
	out := *rec
	subject := decide(rec)
	out.Subject = &subject
	out.Pools = leftApart(rec, PoolsOf(rec.Processes, subject.Program))
	return &out
}

// SubjectOf is whom a recording is about: as it was decided, or decided now.
func SubjectOf(rec *timeline.Recording) timeline.Subject {
	if rec.Subject != nil {
		return *rec.Subject
	}
	return decide(rec)
}

// RecordedPools are the pools of a recording: as they were found, or found now.
func RecordedPools(rec *timeline.Recording) []timeline.Pool {
	if rec.Subject != nil {
		return rec.Pools
	}
	return leftApart(rec, PoolsOf(rec.Processes, decide(rec).Program))
}
