package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/doors/saved"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/requirement"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// standIn writes a launcher of two processes with the variables by which the real one
// gives them their ranks. Like the real ones it ends with the worst of their exit codes.
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
			requirement.Missing(t, requirement.MPI, "there is no Open MPI here: apt install openmpi-bin")
		}
		if os.Geteuid() == 0 {
			t.Setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
			t.Setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
		}
		t.Setenv("OMPI_MCA_rmaps_base_oversubscribe", "1")
		return "mpirun"
	},
}

// eachLauncher calls test with the command of every launcher and a folder of its own; the
// test's own program is the profiler.
func eachLauncher(t *testing.T, test func(t *testing.T, launcher, dir string)) {
	for name, prepare := range launchers {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OMNI_PERF_TEST_ARGV", "1")
			test(t, prepare(t), t.TempDir())
		})
	}
}

const rankSource = spinSource + `
def rank0(): spin(1.5)
def rank1(): spin(1.5)
number = next(int(os.environ[name]) for name in ("OMPI_COMM_WORLD_RANK", "SLURM_PROCID") if name in os.environ)
(rank0, rank1)[number]()
print("rank", number, "ends")
`

func TestRanksOfALauncherAreFollowed(t *testing.T) {
	python := truth.OnPath(t)
	eachLauncher(t, func(t *testing.T, launcher, dir string) {
		script, file := filepath.Join(dir, "train.py"), filepath.Join(dir, "r.json")
		if err := os.WriteFile(script, []byte(rankSource), 0o600); err != nil {
			t.Fatal(err)
		}
		retry.Again(t, func(a *retry.Attempt) {
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

func TestEachRankOfALauncherWritesItsReport(t *testing.T) {
	python := truth.OnPath(t)
	eachLauncher(t, func(t *testing.T, launcher, dir string) {
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

// barrierSource stands for horovod, whose calls are known by their file: two ranks meet
// by a socket, at the path that the script is called with.
const barrierSource = `
import os, socket, sys, time
number = next(int(os.environ[name]) for name in ("OMPI_COMM_WORLD_RANK", "SLURM_PROCID") if name in os.environ)
if number == 0:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1] + ".new")
    listener.listen(1)
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    other = listener.accept()[0]
else:
    other = socket.socket(socket.AF_UNIX)
    while other.connect_ex(sys.argv[1]):
        time.sleep(0.01)
def barrier():
    other.sendall(b"x")
    other.recv(1)
`

const stragglerSource = spinSource + `
from horovod.ops import barrier, number
def prepare():
    spin(0.12 if number == 1 else 0.01)
for step in range(15):
    prepare()
    barrier()
`

// The rank that the others wait for is the headline: of a launcher that is recorded with
// all it starts, and of reports that each rank has written.
func TestTheStragglerOfALauncherIsNamed(t *testing.T) {
	python := truth.OnPath(t)
	eachLauncher(t, func(t *testing.T, launcher, dir string) {
		packages := filepath.Join(dir, "site-packages") // where a library is one
		t.Setenv("PYTHONPATH", packages)
		if err := os.MkdirAll(filepath.Join(packages, "horovod"), 0o700); err != nil {
			t.Fatal(err)
		}
		script := filepath.Join(dir, "train.py")
		for file, text := range map[string]string{script: stragglerSource, filepath.Join(packages, "horovod", "ops.py"): barrierSource} {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		named := func(a *retry.Attempt, form, file string) {
			r := readFile(t, file)
			f := r.MainFinding()
			if f == nil || f.ID != string(diagnose.Straggler) || f.Args["rank"] != 1.0 || f.File == nil || r.Files[*f.File].Name != script {
				a.Errorf("%s: %q", form, r.Headline.Text)
			}
		}
		attempt := 0
		retry.Again(t, func(a *retry.Attempt) {
			attempt++
			file, meeting := filepath.Join(dir, "r.json"), filepath.Join(dir, fmt.Sprint(attempt))
			if got := runs(t, "", nil, os.Args[0], "run", "-s", "0.1", "-o", file, launcher, "-n", "2", python, script, meeting+"a"); got.status.ExitStatus() != 0 {
				t.Fatalf("status %#x; it said %q", got.status, got.stderr)
			}
			named(a, "as launcher", file)
			one := filepath.Join(dir, "run")
			if got := runs(t, "", nil, launcher, "-n", "2", os.Args[0], "run", "-o", one, "--format", "json", "--interpreter", python, script, meeting+"b"); got.status.ExitStatus() != 0 {
				t.Fatalf("status %#x; it said %q", got.status, got.stderr)
			}
			if got := runs(t, "", nil, os.Args[0], "merge", "-o", file, one+".rank0.json", one+".rank1.json"); got.status.ExitStatus() != 0 {
				t.Fatalf("they cannot be merged: %q", got.stderr)
			}
			named(a, "as prefix of each rank", file)
		})
	})
}

// An omni-perf in front of each rank, within one that follows the launcher, is no part of
// the program: it is listed as what it is, and in no table.
func TestTheProfilerIsInNobodysProfile(t *testing.T) {
	python, dir := truth.OnPath(t), t.TempDir()
	standIn(t, "srun", "SLURM_PROCID=$n", "SLURM_LOCALID=$n", "SLURM_NODEID=0", "SLURM_NTASKS=2", "OMNI_PERF_TEST_ARGV=1")
	t.Setenv("OMNI_PERF_TEST_ARGV", "1")
	inner, script, file := filepath.Join(dir, "omni-perf"), filepath.Join(dir, "train.py"), filepath.Join(dir, "all.json")
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{inner: program, script: []byte(rankSource)} {
		if err := os.WriteFile(name, text, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	retry.Again(t, func(a *retry.Attempt) {
		got := runs(t, "", nil, os.Args[0], "run", "-s", "0.1", "-o", file, "srun", "-n", "2", inner, "run", "-o", filepath.Join(dir, "one"), "--interpreter", python, script)
		if got.status.ExitStatus() != 0 {
			t.Fatalf("status %#x; it said %q", got.status, got.stderr)
		}
		r, ours := readFile(t, file), 0
		for i := range r.Processes {
			p := &r.Processes[i]
			if p.Role != string(timeline.RoleProfiler) {
				continue
			}
			ours++
			if slices.ContainsFunc(r.Threads, func(th report.Thread) bool { return th.Process == i }) {
				t.Errorf("%+v has stacks", p)
			}
		}
		if ours < 2 {
			a.Errorf("%d of 2 profilers are recognised", ours)
		}
		all := got.stderr[strings.LastIndex(got.stderr, "\nsrun "):] // after those of the ranks
		if _, table, found := strings.Cut(all, "\nProcesses"); !found || strings.Contains(strings.SplitN(table, "\n\n", 2)[0], "omni-perf") {
			a.Errorf("the table of processes is\n%s", all)
		}
	})
}

func readFile(t *testing.T, path string) *report.View {
	t.Helper()
	r, err := saved.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// spawnedSource trains on two ranks that multiprocessing starts: nothing outside shows their numbers. They meet by
// a call of horovod's, which is known by its file.
const spawnedSource = spinSource + `
import multiprocessing
from horovod.ops import barrier
def train(rank, together):
    for step in range(15):
        spin(0.12 if rank == 1 else 0.01)
        barrier(together)
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    together = context.Barrier(2)
    ranks = [context.Process(target=train, args=(i, together)) for i in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
`

func TestTheStragglerOfSpawnedRanksIsNamed(t *testing.T) {
	python := truth.OnPath(t)
	for _, method := range []string{"spawn", "forkserver", "fork"} {
		t.Run(method, func(t *testing.T) {
			dir := t.TempDir()
			packages := filepath.Join(dir, "site-packages")
			t.Setenv("OMNI_PERF_TEST_ARGV", "1")
			t.Setenv("PYTHONPATH", packages)
			if err := os.MkdirAll(filepath.Join(packages, "horovod"), 0o700); err != nil {
				t.Fatal(err)
			}
			script, file := filepath.Join(dir, "train.py"), filepath.Join(dir, "r.json")
			for file, text := range map[string]string{script: spawnedSource, filepath.Join(packages, "horovod", "ops.py"): "def barrier(together):\n    together.wait()\n"} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			retry.Again(t, func(a *retry.Attempt) {
				if got := runs(t, "", nil, os.Args[0], "run", "-s", "0.1", "-o", file, "--interpreter", python, script, method); got.status.ExitStatus() != 0 {
					t.Fatalf("status %#x; it said %q", got.status, got.stderr)
				}
				r := readFile(t, file)
				f := r.MainFinding()
				if len(r.Ranks) != 2 || f == nil || f.ID != string(diagnose.Straggler) || f.Number("rank") != 1 || f.File == nil || r.Files[*f.File].Name != script {
					a.Errorf("ranks %+v, %q", r.Ranks, r.Headline.Text)
				}
			})
		})
	}
}
