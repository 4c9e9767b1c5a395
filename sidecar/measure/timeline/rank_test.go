package timeline

import (
	"strings"
	"testing"
)

func TestRankOf(t *testing.T) {
	for environment, want := range map[string]Rank{
		"HOME=/root RANK=3 LOCAL_RANK=1 GROUP_RANK=1 WORLD_SIZE=4":                   {3, 1, 1, 4, ""},
		"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_LOCAL_RANK=2 OMPI_COMM_WORLD_SIZE=3": {2, 2, -1, 3, ""},
		"PMI_RANK=0 PMI_SIZE=2": {0, -1, -1, 2, ""},
		"SLURM_PROCID=5 SLURM_LOCALID=1 SLURM_NODEID=2 SLURM_NTASKS=8":   {5, 1, 2, 8, ""},
		"SLURM_PROCID=5 SLURM_NTASKS=8 RANK=0 LOCAL_RANK=0 WORLD_SIZE=2": {0, 0, -1, 2, ""},
		"RANK=0 WORLD_SIZE=1":                     {0, -1, -1, 1, ""},
		"RANK=high SLURM_PROCID=1 SLURM_NTASKS=2": {1, -1, -1, 2, ""},
		"SLURM_PROCID=0 SLURM_NTASKS=1":           {-1, -1, -1, -1, ""},
		"RANK=7 WORLD_SIZE=4":                     {-1, -1, -1, -1, ""},
		"RANK=-1":                                 {-1, -1, -1, -1, ""},
		"RANK=0 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=3f MASTER_ADDR=a MASTER_PORT=1":                            {0, -1, -1, 2, "torchrun 3f"},
		"RANK=0 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none MASTER_ADDR=a MASTER_PORT=1":                          {0, -1, -1, 2, "ranks of a:1"},
		"RANK=0 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none MASTER_ADDR=a":                                        {0, -1, -1, 2, ""},
		"SLURM_PROCID=5 SLURM_NTASKS=8 SLURM_JOB_ID=12 SLURM_STEP_ID=0":                                     {5, -1, -1, 8, "slurm 12.0"},
		"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=prterun-n-1@1 OMPI_MCA_x=y":           {1, -1, -1, 2, "mpi prterun-n-1@1"},
		"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_MCA_ess_base_jobid=77 SLURM_JOB_ID=3 RANK=none": {1, -1, -1, 2, "mpi 77"},
		"": {-1, -1, -1, -1, ""},
	} {
		got, ok := RankOf(strings.Fields(environment))
		if got != want || ok != (want.Global >= 0) {
			t.Errorf("%q: %+v, %v; want %+v", environment, got, ok, want)
		}
	}
}
