package analyses

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// commRun is one communication kernel of one rank.
type commRun struct {
	rank       int    // set when it is known
	key        string // which sequence of collectives it belongs to
	start, end int64  // ns since the epoch, by the rank's own clock
	name       string
	dtype      string
	elements   int64 // that went in; 0 if not stated
	sequence   int64 // its number in the process group; None if not stated

	group                  string
	groupSize, outElements int64
}

// commRuns is a recording's communication kernels by start. Of a process with
// several devices there are none: its devices take part each for itself, which
// the records do not distinguish.
type commRuns struct {
	runs    []commRun
	devices int // more than one: left out
}

// observeCollectives lists them. Two ranks' kernels are the same collective when
// they have the same place in the same sequence: of the process group's
// collectives of one name where NCCL recorded that, else of kernels of one name.
func observeCollectives(r *recording) commRuns {
	if len(r.of) > 1 {
		return commRuns{devices: len(r.of)}
	}
	c := commRuns{devices: len(r.of)}
	for i := range r.spans {
		s := &r.spans[i]
		if s.kind != Communication || s.row < 0 {
			continue
		}
		about := &r.t.Collectives[r.t.Device.Collective[s.row]]
		run := commRun{
			start: r.t.UnixNs(s.start), end: r.t.UnixNs(s.end()), name: r.t.Text(s.name), elements: about.InNelems, sequence: kineto.None,
		}
		run.key = run.name
		if about.Name != 0 {
			run.name, run.dtype, run.sequence = r.t.Text(about.Name), r.t.Text(about.Dtype), about.SequenceNum
			run.about(r.t, about)
			if run.name == "send" || run.name == "recv" {
				continue // between two ranks: not the same on all
			}
			run.key = fmt.Sprintf("%s\x00%s\x00%s", run.name, r.t.Text(about.Group), r.t.Text(about.GroupRanks))
		}
		c.runs = append(c.runs, run)
	}
	return c
}

// joinRuns puts each rank's recordings one after the other.
func joinRuns(ranks []rankParts[commRuns]) (perRank [][]commRun, severalDevices bool) {
	for _, rank := range ranks {
		var runs []commRun
		for _, part := range rank.parts {
			severalDevices = severalDevices || part.devices > 1
			for _, run := range part.runs {
				run.rank = rank.rank
				runs = append(runs, run)
			}
		}
		perRank = append(perRank, runs)
	}
	return perRank, severalDevices
}

// collective is one collective operation with what each rank did in it.
type collective struct {
	name       string
	occurrence int
	runs       []commRun // by rank
}

// transfer is the shortest kernel: the last rank to arrive waits for nobody, so
// that its time is the transfer's. This needs no common clock.
func (c *collective) transfer() (straggler int, ns int64) {
	ns = c.runs[0].end - c.runs[0].start
	straggler = c.runs[0].rank
	for _, r := range c.runs[1:] {
		if d := r.end - r.start; d < ns {
			straggler, ns = r.rank, d
		}
	}
	return straggler, ns
}

// waiting is the time all ranks together spent waiting for the last.
func (c *collective) waiting() (sum int64) {
	_, transfer := c.transfer()
	for _, r := range c.runs {
		sum += r.end - r.start - transfer
	}
	return sum
}

// pairUp pairs the ranks' kernels, by the sequence numbers of newer profilers
// or else by counting. What cannot be paired is left out and counted: with
// sequence numbers, what some rank lacks; without, a whole sequence that has
// not the same length on all its ranks.
func pairUp(perRank [][]commRun) (all []collective, unpaired int) {
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
			c := collective{name: lists[0][i].name, occurrence: i}
			for _, runs := range lists {
				c.runs = append(c.runs, runs[i])
			}
			all = append(all, c)
		}
	}
	return all, unpaired
}

// pairable returns, per rank, the runs that belong together by their place in
// the list, and how many had to be left out.
func pairable(byRank map[int][]commRun) (lists [][]commRun, left int) {
	ranks := map[int64]int{} // ranks that have a sequence number
	numbered := true
	longest, shortest := 0, math.MaxInt
	for _, runs := range byRank {
		longest, shortest = max(longest, len(runs)), min(shortest, len(runs))
		left += len(runs)
		own := map[int64]bool{}
		for _, r := range runs {
			n := r.sequence
			numbered = numbered && n != kineto.None && !own[n]
			own[n] = true
			ranks[n]++
		}
	}
	if len(byRank) < 2 || !numbered && shortest != longest {
		return nil, left
	}
	for _, rank := range sortedKeys(byRank) {
		runs := byRank[rank]
		if numbered {
			runs = slices.DeleteFunc(slices.Clone(runs), func(r commRun) bool { return ranks[r.sequence] < len(byRank) })
			slices.SortFunc(runs, func(a, b commRun) int { return cmp.Compare(a.sequence, b.sequence) })
		}
		left -= len(runs)
		lists = append(lists, runs)
	}
	return lists, left
}

func answerCollectives(a asked[commRuns]) []*table.Table {
	perRank, severalDevices := joinRuns(a.ranks)
	all, unpaired := pairUp(perRank)
	note := pairingNote(len(all), unpaired, len(a.ranks), a.about.world)
	if severalDevices {
		note = "the collectives of processes with several devices are not compared"
	}
	list, sums := collectiveTable(all), stragglerTable(all)
	list.Note, sums.Note = note, note
	return []*table.Table{list, sums, answerBandwidths(a)}
}

// collectiveTable has a row per collective, the longest wait first.
func collectiveTable(all []collective) *table.Table {
	t := table.New(TableCollectives, "Collectives across ranks: wait against transfer",
		&table.Column{Name: "collective", Kind: table.Text},
		&table.Column{Name: "occurrence", Kind: table.Int},
		&table.Column{Name: "ranks", Kind: table.Int},
		&table.Column{Name: "in_nelems", Kind: table.Int},
		&table.Column{Name: "dtype", Kind: table.Text, Optional: true},
		&table.Column{Name: "straggler", Kind: table.Int}, // the rank the others waited for
		&table.Column{Name: "transfer_us", Kind: table.Micros},
		&table.Column{Name: "longest_us", Kind: table.Micros},
		&table.Column{Name: "wait_us", Kind: table.Micros},   // of all ranks together
		&table.Column{Name: "wait_share", Kind: table.Ratio}) // of what the ranks spent in it
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b collective) int { return cmp.Compare(b.waiting(), a.waiting()) })
	for _, c := range order {
		straggler, transfer := c.transfer()
		var longest, sum int64
		for _, r := range c.runs {
			longest = max(longest, r.end-r.start)
			sum += r.end - r.start
		}
		t.Add(c.name, c.occurrence, len(c.runs), known(c.runs[0].elements, c.runs[0].elements > 0), c.runs[0].dtype, straggler,
			micros(transfer), micros(longest), micros(c.waiting()), share(c.waiting(), sum))
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

// stragglerTable sums the collectives up per rank.
func stragglerTable(all []collective) *table.Table {
	t := table.New(TableStragglers, "Who waits for whom",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "collectives", Kind: table.Int},
		&table.Column{Name: "times_last", Kind: table.Int},
		&table.Column{Name: "waited_us", Kind: table.Micros}, // for others
		&table.Column{Name: "made_wait_us", Kind: table.Micros},
		&table.Column{Name: "delay_us", Kind: table.Micros}, // the same, of one other rank on average
		&table.Column{Name: "transfer_us", Kind: table.Micros},
		&table.Column{Name: "clock_offset_us", Kind: table.Micros}) // against the lowest rank, from the collectives' ends
	type sums struct{ n, last, waited, made, delay, transfer int64 }
	by := map[int]*sums{}
	for _, c := range all {
		straggler, transfer := c.transfer()
		for _, r := range c.runs {
			if by[r.rank] == nil {
				by[r.rank] = &sums{}
			}
			s := by[r.rank]
			s.n++
			s.transfer += transfer
			s.waited += r.end - r.start - transfer
		}
		by[straggler].last++
		by[straggler].made += c.waiting()
		by[straggler].delay += c.waiting() / int64(max(1, len(c.runs)-1))
	}
	offsets := clockOffsets(all)
	for _, rank := range sortedKeys(by) {
		s := by[rank]
		t.Add(rank, s.n, s.last, micros(s.waited), micros(s.made), micros(s.delay), micros(s.transfer), micros(offsets[rank]))
	}
	return t
}

// clockOffsets estimates by how much each rank's clock is ahead of the lowest
// rank's, in ns: collectives end on all ranks at nearly the same time, so the
// median difference of the ends is the difference of the clocks.
func clockOffsets(all []collective) map[int]int64 {
	differences := map[int][]int64{}
	for _, c := range all {
		for _, r := range c.runs {
			differences[r.rank] = append(differences[r.rank], r.end-c.runs[0].end)
		}
	}
	offsets := map[int]int64{}
	for rank, d := range differences {
		slices.Sort(d)
		offsets[rank] = d[len(d)/2]
	}
	return offsets
}
