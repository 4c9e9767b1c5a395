package interpret

import (
	"cmp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// PoolsOf groups processes, whose roles are known: workers of one role, and of one library, that work for one
// process, the ranks of a run, the runs of one program. The target is the first one, and only
// in a pool if it is a rank among others. The program that the recording is about is not another run of itself. Pools are in the
// order of their owners.
func PoolsOf(processes []timeline.Process, program int) []timeline.Pool {
	type key struct {
		role    timeline.Role
		command string
		owner   int
		library string // that has made them
	}
	index := make(map[key]int)
	var pools []timeline.Pool
	for i := range processes {
		p := &processes[i]
		owner := ownerOf(processes, i)
		k := key{p.Role, "", owner, libraryOf(p)}
		switch {
		case p.Role == timeline.RoleRank, p.Role.OfEngine(): // of one run, whoever has started them
			k.owner = -1
		case i == 0, i == program && p.Role == timeline.RoleChild:
			continue
		case p.Role == timeline.RoleChild:
			if k = (key{p.Role, p.Command, -1, ""}); p.Command == "" { // it is like no other
				k.owner = i
			}
		case !p.IsWorker():
			continue
		}
		at, known := index[k]
		if !known {
			at = len(pools)
			index[k] = at
			pools = append(pools, timeline.Pool{Role: p.Role, Command: k.command, Owner: owner})
		}
		pool := &pools[at]
		pool.Members = append(pool.Members, i)
		pool.Owner = nearestCommon(processes, pool.Owner, owner)
	}
	for i := range pools {
		pool := &pools[i]
		if pool.Role == timeline.RoleLoaderWorker {
			pool.AtOnce = atOnce(processes, pool.Members)
		}
		slices.SortStableFunc(pool.Members, func(a, b int) int {
			return cmp.Or(cmp.Compare(numberOf(&processes[a]), numberOf(&processes[b])), cmp.Compare(processes[a].Start, processes[b].Start))
		})
	}
	slices.SortStableFunc(pools, func(a, b timeline.Pool) int { return cmp.Compare(a.Owner, b.Owner) })
	return pools
}

// loky is on the command line of each worker of that library, which joblib uses.
const loky = "loky.backend.popen_loky"

// libraryOf distinguishes the pools of libraries of which one process may have several.
func libraryOf(p *timeline.Process) string {
	if p.Role == timeline.RolePoolWorker && strings.Contains(p.Command, loky) {
		return loky
	}
	return ""
}

// startTick is what the kernel counts the starts of processes in, rounded down.
const startTick = timeline.Nanos(10e6)

// leftApart makes a pool of its own of the workers that were there before the recording and had nothing to do in it,
// where others of their pool began in it: whoever has idle workers starts no more of them, so that these are another pool's.
func leftApart(rec *timeline.Recording, pools []timeline.Pool) []timeline.Pool {
	var out []timeline.Pool
	var accounts []Account
	for _, pool := range pools {
		left, begun := pool, pool
		left.Members, begun.Members = nil, nil
		for _, i := range pool.Members {
			if rec.Processes[i].Start < -startTick {
				left.Members = append(left.Members, i)
			} else {
				begun.Members = append(begun.Members, i)
			}
		}
		if pool.Role != timeline.RolePoolWorker || len(left.Members) == 0 || len(begun.Members) == 0 {
			out = append(out, pool)
			continue
		}
		if accounts == nil {
			accounts = Accounts(rec)
		}
		if slices.ContainsFunc(left.Members, func(i int) bool { return !isIdle(&rec.Processes[i], &accounts[i]) }) {
			out = append(out, pool)
			continue
		}
		out = append(out, begun, left)
	}
	return out
}

// isIdle reports whether a worker had nothing to do in all of the recording.
func isIdle(p *timeline.Process, did *Account) bool {
	if did.Alive == 0 { // its stacks were not read
		return p.CPU == 0
	}
	return did.Working+did.Starting == 0
}

// startsEarly is by how much a process may seem to have begun earlier than it did: the kernel counts its start in ticks, and
// it is seen when new processes are looked for.
const startsEarly = timeline.Nanos(30e6)

// atOnce is how many of some workers lived at a time, at most; 0: all of them.
func atOnce(processes []timeline.Process, members []int) int {
	most := 0
	for _, i := range members { // there are most when one of them begins
		at, alive := processes[i].Start+startsEarly, 0
		for _, k := range members {
			if p := &processes[k]; k == i || p.Start+startsEarly <= at && (p.End == 0 || p.End > at) {
				alive++
			}
		}
		most = max(most, alive)
	}
	if most == len(members) {
		return 0
	}
	return most
}

func numberOf(p *timeline.Process) int {
	if p.Number != nil {
		return *p.Number
	}
	return 0
}

// ownerOf is the process that a worker works for: its parent, or, where a fork server made it,
// the parent of that.
func ownerOf(processes []timeline.Process, i int) int {
	owner := processes[i].ParentIndex
	for range 4 {
		if owner < 0 || owner >= len(processes) || processes[owner].Role != timeline.RoleForkServer {
			break
		}
		owner = processes[owner].ParentIndex
	}
	return owner
}

// maxAncestors bounds a climb: a damaged file may have a ring.
const maxAncestors = 64

// nearestCommon is the nearest process that two are or descend from; -1: there is none.
func nearestCommon(processes []timeline.Process, a, b int) int {
	up := func(i int) int {
		if i < 0 || i >= len(processes) {
			return -1
		}
		return processes[i].ParentIndex
	}
	for range maxAncestors {
		if a < 0 {
			return -1
		}
		for i, n := b, 0; i >= 0 && n < maxAncestors; i, n = up(i), n+1 {
			if i == a {
				return a
			}
		}
		a = up(a)
	}
	return -1
}
