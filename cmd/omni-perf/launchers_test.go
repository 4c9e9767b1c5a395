package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/noise"
	"github.com/omni-perf/omni-perf/sidecar/report"
)

// standIn writes a launcher of two processes with the variables by which the real one
// tells them their ranks. Like the real ones it ends with the worst of their exit codes.
func standIn(t *testing.T, name string, variables ...string) {
	t.Helper()
	dir := t.TempDir()
	text := "#!/bin/sh\nshift 2\npids=\nfor n in 0 1; do\n\tenv " + strings.Join(variables, " ") + " \"$@\" &\n\tpids=\"$pids $!\"\ndone\n" +
		"worst=0\nfor pid in $pids; do\n\twait $pid || worst=$?\ndone\nexit $worst\n"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

var launchers = map[string]func(*testing.T) string{
	"srun": func(t *testing.T) string {
		standIn(t, "srun", "SLURM_PROCID=$n", "SLURM_LOCALID=$n", "SLURM_NODEID=0", "SLURM_NTASKS=2")
		return "srun"
	},
	"mpirun by its variables": func(t *testing.T) string {
		standIn(t, "mpirun", "OMPI_COMM_WORLD_RANK=$n", "OMPI_COMM_WORLD_LOCAL_RANK=$n", "OMPI_COMM_WORLD_SIZE=2")
		return "mpirun"
	},
	"mpirun": func(t *testing.T) string {
		out, err := exec.Command("mpirun", "--version").Output()
		if err != nil || !strings.Contains(string(out), "Open MPI") {
			t.Skip("there is no Open MPI here: apt install openmpi-bin")
		}
		if os.Geteuid() == 0 {
			t.Setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
			t.Setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
		}
		t.Setenv("OMPI_MCA_rmaps_base_oversubscribe", "1")
		return "mpirun"
	},
}

const rankSource = spinSource + `
def rank0(): spin(1.5)
def rank1(): spin(1.5)
number = next(int(os.environ[name]) for name in ("OMPI_COMM_WORLD_RANK", "SLURM_PROCID") if name in os.environ)
(rank0, rank1)[number]()
print("rank", number, "ends")
`

func TestRanksOfALauncherAreFollowed(t *testing.T) {
	python := realPython(t)
	for name, prepare := range launchers {
		t.Run(name, func(t *testing.T) {
			launcher, dir := prepare(t), t.TempDir()
			t.Setenv("OMNI_PERF_TEST_ARGV", "1")
			script, file := filepath.Join(dir, "train.py"), filepath.Join(dir, "r.json")
			if err := os.WriteFile(script, []byte(rankSource), 0o600); err != nil {
				t.Fatal(err)
			}
			noise.Again(t, func(a *noise.Attempt) {
				got := runs(t, "", &syscall.SysProcAttr{}, os.Args[0], "run", "-s", "0.1", "-o", file, launcher, "-n", "2", python, script)
				if got.status.ExitStatus() != 0 || strings.Count(got.stdout, "ends") != 2 {
					t.Fatalf("status %#x, %q; it said %q", got.status, got.stdout, got.stderr)
				}
				r := readFile(t, file)
				for number := range 2 {
					at, seconds := who(r, fmt.Sprint("rank", number))
					if at < 0 || seconds < 0.5 {
						a.Errorf("%.2f s of 1.5 in rank %d's function in process %d of %d", seconds, number, at, len(r.Processes))
					} else if p := r.Processes[at]; p.Text != fmt.Sprint("rank ", number) || p.Rank == nil || *p.Rank != number {
						t.Errorf("rank %d is %+v", number, p)
					}
				}
				if f := r.MainFinding(); len(r.Ranks) != 2 || f == nil || f.Args["rank"] != 0.0 {
					a.Errorf("ranks %+v, headline %+v", r.Ranks, r.Headline)
				}
			})
		})
	}
}

func TestEachRankOfALauncherWritesItsReport(t *testing.T) {
	python := realPython(t)
	for name, prepare := range launchers {
		t.Run(name, func(t *testing.T) {
			launcher, dir := prepare(t), t.TempDir()
			t.Setenv("OMNI_PERF_TEST_ARGV", "1")
			script := filepath.Join(dir, "train.py")
			if err := os.WriteFile(script, []byte(rankSource), 0o600); err != nil {
				t.Fatal(err)
			}
			got := runs(t, "", &syscall.SysProcAttr{}, launcher, "-n", "2", os.Args[0], "run", "-o", filepath.Join(dir, "run"), "--format", "json", "--interpreter", python, script)
			if got.status.ExitStatus() != 0 {
				t.Fatalf("status %#x; it said %q", got.status, got.stderr)
			}
			var files []string
			for number := range 2 {
				files = append(files, filepath.Join(dir, fmt.Sprintf("run.rank%d.json", number)))
				if target := readFile(t, files[number]).Target(); target.Rank == nil || *target.Rank != number || target.WorldSize == nil || *target.WorldSize != 2 {
					t.Errorf("%s is of %+v", files[number], target)
				}
			}
			all := filepath.Join(dir, "all.json")
			if got := runs(t, "", nil, os.Args[0], "merge", "-o", all, files[0], files[1]); got.status.ExitStatus() != 0 {
				t.Fatalf("they cannot be merged: %q", got.stderr)
			}
			if r := readFile(t, all); len(r.Ranks) != 2 || len(r.Targets) != 2 {
				t.Errorf("ranks %+v of %d targets", r.Ranks, len(r.Targets))
			}
		})
	}
}

func readFile(t *testing.T, path string) *report.View {
	t.Helper()
	r, err := readReport(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
