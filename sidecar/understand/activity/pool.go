package activity

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
)

// PoolWork is what worker processes did while they were waited for, as shares of the
// time that they lived meanwhile; what is missing to 1 they handed results over.
type PoolWork struct {
	Role     timeline.Role
	Starting float64 // being set up: imports, unpickling what they run
	Starved  float64 // without a task
	Working  float64
	AtPlace  float64 // of Working: at the actor's Place
	// Slowest is the number of the one that worked longest, and Imbalance by how much
	// less the mean worked, as a share of its time.
	Slowest   int
	Imbalance float64
}

// pools are those whose workers descend from the thread's process.
func (c *Bystanders) pools() []timeline.Pool {
	return slices.DeleteFunc(c.groups(), func(p timeline.Pool) bool { return p.Role == timeline.RoleChild })
}

// poolsOf are those of one role.
func (c *Bystanders) poolsOf(role timeline.Role) []timeline.Pool {
	return slices.DeleteFunc(c.pools(), func(p timeline.Pool) bool { return p.Role != role })
}

// idleBeside are the members of the pools that had next to nothing to do in some intervals while another pool of their role
// worked: one that an earlier part of the program has left over is not who is waited for.
func (c *Bystanders) idleBeside(where []timeline.Interval) (idle []int) {
	pools := c.pools()
	busy, most := make([]timeline.Nanos, len(pools)), make(map[timeline.Role]timeline.Nanos)
	for i, p := range pools {
		if len(c.poolsOf(p.Role)) > 1 {
			did := interpret.During(c.s.Rec, p, where)
			busy[i] = did.Working + did.Starting
			most[p.Role] = max(most[p.Role], busy[i])
		}
	}
	for i, p := range pools {
		if float64(busy[i]) < minActor*float64(most[p.Role]) {
			idle = append(idle, p.Members...)
		}
	}
	return idle
}

// groups are the pools, and the runs of a program, that descend from the thread's process.
func (c *Bystanders) groups() []timeline.Pool {
	return slices.DeleteFunc(slices.Clone(interpret.RecordedPools(c.s.Rec)), func(p timeline.Pool) bool {
		return p.Owner != c.process && !c.descends(p.Owner)
	})
}

// workOfRuns is at which own line a program that was waited for spent its time, in some
// intervals; nil where its stacks are not known, or none is its own.
func (c *Bystanders) workOfRuns(command string, where []timeline.Interval) (*PoolWork, Place) {
	runs := timeline.Pool{Role: timeline.RoleChild}
	for _, p := range c.groups() {
		if p.Role == timeline.RoleChild && p.Command == command {
			runs.Members = append(runs.Members, p.Members...)
		}
	}
	did := interpret.During(c.s.Rec, runs, where)
	if did.Alive == 0 || did.Working == 0 || len(did.Lines) == 0 || !did.Lines[0].Own {
		return nil, Place{}
	}
	line := did.Lines[0]
	return &PoolWork{
		Role:    timeline.RoleChild,
		Working: float64(did.Working) / float64(did.Alive), AtPlace: float64(line.Time) / float64(did.Working),
	}, Place{line.File, line.Line}
}

// workersAtWork is how many workers had something to do in some intervals, on average,
// whether or not they had a CPU to do it on; 0 where their stacks are not known.
func (c *Bystanders) workersAtWork(where []timeline.Interval) float64 {
	working := timeline.Nanos(0)
	for _, p := range c.pools() {
		did := interpret.During(c.s.Rec, p, where)
		working += did.Working + did.Starting
	}
	return float64(working) / max(float64(timeline.Total(where)), 1)
}

// atOnce is how many workers of a role there were, of so many that lived at some time: those that a loader has started anew are
// the same ones.
func (c *Bystanders) atOnce(role timeline.Role, count int) int {
	most := 0
	for _, p := range c.poolsOf(role) {
		if p.AtOnce == 0 {
			return count
		}
		most += p.AtOnce
	}
	if most == 0 {
		return count
	}
	return min(most, count)
}

// LoadersWait reports whether the data loader's workers mostly wait in what they do, for a network, say: then more
// of them help though no CPU is free.
func (c *Bystanders) LoadersWait(where []timeline.Interval) bool {
	var working, waiting timeline.Nanos
	for _, p := range c.pools() {
		if p.Role == timeline.RoleLoaderWorker {
			did := interpret.During(c.s.Rec, p, where)
			working, waiting = working+did.Working, waiting+did.Waiting
		}
	}
	return waiting > working/2
}

// workOf is what the workers of one role did in some intervals, and where most; nil
// where their stacks are not known.
func (c *Bystanders) workOf(role timeline.Role, where []timeline.Interval) (*PoolWork, Place) {
	pool := timeline.Pool{Role: role}
	idle := c.idleBeside(where)
	for _, p := range c.poolsOf(role) {
		if !slices.Contains(idle, p.Members[0]) {
			pool.Members = append(pool.Members, p.Members...)
			pool.AtOnce = max(pool.AtOnce, p.AtOnce)
		}
	}
	did := interpret.During(c.s.Rec, pool, where)
	if did.Alive == 0 {
		return nil, Place{}
	}
	share := func(part timeline.Nanos) float64 { return float64(part) / float64(did.Alive) }
	work := &PoolWork{Role: role, Starting: share(did.Starting), Starved: share(did.Starved), Working: share(did.Working)}
	var most interpret.Share
	work.Imbalance, most = did.Imbalance()
	if n := c.s.Rec.Processes[most.Process].Number; n != nil {
		work.Slowest = *n
	}
	if len(did.Lines) == 0 || did.Working == 0 {
		return work, Place{}
	}
	line := did.Lines[0]
	work.AtPlace = float64(line.Time) / float64(did.Working)
	return work, Place{line.File, line.Line}
}
