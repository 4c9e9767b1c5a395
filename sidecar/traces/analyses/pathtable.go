package analyses

import (
	"cmp"
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// pathOrder is the order of the parts of the table.
var pathOrder = []string{PathCause, PathPart, PathCategory, PathOperator, PathModule, PathCollective, PathIdleCause}

// answerCriticalPath sums the windows and recordings of each rank up.
func answerCriticalPath(a asked[*pathTimes]) []*table.Table {
	t := table.New(TableCriticalPath, "Critical path",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "by", Kind: table.Text},                    // cause, part, category, operator, module, collective, idle_cause
		&table.Column{Name: "where", Kind: table.Text, Optional: true}, // device, host, delay; of causes and parts
		&table.Column{Name: "path_us", Kind: table.Micros},
		&table.Column{Name: "path_share", Kind: table.Ratio},
		&table.Column{Name: "step_us", Kind: table.Micros},  // of it in a step
		&table.Column{Name: "saved_us", Kind: table.Micros}, // by which all were shorter if it took no time; of the first five causes
		&table.Column{Name: "saved_share", Kind: table.Ratio},
		&table.Column{Name: "name", Kind: table.Text, Optional: true}) // none: the host did nothing recorded
	check := table.New(TableCriticalPathReplay, "Critical path: the recording replayed",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "steps", Kind: table.Int},
		&table.Column{Name: "activities", Kind: table.Int},
		&table.Column{Name: "recorded_us", Kind: table.Micros}, // from the begin of the first step to the end of its last work
		&table.Column{Name: "replayed_us", Kind: table.Micros}, // by the graph, with the recorded lengths and delays
		&table.Column{Name: "replayed_share", Kind: table.Ratio},
		&table.Column{Name: "usual_us", Kind: table.Micros}, // with usual delays in place of the recorded ones
		&table.Column{Name: "usual_share", Kind: table.Ratio})
	var why notes
	waiting := waitingOnPath(a)
	for _, rank := range a.ranks {
		all := pathTimes{by: map[pathKey]int64{}, saved: map[pathKey]int64{}}
		for _, part := range rank.parts {
			all.plus(part)
		}
		for name, ns := range waiting[rank.rank] {
			all.by[pathKey{PathCollective, "", name}] += ns
		}
		if all.recorded == 0 {
			why.add(rank.rank, "no device events")
			continue
		}
		note := ""
		if !all.calls {
			note = "no calls of the host were recorded: the path is the device's"
		}
		why.add(rank.rank, note)
		steps := math.NaN()
		if all.steps > 0 {
			steps = float64(all.steps)
		}
		check.Add(rank.rank, known(int64(all.steps), all.steps > 0), all.activities, micros(all.recorded), micros(all.replayed),
			share(all.replayed, all.recorded), micros(all.usual), share(all.usual, all.recorded))
		for _, key := range all.rows() {
			saved, part := math.NaN(), math.NaN()
			if ns, is := all.saved[key]; is {
				saved, part = micros(ns), share(ns, all.recorded)
			}
			t.Add(rank.rank, key.by, key.where, micros(all.by[key]), share(all.by[key], all.recorded), micros(all.by[key])/steps, saved, part, key.name)
		}
	}
	t.Note, check.Note = why.String(), why.String()
	return []*table.Table{t, check}
}

func (p *pathTimes) plus(o *pathTimes) {
	p.steps, p.activities, p.calls = p.steps+o.steps, p.activities+o.activities, p.calls || o.calls
	p.recorded, p.replayed, p.usual = p.recorded+o.recorded, p.replayed+o.replayed, p.usual+o.usual
	for key, ns := range o.by {
		p.by[key] += ns
	}
	for key, ns := range o.saved {
		p.saved[key] += ns
	}
}

// rows are the keys in the table's order, what most of the path is of first.
func (p *pathTimes) rows() []pathKey {
	keys := make([]pathKey, 0, len(p.by))
	for key := range p.by {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(x, y pathKey) int {
		return cmp.Or(cmp.Compare(slices.Index(pathOrder, x.by), slices.Index(pathOrder, y.by)), cmp.Compare(p.by[y], p.by[x]), comparePath(x, y))
	})
	return keys
}

// What collectives on the path did.
const (
	CollectiveTransfer = "transfer"
	CollectiveWaiting  = "waiting for other ranks"
)

// waitingOnPath divides the collectives on each rank's path that several ranks share, ns: what is longer than on the rank that
// came last was waiting.
func waitingOnPath(a asked[*pathTimes]) map[int]map[string]int64 {
	var perRank [][]commRun
	on := map[int]map[int64]int64{}
	for _, rank := range a.ranks {
		var runs []commRun
		on[rank.rank] = map[int64]int64{}
		for _, p := range rank.parts {
			for _, run := range p.all.runs {
				run.rank = rank.rank
				runs = append(runs, run)
			}
			for start, ns := range p.onPath {
				on[rank.rank][start] += ns
			}
		}
		perRank = append(perRank, runs)
	}
	divided := map[int]map[string]int64{}
	matched, _ := pairUp(perRank)
	for _, c := range matched {
		_, transfer := c.transfer()
		for _, run := range c.runs {
			ns, is := on[run.rank][run.start]
			if !is || len(c.runs) < 2 {
				continue
			}
			if divided[run.rank] == nil {
				divided[run.rank] = map[string]int64{}
			}
			of := min(ns, max(0, run.end-run.start-transfer)) // the ranks' transfer is at its end
			divided[run.rank][CollectiveWaiting] += of
			divided[run.rank][CollectiveTransfer] += ns - of
		}
	}
	return divided
}
