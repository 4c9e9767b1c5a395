package origin

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pathOfModule is what a literal looks like by which code distinguishes a Python file from others: a file's end,
// or a folder of a library's between slashes.
var pathOfModule = regexp.MustCompile(`^\.?[\w/-]*/\w+\.py$|^/?\w+\.py$|^/[a-zA-Z_]\w*(?:/\w+)*/$|^[a-zA-Z_]\w*(?:/\w+)+/$|(?:site|dist)-packages|^<frozen`)

// elsewhere are the files that may have such literals, and why.
var elsewhere = map[string]string{
	"measure/pystack/await.go":      "asyncio's loop is looked into: which of its functions have the task among their locals",
	"measure/pystack/notified.go":   "what a thread waits for is known by who has called Condition.wait, and a future is among the locals of a pool's function",
	"measure/pystack/loaders.go":    "torch's loader is looked into: its iterator is among the locals of its functions",
	"measure/pystack/passlength.go": "likewise its samplers, whose generators have what they go over",
	"measure/timeline/recording.go": "the collector of the interpreter is in no file; its frame has a name like a frozen module",
	"measure/pystack/threadname.go": "the name of a thread is read from the locals of threading's first function",
}

// What is known of libraries is in libraries.txt: nobody else has a table of their files.
func TestNobodyElseKnowsLibrariesFiles(t *testing.T) {
	known := func(literal string) bool {
		folder := strings.Trim(strings.TrimSuffix(strings.ReplaceAll(literal, `\`, "/"), ".py"), "/")
		top, _, _ := strings.Cut(folder, "/")
		return strings.Contains(literal, "-packages") || strings.HasPrefix(literal, "<frozen") || knownOf(top).parts > 0 || standardModules()[top]
	}
	sidecar := filepath.Join("..", "..")
	var allowed []string
	err := filepath.WalkDir(sidecar, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, _ := filepath.Rel(sidecar, name)
		file = filepath.ToSlash(file)
		if dir := filepath.ToSlash(filepath.Dir(file)); dir == "understand/origin" || strings.HasPrefix(dir, "testkit") || dir == "traces/synth" {
			return nil // the list itself, and what makes programs and traces up
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, name, text, 0)
		if err != nil {
			return err
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if _, isImport := n.(*ast.ImportSpec); isImport {
				return false
			}
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			if value, err := strconv.Unquote(literal.Value); err == nil && pathOfModule.MatchString(value) && known(value) {
				if elsewhere[file] == "" {
					t.Errorf("%s: %q belongs into libraries.txt", set.Position(literal.Pos()), value)
				}
				allowed = append(allowed, file)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for file := range elsewhere {
		if !slices.Contains(allowed, file) {
			t.Errorf("%s has no such literal any more: take it out of the list", file)
		}
	}
}
