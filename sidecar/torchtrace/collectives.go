package torchtrace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// commRun is one communication kernel of one rank.
type commRun struct {
	rank       int
	key        string // which sequence of collectives it belongs to
	start, end int64  // ns since the epoch, by the rank's own clock
	collective Collective
	name       string
	dtype      string
}

// commRuns lists a rank's communication kernels by start. Two ranks' kernels
// are the same collective when they have the same place in the same sequence:
// of the process group's collectives of one name where NCCL recorded that, else
// of kernels of one name.
func commRuns(v *view) []commRun {
	var runs []commRun
	for i := range v.spans {
		s := &v.spans[i]
		if s.kind != Communication || s.row < 0 {
			continue
		}
		r := commRun{
			rank: v.t.Rank, start: v.t.UnixNs(s.start), end: v.t.UnixNs(s.end()),
			collective: v.t.Collectives[v.t.Device.Collective[s.row]], name: v.t.Text(s.name),
		}
		r.key = r.name
		if c := r.collective; c.Name != 0 {
			r.name, r.dtype = v.t.Text(c.Name), v.t.Text(c.Dtype)
			if r.name == "send" || r.name == "recv" {
				continue // between two ranks: not the same on all
			}
			r.key = fmt.Sprintf("%s\x00%s\x00%s", r.name, v.t.Text(c.Group), v.t.Text(c.GroupRanks))
		}
		runs = append(runs, r)
	}
	return runs
}

// meeting is one collective with what each rank did in it.
type meeting struct {
	name       string
	occurrence int
	runs       []commRun // by rank
}

// transfer is the shortest kernel: the last rank to arrive waits for nobody, so
// that its time is the transfer's. This needs no common clock.
func (m *meeting) transfer() (straggler int, ns int64) {
	ns = m.runs[0].end - m.runs[0].start
	straggler = m.runs[0].rank
	for _, r := range m.runs[1:] {
		if d := r.end - r.start; d < ns {
			straggler, ns = r.rank, d
		}
	}
	return straggler, ns
}

// waiting is the time all ranks together spent waiting for the last.
func (m *meeting) waiting() (sum int64) {
	_, transfer := m.transfer()
	for _, r := range m.runs {
		sum += r.end - r.start - transfer
	}
	return sum
}

// meetings pairs the ranks' kernels, by the sequence numbers of newer profilers
// or else by counting. What cannot be paired is left out and counted: with
// sequence numbers, what some rank lacks; without, a whole sequence that has
// not the same length on all its ranks.
func meetings(perRank [][]commRun) (all []meeting, unpaired int) {
	sequences := map[string]map[int][]commRun{}
	for _, runs := range perRank {
		for _, r := range runs {
			if sequences[r.key] == nil {
				sequences[r.key] = map[int][]commRun{}
			}
			sequences[r.key][r.rank] = append(sequences[r.key][r.rank], r)
		}
	}
	for _, key := range sortedKeys(sequences) {
		byRank := sequences[key]
		lists, left := pairable(byRank)
		unpaired += left
		if len(lists) == 0 {
			continue
		}
		for i := range lists[0] {
			m := meeting{name: lists[0][i].name, occurrence: i}
			for _, runs := range lists {
				m.runs = append(m.runs, runs[i])
			}
			all = append(all, m)
		}
	}
	return all, unpaired
}

// pairable returns, per rank, the runs that belong together by their place in
// the list, and how many had to be left out.
func pairable(byRank map[int][]commRun) (lists [][]commRun, left int) {
	count := map[int64]int{} // ranks that have a sequence number
	numbered := true
	longest, shortest := 0, math.MaxInt
	for _, runs := range byRank {
		longest, shortest = max(longest, len(runs)), min(shortest, len(runs))
		left += len(runs)
		own := map[int64]bool{}
		for _, r := range runs {
			n := r.collective.SequenceNum
			numbered = numbered && n != None && r.collective.Name != 0 && !own[n]
			own[n] = true
			count[n]++
		}
	}
	if len(byRank) < 2 || !numbered && shortest != longest {
		return nil, left
	}
	for _, rank := range sortedKeys(byRank) {
		runs := byRank[rank]
		if numbered {
			runs = slices.DeleteFunc(slices.Clone(runs), func(r commRun) bool { return count[r.collective.SequenceNum] < len(byRank) })
			slices.SortFunc(runs, func(a, b commRun) int { return cmp.Compare(a.collective.SequenceNum, b.collective.SequenceNum) })
		}
		left -= len(runs)
		lists = append(lists, runs)
	}
	return lists, left
}

// collectives has a row per collective, the longest wait first.
func collectives(all []meeting, unpaired, ranks, world int) *Table {
	t := newTable(TableCollectives, "Collectives across ranks: wait against transfer",
		&Column{Name: "collective", Kind: Text},
		&Column{Name: "occurrence", Kind: Int},
		&Column{Name: "ranks", Kind: Int},
		&Column{Name: "in_nelems", Kind: Int},
		&Column{Name: "dtype", Kind: Text},
		&Column{Name: "straggler", Kind: Int}, // the rank the others waited for
		&Column{Name: "transfer_us", Kind: Micros},
		&Column{Name: "longest_us", Kind: Micros},
		&Column{Name: "wait_us", Kind: Micros}, // of all ranks together
		&Column{Name: "wait_pctg", Kind: Percent})
	t.Note = pairingNote(len(all), unpaired, ranks, world)
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b meeting) int { return cmp.Compare(b.waiting(), a.waiting()) })
	for _, m := range order {
		straggler, transfer := m.transfer()
		var longest, sum int64
		for _, r := range m.runs {
			longest = max(longest, r.end-r.start)
			sum += r.end - r.start
		}
		t.add(m.name, m.occurrence, len(m.runs), m.runs[0].collective.InNelems, m.runs[0].dtype, straggler,
			micros(transfer), micros(longest), micros(m.waiting()), percent(m.waiting(), sum))
	}
	return t
}

// pairingNote says what could not be compared. world is the number of ranks
// that the traces say there are, 0 if they do not.
func pairingNote(paired, unpaired, ranks, world int) string {
	switch {
	case ranks < 2:
		return "one rank only: nothing to compare"
	case paired == 0 && unpaired == 0:
		return "no communication kernels"
	case unpaired > 0:
		return fmt.Sprintf("%d communication kernels left out: some rank recorded fewer of them", unpaired)
	case world > ranks:
		return fmt.Sprintf("%d of %d ranks were read: another may be the straggler", ranks, world)
	}
	return ""
}

// stragglers sums the collectives up per rank.
func stragglers(all []meeting, unpaired, ranks, world int) *Table {
	t := newTable(TableStragglers, "Who waits for whom",
		&Column{Name: "rank", Kind: Int},
		&Column{Name: "collectives", Kind: Int},
		&Column{Name: "times_last", Kind: Int},
		&Column{Name: "waited_us", Kind: Micros}, // for others
		&Column{Name: "made_wait_us", Kind: Micros},
		&Column{Name: "transfer_us", Kind: Micros},
		&Column{Name: "clock_offset_us", Kind: Micros}) // against the lowest rank, from the collectives' ends
	t.Note = pairingNote(len(all), unpaired, ranks, world)
	type sums struct{ n, last, waited, made, transfer int64 }
	by := map[int]*sums{}
	for _, m := range all {
		straggler, transfer := m.transfer()
		for _, r := range m.runs {
			if by[r.rank] == nil {
				by[r.rank] = &sums{}
			}
			s := by[r.rank]
			s.n++
			s.transfer += transfer
			s.waited += r.end - r.start - transfer
		}
		by[straggler].last++
		by[straggler].made += m.waiting()
	}
	offsets := clockOffsets(all)
	for _, rank := range sortedKeys(by) {
		s := by[rank]
		t.add(rank, s.n, s.last, micros(s.waited), micros(s.made), micros(s.transfer), micros(offsets[rank]))
	}
	return t
}

// clockOffsets estimates by how much each rank's clock is ahead of the lowest
// rank's, in ns: collectives end on all ranks at nearly the same time, so the
// median difference of the ends is the difference of the clocks.
func clockOffsets(all []meeting) map[int]int64 {
	differences := map[int][]int64{}
	for _, m := range all {
		for _, r := range m.runs {
			differences[r.rank] = append(differences[r.rank], r.end-m.runs[0].end)
		}
	}
	offsets := map[int]int64{}
	for rank, d := range differences {
		slices.Sort(d)
		offsets[rank] = d[len(d)/2]
	}
	return offsets
}

// meetings pairs the collectives of all ranks, the last step included.
func (s *TraceSet) meetings() []meeting {
	perRank := make([][]commRun, len(s.Traces))
	for i, t := range s.Traces {
		perRank[i] = commRuns(newView(t, &AnalyzeOptions{Mode: Exact, IncludeLastStep: true}, 0))
	}
	all, _ := meetings(perRank)
	return all
}

// Offsets estimates the ranks' clock offsets from the collectives they share,
// in ns ahead of the lowest rank; ranks that share none are absent.
func (s *TraceSet) Offsets() map[int]int64 { return clockOffsets(s.meetings()) }
