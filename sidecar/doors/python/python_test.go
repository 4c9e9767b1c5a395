package python

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// programAt makes a program in a folder of its own.
func programAt(t *testing.T, name string, mode os.FileMode) (folder, path string) {
	t.Helper()
	folder = t.TempDir()
	path = filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, mode); err != nil {
		t.Fatal(err)
	}
	return folder, path
}

// All who need a Python agree on the virtual environment's where nothing else is named.
func TestWhichPython(t *testing.T) {
	env, active := programAt(t, "bin/python", 0o700)
	conda, condas := programAt(t, "bin/python", 0o700)
	path, found := programAt(t, "python3", 0o700)
	_, named := programAt(t, "mine", 0o700)
	damaged, _ := programAt(t, "bin/python", 0o600)
	t.Setenv("PATH", path)
	for _, c := range []struct {
		name, named, env, conda, variable string
		users, extensions, any            string
	}{
		{"an environment", "", env, "", "", active, active, active},
		{"a name", named, env, "", "", named, active, named},
		{"called by the extension", "", env, "", named, active, named, active},
		{"no environment", "", "", "", "", found, "python3", found},
		{"Conda's", "", "", conda, "", condas, condas, condas},
		{"a virtual one within Conda's", "", env, conda, "", active, active, active},
		{"an environment without a program", "", damaged, "", "", found, "python3", found},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("VIRTUAL_ENV", c.env)
			t.Setenv("CONDA_PREFIX", c.conda)
			t.Setenv(Variable, c.variable)
			if got, err := OfUser(c.named); err != nil || got != c.users {
				t.Errorf("the user's: %q, %v; want %q", got, err, c.users)
			}
			if got := OfExtension(); got != c.extensions {
				t.Errorf("the extension's: %q, want %q", got, c.extensions)
			}
			if got := Any(c.named); got != c.any {
				t.Errorf("any: %q, want %q", got, c.any)
			}
		})
	}
	t.Setenv("PATH", t.TempDir())
	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv("CONDA_PREFIX", "")
	if got, err := OfUser(""); err == nil {
		t.Errorf("with none there is %q", got)
	}
	if got, err := OfUser("/no/such/python"); err == nil {
		t.Errorf("a name of nothing is %q", got)
	}
	if got := Any(""); got != "" {
		t.Errorf("with none any is %q", got)
	}
}

// The Python beside the program comes second, where it is of another environment than the user's.
func TestCandidates(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env, active := programAt(t, "bin/python", 0o700)
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CONDA_PREFIX", "")
	check := func(named, env string, want ...string) {
		t.Helper()
		t.Setenv("VIRTUAL_ENV", env)
		if got, err := Candidates(named); !slices.Equal(got, want) {
			t.Errorf("%q in %q: %q, %v; want %q", named, env, got, err, want)
		}
	}
	check("", env, active)
	beside := filepath.Join(filepath.Dir(self), "python") // in the folder of this test's binary, which is removed with it
	if err := os.WriteFile(beside, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(beside)
	check("", env, active, beside)
	check("", "", beside)
	check(active, env, active)
	same := t.TempDir()
	if err := os.Symlink(filepath.Dir(self), filepath.Join(same, "bin")); err != nil {
		t.Fatal(err)
	}
	check("", same, filepath.Join(same, "bin", "python"))
}
