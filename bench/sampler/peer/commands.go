package peer

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

func pySpy(program, version string, python truth.Interpreter, nonblocking bool) Sampler {
	s := Sampler{Name: "py-spy", Version: version, Target: python, Settle: 300 * time.Millisecond}
	var more []string
	if nonblocking {
		s.Name, more = "py-spy --nonblocking", []string{"--nonblocking"}
	}
	s.Command = func(j Job) *exec.Cmd {
		arguments := append([]string{"record", "-p", strconv.Itoa(j.Pid), "-f", "raw", "-o", j.Out, "--idle",
			"-r", wholeRate(j.Rate)}, more...)
		return exec.Command(program, arguments...)
	}
	// "Wrote … Samples: 1999 Errors: 0"
	failures := regexp.MustCompile(`Errors: (\d+)`)
	s.Read = func(out, log string) (Recording, error) {
		r, err := readCollapsed(out, functionFileLine, false)
		if found := failures.FindStringSubmatch(log); found != nil {
			r.Failed, _ = strconv.Atoi(found[1])
		}
		return r, err
	}
	return s
}

func tachyon(python truth.Interpreter, blocking bool) Sampler {
	s := Sampler{Name: "Tachyon", Target: python, Settle: 500 * time.Millisecond}
	// It imports the library that it samples with as one of the last.
	s.Ready = func(pid int) bool {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
		return err == nil && strings.Contains(string(maps), "/_remote_debugging.")
	}
	s.Version, _ = output(exec.Command(python.Path, "-c", "import platform; print(platform.python_version())"))
	var more []string
	if blocking {
		s.Name, more = "Tachyon --blocking", []string{"--blocking"}
	}
	s.Command = func(j Job) *exec.Cmd {
		arguments := append([]string{"-m", "profiling.sampling", "attach", "-a", "--no-gc", "--collapsed",
			"-o", j.Out, "-r", wholeRate(j.Rate)}, more...)
		return exec.Command(python.Path, append(arguments, strconv.Itoa(j.Pid))...)
	}
	// "Captured 2001 samples in 2.00 seconds", counting those that failed, and "Error rate: 0.00", in %
	attempts := regexp.MustCompile(`Captured ([\d,]+) samples? in ([\d.]+) seconds`)
	rate := regexp.MustCompile(`Error rate: ([\d.]+)`)
	s.Read = func(out, log string) (Recording, error) {
		r, err := readCollapsed(out, fileFunctionLine, false)
		tried, failed := attempts.FindStringSubmatch(log), rate.FindStringSubmatch(log)
		if tried != nil && failed != nil {
			r.Ticks, _ = strconv.Atoi(strings.ReplaceAll(tried[1], ",", ""))
			share, _ := strconv.ParseFloat(failed[1], 64)
			r.Failed = int(float64(r.Ticks)*share/100 + 0.5)
			r.Time, _ = time.ParseDuration(tried[2] + "s")
		}
		return r, err
	}
	return s
}

func pyinstrument(version string, python truth.Interpreter) Sampler {
	return Sampler{
		Name: "pyinstrument", Version: version, Target: python, Read: readPyinstrument,
		Wrap: func(j Job) []string {
			return []string{"-m", "pyinstrument", "-i", interval(j.Rate), "-r", "json", "--show-all", "-o", j.Out}
		},
	}
}

func scalene(version string, python truth.Interpreter) Sampler {
	return Sampler{
		Name: "Scalene (CPU only)", Version: version, Target: python, Read: readScalene,
		Wrap: func(j Job) []string {
			return []string{"-m", "scalene", "run", "--cpu-only", "--cpu-sampling-rate", interval(j.Rate), "-o", j.Out}
		},
	}
}

// fastest is asked for where a sampler wants a rate and shall run as fast as it can.
const fastest = 1e6

func wholeRate(rate float64) string {
	if rate == 0 {
		rate = fastest
	}
	return strconv.Itoa(int(rate))
}

func interval(rate float64) string {
	if rate == 0 {
		rate = fastest
	}
	return strconv.FormatFloat(1/rate, 'f', -1, 64)
}

// floor is the bare C loop as a sampler. It reads the target's first writable memory.
func floor(program string, python truth.Interpreter) Sampler {
	return Sampler{
		Name: Floor, Target: python, Settle: 200 * time.Millisecond,
		Command: func(j Job) *exec.Cmd {
			address, err := writableMemory(j.Pid)
			if err != nil {
				address = "0" // it then ends at once, and says so
			}
			return exec.Command(program, strconv.Itoa(j.Pid), address, wholeRate(j.Rate))
		},
	}
}

// writableMemory finds an address with at least 16 KiB after it, in hexadecimal.
func writableMemory(pid int) (string, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(maps)) {
		var start, end uint64
		var rights string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &start, &end, &rights); err == nil &&
			strings.HasPrefix(rights, "rw") && end-start >= 16<<10 {
			return strconv.FormatUint(start, 16), nil
		}
	}
	return "", fmt.Errorf("process %d has no writable memory", pid)
}
