package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const text = "the result"

// content reads a file; empty when it is not there.
func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

func put(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// alone fails if anything but these names is in the folder.
func alone(t *testing.T, folder string, names ...string) {
	t.Helper()
	var got []string
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%v is in the folder, want %v", got, names)
	}
}

func TestAFileIsMadeOrReplacedAndIsPrivate(t *testing.T) {
	defer unix.Umask(unix.Umask(0))
	for _, mode := range []os.FileMode{0, 0o600, 0o644, 0o666, 0o755} {
		dir := t.TempDir()
		path := filepath.Join(dir, "r.svg")
		if mode != 0 {
			put(t, path, "old", mode)
		}
		if err := Check(path); err != nil {
			t.Errorf("mode %v: %v", mode, err)
		}
		if err := WriteBytes(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o600 || content(t, path) != text {
			t.Errorf("over a file of mode %v: %v, %v, %q; want mode 0600 and the result", mode, info.Mode(), err, content(t, path))
		}
		alone(t, dir, "r.svg")
	}
}

func TestAnotherNameOfAReplacedFileKeepsItsContent(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "r.svg"), filepath.Join(dir, "other")
	put(t, path, "old", 0o600)
	if err := os.Link(path, other); err != nil {
		t.Skip(err)
	}
	if err := WriteBytes(path, []byte(text)); err != nil {
		t.Fatal(err)
	}
	if content(t, other) != "old" || content(t, path) != text {
		t.Errorf("the other name has %q, the result %q", content(t, other), content(t, path))
	}
}

func TestAFailedWriteLeavesWhatWasThere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "r.svg")
	put(t, path, "a good report", 0o640)
	broken := errors.New("cannot be drawn")
	err := Write(path, func(w io.Writer) error {
		io.WriteString(w, strings.Repeat("half", 1<<18))
		return broken
	})
	var place *PlaceError
	if !errors.Is(err, broken) || errors.As(err, &place) {
		t.Errorf("error %v, want the writer's own", err)
	}
	if got := content(t, path); got != "a good report" {
		t.Errorf("the report is now %d bytes", len(got))
	}
	alone(t, dir, "r.svg")
}

// smallDisk mounts a file system of 64 kB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a full disk takes a file system of its own: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func TestAFullDiskLeavesWhatWasThere(t *testing.T) {
	dir := smallDisk(t)
	path := filepath.Join(dir, "r.svg")
	put(t, path, "a good report", 0o600)
	err := WriteBytes(path, make([]byte, 1<<20))
	var place *PlaceError
	if !errors.As(err, &place) || !errors.Is(err, unix.ENOSPC) || place.Path != path {
		t.Errorf("error %v, want a place that is full", err)
	}
	if content(t, path) != "a good report" {
		t.Error("the good report is gone")
	}
	alone(t, dir, "r.svg")
}

func TestWhatIsRefused(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	put(t, in("file"), "precious", 0o644)
	for name, to := range map[string]string{"link": in("file"), "relative": "file", "chain": in("link"), "nowhere": in("none"), "loop": in("loop"), "tofolder": dir} {
		if err := os.Symlink(to, in(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mknod(in("socket"), unix.S_IFSOCK|0o600, 0); err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{
		"":               "the name is empty",
		in("link"):       "it is a link to " + in("file"),
		in("relative"):   "it is a link to file, which is not followed",
		in("chain"):      "it is a link to",
		in("nowhere"):    "it is a link to " + in("none"),
		in("loop"):       "it is a link",
		in("tofolder"):   "it is a folder",
		dir:              "it is a folder; name a file in it",
		in("new") + "/":  "it names a folder",
		in("socket"):     "neither a file nor a device",
		in("no/such/x"):  "there is no folder " + in("no/such"),
		in("file/x"):     "not a directory",
		"/dev/fd/999":    "the file descriptor 999 is not open",
		"/proc/self/mem": "", // whatever it is, it is not to be replaced
	}
	if os.Geteuid() == 0 && unix.Mknod(in("disk"), unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0))) == nil {
		refused[in("disk")] = "it is a disk"
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	refused[fmt.Sprintf("/proc/self/fd/%d", null.Fd())] = "open for reading only"

	for path, want := range refused {
		checked, written := Check(path), WriteBytes(path, []byte(text))
		var place *PlaceError
		if !errors.As(written, &place) || !strings.Contains(written.Error(), want) {
			t.Errorf("%q: %v, want a refusal with %q", path, written, want)
		}
		if want != "" && (checked == nil || checked.Error() != written.Error()) {
			t.Errorf("%q: said before: %v, after: %v", path, checked, written)
		}
	}
	if content(t, in("file")) != "precious" {
		t.Error("a file that a link leads to was written")
	}
	for _, name := range []string{"link", "nowhere", "socket"} {
		if info, err := os.Lstat(in(name)); err != nil || info.Mode().IsRegular() {
			t.Errorf("%s was replaced: %v", name, err)
		}
	}
}

// asNobody runs a test again in a process of another user, who may enter dir.
func asNobody(t *testing.T, dir string) (child bool) {
	t.Helper()
	const variable = "OMNI_PERF_TEST_FOLDER"
	if os.Getenv(variable) != "" {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user to try it")
	}
	program := filepath.Join(dir, "test")
	b, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	put(t, program, string(b), 0o755)
	for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	p, err := os.StartProcess(program, []string{program, "-test.run=^" + t.Name() + "$"}, &os.ProcAttr{
		Dir: dir, Env: append(os.Environ(), variable+"="+dir), Files: []*os.File{nil, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if state, err := p.Wait(); err != nil || !state.Success() {
		t.Errorf("as another user: %v, %v", state, err)
	}
	return false
}

func TestAnOrdinaryUserIsToldBefore(t *testing.T) {
	dir := os.Getenv("OMNI_PERF_TEST_FOLDER")
	if dir == "" {
		dir = t.TempDir()
		for name, mode := range map[string]os.FileMode{"open": 0o777, "closed": 0o755, "sticky": 0o777 | os.ModeSticky} {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.Mkdir(path, 0o755), os.Chmod(path, mode)); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(path, "roots"), "root's", 0o644)
			put(t, filepath.Join(path, "shared"), "root's", 0o666)
		}
	}
	if !asNobody(t, dir) {
		for _, path := range []string{"open/roots", "closed/roots", "sticky/shared"} {
			if content(t, filepath.Join(dir, path)) != "root's" {
				t.Errorf("%s was written", path)
			}
		}
		return
	}
	mine := filepath.Join(dir, "open", "mine")
	put(t, mine, "protected", 0o400)
	for path, want := range map[string]string{
		"open/new":      "",
		"open/shared":   "",
		"open/mine":     "the file there is write-protected: permission denied",
		"open/roots":    "the file there is write-protected: permission denied",
		"closed/new":    "nothing can be written in the folder " + dir + "/closed: permission denied",
		"closed/shared": "nothing can be written in the folder",
		"sticky/new":    "",
		"sticky/shared": "the file there belongs to another user",
	} {
		path = filepath.Join(dir, path)
		checked, written := Check(path), WriteBytes(path, []byte(text))
		if want == "" {
			if checked != nil || written != nil || content(t, path) != text {
				t.Errorf("%s: %v, %v; want it to be written", path, checked, written)
			}
			continue
		}
		if checked == nil || written == nil || !strings.Contains(checked.Error(), want) || written.Error() != checked.Error() {
			t.Errorf("%s: %v, %v; want %q", path, checked, written, want)
		}
	}
	if content(t, mine) != "protected" {
		t.Error("a write-protected file was replaced")
	}
	if err := CheckFolder(filepath.Join(dir, "closed", "a", "b")); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("a folder in one that is closed: %v", err)
	}
}

func TestDevicesAndFIFOsAreWrittenThroughAndStay(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "r.svg")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(fifo, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, link} {
		if !IsSpecial(path) || Check(path) != nil {
			t.Errorf("%s: special %v, %v", path, IsSpecial(path), Check(path))
		}
		read := make(chan string)
		go func() {
			b, _ := os.ReadFile(fifo)
			read <- string(b)
		}()
		if err := WriteBytes(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := <-read; got != text {
			t.Errorf("%s passed on %q", path, got)
		}
	}
	if info, err := os.Lstat(fifo); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("the FIFO became %v, %v", info.Mode(), err)
	}
	before, err := os.Lstat(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteBytes(os.DevNull, []byte(text)); err != nil {
		t.Error(err)
	}
	if after, err := os.Lstat(os.DevNull); err != nil || after.Mode() != before.Mode() {
		t.Errorf("%s became %v, %v", os.DevNull, after.Mode(), err)
	}
	if err := WriteBytes("/dev/full", []byte(text)); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("/dev/full: %v, want that it is full", err)
	}
	alone(t, dir, "link", "r.svg")
}

func TestAReaderThatLeavesIsAnErrorAndNoDeath(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	if err := WriteBytes(fmt.Sprintf("/dev/fd/%d", w.Fd()), []byte(text)); !errors.Is(err, unix.EPIPE) {
		t.Errorf("%v, want a broken pipe", err)
	}
}

func TestOurOwnDescriptorsAreWrittenWhereTheyStand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("printed before, "); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/dev/fd", link); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/dev/fd/%d", f.Fd())
	if !IsSpecial(path) {
		t.Errorf("%s is taken for a file", path)
	}
	if err := WriteBytes(path, []byte(text)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(", printed after"); err != nil {
		t.Fatal(err)
	}
	if got, want := content(t, file), "printed before, the result, printed after"; got != want {
		t.Errorf("the file has %q, want %q", got, want)
	}
}

func TestStandardOutputByItsNames(t *testing.T) {
	for _, path := range []string{"/dev/stdout", "/dev/stderr", "/proc/self/fd/1", "/dev/../dev/fd/2"} {
		if fd, ok := ownDescriptor(path); !ok || fd != 1 && fd != 2 {
			t.Errorf("%s is descriptor %d, %v", path, fd, ok)
		}
	}
	for _, path := range []string{"/dev/null", "/proc/1/fd/1", "/dev/fd/x", "relative", "/dev/fd"} {
		if fd, ok := ownDescriptor(path); ok {
			t.Errorf("%s is taken for descriptor %d", path, fd)
		}
	}
}

func TestResultsFailEachForItself(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(path string) error { return WriteBytes(path, []byte(text)) }
	var r Results
	r.Put(in("a.svg"), write)
	r.Put(in("no/b.html"), write)
	r.Put(in("c.json"), func(string) error { return errors.New("cannot be drawn") })
	r.Put(in("d.pb.gz"), func(string) error { panic("index out of range") })
	r.Put(in("other/b.html"), write)
	r.Put(in("e.svg"), write)
	if got, want := strings.Join(r.Written, " "), in("a.svg")+" "+in("e.svg"); got != want {
		t.Errorf("written: %s, want %s", got, want)
	}
	if len(r.Failed) != 4 || r.Failed[0].Path != in("no/b.html") || r.Failed[1].Saved != "" || r.Failed[2].Saved != "" {
		t.Fatalf("failed: %+v", r.Failed)
	}
	first, second := r.Failed[0].Saved, r.Failed[3].Saved
	if filepath.Base(first) != "b.html" || first == second || content(t, first) != text || content(t, second) != text {
		t.Errorf("saved as %s and %s", first, second)
	}
	if info, err := os.Stat(filepath.Dir(first)); err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("the folder of what is saved: %v, %v", info.Mode(), err)
	}
	err := r.Err()
	for _, want := range []string{"cannot write " + in("no/b.html") + ": there is no folder", "it was saved as " + first + " instead", "cannot be drawn", "a bug of omni_perf: index out of range"} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v does not say %q in one line", err, want)
		}
	}
}

func TestWithoutAnyPlaceTheLossIsSaid(t *testing.T) {
	t.Setenv("TMPDIR", "/nonexistent")
	var r Results
	r.Put("/nonexistent/a.svg", func(path string) error { return WriteBytes(path, nil) })
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "no temporary folder could be made") || r.Failed[0].Saved != "" {
		t.Errorf("%v", err)
	}
}

func TestCheckFolder(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	put(t, in("file"), "", 0o600)
	if err := os.Symlink(in("none"), in("nowhere")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir: "", in("new"): "", in("new/deep/"): "", "": "the name is empty",
		in("file"): "no folder", in("file/x"): "not a directory", in("nowhere"): "leads nowhere", in("nowhere/x"): "leads nowhere",
	} {
		err := CheckFolder(path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", path, err, want)
		}
	}
	if err := MakeFolder(in("new/deep")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(in("new")); err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("a folder is made with %v, %v", info.Mode(), err)
	}
}

func TestNoTextIsAFormulaInASpreadsheet(t *testing.T) {
	for text, want := range map[string]string{
		"=1+1": "'=1+1", "+cmd": "'+cmd", "-x": "'-x", "@sum": "'@sum", "\t=1": "'\t=1", "": "", "gemm": "gemm", "a=b": "a=b", "ä": "ä",
	} {
		if got := SpreadsheetText(text); got != want {
			t.Errorf("%q is written as %q, want %q", text, got, want)
		}
	}
}
