package origin

import (
	"regexp"
	"strings"
)

// place is what a file's name says: whose it is, and the module that it is imported as.
type place struct {
	Origin
	module string // "scipy.stats"; empty of what no library has
}

// ByName judges a file by its name alone. Traces shorten names by the folders of sys.path
// ("torch/nn/modules/module.py", "threading.py"): such a name is the standard library's or a
// known package's by its first parts, else Unknown.
func ByName(file string) Origin { return byName(file).Origin }

// KnownByName is what is known of the module of a file of which only the name is known.
func KnownByName(file string) Known { return knownOf(byName(file).module) }

// KnownModule is what is known of a module by the name that it is imported by.
func KnownModule(name string) Known { return knownOf(name) }

// Names answers as ByName and KnownByName do, and keeps the answers. The zero value is ready; one
// goroutine at a time.
type Names struct{ known map[string]fileFacts }

// Of returns whose a file is.
func (n *Names) Of(file string) Origin { return n.facts(file).Origin }

// Known is what is known of the library that a file is of.
func (n *Names) Known(file string) Known { return n.facts(file).known }

func (n *Names) facts(file string) fileFacts {
	found, ok := n.known[file]
	if !ok {
		found.place = byName(file)
		found.known = knownOf(found.module)
		if n.known == nil {
			n.known = make(map[string]fileFacts)
		}
		n.known[file] = found
	}
	return found
}

// Below returns the part of a file's name below the folder that it is installed in:
// "torch/nn/functional.py" of "/v/lib/python3.12/site-packages/torch/nn/functional.py". Other names
// are returned as they are.
func Below(file string) string {
	if rest, ok := installed(strings.ReplaceAll(file, `\`, "/")); ok {
		return rest
	}
	return file
}

func byName(file string) place {
	file = strings.ReplaceAll(file, `\`, "/")
	p := byPath(file)
	switch isPath := strings.HasPrefix(file, "/") || strings.HasPrefix(file, "~") || strings.HasPrefix(file, "../") || drive.MatchString(file); {
	case p.Owner != Module:
	case !isPath:
		return byShortName(file)
	default:
		if found, ok := inCheckout(file, checkout); ok {
			return found
		}
		if found := windowsLibrary.FindStringIndex(file); found != nil {
			return at(Standard, file[found[1]:])
		}
		// An installed command has no ending: /opt/venv/bin/torchrun.
		if folder, command, ok := strings.Cut(file, "/bin/"); ok && folder != "" && !strings.HasSuffix(command, ".py") {
			return at(Library, command)
		}
	}
	return p
}

// byShortName judges "torch/nn/functional.py".
func byShortName(file string) place {
	module := moduleOf(file)
	top, _, _ := strings.Cut(module, ".")
	known := knownOf(module)
	switch {
	case known.traits&shared != 0 && known.parts == 1:
		return place{Origin: Origin{Owner: Unknown}}
	case standardModules()[top]:
		return at(Standard, file)
	case known.parts > 0:
		return at(Library, file)
	}
	return place{Origin: Origin{Owner: Unknown}}
}

// inCheckout finds the modules in a path that are known wherever they lie.
func inCheckout(file string, trait traits) (place, bool) {
	t := libraries()
	for rest, more := file, true; more; _, rest, more = strings.Cut(rest, "/") {
		if top, _, inside := strings.Cut(rest, "/"); !inside || t.exact[top] == nil {
			continue
		}
		parts := strings.SplitN(strings.TrimSuffix(rest, ".py"), "/", t.depth+1)
		module := strings.Join(parts[:min(len(parts), t.depth)], ".") // with __init__
		if knownOf(module).traits&trait != 0 {
			return at(Library, rest), true
		}
	}
	return place{}, false
}

var (
	// libraryPath finds the folder of the standard library in a path: lib/python3.12/threading.py, and
	// not a user's folder that is called python3_projects.
	libraryPath = regexp.MustCompile(`(?:^|/)lib(?:64)?/python3(?:\.\d+)?t?/`)
	// windowsLibrary is where Windows has it: C:\Python311\Lib\threading.py.
	windowsLibrary = regexp.MustCompile(`^\w:/.*/Lib/`)
	drive          = regexp.MustCompile(`^\w:`)
	// cellFile is what ipykernel and IPython call the code of cells.
	cellFile = regexp.MustCompile(`/ipykernel_\d+/\d+\.py$|^<ipython-input-|^<cell line: `)
	// inductorFile is code that torch.compile has made.
	inductorFile = regexp.MustCompile(`(?:^|/)torchinductor_[^/]*/`)
	packages     = regexp.MustCompile(`^(?:.*/)?(?:site|dist)-packages/(?:[^/]*\.egg/)?`)
)

// installed returns the part of a path below the folder of the packages, or of an egg in it.
func installed(file string) (rest string, ok bool) {
	found := packages.FindStringIndex(file)
	if found == nil {
		return "", false
	}
	return file[found[1]:], true
}

// byPath judges by what installers and interpreters have in common; what remains is a Module's.
func byPath(file string) place {
	switch {
	case cellFile.MatchString(file):
		return place{Origin: Origin{Owner: Cell}}
	case strings.HasPrefix(file, "<frozen "):
		return at(Interpreter, strings.ReplaceAll(strings.Trim(file[len("<frozen "):], ">"), ".", "/"))
	case file == "" || file == "??" || strings.HasPrefix(file, "<"):
		return place{Origin: Origin{Owner: Generated}} // "<string>", "<__array_function__ internals>", "<eval_with_key>.3"
	}
	slashed := strings.ReplaceAll(file, `\`, "/")
	if rest, ok := installed(slashed); ok {
		return at(Library, rest)
	}
	if found := libraryPath.FindStringIndex(slashed); found != nil {
		return at(Standard, slashed[found[1]:])
	}
	if inductorFile.MatchString(slashed) {
		return place{Origin: Origin{Owner: Generated}}
	}
	if strings.HasPrefix(slashed, "/") || strings.HasPrefix(slashed, "~") {
		if found, ok := inCheckout(slashed, anywhere); ok {
			return found
		}
	}
	return place{Origin: Origin{Owner: Module}}
}

// at is the place of a file of a library, by its path from where packages begin.
func at(owner Owner, rest string) place {
	p := place{Origin{owner, ""}, moduleOf(rest)}
	known := knownOf(p.module)
	if known.traits&ours != 0 {
		p.Owner = Ours
	}
	p.Package, _, _ = strings.Cut(p.module, ".")
	if known.traits&kernel != 0 { // of a namespace of many packages, the one: google.colab
		for p.Package != p.module && knownOf(p.Package).traits&kernel == 0 {
			next, _, _ := strings.Cut(p.module[len(p.Package)+1:], ".")
			p.Package += "." + next
		}
	}
	return p
}

// moduleOf is the name that a file is imported by, by its path from where packages begin.
func moduleOf(rest string) string {
	folder, name := "", strings.TrimLeft(rest, "/")
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		folder, name = strings.ReplaceAll(name[:at], "/", "."), name[at+1:]
	}
	name, _, _ = strings.Cut(name, ".") // six.py, _ssl.cpython-312-x86_64-linux-gnu.so
	switch {
	case folder == "":
		return name
	case name == "" || name == "__init__":
		return folder
	}
	return folder + "." + name
}
