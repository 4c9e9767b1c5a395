// Package origin knows whose code a file is: the user's own (a cell, the script, a module of
// theirs), an installed package's, the standard library's, the interpreter's, the notebook's, ours;
// and of libraries, what their code is for and what their functions mean. libraries.txt is the one
// list of that: a library's new release is a change there.
//
// In flow the file names of code objects and the facts that a Recording keeps of the target's
// installation; out flows an Origin for each. It opens no file: what had to be looked up was when
// the recording was made, so that a saved one gives the same answers. ByName is for names of which
// nothing else is known, as in the traces of other tools.
package origin

import (
	"path"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Owner is whose code a file is.
type Owner uint8

const (
	Generated   Owner = iota // made at run time by whoever runs it: "<string>", a file that does not exist
	Cell                     // a notebook's cell
	Script                   // the program that was started
	Module                   // the user's own file, imported or run; an editable install is one
	Library                  // an installed package
	Standard                 // the standard library
	Interpreter              // frozen into the interpreter
	Machinery                // what a notebook's kernel runs itself by: ipykernel, IPython, tornado
	Ours                     // omni_perf's extension
	Unknown                  // a shortened name that no line of libraries.txt has: the user's, or a package's
)

var ownerNames = [...]string{"generated", "cell", "script", "module", "library", "standard", "interpreter", "machinery", "ours", "unknown"}

func (o Owner) String() string { return ownerNames[o] }

// Own reports whether the user wrote the code and can change it. An unknown owner is taken for the user:
// what a program has below a folder of sys.path of its own outnumbers the packages without a line.
func (o Owner) Own() bool { return o == Cell || o == Script || o == Module || o == Unknown }

// Origin is an owner, and of libraries which one.
type Origin struct {
	Owner Owner
	// Package is the name that a library, a part of the standard library or the
	// machinery is imported by: "torch", "json", "IPython"; empty otherwise.
	Package string
}

// Own reports whether the user wrote the code and can change it.
func (o Origin) Own() bool { return o.Owner.Own() }

// Files answers for the files of one recording, which it keeps. One goroutine at a time.
type Files struct {
	cells     map[string]bool
	script    string
	notebook  bool
	extension string
	standard  []string
	libraries []string // the folders of prefixes that only installations write to
	missing   map[string]bool
	known     map[string]fileFacts
}

// fileFacts are what is kept of a file.
type fileFacts struct {
	place
	known Known
}

// New reads the facts of a recording.
func New(rec *timeline.Recording) *Files {
	f := &Files{
		cells: make(map[string]bool), missing: make(map[string]bool), known: make(map[string]fileFacts),
		extension: folder(rec.Installation.Extension),
		standard:  folders(rec.Installation.Standard),
	}
	for _, s := range rec.Sources {
		f.cells[s.File] = true
	}
	if c := rec.Target.Cell; c != nil {
		f.cells[c.File], f.notebook = true, true
	} else {
		f.script = script(rec.Target.Argv)
	}
	for _, prefix := range folders(rec.Installation.Prefixes) {
		// Not the prefix itself: a system's Python has /usr, and an environment may have been made
		// in the very folder of the program.
		for _, part := range []string{"lib/", "lib64/", "lib32/", "libexec/", "bin/", "include/", "share/"} {
			f.libraries = append(f.libraries, prefix+part)
		}
	}
	for _, file := range rec.CodeFiles {
		if file.Missing {
			f.missing[file.Name] = true
		}
	}
	return f
}

// Of returns whose a file is, by its name in code objects.
func (f *Files) Of(file string) Origin { return f.facts(file).Origin }

// Own reports whether a file is the user's own.
func (f *Files) Own(file string) bool { return f.Of(file).Own() }

// Module is the name that the file of a library or of the standard library is imported by:
// "scipy.stats", "json.decoder"; empty for other files.
func (f *Files) Module(file string) string { return f.facts(file).module }

// Known is what is known of the library that a file is of.
func (f *Files) Known(file string) Known { return f.facts(file).known }

// Means returns what a function means; nothing for one of the user's own.
func (f *Files) Means(frame timeline.Frame) Meanings {
	return f.Known(frame.File).Means(frame.Function)
}

func (f *Files) facts(file string) fileFacts {
	found, ok := f.known[file]
	if !ok {
		found.place = f.find(file)
		found.known = knownOf(found.module)
		f.known[file] = found
	}
	return found
}

func (f *Files) find(file string) place {
	switch {
	case file == timeline.SentCode:
		return place{Origin: Origin{Owner: Unknown}}
	case f.cells[file]:
		return place{Origin: Origin{Owner: Cell}}
	case f.script != "" && file == f.script:
		return place{Origin: Origin{Owner: Script}}
	case f.extension != "" && strings.HasPrefix(file, f.extension):
		return place{Origin{Ours, "omni_perf"}, moduleOf("omni_perf/" + strings.TrimPrefix(file[len(f.extension):], "/"))}
	}
	p := byPath(file)
	if p.Owner == Module {
		p = f.byFolder(file)
	}
	if p.Owner == Module && f.script != "" && sameFile(file, f.script) { // a pool.py is not multiprocessing's
		p.Owner = Script
	}
	// In a program without cells they are libraries like others.
	if p.Owner == Library && f.notebook && knownOf(p.module).traits&kernel != 0 {
		p.Owner = Machinery
	}
	return p
}

// byFolder judges a file whose path alone says nothing.
func (f *Files) byFolder(file string) place {
	for _, standard := range f.standard {
		if rest, ok := strings.CutPrefix(file, standard); ok {
			return at(Standard, rest)
		}
	}
	for _, library := range f.libraries {
		// No installation has modules right in a lib folder: it is that of a project with an environment around it.
		if rest, ok := strings.CutPrefix(file, library); ok && (path.Base(library) != "lib" || strings.Contains(rest, "/")) {
			return at(Library, rest)
		}
	}
	if f.missing[file] {
		return place{Origin: Origin{Owner: Generated}}
	}
	return place{Origin: Origin{Owner: Module}}
}

// script is the co_filename of the program on a Python command line, as far as that shows it: the first
// argument that is no option of the interpreter; empty for -m.
func script(argv []string) string {
	for i := 1; i < len(argv); i++ {
		switch arg := argv[i]; {
		case arg == "-W" || arg == "-X":
			i++ // its value
		case arg == "-m":
			return ""
		case arg == "-c":
			return "<string>"
		case arg == "-":
			return "<stdin>"
		case strings.HasPrefix(arg, "-"):
		default:
			return arg
		}
	}
	return ""
}

// sameFile compares a co_filename with a script as typed, which may be relative.
func sameFile(file, typed string) bool {
	typed = strings.TrimPrefix(typed, "./")
	return file == typed || strings.HasSuffix(file, "/"+typed)
}

// folder ends a folder's name with a slash; the empty one stays empty.
func folder(name string) string {
	if name == "" {
		return ""
	}
	return path.Clean(name) + "/"
}

func folders(names []string) []string {
	var out []string
	for _, name := range names {
		if name = folder(name); name != "" && name != "//" && name != "./" {
			out = append(out, name)
		}
	}
	return out
}
