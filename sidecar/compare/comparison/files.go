package comparison

import (
	"path"
	"regexp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// fileBook numbers the files of all runs: what has one number is one file.
type fileBook struct {
	files         []*sourceFile
	before, after []*runFiles // by run
	functions     map[functionKey]int
}

// functionNumber numbers functions that are asked for.
func (b *fileBook) functionNumber(k functionKey) int {
	n, known := b.functions[k]
	if !known {
		n = len(b.functions)
		b.functions[k] = n
	}
	return n
}

// runFiles says of the files of a report which ones of the book they are.
type runFiles struct {
	number []int
	text   []int // which of the file's texts it had
}

// sourceFile is one file in all the texts that it had. texts[0] is that of the first run
// after, or the first that is known: the lines of the others are counted under its lines.
type sourceFile struct {
	name  string // of code that is no cell; what distinguishes it from others
	cell  bool
	main  bool // the recorded cell or script itself
	own   bool
	texts []*text
}

// text is one text of a file.
type text struct {
	sha   string // empty: not known
	lines []numbered
	alignment
	back map[int]bool // lines of texts[0] that are in it
}

// newFileBook matches the files of all runs, those of the first run after first.
func newFileBook(before, after []*report.View) *fileBook {
	b := &fileBook{functions: make(map[functionKey]int)}
	for _, v := range after {
		b.after = append(b.after, b.take(v))
	}
	for _, v := range before {
		b.before = append(b.before, b.take(v))
	}
	return b
}

// take numbers the files of a report: those that are known, by the surest sign first,
// then the others anew.
func (b *fileBook) take(v *report.View) *runFiles {
	numbers, texts := make([]int, len(v.Files)), make([]int, len(v.Files))
	known := len(b.files) // those of earlier reports
	taken := make([]bool, known)
	for i := range numbers {
		numbers[i] = -1
	}
	main := mainFile(v)
	mine := make([]*sourceFile, len(v.Files))
	for i := range v.Files {
		mine[i] = sourceOf(v, i, i == main)
	}
	match := func(may func(f, known *sourceFile) bool) {
		for i, f := range mine {
			if numbers[i] >= 0 {
				continue
			}
			for k, o := range b.files[:known] {
				if !taken[k] && f.own == o.own && may(f, o) {
					numbers[i], taken[k] = k, true
					break
				}
			}
		}
	}
	match(func(f, o *sourceFile) bool { return f.sameText(o) })
	match(func(f, o *sourceFile) bool { return f.main && o.main })
	match(func(f, o *sourceFile) bool { return !f.cell && !o.cell && f.name == o.name })
	b.matchByLikeness(mine, numbers, known, taken)
	for i, f := range mine {
		if numbers[i] < 0 {
			numbers[i] = b.add(f)
		}
		texts[i] = b.files[numbers[i]].learn(f.texts[0])
	}
	return &runFiles{numbers, texts}
}

// add numbers a file anew; another one of the same report with the same text, as of a
// cell that was run twice, is the same.
func (b *fileBook) add(f *sourceFile) int {
	if at := slices.IndexFunc(b.files, func(o *sourceFile) bool { return f.own && o.own && f.sameText(o) }); at >= 0 {
		return at
	}
	b.files = append(b.files, f)
	return len(b.files) - 1
}

// matchByLikeness pairs what is left of the user's own files, the most alike first.
func (b *fileBook) matchByLikeness(mine []*sourceFile, numbers []int, known int, taken []bool) {
	const mostFiles = 200 // of each side; the work grows with the square
	type pair struct {
		i, k     int
		likeness float64
	}
	var pairs []pair
	tried := 0
	for i, f := range mine {
		if numbers[i] >= 0 || !f.own {
			continue
		}
		for k, o := range b.files[:known] {
			if taken[k] || !o.own || o.cell != f.cell || tried > mostFiles*mostFiles {
				continue
			}
			tried++
			if l := f.likeness(o); l >= alikeFiles {
				pairs = append(pairs, pair{i, k, l})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		if a.likeness > b.likeness {
			return -1
		}
		return 1
	})
	for _, p := range pairs {
		if numbers[p.i] < 0 && !taken[p.k] {
			numbers[p.i], taken[p.k] = p.k, true
		}
	}
}

func sourceOf(v *report.View, file int, main bool) *sourceFile {
	f := &v.Files[file]
	s := &sourceFile{name: stableName(f.Name), cell: f.ExecutionCount != nil || v.IsCell(file), main: main, own: f.Code.Own()}
	t := &text{lines: linesOf(f.Lines)}
	if f.SHA256 != nil {
		t.sha = *f.SHA256
	}
	s.texts = []*text{t}
	return s
}

// mainFile is the recorded cell, or the script itself; -1 where it is neither.
func mainFile(v *report.View) int {
	if cell := v.Target().Cell; cell != nil {
		return cell.File
	}
	return slices.IndexFunc(v.Files, func(f report.File) bool { return f.Code == report.CodeCell })
}

var installed = regexp.MustCompile(`^.*/(?:(?:site|dist)-packages|lib(?:64)?/python[\d.]+t?)/`)

// stableName is a file's name without the folder that Python's packages are in: another
// version's or environment's are the same.
func stableName(name string) string { return installed.ReplaceAllString(name, "") }

func (f *sourceFile) sameText(o *sourceFile) bool {
	sha := f.texts[0].sha
	return sha != "" && slices.ContainsFunc(o.texts, func(t *text) bool { return t.sha == sha })
}

// likeness of two files, 0 to 1: of their known lines; of names alone where these are not
// known.
func (f *sourceFile) likeness(o *sourceFile) float64 {
	a, b := f.texts[0].lines, o.texts[0].lines
	if len(a) == 0 || len(b) == 0 {
		if !f.cell && path.Base(f.name) == path.Base(o.name) {
			return alikeFiles
		}
		return 0
	}
	return 2 * float64(align(a, b).equal) / float64(len(a)+len(b))
}

// learn takes in a text of a file and returns its index.
func (f *sourceFile) learn(t *text) int {
	same := func(o *text) bool {
		return o == t || t.sha != "" && o.sha == t.sha || t.sha == "" && o.sha == "" && slices.Equal(o.lines, t.lines)
	}
	if at := slices.IndexFunc(f.texts, same); at >= 0 {
		return at
	}
	t.alignment = align(t.lines, f.texts[0].lines)
	t.back = make(map[int]bool, len(t.to))
	for _, line := range t.to {
		t.back[line] = true
	}
	f.texts = append(f.texts, t)
	return len(f.texts) - 1
}

// lineID is a line that several recordings have.
type lineID struct {
	file int
	text int // index of the text that the line is counted under
	line int
}

// line returns which line a line of a run's file is, and whether its text changed since.
func (b *fileBook) line(run *runFiles, file, line int) (id lineID, edited bool) {
	number, at := run.number[file], run.text[file]
	t := b.files[number].texts[at]
	if at == 0 || b.files[number].unknown(at) {
		return lineID{number, 0, line}, false
	}
	if to, ok := t.to[line]; ok {
		return lineID{number, 0, to}, t.edited[line]
	}
	return lineID{number, at, line}, false
}

// unknown reports whether nothing is known of a text or of that which it is compared with:
// lines are then named by their numbers.
func (f *sourceFile) unknown(text int) bool {
	return len(f.texts[text].lines) == 0 || len(f.texts[0].lines) == 0
}

// has reports whether a line is in the text that a run had of its file.
func (b *fileBook) has(run *runFiles, id lineID) bool {
	file := slices.Index(run.number, id.file)
	if file < 0 {
		return false
	}
	f, at := b.files[id.file], run.text[file]
	if at == id.text || f.unknown(at) {
		return true
	}
	return id.text == 0 && f.texts[at].back[id.line]
}
