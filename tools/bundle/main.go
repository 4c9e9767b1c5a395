// Command bundle turns the viewer's TypeScript into the files that the product carries:
//
//	go run . -o ASSETS VIEWER     viewer.js, picture.js, viewer.css and labextension.js
//	go run . -tests FILE VIEWER   the viewer's tests as one script, for a page to run
//
// VIEWER is the viewer's folder: sources in src, those of the JupyterLab extension in lab, tests in test.
//
// It is a module of its own, so that esbuild is no dependency of the product, and it is all that
// building the viewer takes: no Node.
package main

import (
	"crypto/sha256"
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
	for name, entry := range map[string]string{
		"viewer.js":  "inline.ts",         // in outputs with data, and in pages
		"picture.js": "inline-picture.ts", // in outputs without data
		"viewer.css": "viewer.css",
	} {
		if err := write(shipped(filepath.Join(viewer, "src", entry)), filepath.Join(assets, name)); err != nil {
			return err
		}
	}
	return writeExtension(viewer, assets)
}

// writeExtension builds the script of the JupyterLab extension, which loads that of outputs. It is asked for
// with its content's hash, so that a browser keeps it until it changes.
func writeExtension(viewer, assets string) error {
	const name = "viewer.js"
	code, err := os.ReadFile(filepath.Join(assets, name))
	if err != nil {
		return err
	}
	o := shipped(filepath.Join(viewer, "lab", "extension.ts"))
	o.Define = map[string]string{"SCRIPT": fmt.Sprintf("%q", fmt.Sprintf("%s?v=%.12s", name, fmt.Sprintf("%x", sha256.Sum256(code))))}
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
		Define:   map[string]string{"PAYLOADS": "4000"}, // as in vitest.config.ts
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
