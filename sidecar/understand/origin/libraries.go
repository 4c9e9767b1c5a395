package origin

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// libraries.txt is what is known of libraries.
//
//go:embed libraries.txt
var librariesText string

// standard.txt is sys.stdlib_module_names of CPython 3.10 to 3.15 together.
//
//go:embed standard.txt
var standardText string

var (
	libraries = sync.OnceValue(func() table {
		t, err := parseLibraries(librariesText)
		if err != nil {
			panic(err) // a damaged program: the tests read the same text
		}
		return t
	})
	standardModules = sync.OnceValue(func() map[string]bool {
		names := make(map[string]bool)
		for _, name := range strings.Fields(standardText) {
			names[name] = true
		}
		return names
	})
)

// line is one of libraries.txt, without its modules.
type line struct {
	functions  []string // of the modules; none: all
	adds, less Meanings
	kind       Kind
	traits     traits
	phase      Phase
	hasPhase   bool
}

// table is libraries.txt by module.
type table struct {
	exact map[string][]*line
	begin map[string][]beginning // by the module that they are in
	depth int                    // parts of the longest name
}

// beginning are the modules whose last part begins so.
type beginning struct {
	prefix string
	line   *line
}

func parseLibraries(text string) (table, error) {
	t := table{exact: make(map[string][]*line), begin: make(map[string][]beginning)}
	raws := strings.Split(text, "\n")
	for i := 0; i < len(raws); i++ {
		at, raw := i, withoutComment(raws[i])
		for ; i+1 < len(raws) && strings.HasPrefix(raws[i+1], " "); i++ {
			raw += withoutComment(raws[i+1])
		}
		if strings.TrimSpace(raw) == "" {
			continue
		}
		where, meaning, ok := strings.Cut(raw, "=")
		modules, functions, _ := strings.Cut(where, ":")
		l := &line{functions: strings.Fields(functions)}
		for _, word := range strings.Fields(meaning) {
			if err := l.add(word); err != nil {
				return t, fmt.Errorf("libraries.txt:%d: %w", at+1, err)
			}
		}
		if !ok || strings.TrimSpace(modules) == "" {
			return t, fmt.Errorf("libraries.txt:%d: a line is MODULE = WORD", at+1)
		}
		if len(l.functions) > 0 && (l.kind != Other || l.traits != 0) {
			return t, fmt.Errorf("libraries.txt:%d: only modules have a kind or an owner", at+1)
		}
		for _, name := range strings.Fields(modules) {
			t.depth = max(t.depth, 1+strings.Count(name, "."))
			if prefix, ok := strings.CutSuffix(name, "*"); ok {
				parent, first := splitLast(prefix)
				t.begin[parent] = append(t.begin[parent], beginning{first, l})
			} else {
				t.exact[name] = append(t.exact[name], l)
			}
		}
	}
	return t, nil
}

func withoutComment(line string) string {
	line, _, _ = strings.Cut(line, "#")
	return line
}

func (l *line) add(word string) error {
	name, less := strings.CutPrefix(word, "-")
	phase, isPhase := phaseWords[name]
	if isPhase && !less {
		l.phase, l.hasPhase = phase, true
	}
	if m, ok := words[name]; ok {
		if less {
			l.less |= m
		} else {
			l.adds |= m
		}
		return nil
	}
	if isPhase && !less {
		return nil
	}
	if kind, ok := kinds[word]; ok {
		l.kind = kind
		return nil
	}
	if trait, ok := traitWords[word]; ok {
		l.traits |= trait
		return nil
	}
	return fmt.Errorf("%q is no word of this list", word)
}

// splitLast splits a dotted name before its last part.
func splitLast(module string) (parent, last string) {
	at := strings.LastIndexByte(module, '.')
	return module[:max(at, 0)], module[at+1:]
}

// Known is what libraries.txt says of one module. The zero value is of one that it does not have.
type Known struct {
	lines   []*line // those of shorter names first
	kind    Kind
	traits  traits
	parts   int // of the longest name that fits
	nearest int // how many of the lines, the last ones, are of so many parts
}

// knownOf looks a module up: "torch.nn.functional". What a package has copied into itself is what
// it was before: pip._vendor.urllib3.
func knownOf(module string) (k Known) {
	for _, copies := range []string{"._vendor.", ".vendored."} {
		if at := strings.LastIndex(module, copies); at >= 0 {
			module = module[at+len(copies):]
		}
	}
	t := libraries()
	for end, parts := 0, 1; end < len(module) && parts <= t.depth; end, parts = end+1, parts+1 {
		if next := strings.IndexByte(module[end:], '.'); next >= 0 {
			end += next
		} else {
			end = len(module)
		}
		parent, last := splitLast(module[:end])
		for _, b := range t.begin[parent] {
			if strings.HasPrefix(last, b.prefix) {
				k.add(b.line, parts)
			}
		}
		for _, l := range t.exact[module[:end]] {
			k.add(l, parts)
		}
	}
	return k
}

func (k *Known) add(l *line, parts int) {
	if k.lines = append(k.lines, l); parts != k.parts {
		k.nearest = 0
	}
	k.nearest++
	k.parts = parts
	k.traits |= l.traits
	if l.kind != Other {
		k.kind = l.kind
	}
}

// Kind is what the module's code is for.
func (k Known) Kind() Kind { return k.kind }

// RunsTasks reports whether the module is of a library in whose functions the tasks of an event loop wait: asyncio.
func (k Known) RunsTasks() bool { return k.traits&tasks != 0 }

// Means returns what a function of the module means, by its qualified name. Without a name it is
// what all of the module's functions mean.
func (k Known) Means(function string) (m Meanings) {
	for _, l := range k.lines {
		if _, ok := l.fits(function); ok {
			m = m&^l.less | l.adds
		}
	}
	return m
}

// Mentions reports whether some function of the module has one of these meanings by the lines that are nearest to it: a line of
// all of torch says nothing of a module of it that has another one.
func (k Known) Mentions(m Meanings) bool {
	return slices.ContainsFunc(k.lines[len(k.lines)-k.nearest:], func(l *line) bool { return l.adds&m != 0 })
}

// Listed returns the name by which libraries.txt has a function with a meaning: all_gather for
// all_gather_object. It is empty where the function has another meaning, or its whole module has this one.
func (k Known) Listed(m Meanings, function string) string {
	for _, l := range k.lines {
		if name, ok := l.fits(function); ok && l.adds&m != 0 {
			return name
		}
	}
	return ""
}

// fits reports whether a line is of a function, and as which of those that it lists.
func (l *line) fits(function string) (name string, ok bool) {
	if len(l.functions) == 0 {
		return "", true
	}
	for _, pattern := range l.functions {
		if fitsPattern(function, pattern) {
			return strings.TrimSuffix(pattern, "_*"), true
		}
	}
	return "", false
}

// fitsPattern compares a qualified name with one of libraries.txt, whose head describes them.
func fitsPattern(function, pattern string) bool {
	switch base, more := strings.CutSuffix(pattern, "_*"); {
	case more:
		last := function[strings.LastIndexByte(function, '.')+1:]
		return last == base || strings.HasPrefix(last, base+"_")
	case strings.HasPrefix(pattern, "."):
		return strings.HasSuffix(function, pattern)
	case strings.HasSuffix(pattern, "."):
		return strings.HasPrefix(function, pattern) || strings.Contains(function, "."+pattern)
	}
	return function == pattern || strings.HasSuffix(function, "."+pattern)
}
