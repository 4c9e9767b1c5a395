package mergereports

import "github.com/omni-perf/omni-perf/sidecar/understand/report"

// readings relates two machines by readings of the clock of one beside that of the other, or of
// both beside a third one's, which is that of an engine's client.
func readings(first, other *hostClock) (offset, bound int64, known bool) {
	if m := meetingOf(beside(first, *other.BootID), beside(other, *first.BootID)); m.known {
		return m.offset, m.bound, true
	}
	for _, third := range clients(first) {
		here, there := meetingOf(nil, beside(first, third)), meetingOf(nil, beside(other, third))
		if here.known && there.known {
			return there.offset - here.offset, there.bound + here.bound, true
		}
	}
	return 0, 0, false
}

// beside are the readings of a machine's clock for another one.
func beside(h *hostClock, boot string) (list []report.ClockReading) {
	for _, r := range h.readings {
		if r.BootID == boot {
			list = append(list, r)
		}
	}
	return list
}

// clients are the machines that have asked for a machine's clock.
func clients(h *hostClock) (boots []string) {
	known := make(map[string]bool)
	for _, r := range h.readings {
		if !known[r.BootID] {
			known[r.BootID] = true
			boots = append(boots, r.BootID)
		}
	}
	return boots
}

// meetingOf is what readings leave of the offset to add to a machine's clock: of mine, which that
// machine asked for, and of its own, which mine asked for. A reading's time is the one at which it was made, by the machine that was read.
func meetingOf(mine, its []report.ClockReading) meeting {
	var list []limits
	for _, r := range its {
		list = append(list, limits{at: r.MonotonicNS, low: r.LowNS - r.MonotonicNS, high: r.HighNS - r.MonotonicNS})
	}
	for _, r := range mine {
		list = append(list, limits{at: r.LowNS, low: r.MonotonicNS - r.HighNS, high: r.MonotonicNS - r.LowNS})
	}
	if len(list) == 0 {
		return meeting{}
	}
	return within(list)
}
