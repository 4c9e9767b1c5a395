package targetfs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// process is a target.
type process struct {
	pid int
	in  io.Writer
	out *bufio.Reader
	end func()
}

// start starts a process that lives in a folder, of a root and a user.
func start(t *testing.T, root, dir string, uid, gid, group int) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "OMNI_PERF_TEST_TARGET="+fmt.Sprintf("%s %s %d %d %d", root, dir, uid, gid, group))
	out, err1 := cmd.StdoutPipe()
	in, err2 := cmd.StdinPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() { cmd.Process.Kill(); cmd.Wait() })
	t.Cleanup(end)
	p := &process{cmd.Process.Pid, in, bufio.NewReader(out), end}
	if said, _ := p.out.ReadString('\n'); said != "ready\n" {
		t.Fatalf("the target said %q", said)
	}
	return p
}

func target(t *testing.T, root, dir string, uid, gid, group int) (pid int) {
	t.Helper()
	return start(t, root, dir, uid, gid, group).pid
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
	if as != "again" { // executed by itself
		if root != "/" {
			errs = append(errs, unix.Chroot(root))
		}
		errs = append(errs, os.Chdir(dir))
		if uid != os.Getuid() {
			errs = append(errs, syscall.Setgroups([]int{group}), syscall.Setgid(gid), syscall.Setuid(uid))
		}
	}
	obey(errors.Join(errs...))
}

// obey has a target execute commands, a word and a path a line.
func obey(err error) {
	for {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("ready")
		var line string
		if _, err = fmt.Scanln(&line); err != nil {
			return
		}
		switch word, path, _ := strings.Cut(line, ":"); word {
		case "exec":
			err = unix.Exec(path, []string{path}, append(os.Environ(), "OMNI_PERF_TEST_TARGET=again"))
		case "root":
			err = errors.Join(syscall.Setgid(0), syscall.Setuid(0), syscall.Setgroups(nil))
		case "nobody":
			err = errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody))
		case "chroot":
			err = errors.Join(unix.Chroot("sub"), os.Chdir("/"))
		}
	}
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

func TestParseUsers(t *testing.T) {
	for text, want := range map[string][]user{
		"Name:\tx\nUid:\t1\t1\t1\t1\nGid:\t5\t5\t5\t5\nGroups:\t9 10 \n": {{1, 5, []uint32{9, 10}}},
		"Uid:\t1\t0\t0\t0\nGid:\t5\t5\t5\t5\n":                           {{1, 5, nil}, {0, 5, nil}},
		"Uid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n":                           {{1, 5, nil}, {2, 6, nil}, {3, 7, nil}, {4, 8, nil}},
		"Uid:\t1\t1\t1\t1\nGid:\t5\t6\t6\t6\n":                           {{1, 5, nil}, {1, 6, nil}},
	} {
		got, settled := parseUsers([]byte(text))
		if !slices.EqualFunc(got, want, user.equal) || settled != (len(want) == 1) {
			t.Errorf("%q: %v, settled %v; want %v", text, got, settled, want)
		}
	}
	for _, status := range []string{"", "Uid:\t1\t2\t3\t4\n", "Uid: 1\nGid:\t5\t6\t7\t8\n", "Uid:\t1\t1\t1\t4294967295\nGid:\t1\t1\t1\t1\n", "Uid:\t1\t1\t1\t-1\nGid:\t1\t1\t1\t1\n"} {
		if users, settled := parseUsers([]byte(status)); users != nil || settled {
			t.Errorf("%q was read as %+v", status, users)
		}
	}
}

func TestRightsOnlyShrink(t *testing.T) {
	root, a, b := user{uid: 0}, user{uid: 1, gid: 1}, user{uid: 2, gid: 2}
	many := make([]user, maxUsers+1)
	for i := range many {
		many[i] = user{uid: i + 1}
	}
	for _, c := range []struct {
		seen [][]user
		want []user // nil: no rights at all
	}{
		{[][]user{{root}, {root}}, []user{root}},
		{[][]user{{a}, {root}, {a, root}}, []user{a}},
		{[][]user{{root}, {a}, {root}}, []user{a}},
		{[][]user{{a, root}}, []user{a}},
		{[][]user{{a}, {b}, {a}}, []user{a, b}},
		{[][]user{{a}, nil, {a}}, nil},
		{[][]user{many}, nil},
	} {
		var r rights
		for _, seen := range c.seen {
			r.narrow(seen)
		}
		if r.none != (c.want == nil) || !r.none && !slices.EqualFunc(r.users, c.want, user.equal) {
			t.Errorf("seen as %v: %+v, want %v", c.seen, r, c.want)
		}
	}
}

func FuzzParseUsers(f *testing.F) {
	f.Add([]byte("Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \n"))
	f.Fuzz(func(t *testing.T, status []byte) {
		users, settled := parseUsers(status)
		if len(users) > 4 || settled != (len(users) == 1) {
			t.Errorf("%q was read as %+v", status, users)
		}
		for _, u := range users {
			if u.uid < 0 || u.gid < 0 || len(u.groups) > maxGroups {
				t.Errorf("%q was read as %+v", status, u)
			}
		}
	})
}

// become has a target go on as another program or user, see TestMain.
func (p *process) become(t *testing.T, what string) {
	t.Helper()
	fmt.Fprintln(p.in, what)
	if said, _ := p.out.ReadString('\n'); said != "ready\n" {
		t.Fatalf("the target said %q", said)
	}
}

// setUID is a copy of the test's program that whoever executes it executes as root.
func setUID(t *testing.T, dir string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "setuid")
	text, err := os.ReadFile(os.Args[0])
	if err = errors.Join(err, os.WriteFile(path, text, 0o755), os.Chmod(path, 0o755|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil || fs.Flags&unix.ST_NOSUID != 0 {
		t.Skipf("%s knows no set-uid programs (%v)", dir, err)
	}
	return path
}

// What nobody named is not opened for root, whoever the process is by then.
func TestATargetGainsNoRightsByASetUIDProgram(t *testing.T) {
	needRoot(t)
	dir := openly(t)
	program := setUID(t, dir)
	for _, file := range []string{"public.py", "roots.py", "theirs.py"} {
		put(t, filepath.Join(dir, file), 0o600)
	}
	if err := errors.Join(os.Chmod(filepath.Join(dir, "public.py"), 0o644), os.Chown(filepath.Join(dir, "theirs.py"), nobody, 0), os.Mkdir(filepath.Join(dir, "sub"), 0o755)); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "sub/public.py"), 0o644)
	for _, then := range []string{"", "root", "root chroot"} { // what the program does: it waits, becomes root by all its ids, goes to another root
		t.Run("setuid "+then, func(t *testing.T) {
			p := start(t, "/", dir, nobody, nobody, nobody)
			f := New(p.pid)
			p.become(t, "exec:"+program)
			late := New(p.pid)
			for then := range strings.FieldsSeq(then) {
				p.become(t, then)
			}
			for range 2 {
				f.Refresh()
				late.Refresh()
				for _, seen := range []*FS{f, late} {
					seen.expect(t, dir+"/roots.py", "")
					seen.expect(t, dir+"/theirs.py", "text of theirs.py")
					seen.expect(t, "public.py", "text of public.py")
				}
			}
		})
	}
}

func TestATargetThatGivesUpRightsHasLostThem(t *testing.T) {
	needRoot(t)
	dir := openly(t)
	put(t, filepath.Join(dir, "public.py"), 0o644)
	put(t, filepath.Join(dir, "roots.py"), 0o600)
	p := start(t, "/", dir, 0, 0, 0)
	f := New(p.pid)
	f.expect(t, "roots.py", "text of roots.py")
	p.become(t, "nobody")
	f.Refresh()
	f.expect(t, "roots.py", "")
	f.expect(t, "public.py", "text of public.py")
}

// The next process of the same id has nothing to do with the names of the first.
func TestAPidThatIsUsedAgainLendsNothing(t *testing.T) {
	needRoot(t)
	dir := openly(t)
	put(t, filepath.Join(dir, "public.py"), 0o644)
	put(t, filepath.Join(dir, "roots.py"), 0o600)
	p := start(t, "/", dir, nobody, nobody, nobody)
	f := New(p.pid)
	p.end()
	for attempt := 0; ; attempt++ {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", fmt.Append(nil, p.pid-1), 0); err != nil {
			t.Skipf("pids cannot be chosen here: %v", err)
		}
		next := start(t, "/", "/", 0, 0, 0)
		if next.pid == p.pid {
			break
		}
		if next.end(); attempt == 50 { // others come between
			t.Skip("the pid could not be had again")
		}
	}
	f.Refresh()
	f.expect(t, "roots.py", "")
	f.expect(t, "public.py", "text of public.py")
}
