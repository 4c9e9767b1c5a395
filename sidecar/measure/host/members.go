package host

import (
	"fmt"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/proctree"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const (
	// maxMemberTracks bounds the descendants that get tracks of their own.
	maxMemberTracks = 64
	// worthTracks is the CPU time from which a descendant gets them.
	worthTracks = timeline.Nanos(20 * time.Millisecond)
	// worthMemory is the memory from which it gets them, whatever CPU time it uses: if the system
	// ends it, what it held is the first thing to know.
	worthMemory = 32 << 20
)

// members follows the CPU time and memory of each of the target's descendants.
type members struct {
	s     *sampler
	known map[proctree.Identity]*memberTracks
	given int // tracks
}

type memberTracks struct {
	since  timeline.Nanos // when it was first seen
	first  timeline.Nanos // CPU time then
	at     timeline.Nanos // of the last reading
	cpu    timeline.Nanos // then
	rate   *timeline.TrackWriter
	memory *timeline.TrackWriter
}

func (m *members) read(at timeline.Nanos) {
	for pid, one := range m.s.family.members {
		if pid != m.s.c.pid && !one.zombie && !one.profiler {
			m.report(at, one)
		}
	}
	for id, tracks := range m.known {
		if one := m.s.family.members[id.PID]; one != nil && one.start == id.Start && !one.zombie {
			continue
		}
		if tracks.rate != nil {
			tracks.rate.End("the process has ended")
			tracks.memory.End("the process has ended")
		}
		delete(m.known, id)
	}
}

func (m *members) report(at timeline.Nanos, one *member) {
	tracks := m.known[one.identity()]
	if tracks == nil {
		m.known[one.identity()] = &memberTracks{since: at, first: one.own, at: at, cpu: one.own}
		return
	}
	if tracks.rate == nil && (one.own-tracks.first >= worthTracks || one.rss >= worthMemory) {
		if m.given >= maxMemberTracks {
			m.s.sink.Note(timeline.NoteLeftOut, "process.N.cpu", fmt.Sprintf("more than %d child processes used the CPU; later ones have no tracks", maxMemberTracks))
			return
		}
		m.given++
		place := m.s.family.tree.Index(one.pid)
		spec := timeline.TrackSpec{Resolution: m.s.interval, PID: one.pid, Process: place, Device: -1}
		spec.ID, spec.Kind, spec.Unit, spec.Source, spec.Limit = fmt.Sprintf("process.%d.cpu", place), timeline.KindRate, "cores", m.s.cpuSource(), m.s.limits.Cores
		tracks.rate = m.s.sink.Track(spec)
		spec.ID, spec.Kind, spec.Unit, spec.Source, spec.Limit = fmt.Sprintf("process.%d.rss", place), timeline.KindGauge, "B", "/proc/PID/stat", m.s.limits.Memory
		tracks.memory = m.s.sink.Track(spec)
		tracks.at, tracks.cpu = tracks.since, tracks.first // its first point reaches back to when it was first seen
	}
	if tracks.rate == nil {
		return
	}
	if window := at - tracks.at; window > 0 {
		used := max(one.own-tracks.cpu, 0)
		// Its clock ticks, and was read later than at: what the machine cannot have done by then counts in the next window.
		counted := min(used, timeline.Nanos(m.s.machine.total*float64(window)))
		tracks.rate.AddWindow(tracks.at, at, counted.Seconds()/window.Seconds())
		if !one.exiting {
			tracks.memory.Add(at, float64(one.rss))
		}
		tracks.at, tracks.cpu = at, tracks.cpu+counted
	}
}
