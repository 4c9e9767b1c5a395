package peer

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

func austinSampler(program, converter, version string, python truth.Interpreter) Sampler {
	s := Sampler{Name: "Austin", Version: version, Target: python, Settle: 300 * time.Millisecond}
	s.Command = func(j Job) *exec.Cmd {
		interval := 1
		if j.Rate > 0 {
			interval = int(1e6 / j.Rate)
		}
		arguments := []string{"-i", fmt.Sprintf("%dus", interval), "-o", j.Out, "-p", strconv.Itoa(j.Pid)}
		command := exec.Command(program, arguments...)
		// Without a syslog its log would go to the console, which slows everything.
		command.Env = append(os.Environ(), "AUSTIN_NO_LOGGING=1")
		return command
	}
	s.Read = func(out, log string) (Recording, error) {
		text := out + ".txt"
		if _, err := output(exec.Command(converter, out, text)); err != nil {
			return Recording{}, err
		}
		r, err := readCollapsed(text, fileFunctionLine, true)
		r.Failed, r.Time = austinSaid(log)
		return r, err
	}
	return s
}

var (
	colour         = regexp.MustCompile("\x1b\\[[0-9;]*m")
	austinFailures = regexp.MustCompile(`Error rate[ .]*(\d+)/\d+`)
	austinDuration = regexp.MustCompile(`Total duration[ .]*(\d+\.\d+s)`)
)

// austinSaid finds "Total duration . . . 2.00s" and "Error rate . . . 0/1806" under the colours.
func austinSaid(log string) (failed int, took time.Duration) {
	log = colour.ReplaceAllString(log, "")
	if found := austinFailures.FindStringSubmatch(log); found != nil {
		failed, _ = strconv.Atoi(found[1])
	}
	if found := austinDuration.FindStringSubmatch(log); found != nil {
		took, _ = time.ParseDuration(found[1])
	}
	return failed, took
}

// runnableAustin returns a program that starts here: the package's, or a copy that uses the newer C
// library beside the fetched interpreters, for the package is built against a recent one.
func runnableAustin(folder, program string) (string, error) {
	refusal := ""
	for _, candidate := range []string{program, filepath.Join(folder, "austin")} {
		if candidate != program {
			if err := patchAustin(filepath.Dir(folder), program, candidate); err != nil {
				return "", fmt.Errorf("it does not start (%s), and not with another C library: %w", refusal, err)
			}
		}
		_, err := output(exec.Command(candidate, "--version"))
		if err == nil {
			return candidate, nil
		}
		refusal = err.Error()
	}
	return "", errors.New(refusal)
}

// patchAustin does for Austin what tools/interpreters does for Python.
func patchAustin(cache, program, copyPath string) error {
	loaders, _ := filepath.Glob(filepath.Join(cache, "interpreters/sid/usr/lib/*/ld-linux-*.so.*"))
	if len(loaders) == 0 {
		return errors.New("tools/interpreters has fetched none")
	}
	loader, libraries := loaders[0], filepath.Dir(loaders[0])
	binary, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	if err := os.WriteFile(copyPath, binary, 0o755); err != nil {
		return err
	}
	patchelf := filepath.Join(cache, "interpreters/sid/usr/bin/patchelf")
	for _, change := range [][]string{{"--force-rpath", "--set-rpath", libraries}, {"--set-interpreter", loader}} {
		arguments := append([]string{"--library-path", libraries, patchelf}, append(change, copyPath)...)
		if _, err := output(exec.Command(loader, arguments...)); err != nil {
			return err
		}
	}
	return nil
}
