// Package database makes SQLite files for tests with the SQLite of Python.
package database

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/requirement"
)

// Make is the file that SQLite writes when it executes SQL statements. The test is skipped where there is no Python.
func Make(t testing.TB, statements string) []byte {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		requirement.Missing(t, requirement.OnPath, "its sqlite3 makes the database")
	}
	path := filepath.Join(t.TempDir(), "made.sqlite")
	c := exec.Command(python, "-c", "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript(sys.stdin.read()); c.commit(); c.close()", path)
	c.Stdin = strings.NewReader(statements)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
