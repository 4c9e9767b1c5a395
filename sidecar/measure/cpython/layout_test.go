package cpython

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the layouts in testdata anew")

// runtimeMemory is a _PyRuntime at address 0.
type runtimeMemory []byte

func (m runtimeMemory) Read(buf []byte, ranges []Range) (int, error) {
	n := 0
	for _, r := range ranges {
		n += copy(buf[n:n+r.Len], m[min(r.Addr, uint64(len(m))):])
	}
	return n, nil
}

// TestLayouts reads what an interpreter of each version says of itself at the start of its _PyRuntime
// (testdata, recorded); those before 3.13 say nothing, but their version.
func TestLayouts(t *testing.T) {
	for _, version := range Readable {
		t.Run(version, func(t *testing.T) {
			runtime, err := os.ReadFile(filepath.Join("testdata", version+".offsets"))
			if errors.Is(err, os.ErrNotExist) {
				runtime, err = make([]byte, debugOffsetsLen), nil
			}
			if err != nil {
				t.Fatal(err)
			}
			var minor uint64
			fmt.Sscanf(version, "3.%d", &minor)
			l, err := ReadLayout(runtimeMemory(runtime), 0, 3<<24|minor<<16|1<<8, "python")
			if err != nil {
				t.Fatal(err)
			}
			l.Version.Micro = 0
			got := strings.ReplaceAll(fmt.Sprintf("%+v\n", *l), " ", "\n")
			golden := filepath.Join("testdata", version+".layout")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the layout has changed: go test -update, and look at the difference\n%s", got)
			}
		})
	}
}

// TestFieldsAreNamedOnce finds a field that a table has twice, or that nobody takes.
func TestFieldsAreNamedOnce(t *testing.T) {
	source, err := os.ReadFile("layout.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []map[string][]field{tables, undescribed} {
		for version, fields := range table {
			var names []string
			for _, f := range fields {
				if slices.Contains(names, f.name) {
					t.Errorf("%s has %s twice", version, f.name)
				}
				names = append(names, f.name)
				if !strings.Contains(string(source), `"`+f.name+`"`) {
					t.Errorf("%s has %s, which layoutOf does not take", version, f.name)
				}
			}
		}
	}
}

func TestOtherVersionsAreRefused(t *testing.T) {
	nothing := runtimeMemory(make([]byte, debugOffsetsLen))
	for hex, want := range map[uint64]string{0x030a0df0: "3.10.13", 0x03100000: "3.16.0"} {
		if _, err := ReadLayout(nothing, 0, hex, "python"); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want ErrUnsupported with %s", err, want)
		}
	}
}

func FuzzDebugOffsets(f *testing.F) {
	for _, version := range Readable {
		if b, err := os.ReadFile(filepath.Join("testdata", version+".offsets")); err == nil {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok := parseDebugHeader(b)
		if !ok {
			return
		}
		if l, err := parseDebugOffsets(b, h.version); err == nil && l.Thread.Size > MaxThreadSize {
			t.Fatalf("a thread state of %d bytes", l.Thread.Size)
		}
	})
}
