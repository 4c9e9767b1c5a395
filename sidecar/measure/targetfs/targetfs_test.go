package targetfs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// target starts a process that lives in a folder, of a root and a user.
func target(t *testing.T, root, dir string, uid, gid, group int) (pid int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "OMNI_PERF_TEST_TARGET="+fmt.Sprintf("%s %s %d %d %d", root, dir, uid, gid, group))
	ready, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if said, _ := bufio.NewReader(ready).ReadString('\n'); said != "ready\n" {
		t.Fatalf("the target said %q", said)
	}
	return cmd.Process.Pid
}

// here is a target like us.
func here(t *testing.T, dir string) int {
	return target(t, "/", dir, os.Getuid(), os.Getgid(), os.Getgid())
}

func TestMain(m *testing.M) {
	as := os.Getenv("OMNI_PERF_TEST_TARGET")
	if as == "" {
		os.Exit(m.Run())
	}
	var root, dir string
	var uid, gid, group int
	fmt.Sscan(as, &root, &dir, &uid, &gid, &group)
	var errs []error
	if root != "/" {
		errs = append(errs, unix.Chroot(root))
	}
	errs = append(errs, os.Chdir(dir))
	if uid != os.Getuid() {
		errs = append(errs, syscall.Setgroups([]int{group}), syscall.Setgid(gid), syscall.Setuid(uid))
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ready")
	time.Sleep(10 * time.Minute)
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root has rights to lose")
	}
}

func put(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte("text of "+filepath.Base(path)), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

// openly makes a folder whose way down others may go.
func openly(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	return dir
}

func (f *FS) text(name string) (string, error) {
	file, err := f.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	return string(text), err
}

func (f *FS) expect(t *testing.T, name, want string) {
	t.Helper()
	got, err := f.text(name)
	if want == "" && err == nil {
		t.Errorf("%s was opened: %.40q", name, got)
	}
	if want != "" && (err != nil || got != want) {
		t.Errorf("%s: %.40q, %v; want %q", name, got, err, want)
	}
}

const nobody = 65534

func TestFilesAreReadWithTheRightsOfTheTargetsUser(t *testing.T) {
	needRoot(t)
	dir := openly(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	put(t, in("public.py"), 0o644)
	put(t, in("roots.py"), 0o600)
	put(t, in("theirs.py"), 0o600)
	put(t, in("groups.py"), 0o640)
	put(t, in("othergroups.py"), 0o640)
	if err := errors.Join(
		os.Chown(in("theirs.py"), nobody, 0), os.Chown(in("groups.py"), 0, 4242), os.Chown(in("othergroups.py"), 0, 4243),
		os.Mkdir(in("closed"), 0o700), os.Symlink(in("roots.py"), in("link.py")), os.Symlink(in("public.py"), in("publink.py")),
	); err != nil {
		t.Fatal(err)
	}
	put(t, in("closed/public.py"), 0o644) // to be read by everybody, in a folder nobody may enter
	f := New(target(t, "/", dir, nobody, nobody, 4242))
	for name, want := range map[string]string{
		"public.py":        "text of public.py",
		"publink.py":       "text of public.py",
		"theirs.py":        "text of theirs.py",
		"groups.py":        "text of groups.py",
		"othergroups.py":   "",
		"roots.py":         "",
		"link.py":          "",
		"closed/public.py": "",
		"/etc/shadow":      "",
	} {
		f.expect(t, name, want)
	}
	if _, err := f.Open("roots.py"); !errors.Is(err, unix.EACCES) {
		t.Errorf("root's own file: %v, want permission denied", err)
	}
	if text, err := os.ReadFile(in("roots.py")); err != nil || len(text) == 0 {
		t.Errorf("our own rights have gone: %v", err)
	}
}

func TestNoNameLeadsOutOfTheTargetsRoot(t *testing.T) {
	needRoot(t)
	jail := openly(t)
	in := func(name string) string { return filepath.Join(jail, name) }
	outside := filepath.Join(t.TempDir(), "outside.py")
	put(t, outside, 0o644)
	if err := os.Mkdir(in("app"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, in("app/m.py"), 0o644)
	put(t, in("top.py"), 0o644)
	for name, to := range map[string]string{
		"app/absolute.py": "/top.py",                           // the jail's
		"app/up.py":       "../../../../../../../../../top.py", // stops at the jail's root
		"app/escape.py":   outside,                             // absolute: inside the jail there is none
		"app/magic.py":    fmt.Sprintf("/proc/%d/root%s", os.Getpid(), outside),
	} {
		if err := os.Symlink(to, in(name)); err != nil {
			t.Fatal(err)
		}
	}
	f := New(target(t, jail, "/app", os.Getuid(), os.Getgid(), os.Getgid()))
	for name, want := range map[string]string{
		"m.py":               "text of m.py",
		"/app/m.py":          "text of m.py",
		"../top.py":          "text of top.py",
		"absolute.py":        "text of top.py",
		"up.py":              "text of top.py",
		"escape.py":          "",
		"magic.py":           "",
		outside:              "",
		"/../.." + outside:   "",
		"../../.." + outside: "",
	} {
		f.expect(t, name, want)
	}
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	put(t, in("m.py"), 0o600)
	if err := errors.Join(unix.Mkfifo(in("fifo.py"), 0o600), os.Symlink("/dev/zero", in("zero.py")), os.Symlink(in("m.py"), in("link.py"))); err != nil {
		t.Fatal(err)
	}
	f := New(here(t, dir))
	for name, want := range map[string]string{
		"m.py": "text of m.py", "link.py": "text of m.py", in("m.py"): "text of m.py",
		"fifo.py": "", "zero.py": "", "/dev/tty": "", "/dev/null": "", dir: "", "none.py": "", "": "",
		"/proc/self/environ": "", "/proc/self/mem": "", "/proc/self/exe": "", "/proc/self/fd/0": "",
		"/proc/1/environ": "", "/proc/kcore": "", "/sys/kernel/uevent_seqnum": "", "a\x00b": "",
	} {
		f.expect(t, name, want)
	}
	for _, path := range []string{in("fifo.py"), "/dev/null", dir, in("none")} {
		if file, err := OpenRegular(path); err == nil {
			file.Close()
			t.Errorf("%s was opened", path)
		}
	}
	if file, err := OpenRegular(in("m.py")); err != nil {
		t.Error(err)
	} else {
		file.Close()
	}
}

func TestFilesOfATargetThatHasEndedCanStillBeRead(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "m.py"), 0o600)
	pid := here(t, dir)
	f := New(pid)
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err := os.Readlink(fmt.Sprintf("/proc/%d/root", pid)); err != nil {
			break
		}
	}
	f.Refresh()
	f.expect(t, "m.py", "text of m.py")
	if _, err := New(1<<22 + 1).Open("/etc/passwd"); err == nil || !strings.Contains(err.Error(), "cannot be seen") {
		t.Errorf("a process that never was: %v", err)
	}
}

func TestParseUser(t *testing.T) {
	u, ok := parseUser([]byte("Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \n"))
	if !ok || u.uid != 4 || u.gid != 8 || len(u.groups) != 2 || u.groups[1] != 10 {
		t.Errorf("%+v, %v", u, ok)
	}
	for _, status := range []string{"", "Uid:\t1\t2\t3\t4\n", "Uid: 1\nGid:\t5\t6\t7\t8\n", "Uid:\t1\t1\t1\t4294967295\nGid:\t1\t1\t1\t1\n", "Uid:\t1\t1\t1\t-1\nGid:\t1\t1\t1\t1\n"} {
		if u, ok := parseUser([]byte(status)); ok {
			t.Errorf("%q was read as %+v", status, u)
		}
	}
}

func FuzzParseUser(f *testing.F) {
	f.Add([]byte("Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \n"))
	f.Fuzz(func(t *testing.T, status []byte) {
		if u, ok := parseUser(status); ok && (u.uid < 0 || u.gid < 0 || len(u.groups) > maxGroups) {
			t.Errorf("%q was read as %+v", status, u)
		}
	})
}
