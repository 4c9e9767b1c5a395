package pystack

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

var update = flag.Bool("update", false, "record the memory images in testdata anew, and their stacks")

// imageNames are those of the interpreters whose memory is in testdata: each
// version's on amd64, and on arm64 (see tools/arm64-images).
func imageNames() []string {
	var names []string
	for _, minor := range truth.Minors {
		names = append(names, minor, minor+"-arm64")
	}
	return names
}

// imagePath is the image of an interpreter: testdata/3.12-arm64.image.
func imagePath(name string) string { return filepath.Join("testdata", name+".image") }

func loadImage(t testing.TB, name string) *Image {
	t.Helper()
	b, err := os.ReadFile(imagePath(name))
	if err != nil {
		t.Fatal(err)
	}
	im, err := ReadImage(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// small is standing with a tower of a few floors.
func small() truth.Workload {
	w := standing
	w.Source = strings.Replace(w.Source, "climb(900)", "climb(3)", 1)
	w.Source = strings.Replace(w.Source, "10_000", "20", 1)
	return w
}

func TestRecordImages(t *testing.T) {
	if !*update {
		t.Skip("records testdata with -update")
	}
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		if !slices.Contains(imageNames(), python.String()) {
			t.Skip("the first choice of each version is enough here")
		}
		t.Setenv("HOME", "/home/user")
		target := truth.Start(t, python, small())
		time.Sleep(300 * time.Millisecond)
		im, err := RecordImage(target.Pid)
		if err != nil {
			t.Fatal(err)
		}
		im.rename(filepath.Dir(filepath.Dir(python.Path)))
		var b bytes.Buffer
		if _, err := im.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(imagePath(python.String()), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(imagePath(python.String())+".stacks", []byte(describeImage(t, im)), 0o644); err != nil {
			t.Fatal(err)
		}
	})
}

// rename replaces the folder that the interpreter is installed in by another
// name of the same length: an image shows nothing of the machine it is from.
func (im *Image) rename(folder string) {
	name := []byte("/opt/" + strings.Repeat("p", len(folder)-5))
	for at := range im.blocks {
		if im.blocks[at-1] != nil {
			continue
		}
		var run []byte
		for i := at; im.blocks[i] != nil; i++ {
			run = append(run, im.blocks[i][:]...)
		}
		run = bytes.ReplaceAll(run, []byte(folder), name)
		for n := len(folder); n > 0; n-- { // a string that the run's end cuts
			if bytes.HasSuffix(run, []byte(folder[:n])) {
				copy(run[len(run)-n:], name)
				break
			}
		}
		for i := at; im.blocks[i] != nil; i++ {
			copy(im.blocks[i][:], run[(i-at)*blockSize:])
		}
	}
}

func describeImage(t testing.TB, im *Image) string {
	t.Helper()
	p, err := OpenImage(im)
	if err != nil {
		t.Fatal(err)
	}
	threads, err := p.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(threads, func(a, b ThreadStack) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	fmt.Fprintf(&b, "CPython %s\n", p.Version())
	for _, s := range threads {
		fmt.Fprintf(&b, "\nthread %q, cut: %v\n", s.Name, s.Truncated)
		for _, f := range s.Frames {
			fmt.Fprintf(&b, "  %q line %d of %q (from %d)\n", f.Function, f.Line, filepath.Base(f.File), f.FirstLine)
		}
	}
	return b.String()
}

// TestImages decodes recorded memory of each version on each architecture, so
// that the decoder is tested where there is no such interpreter.
func TestImages(t *testing.T) {
	for _, name := range imageNames() {
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(imagePath(name) + ".stacks")
			if err != nil {
				t.Fatal(err)
			}
			if got := describeImage(t, loadImage(t, name)); got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestImagesGIL finds each GIL by what is known of it: its first word is the
// switch interval, 5 ms, and a thread of the process has held it last.
func TestImagesGIL(t *testing.T) {
	for _, name := range imageNames() {
		t.Run(name, func(t *testing.T) {
			im := loadImage(t, name)
			p, err := OpenImage(im)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.gils) != 1 {
				t.Fatalf("got %d GILs", len(p.gils))
			}
			gil := make([]byte, cpython.GILSwitches+cpython.WordSize)
			if err := cpython.ReadAt(im, p.gils[0].addr, gil); err != nil {
				t.Fatal(err)
			}
			if got := cpython.Word(gil, 0); got != 5000 {
				t.Errorf("switch interval of %d µs", got)
			}
			if holder := cpython.Word(gil, cpython.GILHolder); p.threads[holder] == nil {
				t.Errorf("last held by %#x, which is no thread", holder)
			}
			if cpython.Half(gil, cpython.GILLocked) != 0 || cpython.Word(gil, cpython.GILSwitches) == 0 {
				t.Errorf("locked %d after %d switches, in a process that sleeps", cpython.Half(gil, cpython.GILLocked), cpython.Word(gil, cpython.GILSwitches))
			}
		})
	}
}

func TestImageFile(t *testing.T) {
	im := loadImage(t, "3.12")
	var b bytes.Buffer
	if _, err := im.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	again, err := ReadImage(&b)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := describeImage(t, again), describeImage(t, im); got != want {
		t.Errorf("written and read again: got\n%s\nwant\n%s", got, want)
	}
}

// stubborn bounds what a decoder may ask of a memory gone wild.
type stubborn struct {
	*Image
	t            testing.TB
	calls, bytes int
}

func (m *stubborn) Read(buf []byte, ranges []Range) (int, error) {
	if m.calls++; m.calls > 100_000 {
		m.t.Fatal("the decoder reads on and on")
	}
	if m.bytes += len(buf); m.bytes > 1<<30 {
		m.t.Fatal("the decoder asks for a gigabyte")
	}
	return m.Image.Read(buf, ranges)
}

// FuzzImage overwrites words of a recorded memory: whatever a target's memory
// holds, the decoder ends, in bounded memory.
func FuzzImage(f *testing.F) {
	var images [][]byte
	for i, name := range imageNames() {
		b, err := os.ReadFile(imagePath(name))
		if err != nil {
			f.Fatal(err)
		}
		images = append(images, b)
		f.Add(uint8(i), []byte{})
		f.Add(uint8(i), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
	}
	f.Fuzz(func(t *testing.T, which uint8, mutations []byte) {
		im, err := ReadImage(bytes.NewReader(images[int(which)%len(images)]))
		if err != nil {
			t.Fatal(err)
		}
		im.mutate(mutations)
		p, err := open(&stubborn{Image: im, t: t}, imageKernel{im}, runtimePlace{addr: im.Runtime, hex: im.Hex})
		if err != nil {
			return
		}
		for range 3 {
			if _, err := p.Snapshot(); err != nil {
				return
			}
		}
		s := newSession(p, timeline.NewBuilder(timeline.Options{}), SampleOptions{}, &worker{})
		for range 3 {
			if s.tick() != nil {
				return
			}
			s.first = false
		}
		for _, thread := range p.threads {
			for i := range thread.stack {
				_ = p.reader.follow(&thread.awaiting, thread.stack[i].addr-p.l.Gen.Frame, (*reader).readChain)
				_, _ = p.reader.coroutineOf(&thread.stack[i])
				_ = p.reader.follow(&thread.awaiting, thread.stack[i].addr, (*reader).readGreenlet)
				_ = p.reader.followGreenlet(&thread.awaiting, &thread.stack[i])
				s.readIterator(thread, &thread.stack[i])
				for _, name := range []string{"self", "n", "floor"} {
					value, _ := p.reader.local(&thread.stack[i], name)
					_, _ = p.reader.loader(value), p.reader.passSamples(value)
					_, _ = p.reader.rangeLength(value), p.reader.randomLength(value)
				}
			}
		}
	})
}

// mutate overwrites words: each takes 11 bytes, the number of the block (2), the
// word in it (1), and its new value, which for a fourth of the words is one of
// the image's own addresses.
func (im *Image) mutate(mutations []byte) {
	addrs := make([]uint64, 0, len(im.blocks))
	for at := range im.blocks {
		addrs = append(addrs, at)
	}
	slices.Sort(addrs)
	for ; len(mutations) >= 11; mutations = mutations[11:] {
		at := addrs[int(binary.LittleEndian.Uint16(mutations))%len(addrs)]
		value := binary.LittleEndian.Uint64(mutations[3:])
		if mutations[2]&0xc0 == 0 {
			value = addrs[value%uint64(len(addrs))]*blockSize + value>>56&^7
		}
		binary.LittleEndian.PutUint64(im.blocks[at][int(mutations[2]&31)*8:], value)
	}
}

// FuzzSymbols looks a symbol up in an ELF file of any bytes.
func FuzzSymbols(f *testing.F) {
	if b, err := os.ReadFile("/proc/self/exe"); err == nil {
		f.Add(b[:min(len(b), 4096)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		im := &Image{blocks: make(map[uint64]*[blockSize]byte)}
		for i := 0; i < len(b); i += blockSize {
			block := new([blockSize]byte)
			copy(block[:], b[i:])
			im.blocks[uint64(i)/blockSize] = block
		}
		_, _ = dynamicSymbols(&stubborn{Image: im, t: t}, 0, "_PyRuntime", "Py_Version")
	})
}

func FuzzProc(f *testing.F) {
	f.Add([]byte("202 0x7f00 0x80 0x0 0x7ffe 0x7f01"))
	f.Add([]byte("running\n"))
	f.Add([]byte("12 (py) thon) S 1"))
	f.Add([]byte("7f8f49800000-7f8f4986f000 r--p 00000000 fe:00 1234   /usr/lib/libpython3.11.so.1.0 (deleted)\n"))
	f.Add([]byte("1: POSIX  ADVISORY  WRITE 4711 fe:00:1234 1073741825 1073741825\n1: -> FLOCK  ADVISORY  READ -1 fe:00:1234 0 EOF\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		locks := parseLocks(b)
		if what, ok := lockedDatabase(locks, []openFile{{3, fileNumber{"fe:00", 1234}}}, 4711, func(int) string { return "/home/ann/x.db" }); ok && what.Name != "/home/ann/x.db" {
			t.Errorf("a database %+v", what)
		}
		_ = describeActivity(parseSyscall(b), 0x7000)
		_ = describeActivity(parseStat(b), 0x7000)
		for _, file := range orderCandidates(parseMaps(string(b)), "/usr/bin/python3") {
			_ = versionInName(file.path)
		}
	})
}
