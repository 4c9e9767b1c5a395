package peer

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// Peers are run on this version, which all but Tachyon support; Tachyon samples its own version only.
const (
	Minor        = "3.12"
	TachyonMinor = "3.15"
)

// Floor is the name of the bare C loop, the least that any sampler from outside costs.
const Floor = "bare C loop"

// Installed is what Install found and made.
type Installed struct {
	Samplers []Sampler
	Missing  []Missing
	// Benchmarks is the folder of pyperformance's programs; empty if it is missing.
	Benchmarks string
	// Libraries is the folder with numpy for each version; none for a version that has no numpy.
	Libraries map[string]string
}

// Install makes everything in folder, once, from the Python package index, for the given interpreters,
// by version. It downloads only what is not there yet.
func Install(folder string, pythons map[string]truth.Interpreter) (*Installed, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	all := &Installed{Libraries: map[string]string{}}
	if python, ok := pythons[Minor]; ok {
		all.installPeers(folder, python)
		all.installLibraries(folder, python, python)
		if newest, ok := pythons[TachyonMinor]; ok {
			all.installLibraries(folder, python, newest)
		}
	} else {
		all.miss("py-spy, Austin, pyinstrument, Scalene, pyperformance", "no CPython "+Minor+" here; tools/interpreters finds or fetches one")
	}
	if python, ok := pythons[TachyonMinor]; ok {
		all.add(tachyon(python, false), tachyon(python, true))
	} else {
		all.miss("Tachyon", "no CPython "+TachyonMinor+" here; tools/interpreters fetches one")
	}
	if err := all.installFloor(folder, pythons); err != nil {
		all.miss(Floor, err.Error())
	}
	return all, nil
}

func (all *Installed) add(samplers ...Sampler) { all.Samplers = append(all.Samplers, samplers...) }
func (all *Installed) miss(name, reason string) {
	all.Missing = append(all.Missing, Missing{name, reason})
}

// installPeers makes a virtual environment with everything that pip brings.
func (all *Installed) installPeers(folder string, python truth.Interpreter) {
	venv := filepath.Join(folder, "python"+python.Minor)
	program := func(name string) string { return filepath.Join(venv, "bin", name) }
	if _, err := os.Stat(program("python")); err != nil {
		if _, err := output(exec.Command(python.Path, "-m", "venv", venv)); err != nil {
			all.miss("every peer from the package index", err.Error())
			return
		}
	}
	// The target is run with the environment's interpreter, so that the peers inside it are found.
	python.Path = program("python")
	for _, peer := range []struct {
		name, packages string
		samplers       func(version string) ([]Sampler, error)
	}{
		{"py-spy", "py-spy", func(version string) ([]Sampler, error) {
			return []Sampler{pySpy(program("py-spy"), version, python, false), pySpy(program("py-spy"), version, python, true)}, nil
		}},
		{"Austin", "austin-dist austin-python", func(version string) ([]Sampler, error) {
			austin, err := runnableAustin(folder, program("austin"))
			return []Sampler{austinSampler(austin, program("mojo2austin"), version, python)}, err
		}},
		{"pyinstrument", "pyinstrument", func(version string) ([]Sampler, error) {
			return []Sampler{pyinstrument(version, python)}, nil
		}},
		{"Scalene", "scalene", func(version string) ([]Sampler, error) {
			return []Sampler{scalene(version, python)}, nil
		}},
		{"pyperformance", "pyperformance", func(string) ([]Sampler, error) {
			programs, err := filepath.Glob(filepath.Join(venv, "lib/python*/site-packages/pyperformance/data-files/benchmarks"))
			if err != nil || len(programs) == 0 {
				return nil, errors.New("its package holds no benchmarks")
			}
			all.Benchmarks = programs[0]
			return nil, nil
		}},
	} {
		packages := strings.Fields(peer.packages)
		version, err := installed(program("python"), packages)
		var samplers []Sampler
		if err == nil {
			samplers, err = peer.samplers(version)
		}
		if err != nil {
			all.miss(peer.name, err.Error())
			continue
		}
		all.add(samplers...)
	}
}

// installed makes sure of packages and returns the version of the first.
func installed(python string, packages []string) (version string, err error) {
	ask := exec.Command(python, "-c", "import importlib.metadata as m, sys; print([m.version(p) for p in sys.argv[1:]][0])")
	ask.Args = append(ask.Args, packages...)
	if version, err := ask.Output(); err == nil {
		return strings.TrimSpace(string(version)), nil
	}
	pip := exec.Command(python, "-m", "pip", "install", "-q", "--disable-pip-version-check")
	pip.Args = append(pip.Args, packages...)
	if _, err := output(pip); err != nil {
		return "", err
	}
	ask = exec.Command(ask.Path, ask.Args[1:]...)
	return output(ask)
}

// installLibraries fetches numpy for a target's version with the environment's pip, for the target's
// own interpreter may have none.
func (all *Installed) installLibraries(folder string, python, target truth.Interpreter) {
	libraries := filepath.Join(folder, "numpy-"+target.Minor)
	if _, err := os.Stat(filepath.Join(libraries, "numpy")); err != nil {
		pip := filepath.Join(folder, "python"+python.Minor, "bin/python")
		_, err := output(exec.Command(pip, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
			"--only-binary=:all:", "--python-version", target.Minor, "--target", libraries, "numpy"))
		if err != nil {
			all.miss("numpy for "+target.Minor, err.Error())
			return
		}
	}
	all.Libraries[target.Minor] = libraries
}

//go:embed floor/floor.c
var floorSource []byte

// installFloor compiles the bare C loop; it is measured beside the samplers of each version.
func (all *Installed) installFloor(folder string, pythons map[string]truth.Interpreter) error {
	source, program := filepath.Join(folder, "floor.c"), filepath.Join(folder, "floor")
	if err := os.WriteFile(source, floorSource, 0o644); err != nil {
		return err
	}
	if _, err := output(exec.Command("cc", "-O2", "-o", program, source)); err != nil {
		return err
	}
	for _, minor := range []string{Minor, TachyonMinor} {
		if python, ok := pythons[minor]; ok {
			all.add(floor(program, python))
		}
	}
	return nil
}

// output is a command's standard output; its error says what the command said last.
func output(command *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		said := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(command.Path), err, said[len(said)-1])
	}
	return strings.TrimSpace(string(out)), nil
}
