package requirement

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWhatIsMissingIsWrittenDown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "skipped")
	t.Setenv(skipped, path)
	for _, minor := range []string{"3.14", "3.15"} {
		t.Run(minor, func(t *testing.T) {
			Missing(t, PythonVersion(minor), "no CPython %s,\there", minor)
			t.Error("the test went on")
		})
	}
	got, err := os.ReadFile(path)
	const want = "python-3.14\tTestWhatIsMissingIsWrittenDown/3.14\t\"no CPython 3.14,\\there\"\n" +
		"python-3.15\tTestWhatIsMissingIsWrittenDown/3.15\t\"no CPython 3.15,\\there\"\n"
	if err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
