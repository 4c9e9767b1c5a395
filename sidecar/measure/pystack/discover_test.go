package pystack

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// The section must be where the symbol is, whichever way the file is come by.
func TestTheRuntimesSectionIsFoundInTheMappedFile(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		target := startSleeper(t, python)
		m := &liveMemory{pid: target}
		place, err := findRuntime(target, m)
		if err != nil {
			t.Fatal(err)
		}
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", target))
		if err != nil {
			t.Fatal(err)
		}
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", target))
		for _, f := range orderCandidates(parseMaps(string(maps)), exe) {
			if f.path != place.file {
				continue
			}
			for i, open := range filesOf(target, f, exe) {
				file, err := open()
				if err != nil {
					if os.Geteuid() == 0 {
						t.Errorf("way %d to %s: %v", i, f.path, err)
					}
					continue // map_files is root's
				}
				if got := sectionOf(file, f.base, runtimeSection); got != place.addr && got != 0 {
					t.Errorf("way %d to %s: .PyRuntime at %#x, want %#x", i, f.path, got, place.addr)
				} else if got == 0 {
					t.Logf("%s has no section .PyRuntime", f.path)
				}
				file.Close()
			}
			return
		}
		t.Errorf("%s is not among the candidates", place.file)
	})
}

// A target that names a FIFO or a device as its library must not hold us up: the
// name in maps is only a name.
func TestALibraryThatIsNoFileIsNotOpened(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "libpython3.11.so")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{fifo, "/dev/zero", "/proc/self/mem"} {
		if addr := sectionAddr(os.Getpid(), mappedFile{path: path, base: 0x1000, end: 0x2000}, "", runtimeSection); addr != 0 {
			t.Errorf("%s: a section at %#x", path, addr)
		}
	}
}

// runtimeELF is a small ELF file with a section .PyRuntime at an address.
func runtimeELF(addr uint64) []byte {
	names := "\x00.PyRuntime\x00.shstrtab\x00"
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Phentsize: 56, Phnum: 1, Ehsize: 64, Shentsize: 64, Shnum: 3, Shstrndx: 2,
		Shoff: uint64(64 + 56 + len(names)),
	}
	var out bytes.Buffer
	for _, part := range []any{
		header,
		elf.Prog64{Type: uint32(elf.PT_LOAD), Vaddr: 0x400000, Filesz: 0x1000, Memsz: 0x1000},
		[]byte(names),
		elf.Section64{},
		elf.Section64{Name: 1, Type: uint32(elf.SHT_PROGBITS), Addr: addr},
		elf.Section64{Name: 12, Type: uint32(elf.SHT_STRTAB), Off: 64 + 56, Size: uint64(len(names))},
	} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			panic(err)
		}
	}
	return out.Bytes()
}

func TestSectionOf(t *testing.T) {
	if got := sectionOf(bytes.NewReader(runtimeELF(0x401230)), 0x7f0000000000, runtimeSection); got != 0x7f0000001230 {
		t.Errorf("the section is at %#x, want base and offset", got)
	}
}

func FuzzSection(f *testing.F) {
	f.Add(runtimeELF(0x401230))
	f.Add([]byte("\x7fELF"))
	f.Fuzz(func(t *testing.T, file []byte) { sectionOf(bytes.NewReader(file), 0x1000, runtimeSection) })
}

// startSleeper starts an interpreter that sleeps and can be read.
func startSleeper(t *testing.T, python truth.Interpreter) (pid int) {
	t.Helper()
	cmd := exec.Command(python.Path, "-c", "import time; time.sleep(600)")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		p, err := Attach(cmd.Process.Pid, Options{})
		if err == nil {
			p.Close()
			return cmd.Process.Pid
		}
		if time.Now().After(end) { // until then it may be one that is being set up
			t.Fatal(err)
		}
	}
}

// heldOf counts the descriptors that we hold of a process.
func heldOf(t *testing.T, pid int) (held int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.HasPrefix(to, fmt.Sprintf("/proc/%d/", pid)) {
			held++
		}
	}
	return held
}

// Threads that come, wait and go are asked about, each with a descriptor of its own.
func TestDescriptorsGoWithTheirThreads(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		const living = 8
		cmd := exec.Command(python.Path, "-c", fmt.Sprintf(`
import threading, time
def crowd():
    while True:
        each = threading.Thread(target=time.sleep, args=(0.05,), daemon=True)
        each.start()
        each.join()
for _ in range(%d):
    threading.Thread(target=crowd, daemon=True).start()
print("ready", flush=True)
time.sleep(600)
`, living/2))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		if _, err := out.Read(make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		p, err := Attach(cmd.Process.Pid, Options{Wait: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for range 2 {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			done := make(chan int)
			go func() {
				most := 0
				for ctx.Err() == nil {
					most = max(most, heldOf(t, cmd.Process.Pid))
					time.Sleep(20 * time.Millisecond)
				}
				done <- most
			}()
			if _, err := p.Sample(ctx, timeline.NewBuilder(timeline.Options{}), SampleOptions{}); err != nil {
				t.Fatal(err)
			}
			most := <-done
			cancel()
			if most > 4*living {
				t.Errorf("%d descriptors were held of %d threads at a time", most, living+1)
			}
			if most < 2 {
				t.Errorf("no thread was asked about: the test shows nothing")
			}
			if left := heldOf(t, cmd.Process.Pid); left > 0 {
				t.Errorf("%d descriptors are held after the recording", left)
			}
		}
	})
}
