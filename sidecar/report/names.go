package report

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/omni-perf/omni-perf/sidecar/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// names turns what stands in code objects into what a user reads.
type names struct {
	cells  map[string]int    // co_filename of a cell -> execution count
	cell   string            // co_filename of the recorded cell; empty for scripts
	script string            // co_filename of the recorded script; empty for cells
	home   string            // shortened to ~
	files  map[string]string // display name by co_filename
}

func newNames(rec *timeline.Recording, home string) *names {
	n := &names{cells: make(map[string]int), home: strings.TrimRight(home, "/"), files: make(map[string]string)}
	for _, s := range rec.Sources {
		n.cells[s.File] = s.ExecutionCount
	}
	if c := rec.Target.Cell; c != nil {
		n.cell = c.File
		n.cells[c.File] = c.ExecutionCount
	} else {
		n.script = script(rec.Target.Argv)
	}
	return n
}

// script is the program's file on a Python command line: the first argument
// that is no option of the interpreter; empty for -m and -c.
func script(argv []string) string {
	for i := 1; i < len(argv); i++ {
		switch arg := argv[i]; {
		case arg == "-W" || arg == "-X":
			i++ // its value
		case arg == "-m" || arg == "-c" || arg == "-":
			return ""
		case strings.HasPrefix(arg, "-"):
		default:
			return arg
		}
	}
	return ""
}

// file is the display name of a co_filename: "Cell [7]", "~/train.py".
func (n *names) file(name string) string {
	if shown, ok := n.files[name]; ok {
		return shown
	}
	shown := clean(name)
	if count, ok := n.cells[name]; ok {
		shown = cellName(count)
	} else if n.home != "" && (name == n.home || strings.HasPrefix(name, n.home+"/")) {
		shown = "~" + clean(name[len(n.home):])
	}
	n.files[name] = shown
	return shown
}

// function is the display name of a qualified name: a cell's module level is
// the cell itself.
func (n *names) function(f timeline.Frame) string {
	if count := f.Elided; count > 0 {
		f.Elided = 0
		return "… about " + itoa(count) + " frames, most of " + n.function(f)
	}
	if f.Function == "<module>" {
		if count, ok := n.cells[f.File]; ok {
			return cellName(count)
		}
		return path.Base(clean(f.File))
	}
	return clean(strings.ReplaceAll(f.Function, ".<locals>", ""))
}

// kind tells whose code a frame is.
func (n *names) kind(f timeline.Frame) Kind {
	if _, ok := n.cells[f.File]; ok {
		return KindCell
	}
	if n.script != "" && sameFile(f.File, n.script) {
		return KindCell
	}
	file := strings.ReplaceAll(f.File, "\\", "/")
	for _, r := range kindRules {
		if strings.Contains(file, r.part) {
			return r.kind
		}
	}
	if diagnose.IsLibrary(file) {
		return KindOther
	}
	return KindUser
}

// kindRules are parts of paths, the first match counts. Data loading stands
// before the frameworks whose subpackages it is.
var kindRules = []struct {
	part string
	kind Kind
}{
	{"/torch/utils/data/", KindData},
	{"/torchvision/datasets/", KindData},
	{"/torchvision/io/", KindData},
	{"/tensorflow/python/data/", KindData},
	{"/site-packages/datasets/", KindData},
	{"/webdataset/", KindData},
	{"/site-packages/PIL/", KindData},
	{"/torch/cuda/", KindDevice},
	{"/site-packages/triton/", KindDevice},
	{"/site-packages/cupy/", KindDevice},
	{"/site-packages/pynvml", KindDevice},
	{"/torch/serialization.py", KindIO},
	{"/asyncio/selector_events.py", KindIO},
	{"/asyncio/streams.py", KindIO},
	{"/socket.py", KindIO},
	{"/ssl.py", KindIO},
	{"/pickle.py", KindIO},
	{"/gzip.py", KindIO},
	{"/http/client.py", KindIO},
	{"/shutil.py", KindIO},
	{"/site-packages/requests/", KindIO},
	{"/site-packages/urllib3/", KindIO},
	{"/site-packages/aiohttp/", KindIO},
	{"/site-packages/h5py/", KindIO},
	{"/site-packages/torch/", KindFramework},
	{"/site-packages/numpy/", KindFramework},
	{"/site-packages/scipy/", KindFramework},
	{"/site-packages/sklearn/", KindFramework},
	{"/site-packages/pandas/", KindFramework},
	{"/site-packages/jax/", KindFramework},
	{"/site-packages/jaxlib/", KindFramework},
	{"/site-packages/flax/", KindFramework},
	{"/site-packages/tensorflow/", KindFramework},
	{"/site-packages/keras/", KindFramework},
	{"/site-packages/transformers/", KindFramework},
	{"/site-packages/lightning/", KindFramework},
	{"/site-packages/pytorch_lightning/", KindFramework},
	{"/site-packages/accelerate/", KindFramework},
	{"/dist-packages/numpy/", KindFramework},
	{"/dist-packages/torch/", KindFramework},
}

// sameFile compares a co_filename with a script as typed, which may be relative.
func sameFile(file, typed string) bool {
	typed = strings.TrimPrefix(typed, "./")
	return file == typed || strings.HasSuffix(file, "/"+typed)
}

func cellName(count int) string {
	if count <= 0 {
		return "Cell"
	}
	return "Cell [" + itoa(count) + "]"
}

// clean makes text from the target fit for any display: valid UTF-8 without
// control characters and without marks that turn the direction of what follows.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, unfit) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unfit(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}

func unfit(r rune) bool {
	return unicode.IsControl(r) || (r >= 0x202A && r <= 0x202E) || (r >= 0x2066 && r <= 0x2069)
}
