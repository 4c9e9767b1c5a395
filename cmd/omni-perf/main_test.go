package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// TestMain lets the test binary be the command.
func TestMain(m *testing.M) {
	if args := os.Getenv("OMNI_PERF_TEST_ARGS"); args != "" {
		os.Exit(dispatch(strings.Fields(args)))
	}
	if os.Getenv("OMNI_PERF_TEST_ARGV") != "" { // arguments with spaces
		os.Unsetenv("OMNI_PERF_TEST_ARGV")
		os.Exit(dispatch(os.Args[1:]))
	}
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		fmt.Fprintln(os.Stderr, "this is a test that was started as omni-perf, without OMNI_PERF_TEST_ARGV: it would run all tests")
		os.Exit(2)
	}
	// What the tests start has the defaults, also where they run in the background.
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP)
	go func() { <-c; os.Exit(1) }()
	os.Exit(m.Run())
}

// invoke runs the command in a process of its own.
func invoke(t *testing.T, args string, env ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "OMNI_PERF_TEST_ARGS="+args)...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestVersion(t *testing.T) {
	out, _, code := invoke(t, "version")
	if code != exitOK || !strings.HasPrefix(out, "omni-perf "+version+" (go") {
		t.Errorf("%q, exit status %d", out, code)
	}
}

func TestUsage(t *testing.T) {
	out, _, code := invoke(t, "--help")
	if code != exitOK {
		t.Errorf("help: exit status %d", code)
	}
	if bare, errs, code := invoke(t, " "); bare != out || errs != "" || code != exitOK {
		t.Errorf("without arguments: %q, %q, exit status %d; want the help", bare, errs, code)
	}
	for _, c := range newRoot().Commands() {
		if !strings.Contains(out, c.Name()) || !strings.Contains(out, c.Short) {
			t.Errorf("the usage does not name %s", c.Name())
		}
	}
	for args, want := range map[string]string{
		"nonsense":  `omni-perf: there is no command "nonsense"; see omni-perf --help.`,
		"analyse x": `omni-perf: there is no command "analyse"; did you mean analyze? See omni-perf --help.`,
	} {
		if _, errs, code := invoke(t, args); code != exitUsage || errs != want+"\n" {
			t.Errorf("%s: %q, exit status %d, want %q", args, errs, code, want)
		}
	}
}

// Options are shown as --long, and are read wherever they stand and however the
// original omni_perf spelled them.
func TestOptions(t *testing.T) {
	for args, want := range map[string]string{
		"attach --help":                   "  -p, --prof-interval SECONDS ",
		"help analyze":                    "      --memory-snapshot FILE ",
		"run --help":                      "  -o, --output NAME ",
		"export -h":                       "      --format FORMATS ",
		"version":                         "omni-perf ",
		"--version":                       "omni-perf version ",
		"completion bash":                 "__complete",
		"__complete att":                  "attach\t",
		"__complete attach 1 --prof":      "--prof-interval",
		"__complete attach --format svg,": "svg,html\n",
		"__complete run --out":            "--output",
	} {
		if out, errs, code := invoke(t, args); code != exitOK || !strings.Contains(out, want) {
			t.Errorf("%s: exit status %d, %q, %q; want %q", args, code, out, errs, want)
		}
	}
	if out, _, _ := invoke(t, "__complete run x.py --out"); strings.Contains(out, "--output") {
		t.Errorf("an option of the script's was completed as ours: %q", out)
	}
	for args, want := range map[string]string{
		"attach 1 2":                     `omni-perf attach: "2" is one argument too many`,
		"attach 1 --prof_interval 0":     "omni-perf attach: -p, --prof-interval: an interval is a number of seconds above 0 and up to 3600",
		"attach -s x 1":                  "omni-perf attach: -s, --sys-interval: an interval is a number of seconds above 0 and up to 3600",
		"attach 1 --sys_interval=-1":     "omni-perf attach: -s, --sys-interval: an interval is a number of seconds above 0 and up to 3600",
		"run -o a.json -o b.html x.py":   `omni-perf run: -o, --output: it was "a.json" before; -o NAME --format json,html writes several files`,
		"attach 1 -o":                    "omni-perf attach: -o, --output needs a value",
		"attach 1 --duration x":          `omni-perf attach: --duration: "x" is not a number of seconds`,
		"attach 1 --nonsense=3":          "omni-perf attach: there is no option --nonsense",
		"attach 1 -xyz":                  "omni-perf attach: there is no option -xyz",
		"attach 1 --format svg,gif":      `omni-perf attach: format "gif" is not known; there are `,
		"run --nonsense x.py":            "omni-perf run: there is no option --nonsense",
		"show x.json --waht steps":       "omni-perf show: there is no option --waht; did you mean --what? See omni-perf show --help.",
		"run --frmat=json x.py":          "omni-perf run: there is no option --frmat=json; did you mean --format?",
		"attach 1 --sys_intervall 1":     "omni-perf attach: there is no option --sys_intervall; did you mean --sys-interval?",
		"completion tcsh":                `omni-perf completion: there is none for "tcsh", but for bash, fish, powershell, zsh`,
		"run -p 9999 x.py":               "omni-perf run: -p, --prof-interval: an interval is",
		"-Z x.py":                        "omni-perf run: there is no option -Z",
		"doctor now":                     `omni-perf doctor: "now" is one argument too many`,
		"export":                         "omni-perf export: name a report",
		"export r.json":                  "omni-perf export: name the result by either -o FILE or --name NAME",
		"export r --format csv --name x": "omni-perf export: --format csv goes alone, with -o FOLDER",
		"export r --format svg,csv -o x": "omni-perf export: --format csv goes alone, with -o FOLDER",
		"merge":                          "omni-perf merge: there are no reports to merge",
		"merge a.json b.json":            "omni-perf merge: name the result by -o NAME",
		"make-traces x --ranks many":     `omni-perf make-traces: --ranks: "many" is not a whole number`,
		"make-traces x --skew 3":         `omni-perf make-traces: --skew: "3" is not a length of time such as 30us or 2ms`,
		"analyze x --mode fast":          `omni-perf analyze: --mode: unknown mode "fast"`,
		"analyze x --kernel-wait":        "omni-perf analyze: --kernel-wait needs a value",
		"serve --detach=perhaps":         `omni-perf serve: --detach: "perhaps" is neither true nor false`,
	} {
		_, errs, code := invoke(t, args)
		if code != exitUsage || !strings.HasPrefix(errs, want) || !strings.HasSuffix(errs, " --help.\n") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit status %d, %q, want one line that begins %q", args, code, errs, want)
		}
	}
}

func TestDoctorExitStatusTellsWhetherItWorks(t *testing.T) {
	out, errs, code := invoke(t, "doctor --json --interpreter "+truth.Any(t).Path, "OMNI_PERF_NVML_LIBRARY=/nonexistent")
	var got struct {
		OK     bool
		Checks []struct {
			Name, Sentence string
			OK, Required   bool
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%q, %q: %v", out, errs, err)
	}
	want := true
	for _, c := range got.Checks {
		want = want && (c.OK || !c.Required)
	}
	if got.OK != want || (code == exitOK) != want || len(got.Checks) < 8 {
		t.Errorf("ok %v, exit status %d, checks %+v", got.OK, code, got.Checks)
	}
	if out, _, code := invoke(t, "doctor --interpreter /bin/false"); code != exitFailed || !strings.Contains(out, "FAILED   Python") {
		t.Errorf("with a Python that is none: exit status %d, %q", code, out)
	}
}

func TestServeWithoutALauncherSaysSo(t *testing.T) {
	out, _, code := invoke(t, "serve")
	if code != exitFailed || !strings.Contains(out, "got no start message") {
		t.Errorf("%q, exit status %d", out, code)
	}
}

var update = flag.Bool("update", false, "rewrite the golden page of help")

// Everything that the command says of itself is one page, to be read as a whole.
func TestHelp(t *testing.T) {
	const golden = "testdata/help.txt"
	page, _, _ := invoke(t, "--help")
	for _, c := range newRoot().Commands() {
		if c.Name() == "completion" || c.Hidden {
			continue // cobra's
		}
		text, _, _ := invoke(t, c.Name()+" --help")
		page += "\n---\n" + text
	}
	if *update {
		if err := os.WriteFile(golden, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || page != string(want) {
		t.Errorf("the help is not that of %s (%v); go test ./cmd/omni-perf -run Help -update rewrites it:\n%s", golden, err, page)
	}
}
