package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const aNotebook = "0123456789abcdef0123456789abcdef"

func TestALastReportIsPrivateAndReplacesTheOneBefore(t *testing.T) {
	parent := t.TempDir()
	for cell := 1; cell <= 2; cell++ {
		if err := keepLast(parent, aNotebook, &lastReport{Cell: cell, ReportGzip: []byte{1}}); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(parent, lastFolder())
	entries, _ := os.ReadDir(folder)
	if len(entries) != 1 || entries[0].Name() != aNotebook+".json" {
		t.Fatalf("in the folder there is %v", entries)
	}
	for path, want := range map[string]os.FileMode{folder: 0o700, filepath.Join(folder, entries[0].Name()): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	var got lastReport
	text, _ := os.ReadFile(filepath.Join(folder, entries[0].Name()))
	if err := json.Unmarshal(text, &got); err != nil || got.Cell != 2 {
		t.Errorf("%s, %v", text, err)
	}
}

func TestNothingIsKeptWhereOthersCouldReadOrPlaceIt(t *testing.T) {
	parent, elsewhere := t.TempDir(), t.TempDir()
	folder := filepath.Join(parent, lastFolder())
	for what, make := range map[string]func() error{
		"a folder for all":  func() error { return os.Mkdir(folder, 0o755) },
		"a link to another": func() error { return os.Symlink(elsewhere, folder) },
		"a file":            func() error { return os.WriteFile(folder, nil, 0o600) },
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if err := keepLast(parent, aNotebook, &lastReport{}); err == nil {
			t.Errorf("%s was written to", what)
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"", "..", "../" + aNotebook, aNotebook + "/a", strings.ToUpper(aNotebook)} {
		if err := keepLast(parent, name, &lastReport{}); err == nil {
			t.Errorf("%q was taken for the name of a notebook", name)
		}
	}
}

func TestAfterADayALastReportIsRemoved(t *testing.T) {
	parent := t.TempDir()
	sweepLast(parent, time.Now()) // there is none
	if err := keepLast(parent, aNotebook, &lastReport{}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(parent, lastFolder(), aNotebook+".json")
	sweepLast(parent, time.Now().Add(23*time.Hour))
	if _, err := os.Stat(file); err != nil {
		t.Error("it was removed too early")
	}
	foreign := filepath.Join(parent, lastFolder(), "notes.txt")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sweepLast(parent, time.Now().Add(25*time.Hour))
	if _, err := os.Stat(file); err == nil {
		t.Error("it is still there after a day")
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error("somebody's own file was removed")
	}
	os.Remove(foreign)
	sweepLast(parent, time.Now())
	if _, err := os.Stat(filepath.Dir(file)); err == nil {
		t.Error("the empty folder is still there")
	}
}
