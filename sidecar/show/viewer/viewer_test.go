package viewer

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/omni-perf/omni-perf/sidecar/testkit/requirement"
)

const bundle = "../../../tools/bundle"

// What is carried is what the sources make; go generate ./sidecar/show/viewer brings it up to date.
func TestAssetsAreWhatTheSourcesMake(t *testing.T) {
	goTool := func(args ...string) ([]byte, error) {
		cmd := exec.Command("go", args...)
		cmd.Dir = bundle
		return cmd.CombinedOutput()
	}
	if out, err := goTool("mod", "download"); err != nil {
		requirement.Missing(t, requirement.Esbuild, "esbuild's module cannot be had here: %s", out)
	}
	viewer, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	fresh := t.TempDir()
	if out, err := goTool("run", ".", "-o", fresh, viewer); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, carried := range map[string]string{
		"viewer.js": Script, "picture.js": PictureScript, "viewer.css": Style,
		"labextension.js": extensionScript(t),
	} {
		got, err := os.ReadFile(filepath.Join(fresh, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != carried {
			t.Errorf("assets/%s is not what the sources make: go generate ./sidecar/show/viewer", name)
		}
	}
}

func TestAnOutputsScriptIsSmall(t *testing.T) {
	if len(Script) > MaxScript {
		t.Errorf("%d bytes, want at most %d: every output of a notebook carries them", len(Script), MaxScript)
	}
	t.Logf("%d of %d bytes of script, %d of style", len(Script), MaxScript, len(Style))
}

// Sources are read by people: what is too long for a line, or for a file, is several things.
func TestSourcesAreReadable(t *testing.T) {
	const mostColumns, mostLines = 120, 300
	for _, folder := range []string{"src", "lab"} {
		files, err := filepath.Glob(folder + "/*")
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", folder, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
			if len(lines) > mostLines && filepath.Ext(file) == ".ts" {
				t.Errorf("%s has %d lines, want at most %d", file, len(lines), mostLines)
			}
			for i, line := range lines {
				if n := utf8.RuneCountInString(line); n > mostColumns {
					t.Errorf("%s:%d has %d columns, want at most %d", file, i+1, n, mostColumns)
				}
			}
		}
	}
}

// Nothing that makes code or markup of text, nothing that leaves the page, nothing that ends the element
// the script is in.
func TestScriptsAreHarmless(t *testing.T) {
	for _, forbidden := range []string{
		`innerHTML`, `outerHTML`, `insertAdjacentHTML`, `createContextualFragment`, `document\.write`, `srcdoc`,
		`\beval\b`, `\bFunction\b`, `\bimport\s*\(`, `setTimeout\(["'` + "`]", `javascript:`,
		`\bfetch\b`, `XMLHttpRequest`, `WebSocket`, `EventSource`, `sendBeacon`, `\bWorker\b`, `createObjectURL`, `https?:`,
		`localStorage`, `sessionStorage`, `indexedDB`, `\.cookie\b`,
		`(?i)</script`, `<!--`,
	} {
		for name, script := range map[string]string{
			"viewer.js": Script, "picture.js": PictureScript,
			"labextension.js": extensionScript(t),
		} {
			// SVG's namespace is a name, not an address.
			script = strings.ReplaceAll(script, `"http://www.w3.org/2000/svg"`, "")
			if found := regexp.MustCompile(forbidden).FindString(script); found != "" {
				t.Errorf("%s has %q", name, found)
			}
		}
	}
	for _, forbidden := range []string{`(?i)</style`, `url\(`, `@import`, `expression\(`} {
		if found := regexp.MustCompile(forbidden).FindString(Style); found != "" {
			t.Errorf("viewer.css has %q", found)
		}
	}
}

// Each rule of the style sheet holds for the viewer's elements only: three charts are on one page with
// a notebook around them.
func TestStyleStaysInside(t *testing.T) {
	text := regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(Style, "")
	text = regexp.MustCompile(`@keyframes opv-hint\{[^}]*\}[^}]*\}\}`).ReplaceAllString(text, "")
	for _, rule := range regexp.MustCompile(`([^{}]+)\{`).FindAllStringSubmatch(text, -1) {
		for _, selector := range splitSelectors(rule[1]) {
			if !strings.HasPrefix(selector, "@") && !strings.Contains(selector, ".opv") && !strings.HasPrefix(selector, ".o-") {
				t.Errorf("%q holds for the whole page", selector)
			}
		}
	}
}

// splitSelectors splits at commas that are not within parentheses.
func splitSelectors(s string) []string {
	var out []string
	depth, start := 0, 0
	for i, r := range s {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(s[start:i]))
				start = i + 1
			}
		}
	}
	return append(out, strings.TrimSpace(s[start:]))
}

func TestNothingIsNeededAtRunTime(t *testing.T) {
	text, err := os.ReadFile("package.json")
	if err != nil {
		t.Fatal(err)
	}
	var pkg struct{ Dependencies map[string]string }
	if err := json.Unmarshal(text, &pkg); err != nil {
		t.Fatal(err)
	}
	if len(pkg.Dependencies) > 0 {
		t.Errorf("dependencies at run time: %v", pkg.Dependencies)
	}
	if product, err := os.ReadFile("../../../go.mod"); err != nil || strings.Contains(string(product), "esbuild") {
		t.Errorf("esbuild belongs to tools/bundle, not to the product's go.mod (%v)", err)
	}
}
