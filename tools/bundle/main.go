// Command bundle turns the viewer's TypeScript into the files that the product carries:
//
//	go run . -o ASSETS VIEWER     viewer.js, viewer.full.js, picture.js, viewer.compare.js, viewer.css and labextension.js
//	go run . -tests FILE VIEWER   the viewer's tests as one script, for a page to run
//
// VIEWER is the viewer's folder: sources in src, those of the JupyterLab extension in lab, tests in test, and in
// properties.txt the names of the viewer's own properties, which are shortened.
//
// It is a module of its own, so that esbuild is no dependency of the product, and it is all that
// building the viewer takes: no Node.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	assets := flag.String("o", "", "`folder` for the product's files")
	tests := flag.String("tests", "", "`file` for the tests' script")
	flag.Parse()
	if err := run(flag.Args(), *assets, *tests); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(args []string, assets, tests string) error {
	if len(args) != 1 || assets == "" && tests == "" {
		return errors.New("what is asked for? bundle -o ASSETS VIEWER, or bundle -tests FILE VIEWER")
	}
	viewer, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	if tests != "" {
		return writeTests(viewer, tests)
	}
	return writeAssets(viewer, assets)
}

const notice = "omni_perf, Apache-2.0"

// writeAssets builds what the product carries.
func writeAssets(viewer, assets string) error {
	own, err := ownProperties(viewer)
	if err != nil {
		return err
	}
	for _, a := range []struct{ name, entry, full string }{
		{"viewer.js", "inline.ts", "false"},          // in each output of a notebook
		{"viewer.full.js", "inline-page.ts", "true"}, // in pages of their own
		{"picture.js", "inline-picture.ts", "false"}, // in outputs without data
		{"viewer.compare.js", "inline-comparison.ts", "false"},
		{"viewer.css", "viewer.css", "true"},
	} {
		o := shipped(filepath.Join(viewer, "src", a.entry))
		o.Define = map[string]string{"FULL": a.full}
		o.MangleProps = own
		if err := write(o, filepath.Join(assets, a.name)); err != nil {
			return err
		}
	}
	return writeExtension(viewer, assets)
}

// writeExtension builds the script of the JupyterLab extension, which loads those of outputs. They are asked for
// with their content's hash, so that a browser keeps them until they change.
func writeExtension(viewer, assets string) error {
	scripts := make(map[string]string)
	for kind, name := range map[string]string{"chart": "viewer.js", "comparison": "viewer.compare.js"} {
		code, err := os.ReadFile(filepath.Join(assets, name))
		if err != nil {
			return err
		}
		scripts[kind] = fmt.Sprintf("%s?v=%x", name, sha256.Sum256(code))[:len(name)+len("?v=")+12]
	}
	names, err := json.Marshal(scripts)
	if err != nil {
		return err
	}
	o := shipped(filepath.Join(viewer, "lab", "extension.ts"))
	o.Define = map[string]string{"FULL": "false", "SCRIPTS": string(names)}
	return write(o, filepath.Join(assets, "labextension.js"))
}

// shipped is how the product's files are built.
func shipped(entry string) api.BuildOptions {
	return api.BuildOptions{
		EntryPoints: []string{entry},
		// A classic script in a function of its own: outputs of one page share the global scope, and
		// not every front end runs modules.
		Format:            api.FormatIIFE,
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		MinifySyntax:      true,
		// As old as the browsers that have DecompressionStream.
		Target:        api.ES2022,
		Charset:       api.CharsetUTF8,
		LegalComments: api.LegalCommentsNone,
		TsconfigRaw:   "{}", // the types' settings are no business of the script
		Banner:        map[string]string{"js": "/* " + notice + " */", "css": "/* " + notice + " */"},
	}
}

func write(o api.BuildOptions, file string) error {
	code, err := build(o)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return os.WriteFile(file, code, 0o644)
}

// ownProperties is a pattern for the names that are only ever properties of the viewer's own types.
// test/properties.test.ts keeps the list right, by the types that the compiler sees.
func ownProperties(viewer string) (string, error) {
	text, err := os.ReadFile(filepath.Join(viewer, "properties.txt"))
	if err != nil {
		return "", err
	}
	return "^(" + strings.Join(strings.Fields(string(text)), "|") + ")$", nil
}

// writeTests joins the tests with a stand-in for vitest that runs them where they are loaded.
func writeTests(viewer, file string) error {
	tests, err := filepath.Glob(filepath.Join(viewer, "test", "*.test.ts"))
	if err != nil {
		return err
	}
	slices.Sort(tests)
	var imports strings.Builder
	for _, path := range tests {
		fmt.Fprintf(&imports, "import %q;\n", path)
	}
	code, err := build(api.BuildOptions{
		Stdin:    &api.StdinOptions{Contents: imports.String(), ResolveDir: viewer, Loader: api.LoaderTS},
		Alias:    map[string]string{"vitest": filepath.Join(viewer, "test", "inpage.ts")},
		Define:   map[string]string{"FULL": "true", "PAYLOADS": "4000"}, // as in vitest.config.ts
		Format:   api.FormatIIFE,
		Target:   api.ES2022,
		Platform: api.PlatformBrowser,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(file, code, 0o644)
}

func build(o api.BuildOptions) ([]byte, error) {
	o.Bundle = true
	result := api.Build(o)
	var problems []error
	for _, m := range result.Errors {
		place := ""
		if m.Location != nil {
			place = fmt.Sprintf("%s:%d: ", m.Location.File, m.Location.Line)
		}
		problems = append(problems, errors.New(place+m.Text))
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return result.OutputFiles[0].Contents, nil
}
