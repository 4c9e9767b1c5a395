package viewer

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// extensionScript is the script of the JupyterLab extension.
func extensionScript(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile("assets/labextension.js")
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// The extension adds little to the script of outputs, which it loads by name and content.
func TestTheExtensionHasTheScriptOfOutputs(t *testing.T) {
	script := extensionScript(t)
	if len(script) > 6<<10 {
		t.Errorf("%d bytes of script are loaded with every JupyterLab, want at most 6 kB: the rest waits for a chart", len(script))
	}
	if want := fmt.Sprintf(`"viewer.js?v=%.12s"`, fmt.Sprintf("%x", sha256.Sum256([]byte(Script)))); !strings.Contains(script, want) {
		t.Errorf("the extension has no %s", want)
	}
	for _, want := range []string{`"` + MimeType + `"`, `"` + PictureClass + `"`, `"` + string(KindChart) + `"`, `"` + string(KindComparison) + `"`} {
		if !strings.Contains(script, want) {
			t.Errorf("the extension does not speak of %s", want)
		}
	}
}

// The package that JupyterLab finds names the script's module, and is of the product's version.
func TestTheExtensionsPackage(t *testing.T) {
	text, err := os.ReadFile("labextension/package.json")
	if err != nil {
		t.Fatal(err)
	}
	var pkg struct {
		Name, Version string
		JupyterLab    struct {
			Build struct{ Load, MimeExtension string } `json:"_build"`
		}
	}
	if err := json.Unmarshal(text, &pkg); err != nil {
		t.Fatal(err)
	}
	python, err := os.ReadFile("../../../magics/omni_perf/_version.py")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`__version__ = "(.*)"`).FindSubmatch(python)
	if version == nil || pkg.Version != string(version[1]) {
		t.Errorf("labextension/package.json is of version %s, omni_perf of %s", pkg.Version, version)
	}
	if b := pkg.JupyterLab.Build; pkg.Name != "omni-perf" || b.Load != "static/remoteEntry.js" || b.MimeExtension != "./mimeExtension" {
		t.Errorf("package.json says %+v", pkg)
	}
	project, err := os.ReadFile("../../../pyproject.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"labextension.js", "viewer.js", "viewer.css", "picture.css"} {
		if !strings.Contains(string(project), `"sidecar/show/viewer/assets/`+file+`" = "share/jupyter/labextensions/omni-perf/static/`) {
			t.Errorf("pyproject.toml does not put %s into the wheel", file)
		}
	}
	// What was released is read for ever: the browser tests draw each of these.
	if released, err := filepath.Glob("testdata/output-*.json"); err != nil || len(released) != Version-1 {
		t.Errorf("testdata has outputs %q, want one of each version from 2 to %d", released, Version)
	}
}
