package report

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// codeBook is the files and functions of the document: those that anything in it
// refers to.
type codeBook struct {
	rec       *timeline.Recording
	names     *names
	files     []File
	raw       []string // co_filename of each file
	byName    map[string]int
	functions []Function
	byKey     map[functionKey]int
	byFrame   []int // function of each of the recording's frames; -1: not asked for yet
	at        map[place]int
}

type functionKey struct {
	file      int
	name      string
	label     string
	firstLine int
}

// place is a line of a file, by its co_filename.
type place = activity.Place

func newCodeBook(rec *timeline.Recording, n *names) *codeBook {
	c := &codeBook{
		rec: rec, names: n, files: []File{}, functions: []Function{},
		byName: make(map[string]int), byKey: make(map[functionKey]int), byFrame: make([]int, len(rec.Frames)),
	}
	for i := range c.byFrame {
		c.byFrame[i] = -1
	}
	return c
}

// file returns the index of a co_filename.
func (c *codeBook) file(name string) int {
	i, ok := c.byName[name]
	if !ok {
		i = len(c.files)
		f := File{Name: c.names.file(name), Code: c.names.code(timeline.Frame{File: name})}
		if from := c.names.origins.Of(name); from.Package != "" {
			f.Package = pointer(clean(from.Package))
		}
		if count, ok := c.names.cells[name]; ok && count > 0 {
			f.ExecutionCount = &count
		}
		c.files, c.raw = append(c.files, f), append(c.raw, name)
		c.byName[name] = i
	}
	return i
}

// functionOf returns the index of a frame's function.
func (c *codeBook) functionOf(id timeline.FrameID) int {
	if c.byFrame[id] < 0 {
		f := c.rec.Frames[id]
		key := functionKey{file: c.file(f.File), name: qualified(f.Function), firstLine: max(f.FirstLine, 0)}
		if label := c.names.function(f); label != key.name {
			key.label = label
		}
		i, ok := c.byKey[key]
		if !ok {
			i = len(c.functions)
			c.functions = append(c.functions, Function{
				File: key.file, Name: key.name, Label: known(key.label, ""), FirstLine: key.firstLine, Code: c.names.code(f), Task: f.Task,
			})
			c.byKey[key] = i
		}
		c.byFrame[id] = i
	}
	return c.byFrame[id]
}

// own recognises the frames of code that the user wrote.
func (c *codeBook) own(id timeline.FrameID) bool { return c.functions[c.functionOf(id)].Code.Own() }

// place returns what a document says of a place: file, line and the function there,
// each nil where it is not known.
func (c *codeBook) place(p activity.Place) (file, line, function *int) {
	if p.File == "" {
		return nil, nil, nil
	}
	file = pointer(c.file(p.File))
	if p.Line <= 0 {
		return file, nil, nil
	}
	line = pointer(p.Line)
	if c.at == nil {
		c.at = make(map[place]int)
		for id, f := range c.byFrame {
			if fr := c.rec.Frames[id]; f >= 0 {
				if _, known := c.at[place{File: fr.File, Line: fr.Line}]; !known {
					c.at[place{File: fr.File, Line: fr.Line}] = f
				}
			}
		}
	}
	if f, ok := c.at[p]; ok {
		function = &f
	}
	return file, line, function
}

const (
	// A file of the user's own that is larger has only the lines in it that the
	// document refers to; and so have all once that much of text is in it.
	maxFileText = 32 << 10
	maxAllText  = 128 << 10
)

// texts fills in the files' lines and hashes. wanted are the lines that the document
// refers to.
func (c *codeBook) texts(source *activity.Source, read func(file string) []byte, wanted map[place]bool) {
	left := maxAllText
	for i := range c.files {
		f, name := &c.files[i], c.raw[i]
		if !f.Code.Own() {
			continue
		}
		text, known := c.cellText(name)
		if !known && read != nil && source.Text(name) == origin.TextProven {
			text = string(read(name))
			known = text != ""
		}
		if known {
			sum := sha256.Sum256([]byte(text))
			f.SHA256 = pointer(hex.EncodeToString(sum[:]))
		}
		if known && len(text) <= min(maxFileText, left) {
			left -= len(text)
			f.Lines = linesOf(text)
			continue
		}
		for p := range wanted {
			if p.File == name {
				f.keepLine(p.Line, source.Line(name, p.Line))
			}
		}
	}
}

// cellText is the text of a cell as typed.
func (c *codeBook) cellText(file string) (string, bool) {
	if cell := c.rec.Target.Cell; cell != nil && cell.File == file {
		return cell.Text, true
	}
	for _, s := range c.rec.Sources {
		if s.File == file {
			return s.Text, s.Text != ""
		}
	}
	return "", false
}

func linesOf(text string) []*string {
	lines := []*string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		lines = append(lines, pointer(excerpt(line)))
	}
	return lines
}

// keepLine keeps one line of a file of which not all are kept.
func (f *File) keepLine(line int, text string) {
	const most = 1 << 16 // lines of a file that holds others' are null, of four bytes each
	if text == "" || line < 1 || line > most {
		return
	}
	for len(f.Lines) < line {
		f.Lines = append(f.Lines, nil)
	}
	if f.Lines[line-1] == nil {
		f.Lines[line-1] = pointer(excerpt(text))
	}
}

// excerpt is a source line as a display shows it, control characters replaced.
func excerpt(line string) string {
	const most = 200
	line = clean(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    "))
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}
