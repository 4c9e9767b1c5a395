package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// pyroscope counts the profiles that it takes.
func pyroscope(t *testing.T) (url string, taken *atomic.Int32) {
	taken = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Query().Get("name")
		if r.URL.Path != "/ingest" || !strings.HasPrefix(name, "script.py{hostname=") || !strings.Contains(name, ",pid=") {
			t.Errorf("%s of %s", r.URL.Path, name)
		}
		taken.Add(1)
	}))
	t.Cleanup(s.Close)
	return s.URL, taken
}

// nowhere is the URL of a server that has ended.
func nowhere() string {
	s := httptest.NewServer(nil)
	defer s.Close()
	return s.URL
}

func TestAProgramsProfileIsSent(t *testing.T) {
	t.Setenv("OMNI_PERF_TEST_ARGV", "1")
	url, taken := pyroscope(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "script.py")
	if err := os.WriteFile(script, []byte(spinSource+"spin(1); sys.exit(5)"), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(push string) result {
		python := []string{"--interpreter", truth.OnPath(t), script}
		return runs(t, "", nil, os.Args[0], append([]string{"run", "-o", filepath.Join(dir, "r.json"), "--push", push}, python...)...)
	}
	got := run(url)
	if got.status.ExitStatus() != 5 || taken.Load() != 1 || !strings.Contains(got.stderr, "omni-perf: sent the profile to "+url) {
		t.Errorf("exit code %d, %d taken, said %q", got.status.ExitStatus(), taken.Load(), got.stderr)
	}
	// What becomes of the profile changes neither the script's exit code nor the report.
	got = run(nowhere())
	later := "omni-perf export " + filepath.Join(dir, "r.json") + " --push URL sends it later"
	if got.status.ExitStatus() != 5 || !strings.Contains(got.stderr, "connection refused") || !strings.Contains(got.stderr, later) {
		t.Errorf("exit code %d, said %q", got.status.ExitStatus(), got.stderr)
	}
	if r := readFile(t, filepath.Join(dir, "r.json")); r.DurationNS < 1e9 {
		t.Errorf("the report is of %d ns", r.DurationNS)
	}
	_, stderr, code := invoke(t, "export "+filepath.Join(dir, "r.json")+" --push "+url)
	if code != exitOK || taken.Load() != 2 {
		t.Errorf("export: exit code %d, %d taken, said %q", code, taken.Load(), stderr)
	}
	_, stderr, code = invoke(t, "export "+filepath.Join(dir, "r.json")+" --push "+nowhere())
	if code != exitFailed || !strings.Contains(stderr, "connection refused") {
		t.Errorf("export to nowhere: exit code %d, said %q", code, stderr)
	}
}

func TestPushIsForWhatItCanSend(t *testing.T) {
	for args, want := range map[string]string{
		"run --push pyroscope:4040 x.py":                         "--push: it takes the URL of a Pyroscope",
		"run --push http://h x.ipynb":                            "--push is for scripts",
		"export r.json --push http://h --format svg":             "--format goes with -o FILE or --name NAME",
		"export r.json --push http://h -o a --name b":            "by either -o FILE or --name NAME",
		"export " + savedReport(t) + " --push http://h.invalid":  "no Python stack was read",
		"export " + savedReport(t) + " --push ftp://h.invalid/x": "--push: it takes the URL of a Pyroscope",
	} {
		if _, stderr, code := invoke(t, args); code == exitOK || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, said %q, want %q", args, code, stderr, want)
		}
	}
}
