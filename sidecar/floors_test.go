// Package sidecar has the folders of the engine, one for each floor, and the test of what they may import.
package sidecar

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/omni-perf/omni-perf/"

// floors are the folders, the lowest first: a package imports from its own floor and from lower ones.
// sidecar/api, jupyter and magics are below all of them, testkit is for tests.
var floors = []string{"measure", "understand", "compare", "show", "traces", "doors", "cmd"}

// measured are the packages of measure that whatever is not a door may use: the recording, and files
// opened with the rights of the process that names them.
var measured = map[string][]string{
	"understand": {"timeline"},
	"compare":    {"timeline"},
	"show":       {"timeline"},
	"traces":     {"timeline", "targetfs"},
	"jupyter":    {"targetfs"}, // for a kernel's connection file
}

// place is where a package is: its floor and its path on it.
type place struct{ floor, name string }

func (p place) String() string { return path.Join(p.floor, p.name) }

// placeOf finds the floor of a package by its path within the module; bench is on none.
func placeOf(pkg string) (p place, ok bool) {
	first, rest, _ := strings.Cut(pkg, "/")
	switch first {
	case "sidecar":
		p.floor, p.name, _ = strings.Cut(rest, "/")
		return p, rest != ""
	case "cmd", "jupyter", "magics":
		return place{first, rest}, true
	}
	return place{}, false
}

// imports lists what the packages import of each other. Tests are left out.
func imports(t *testing.T) map[place][]place {
	t.Helper()
	out := make(map[place][]place)
	for _, top := range []string{"sidecar", "cmd", "jupyter", "magics"} {
		err := filepath.WalkDir(filepath.Join("..", top), func(name string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			pkg, _ := filepath.Rel("..", filepath.Dir(name))
			from, ok := placeOf(pkg)
			if !ok {
				return fmt.Errorf("%s is on no floor", pkg)
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, spec := range file.Imports {
				imported, _ := strconv.Unquote(spec.Path.Value)
				if pkg, ours := strings.CutPrefix(imported, module); ours {
					to, ok := placeOf(pkg)
					if !ok {
						return fmt.Errorf("%s imports %s, which is on no floor", from, pkg)
					}
					if !slices.Contains(out[from], to) {
						out[from] = append(out[from], to)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// mayImport reports whether a package may import another one.
func mayImport(from, to place) bool {
	if from.floor == "testkit" {
		return to.floor != "cmd"
	}
	here, there := slices.Index(floors, from.floor), slices.Index(floors, to.floor)
	switch {
	case to.floor == "testkit":
		return false
	case to.floor == "measure" && measured[from.floor] != nil:
		return slices.Contains(measured[from.floor], to.name)
	case there < 0: // api, jupyter, magics
		return here >= 0
	}
	return there <= here
}

// picture draws the floors, the highest first, with how many imports go from each to the others.
func picture(graph map[place][]place) string {
	counts := make(map[string]map[string]int)
	for from, list := range graph {
		for _, to := range list {
			if from.floor != to.floor {
				if counts[from.floor] == nil {
					counts[from.floor] = make(map[string]int)
				}
				counts[from.floor][to.floor]++
			}
		}
	}
	var b strings.Builder
	all := append([]string{"jupyter", "magics", "api"}, floors...)
	all = append(all, "testkit")
	for _, from := range slices.Backward(all) {
		fmt.Fprintf(&b, "%-10s", from)
		for _, to := range slices.Backward(all) {
			if n := counts[from][to]; n > 0 {
				fmt.Fprintf(&b, "  → %s %d", to, n)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestNoPackageImportsFromAHigherFloor(t *testing.T) {
	graph := imports(t)
	var wrong []string
	for from, list := range graph {
		for _, to := range list {
			if !mayImport(from, to) {
				wrong = append(wrong, fmt.Sprintf("%s must not import %s", from, to))
			}
		}
	}
	slices.Sort(wrong)
	t.Logf("imports between floors:\n%s", picture(graph))
	if len(wrong) > 0 {
		t.Errorf("%s", strings.Join(wrong, "\n"))
	}
}

func TestTheArchitecturePageHasTheFloorsInTheirOrder(t *testing.T) {
	page, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Floors\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(section, -1) {
		got = append(got, row[1])
	}
	want := slices.Concat(floors[:len(floors)-1], []string{"testkit"})
	if !slices.Equal(got, want) {
		t.Errorf("the page has the floors %v, want %v", got, want)
	}
}
