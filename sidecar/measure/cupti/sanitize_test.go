package cupti

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// hasSanitizer reports whether the compiler can link a program with one.
func hasSanitizer(t *testing.T, flag string) bool {
	source := filepath.Join(t.TempDir(), "empty.c")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return exec.Command("sh", "-c", `exec ${CC:-cc} "$1" "$2" -o "$2.out"`, "sh", flag, source).Run() == nil
}

// Many threads deliver at once while others flush, cells end and a child is forked: no race, no use of freed memory.
func TestSanitizers(t *testing.T) {
	for flag, b := range map[string]*built{"-fsanitize=thread": &thread, "-fsanitize=address,undefined": &memory} {
		plain.folder(t) // a compiler is there
		if !hasSanitizer(t, flag) {
			t.Logf("this compiler has no %s", flag)
			continue
		}
		p := start(t, b.folder(t, "-g", flag), newest+",several=1,overhead=1000,unknown=50", true, "TSAN_OPTIONS=halt_on_error=1 exitcode=66", "ASAN_OPTIONS=detect_leaks=0")
		for range 2 {
			p.ask("begin")
			p.ask("many 20 500 100 0")
			p.ask("fork")
			p.ask("many 1 1000 100 0")
			p.ask("end")
			p.ask("many 5 50 100 0") // outside
		}
		work := p.end().one()
		if code := p.command.ProcessState.ExitCode(); code != 0 {
			t.Errorf("%s: exit status %d\n%s", flag, code, p.stderr.String())
		}
		if n := len(work.Activities); n == 0 || n > 2*11_000 || timeline.Total(work.Complete) <= 0 {
			t.Errorf("%s: %d activities, complete %v", flag, n, work.Complete)
		}
	}
}
