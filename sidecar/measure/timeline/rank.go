package timeline

import (
	"strconv"
	"strings"
)

// Rank is a process's place in a distributed run, as its launcher put it in the environment.
// What is unknown is -1.
type Rank struct {
	Global int // among all: RANK
	Local  int // among those of its machine
	Node   int // its machine among the machines
	World  int // how many there are
}

// launchers are the variables by which launchers pass ranks; the first one that does
// a rank counts, since torchrun may itself be started by Slurm.
var launchers = []struct{ global, local, node, world string }{
	{"RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE"}, // torchrun, accelerate (torch.distributed.elastic)
	// Open MPI's OMPI_COMM_WORLD_NODE_RANK is no machine's number but a place within one, among all jobs.
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "", "OMPI_COMM_WORLD_SIZE"},
	{"PMI_RANK", "MPI_LOCALRANKID", "", "PMI_SIZE"}, // MPICH, Intel MPI
	{"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NTASKS"},
}

// RankOf reads "NAME=value" variables. A run of one process has no ranks to speak of,
// unless its launcher says nothing of how many there are.
func RankOf(environment []string) (Rank, bool) {
	values := make(map[string]int)
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		if n, err := strconv.Atoi(value); err == nil && n >= 0 {
			values[name] = n
		}
	}
	valueOf := func(name string) int {
		if n, ok := values[name]; ok && name != "" {
			return n
		}
		return -1
	}
	for _, l := range launchers {
		r := Rank{valueOf(l.global), valueOf(l.local), valueOf(l.node), valueOf(l.world)}
		// Slurm sets its variables for every job, alone or not.
		if r.Global < 0 || r.World == 1 && strings.HasPrefix(l.global, "SLURM") || r.World >= 0 && r.Global >= r.World {
			continue
		}
		return r, true
	}
	return Rank{-1, -1, -1, -1}, false
}
