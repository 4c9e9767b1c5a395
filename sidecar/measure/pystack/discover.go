package pystack

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/targetfs"
)

// runtimePlace is where a process keeps its CPython.
type runtimePlace struct {
	addr    uint64 // of _PyRuntime
	hex     uint64 // PY_VERSION_HEX by the symbol Py_Version (3.11+); 0 unknown
	file    string // executable or library, as the process sees it
	guessed string // "3.10", from the file's name; empty unknown
}

// mappedFile is an executable or library mapped into the process.
type mappedFile struct {
	path string // as maps has it, without " (deleted)"
	base uint64 // address of the mapping of its first page
	end  uint64 // of that mapping
}

// findRuntime looks for _PyRuntime: by the dynamic symbols of what is mapped,
// read from the process's memory, so that it works whatever became of the files
// and in whichever namespace they lie; else by the ELF section .PyRuntime of
// the file.
func findRuntime(pid int, m Memory) (runtimePlace, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return runtimePlace{}, procError(err)
	}
	files := parseMaps(string(maps))
	if len(files) == 0 {
		if hasEnded(pid) {
			return runtimePlace{}, fmt.Errorf("process %d has no program mapped: %w", pid, ErrGone)
		}
		return runtimePlace{}, fmt.Errorf("process %d has no program mapped yet: %w", pid, ErrStarting)
	}
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	exe = strings.TrimSuffix(exe, " (deleted)")
	candidates := orderCandidates(files, exe)
	var readErr error
	for _, f := range candidates {
		place := runtimePlace{file: f.path, guessed: versionInName(f.path)}
		symbols, err := dynamicSymbols(m, f.base, "_PyRuntime", "Py_Version")
		if errors.Is(err, ErrPermission) || errors.Is(err, ErrGone) {
			return runtimePlace{}, err
		}
		readErr = errors.Join(readErr, err)
		place.addr = symbols["_PyRuntime"]
		if place.addr == 0 {
			place.addr = sectionAddr(pid, f, exe, runtimeSection)
		}
		if place.addr == 0 {
			continue
		}
		if at := symbols["Py_Version"]; at != 0 {
			place.hex, _ = cpython.ReadWord(m, at)
		}
		return place, nil
	}
	for _, f := range candidates {
		switch v := versionInName(f.path); {
		case v == "":
		case cpython.IsReadable(v): // its library is not loaded yet
			return runtimePlace{}, fmt.Errorf("%s has no interpreter loaded: %w", f.path, ErrStarting)
		default: // older than 3.9, or Python 2: no _PyRuntime to be seen
			return runtimePlace{}, fmt.Errorf("%s is Python %s; stacks can be read from outside of CPython 3.11 to 3.15: %w",
				f.path, v, ErrUnsupported)
		}
	}
	return runtimePlace{}, fmt.Errorf("process %d (%s): %w", pid, exe, ErrNotPython)
}

// hasEnded recognises a process that is no more, or only waits to be waited for. In the
// midst of exec a process has nothing mapped either.
func hasEnded(pid int) bool {
	switch (&procKernel{pid: pid}).state() {
	case 0, 'Z', 'X':
		return true
	}
	return false
}

// procError translates what /proc says about a process.
func procError(err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: %w", ErrGone, err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: %w", ErrPermission, err)
	case strings.Contains(err.Error(), "no such process"):
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return err
}

// parseMaps returns the files of /proc/PID/maps, each with its base.
func parseMaps(maps string) []mappedFile {
	var files []mappedFile
	known := make(map[string]int) // index into files
	s := bufio.NewScanner(strings.NewReader(maps))
	s.Buffer(make([]byte, 64<<10), 1<<20)
	for s.Scan() {
		// 7f8f49800000-7f8f4986f000 r--p 00000000 fe:00 1234   /usr/lib/libpython3.11.so.1.0
		f := strings.Fields(s.Text())
		if len(f) < 6 || f[2] != "00000000" || !strings.HasPrefix(f[5], "/") {
			continue
		}
		from, to, _ := strings.Cut(f[0], "-")
		base, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 != nil || err2 != nil {
			continue
		}
		path := strings.TrimSuffix(strings.Join(f[5:], " "), " (deleted)")
		if i, ok := known[path]; !ok {
			known[path] = len(files)
			files = append(files, mappedFile{path, base, end})
		} else if base < files[i].base {
			files[i].base, files[i].end = base, end
		}
	}
	return files
}

var (
	pythonLibrary = regexp.MustCompile(`^libpython\d`)
	pythonName    = regexp.MustCompile(`(?:python|libpython)(\d\.\d+)`)
)

// orderCandidates puts the files a CPython is likely in first: a libpython, the
// executable, then other libraries with python in their name.
func orderCandidates(files []mappedFile, exe string) []mappedFile {
	rank := func(f mappedFile) int {
		name := filepath.Base(f.path)
		switch {
		case pythonLibrary.MatchString(name):
			return 0
		case f.path == exe:
			return 1
		case strings.Contains(strings.ToLower(name), "python"):
			return 2
		}
		return 3
	}
	var out []mappedFile
	for _, f := range files {
		if rank(f) < 3 {
			out = append(out, f)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return rank(out[i]) < rank(out[j]) })
	return out
}

func versionInName(path string) string {
	if m := pythonName.FindStringSubmatch(filepath.Base(path)); m != nil {
		return m[1]
	}
	return ""
}

// The sections that CPython puts its descriptions into: of the runtime from 3.10 on, of
// asyncio's C code from 3.14 on.
const (
	runtimeSection = ".PyRuntime"
	asyncioSection = ".AsyncioDebug"
)

// sectionAddr finds a section in the file, for builds that do not export its symbol.
func sectionAddr(pid int, f mappedFile, exe, section string) uint64 {
	for _, open := range filesOf(pid, f, exe) {
		file, err := open()
		if err != nil {
			continue
		}
		addr := sectionOf(file, f.base, section)
		file.Close()
		if addr != 0 {
			return addr
		}
	}
	return 0
}

// filesOf are the ways to a mapped file: what is mapped, by links that the kernel
// keeps and that only root may follow; else what the target's user finds at its path.
func filesOf(pid int, f mappedFile, exe string) (ways []func() (*os.File, error)) {
	if f.path == exe {
		ways = append(ways, func() (*os.File, error) { return targetfs.OpenRegular(fmt.Sprintf("/proc/%d/exe", pid)) })
	}
	return append(ways,
		func() (*os.File, error) {
			return targetfs.OpenRegular(fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, f.base, f.end))
		},
		func() (*os.File, error) { return targetfs.New(pid).Open(f.path) },
	)
}

// sectionOf is the address of a section in an ELF file that is mapped at base; 0
// when there is none. debug/elf does not promise to bear every file.
func sectionOf(file io.ReaderAt, base uint64, name string) (addr uint64) {
	defer func() {
		if recover() != nil {
			addr = 0
		}
	}()
	parsed, err := elf.NewFile(file)
	if err != nil {
		return 0
	}
	section := parsed.Section(name)
	bias, ok := loadBias(parsed.Progs, base)
	if section == nil || !ok {
		return 0
	}
	return bias + section.Addr
}

// loadBias is what to add to the file's addresses.
func loadBias(progs []*elf.Prog, base uint64) (uint64, bool) {
	for _, p := range progs {
		if p.Type == elf.PT_LOAD && p.Off == 0 {
			return base - p.Vaddr&^0xfff, true
		}
	}
	return 0, false
}
