package chart

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var look = flag.String("look", "", "write every sample as SVG into this folder, to be looked at")

func TestLook(t *testing.T) {
	if *look == "" {
		t.Skip("only with -look DIR")
	}
	for name, r := range samples() {
		for _, theme := range []Theme{Light, Dark, Auto} {
			svg, err := SVG(r, Options{Theme: theme})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s %s: %d bytes", name, theme, len(svg))
			if err := os.WriteFile(filepath.Join(*look, name+"-"+string(theme)+".svg"), svg, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestLookText(t *testing.T) {
	if *look == "" {
		t.Skip("only with -look DIR")
	}
	for name, r := range samples() {
		h, _ := HTML(r, Options{})
		f, _ := Folded(r, Options{})
		p, err := Page(r, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: html %d, folded %d, page %d\n%s", name, len(h), len(f), len(p), Text(r, 100))
		write := func(kind string, b []byte) {
			if err := os.WriteFile(filepath.Join(*look, name+"."+kind+".html"), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("html", h)
		write("folded", f)
		write("page", p)
	}
}
