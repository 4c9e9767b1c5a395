package program

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func find(kernels []Kernel, pid int) *Kernel {
	for i := range kernels {
		if kernels[i].PID == pid {
			return &kernels[i]
		}
	}
	return nil
}

func TestRunningKernelsAreFoundByTheirProcesses(t *testing.T) {
	t.Setenv("JPY_SESSION_NAME", "/home/ann/train.ipynb")
	file := connectionFile(t, "kernel-0b1c.json", os.Getuid())
	pid, says := pretend(t, os.Getuid(), sleeps, "-f", file.Path)
	says()
	client, says := pretend(t, os.Getuid(), sleeps, "--existing="+file.Path)
	says()
	noKernel, says := pretend(t, os.Getuid(), sleeps, "-f", write(t, "kernel-2.json", "{}"))
	says()
	running := Kernels()
	k := find(running, pid)
	if k == nil {
		t.Fatalf("it is not among %+v", running)
	}
	if k.ID() != "0b1c" || k.Notebook != "/home/ann/train.ipynb" || k.Refusal != nil || time.Since(k.Started) < 0 || time.Since(k.Started) > time.Minute {
		t.Errorf("%+v", k)
	}
	if find(running, client) != nil || find(running, noKernel) != nil {
		t.Error("a client, or a process of another file, is taken for a kernel")
	}
	if got, err := KernelProcess(file); err != nil || got != pid {
		t.Errorf("process %d, %v; want %d: clients are no kernels", got, err, pid)
	}
}

func TestAKernelsProcessIsTakenForTheKernel(t *testing.T) {
	file := connectionFile(t, "kernel-0b1c.json", os.Getuid())
	pid, says := pretend(t, os.Getuid(), sleeps, "-f", file.Path)
	says()
	if got, cells := CellsOf(pid, jupyter.ConnectionFile{}); got != 0 || cells.Path != file.Path {
		t.Errorf("process %d, file %q; want the kernel of %q", got, cells.Path, file.Path)
	}
	if got, _ := CellsOf(os.Getpid(), jupyter.ConnectionFile{}); got != os.Getpid() {
		t.Errorf("process %d; want %d, which is no kernel", got, os.Getpid())
	}
	_, says = pretend(t, os.Getuid(), sleeps, "-f", file.Path)
	says()
	if got, cells := CellsOf(pid, jupyter.ConnectionFile{}); got != pid || cells.Path != "" {
		t.Errorf("process %d, file %q; want process %d: two were started with the file", got, cells.Path, pid)
	}
}

func TestKernelsOfOthersAreNotListed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user to try it")
	}
	const nobody = 65534
	file := connectionFile(t, "kernel-1.json", nobody)
	pid, says := pretend(t, nobody, sleeps, "-f", file.Path)
	says()
	if find(Kernels(), pid) != nil {
		t.Error("another user's kernel is listed")
	}
}

func TestNamesOfKernels(t *testing.T) {
	named := func(id, notebook string) Kernel {
		return Kernel{PID: len(id), File: jupyter.ConnectionFile{Path: "/run/kernel-" + id + ".json"}, Notebook: notebook}
	}
	encrypted := named("curve", "")
	encrypted.Refusal = jupyter.ErrCurve
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("here.ipynb", []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	running := []Kernel{
		named("abc", "/home/ann/train.ipynb"), named("abcd", "/home/ann/test.ipynb"), named("xyz", "/tmp/test.ipynb"),
		named("qq", filepath.Join(dir, "here.ipynb")), encrypted,
	}
	t.Setenv("JUPYTER_RUNTIME_DIR", dir)
	for name, want := range map[string]string{
		"abc": "abc", "abcd": "abcd", "x": "xyz", "train.ipynb": "abc", "train": "abc", "/tmp/test.ipynb": "xyz", "here.ipynb": "qq", "./here.ipynb": "qq", "here": "qq",
	} {
		file, err := FindKernel(name, running)
		if err != nil || file.Path != "/run/kernel-"+want+".json" {
			t.Errorf("%s is %s, %v; want %s", name, file.Path, err, want)
		}
	}
	for name, want := range map[string]string{
		"ab":            `"ab" may be any of abc (process 3) or abcd (process 4)`,
		"test":          "may be any of abcd (process 4) or xyz (process 3)",
		"missing.ipynb": "no running kernel of yours is that of missing.ipynb",
		"none":          "lists the kernels that run",
		"curve":         "CurveZMQ",
	} {
		if _, err := FindKernel(name, running); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestTheListOfKernels(t *testing.T) {
	running := []Kernel{
		{PID: 11, File: jupyter.ConnectionFile{Path: "/run/kernel-a.json"}, Notebook: "/x/\x1b[2Jä.ipynb", Started: time.Date(2026, 3, 1, 9, 30, 0, 0, time.Local)},
		{PID: 1234567, File: jupyter.ConnectionFile{Path: "/run/kernel-bbbb.json"}, Refusal: jupyter.ErrCurve},
		{PID: 7, File: jupyter.ConnectionFile{Path: "/run/kernel-c.json"}},
	}
	var out bytes.Buffer
	err := ListKernels(&out, running, func(pid int) ([]timeline.Frame, error) {
		if pid == 7 {
			return nil, errors.Join(errors.New("ptrace"), fs.ErrPermission)
		}
		return []timeline.Frame{{File: "/tmp/ipykernel_1/2.py", Function: "<module>", Line: 3}}, nil
	})
	want := "" +
		"PID      KERNEL  STARTED           STATE                 NOTEBOOK\n" +
		"11       a       2026-03-01 09:30  busy: line 3          /x/\ufffd[2Jä.ipynb\n" +
		"1234567  bbbb    not known         encrypted (CurveZMQ)  not known\n" +
		"7        c       not known         may not be read       not known\n"
	if err != nil || out.String() != want {
		t.Errorf("%v, got\n%swant\n%s", err, out.String(), want)
	}
}

func TestAFolderHasOneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	first, err := OpenFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(path); !errors.Is(err, ErrInUse) {
		t.Errorf("a second writer: %v", err)
	}
	first.Close()
	second, err := OpenFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v; want a private folder", info, err)
	}
	second.Close()
	if _, err := os.Stat(path); err == nil {
		t.Error("a folder that was made for nothing is left")
	}
	if _, err := OpenFolder(write(t, "file", "")); err == nil {
		t.Error("a file was taken for a folder")
	}
	linked := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(linked, indexName)); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(linked); err == nil || !strings.Contains(err.Error(), "it is a link") {
		t.Errorf("a page that is a link: %v", err)
	}
}
