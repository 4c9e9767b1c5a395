package specimen_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/requirement"
	"github.com/omni-perf/omni-perf/sidecar/testkit/specimen"
)

// everything reports whether make truth asks for all there is.
func everything() bool { return os.Getenv("OMNI_PERF_TRUTH") != "" }

// attempts bound how often a program is run: a busy machine can make a wait of
// what is none. What must hold is the same each time.
const attempts = 3

// taker runs programs under the real collectors, as sidecar/testkit/specimen/take does.
type taker struct{ path, into string }

func newTaker(t *testing.T) taker {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	var pythons []string
	for _, python := range []string{".venv/bin/python", ".cache/torch/bin/python"} {
		if _, err := os.Stat(filepath.Join(root, python)); err == nil {
			pythons = append(pythons, filepath.Join(root, python))
		}
	}
	if more := os.Getenv("SPECIMEN_PYTHONS"); more != "" {
		pythons = append(pythons, more)
	}
	if len(pythons) == 0 {
		requirement.Missing(t, requirement.VirtualEnv, "there is no .venv; make build makes it")
	}
	t.Setenv("SPECIMEN_PYTHONS", strings.Join(pythons, ":"))
	take := taker{filepath.Join(t.TempDir(), "take"), t.TempDir()}
	if out, err := exec.Command("go", "build", "-o", take.path, "./take").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return take
}

// run takes one recording; it skips the test where a module is missing.
func (k taker) run(t *testing.T, file string, arguments ...string) *specimen.Specimen {
	t.Helper()
	cmd := exec.Command(k.path, append([]string{"-repository", "../../..", "-programs", "programs", "-into", k.into}, arguments...)...)
	out, err := cmd.CombinedOutput()
	if bytes.Contains(out, []byte("no interpreter of")) {
		t.Skipf("%s", out)
	}
	if err != nil {
		t.Logf("%v: %s", err, out)
		return nil
	}
	s, err := specimen.Read(filepath.Join(k.into, file))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Programs run live: main finding, cause and place are those of the table, and
// nothing is claimed that must not be. A few in every run, all by make truth.
func TestLivePrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	take := newTaker(t)
	for _, p := range programs(t) {
		if !p.Chosen && !everything() {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			problems := []string{"nothing was recorded"}
			for range attempts {
				if s := take.run(t, p.File(), p.Name); s != nil {
					rec, d, r := diagnosed(t, p, s)
					problems = check(p, rec, d, r)
				}
				if len(problems) == 0 {
					return
				}
				t.Log(problems)
			}
			t.Errorf("in each of %d runs: %s", attempts, problems)
		})
	}
}

// Trainings run live: what is named as the first cause is the first. Two in every
// run, all by make truth.
func TestLiveTrainings(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	take := newTaker(t)
	for _, variant := range specimen.Trainings {
		for _, step := range trainingSteps {
			chosen := variant == "plain" && step == 100 || variant == "item" && step == 25
			if !chosen && !everything() {
				continue
			}
			t.Run(fmt.Sprintf("%s %d ms", variant, step), func(t *testing.T) {
				problems := []string{"nothing was recorded"}
				for range attempts {
					if s := take.run(t, fmt.Sprintf("%s-%d.json.gz", variant, step), "-trainings", "trainings", fmt.Sprintf("%s:%d:8", variant, step)); s != nil {
						problems = wrongOf(s, variant, step)
					}
					if len(problems) == 0 {
						return
					}
					t.Log(problems)
				}
				t.Errorf("in each of %d runs: %s", attempts, problems)
			})
		}
	}
}

// wrongOf judges a training by all windows, with set-up and without.
func wrongOf(s *specimen.Specimen, variant string, step int) (problems []string) {
	for _, c := range combinations() {
		if c.variant != variant || c.step != step {
			continue
		}
		if problem := judge(c.part(s), c.window.Device).wrong(); problem != "" {
			problems = append(problems, fmt.Sprintf("%s: %s", c, problem))
		}
	}
	return problems
}
