package mergereports

import "github.com/omni-perf/omni-perf/sidecar/understand/report"

// dictionary is the code that several reports refer to: what is the same in two of them
// is one file, function, frame and stack.
type dictionary struct {
	doc       *report.Document
	files     map[fileKey]int
	functions map[functionKey]int
	frames    map[[2]int64]int64
	nodes     map[[2]int64]int64 // parent and frame
}

type fileKey struct{ name, sha256 string }

type functionKey struct {
	file  int
	name  string
	first int
}

func newDictionary(doc *report.Document) *dictionary {
	doc.Nodes = report.Nodes{Parent: report.Column{0}, Frame: report.Column{0}}
	doc.Frames = report.Frames{Function: report.Column{}, Line: report.Column{}}
	doc.Files, doc.Functions = []report.File{}, []report.Function{}
	return &dictionary{
		doc: doc, files: make(map[fileKey]int), functions: make(map[functionKey]int),
		frames: make(map[[2]int64]int64), nodes: make(map[[2]int64]int64),
	}
}

// translation maps the indices of one report to those in the merged one.
type translation struct {
	files, functions []int
	nodes            []int64
}

func (d *dictionary) add(r *report.View) translation {
	t := translation{files: make([]int, len(r.Files)), functions: make([]int, len(r.Functions)), nodes: make([]int64, len(r.Nodes.Parent))}
	for i, f := range r.Files {
		t.files[i] = d.file(f)
	}
	for i, f := range r.Functions {
		f.File = t.files[f.File]
		key := functionKey{f.File, f.Name, f.FirstLine}
		at, known := d.functions[key]
		if !known {
			at = len(d.doc.Functions)
			d.functions[key] = at
			d.doc.Functions = append(d.doc.Functions, f)
		}
		t.functions[i] = at
	}
	frames := make([]int64, len(r.Frames.Function))
	for i, f := range r.Frames.Function {
		key := [2]int64{int64(t.functions[f]), r.Frames.Line[i]}
		at, known := d.frames[key]
		if !known {
			at = int64(len(d.doc.Frames.Function))
			d.frames[key] = at
			d.doc.Frames.Function, d.doc.Frames.Line = append(d.doc.Frames.Function, key[0]), append(d.doc.Frames.Line, key[1])
		}
		frames[i] = at
	}
	for i := 1; i < len(t.nodes); i++ { // parents come first
		key := [2]int64{t.nodes[r.Nodes.Parent[i]], frames[r.Nodes.Frame[i]]}
		at, known := d.nodes[key]
		if !known {
			at = int64(len(d.doc.Nodes.Parent))
			d.nodes[key] = at
			d.doc.Nodes.Parent, d.doc.Nodes.Frame = append(d.doc.Nodes.Parent, key[0]), append(d.doc.Nodes.Frame, key[1])
		}
		t.nodes[i] = at
	}
	return t
}

// file adds a file, or the lines of one that is known which it had not yet.
func (d *dictionary) file(f report.File) int {
	key := fileKey{name: f.Name}
	if f.SHA256 != nil {
		key.sha256 = *f.SHA256
	}
	at, known := d.files[key]
	if !known {
		at = len(d.doc.Files)
		d.files[key] = at
		f.Lines = append([]*string(nil), f.Lines...)
		d.doc.Files = append(d.doc.Files, f)
		return at
	}
	into := &d.doc.Files[at]
	for i, line := range f.Lines {
		if i == len(into.Lines) {
			into.Lines = append(into.Lines, nil)
		}
		if into.Lines[i] == nil {
			into.Lines[i] = line
		}
	}
	return at
}

func (t *translation) file(i *int) *int     { return moved(i, t.files) }
func (t *translation) function(i *int) *int { return moved(i, t.functions) }
func moved(i *int, to []int) *int {
	if i == nil {
		return nil
	}
	v := to[*i]
	return &v
}
