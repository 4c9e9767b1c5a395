package mergereports

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/rankstrip"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// simulated is a run on many machines, as it really was: the clock of the first machine is the true one.
type simulated struct {
	nodes, local int
	late         int            // the rank that computes longest in most steps
	offset       []int64        // to add to a machine's clock, at the begin
	rate         []float64      // by which it is too slow
	wall         []int64        // by which its wall clock is off
	enters       [][]int64      // by step and rank, when it enters the step's collective
	leaves       [][]int64      // when it leaves it
	interval     timeline.Nanos // of the sampling
	steps        int
}

// simulate draws a run: clocks that are hours apart and drift by up to 100 ppm, ranks that compute for various times.
func simulate(rnd *rand.Rand, nodes, local int) *simulated {
	s := &simulated{nodes: nodes, local: local, late: rnd.IntN(nodes * local), steps: 12, interval: timeline.Nanos(1e6 + rnd.Int64N(4e6))}
	for h := range nodes {
		s.offset = append(s.offset, rnd.Int64N(1e14)-5e13)
		s.rate = append(s.rate, (rnd.Float64()*2-1)*drift*0.9)
		s.wall = append(s.wall, rnd.Int64N(40e6)-20e6)
		if h == 0 {
			s.offset[0], s.rate[0], s.wall[0] = 0, 0, 0
		}
	}
	at := int64(0)
	for range s.steps {
		enters, last := make([]int64, nodes*local), int64(0)
		for r := range enters {
			enters[r] = at + int64(200e6) + rnd.Int64N(60e6)
			if r == s.late {
				enters[r] += 400e6
			}
			last = max(last, enters[r])
		}
		leaves := make([]int64, nodes*local)
		for r := range leaves {
			leaves[r] = last + int64(2e6) + rnd.Int64N(3e6)
		}
		s.enters, s.leaves = append(s.enters, enters), append(s.leaves, leaves)
		at = last + int64(6e6)
	}
	return s
}

// allBegin is when all reports begin, by the true clock.
const allBegin = int64(1e15)

// clock is a true time after allBegin by a machine's clock.
func (s *simulated) clock(host int, at int64) timeline.Nanos {
	return timeline.Nanos(float64(at) * (1 - s.rate[host]))
}

// report is what omni-perf has seen of one rank, by the clock of its machine.
func (s *simulated) report(t testing.TB, rank int) *report.View {
	t.Helper()
	host := rank / s.local
	begin := allBegin - s.offset[host]
	b := timeline.NewBuilder(timeline.Options{Origin: begin, StartedAt: time.Unix(0, allBegin+s.wall[host])})
	b.Describe(func(r *timeline.Recording) {
		r.Target = timeline.Target{PID: 50 + rank, Argv: []string{"python", "/u/train.py"},
			Rank: &timeline.Rank{Global: rank, Local: rank % s.local, Node: host, World: s.nodes * s.local}}
		r.Processes = []timeline.Process{{PID: 50 + rank, ParentIndex: -1, Role: timeline.RoleScript, Command: "train.py"}}
		r.Sampling.Interval = time.Duration(s.interval)
		r.Host.BootID = fmt.Sprint("boot ", host)
	})
	id := b.Thread(timeline.Thread{PID: 50 + rank, NativeID: 50 + rank, Name: "MainThread", Main: true, RunsCell: true, OnCPU: -1})
	own := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: "/u/train.py", Line: 7, FirstLine: 1}))
	step := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: "/u/train.py", Line: 9, FirstLine: 1}))
	reduce := b.Child(step, b.Frame(timeline.Frame{Function: "all_reduce", File: "/v/site-packages/torch/distributed/distributed_c10d.py", Line: 3}))
	from := timeline.Nanos(0)
	for k := range s.steps {
		b.Set(id, from, own, timeline.StatePython, false)
		b.Set(id, s.clock(host, s.enters[k][rank]), reduce, timeline.StateWaiting, false)
		end := s.clock(host, s.leaves[k][rank])
		b.Mark(timeline.Mark{Kind: "step", Start: from, End: end, Source: timeline.StepMarked})
		from = end
	}
	return viewOf(t, b.Snapshot(from))
}

// On 64 machines with 8 ranks each the straggler is named, every clock is within its stated bound, and no rank leaves a
// collective before all have entered it, as far as the bound lets that be known.
func TestSixtyFourMachines(t *testing.T) {
	nodes, draws := 64, 1
	if testing.Short() {
		nodes, draws = 8, 1
	}
	rnd := rand.New(rand.NewPCG(27, 64))
	for range draws {
		s := simulate(rnd, nodes, 8)
		var files [][]byte // as on the disk: a thousand documents in memory are what nobody has
		var names []string
		for rank := range nodes * 8 {
			text, err := json.Marshal(s.report(t, rank).Document)
			if err != nil {
				t.Fatal(err)
			}
			files, names = append(files, text), append(names, fmt.Sprintf("rank%d.json", rank))
		}
		merged, unread, err := Read(names, Choice{}, func(at int) (*report.View, error) { return report.Read(files[at]) })
		if err != nil || unread != nil {
			t.Fatal(err, unread)
		}
		if f := merged.MainFinding(); f == nil || f.ID != string(diagnose.Straggler) || fmt.Sprint(f.Args["rank"]) != fmt.Sprint(s.late) {
			t.Errorf("the straggler is rank %d; the headline is %q", s.late, merged.Headline.Text)
		}
		strip := rankstrip.Of(merged, rankstrip.Bounds{Rows: 128, Cells: 1 << 14})
		if strip == nil || strip.ByLength || len(strip.Ranks) != nodes*8 || len(strip.Rows) > 128 {
			t.Fatalf("the strip of %d ranks: %+v", nodes*8, strip)
		}
		if r := strip.Slowest(); r == nil || r.Number != s.late || r.Longest != s.steps || r.Steps != s.steps || r.More < 350e6 || r.More > 450e6 {
			t.Errorf("rank %d computes for 0.4 s longer in each of %d steps; the slowest is %+v", s.late, s.steps, r)
		}
		for _, r := range strip.Ranks {
			if r.Longest > 0 && r.Number != s.late {
				t.Errorf("rank %d was the longest in %d steps", r.Number, r.Longest)
			}
		}
		if l := merged.RankLines; len(l) == 0 || !l[0].More || l[0].Rank != s.late || l[0].Line != 7 || l[0].Ranks != nodes*8 || l[0].Above != s.steps {
			t.Errorf("lines in which ranks differ: %+v, want line 7 of rank %d", l, s.late)
		}
		for h, host := range merged.Hosts {
			if h == 0 {
				continue
			}
			if host.Aligned == nil || host.Aligned.Method != report.AlignedByCollectives {
				t.Fatalf("machine %d: %+v", h, host.Aligned)
			}
			// All reports begin at one instant: what they are apart in the merged one is how far the clocks are off.
			begin := merged.Targets[h*8].StartNS - merged.Targets[0].StartNS
			if max(begin, -begin) > host.Aligned.BoundNS {
				t.Errorf("machine %d is off by %d ns, stated are %d", h, begin, host.Aligned.BoundNS)
			}
		}
		s.judgeOrder(t, merged)
	}
}

// judgeOrder requires that in a merged report nobody leaves a collective before all have entered it.
func (s *simulated) judgeOrder(t *testing.T, merged *report.View) {
	t.Helper()
	bound := int64(0)
	for _, h := range merged.Hosts {
		if h.Aligned != nil {
			bound = max(bound, h.Aligned.BoundNS)
		}
	}
	entered, left := make([]int64, s.steps), make([]int64, s.steps)
	for _, lane := range lanesOf(merged) {
		k := 0
		for _, span := range lane.Spans {
			if !waitsForAll(span.In) {
				continue
			}
			if k == s.steps {
				t.Fatalf("rank %d is in more than %d collectives", lane.Rank, s.steps)
			}
			entered[k] = max(entered[k], int64(span.Start))
			if left[k] == 0 || int64(span.End) < left[k] {
				left[k] = int64(span.End)
			}
			k++
		}
		if k != s.steps {
			t.Errorf("rank %d is in %d of %d collectives", lane.Rank, k, s.steps)
		}
	}
	for k := range entered {
		if entered[k] > left[k]+2*bound {
			t.Errorf("collective %d is left %d ns before all have entered it; the clocks are known to %d", k, entered[k]-left[k], bound)
		}
	}
}
