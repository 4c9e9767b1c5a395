package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// modulesInProgram are the modules that the program links, with their folders.
func modulesInProgram(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}", ".").Output()
	if err != nil {
		t.Skipf("go list: %v", err)
	}
	modules := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		if path, dir, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			modules[path] = dir
		}
	}
	if len(modules) < 10 {
		t.Fatalf("only %d modules: %v", len(modules), modules)
	}
	return modules
}

// noticed are the modules that NOTICE names, a line for each or for several:
// "golang.org/x/net, sync".
func noticed(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^  (\S+?)/([\w.-]+(?:, [\w.-]+)*)  +(?:[A-Z])`).FindAllStringSubmatch(string(text), -1) {
		for _, last := range strings.Split(m[2], ", ") {
			names = append(names, m[1]+"/"+last)
		}
	}
	return names
}

func TestEveryModuleInTheProgramIsInNOTICE(t *testing.T) {
	named := noticed(t)
	licence := regexp.MustCompile(`(?i)^(licen[cs]e|copying)`)
	var used []string
	for path, dir := range modulesInProgram(t) {
		at := slices.IndexFunc(named, func(name string) bool {
			rest, ok := strings.CutPrefix(path, name)
			return ok && (rest == "" || strings.HasPrefix(rest, "/")) // …/v3, …/googleapis/rpc
		})
		if at < 0 {
			t.Errorf("NOTICE does not name %s, which the program links", path)
			continue
		}
		used = append(used, named[at])
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		if !slices.ContainsFunc(files, func(file string) bool { return licence.MatchString(filepath.Base(file)) }) {
			t.Errorf("%s has no licence file for THIRD_PARTY_LICENSES.txt", path)
		}
	}
	for _, name := range named {
		if !slices.Contains(used, name) {
			t.Errorf("NOTICE names %s, which the program does not link", name)
		}
	}
}
