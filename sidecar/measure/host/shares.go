package host

import (
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const (
	// mostShared is how much resident memory, summed over processes, is looked through for what
	// they share: 17 ms of a process's lock for each GiB.
	mostShared = 4 << 30
	// mostSharers bounds the processes.
	mostSharers = 64
)

// readShares reads, once and at the end, how much memory each process has of its own, and the
// peak of each descendant that lives. A process without descendants shares nothing with them.
func (s *sampler) readShares() {
	if s.lost || len(s.family.members) < 2 || len(s.family.members) > mostSharers {
		return
	}
	found := s.memoryByPlace()
	s.sink.Describe(func(r *timeline.Recording) {
		for place, known := range found {
			if place < 0 || place >= len(r.Processes) {
				continue
			}
			m := &r.Processes[place].Memory
			m.Own, m.Proportional = known.Own, known.Proportional
			if r.Processes[place].Start >= 0 && place > 0 { // of a whole life, which is in the recording
				m.Peak = known.Peak
			}
		}
	})
}

// memoryByPlace reads the memory of the family's members by their index in the recording's processes.
func (s *sampler) memoryByPlace() map[int]timeline.ProcessMemory {
	sum := uint64(0)
	for _, m := range s.family.members {
		sum += m.rss
	}
	reader := OwnMemory{fs: *s.fs}
	found := make(map[int]timeline.ProcessMemory)
	for pid, m := range s.family.members {
		if m.exiting || m.profiler {
			continue
		}
		var known timeline.ProcessMemory
		if sum <= mostShared {
			if u, err := reader.Exact(pid); err == nil {
				known.Own, known.Proportional = int64(u.Own), int64(u.Proportional)
			}
		}
		if st, err := s.fs.status(pid); err == nil && pid != s.c.pid {
			known.Peak = int64(st.peak)
		}
		if place := s.family.tree.Index(pid); place > 0 || pid == s.c.pid {
			found[place] = known
		}
	}
	return found
}
