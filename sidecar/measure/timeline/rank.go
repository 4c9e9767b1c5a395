package timeline

import (
	"strconv"
	"strings"
)

// Rank is a process's place in a distributed run, as its launcher put it in the environment.
// What is unknown is -1.
type Rank struct {
	Global int    // among all: RANK
	Local  int    // among those of its machine
	Node   int    // its machine among the machines
	World  int    // how many there are
	Run    string // what its launcher calls the run, with the launcher's name; empty: unknown
}

// launchers are the variables by which launchers pass ranks; the first one that does
// a rank counts, since torchrun may itself be started by Slurm.
var launchers = []struct {
	global, local, node, world string
	runs                       []run
}{
	{"RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", []run{ // torchrun, accelerate (torch.distributed.elastic)
		{"torchrun", []string{"TORCHELASTIC_RUN_ID"}, ""},
		{"ranks of", []string{"MASTER_ADDR", "MASTER_PORT"}, ":"},
	}},
	// Open MPI's OMPI_COMM_WORLD_NODE_RANK is no machine's number but a place within one, among all jobs.
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "", "OMPI_COMM_WORLD_SIZE", []run{
		{"mpi", []string{"PMIX_NAMESPACE"}, ""},
		{"mpi", []string{"OMPI_MCA_ess_base_jobid"}, ""},
	}},
	{"PMI_RANK", "MPI_LOCALRANKID", "", "PMI_SIZE", nil}, // MPICH, Intel MPI
	{"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NTASKS", []run{
		{"slurm", []string{"SLURM_JOB_ID", "SLURM_STEP_ID"}, "."},
	}},
}

// run is how a launcher names a run: by the values of all these variables.
type run struct {
	launcher  string
	variables []string
	between   string
}

// noRun is what torchrun calls a run where nobody has named it.
const noRun = "none"

// of returns what the launcher calls the run; empty: it does not say.
func (r run) of(texts map[string]string) string {
	var parts []string
	for _, name := range r.variables {
		if texts[name] == "" || texts[name] == noRun {
			return ""
		}
		parts = append(parts, texts[name])
	}
	return r.launcher + " " + strings.Join(parts, r.between)
}

// RankOf reads "NAME=value" variables. A run of one process has no ranks to speak of,
// unless its launcher says nothing of how many there are.
func RankOf(environment []string) (Rank, bool) {
	values, texts := make(map[string]int), make(map[string]string)
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		texts[name] = value
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
		r := Rank{Global: valueOf(l.global), Local: valueOf(l.local), Node: valueOf(l.node), World: valueOf(l.world)}
		// Slurm sets its variables for every job, alone or not.
		if r.Global < 0 || r.World == 1 && strings.HasPrefix(l.global, "SLURM") || r.World >= 0 && r.Global >= r.World {
			continue
		}
		for _, named := range l.runs {
			if r.Run == "" {
				r.Run = named.of(texts)
			}
		}
		return r, true
	}
	return Rank{Global: -1, Local: -1, Node: -1, World: -1}, false
}
