package report

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"

	"github.com/omni-perf/omni-perf/sidecar/understand/jsonstream"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// A document is decoded member by member while it is read. Each member's text is first
// strained: what the Document's types do not know is left out, elements are counted, and
// what is beyond a limit ends the reading. So the decoder, which wants a member's text as
// a whole, gets no more than the limits allow, whatever the size of the file.

// shape is what the strainer knows of a type.
type shape struct {
	kind shapeKind
	name string // of the lists: "functions", "files.lines"
	// fields are the members of an object, at most 64, by their JSON names.
	fields map[string]*field
	elem   *shape // of a list or table
	most   int    // elements of all lists of that name
	list   int    // which counter counts them
}

// field is a member of an object.
type field struct {
	*shape
	key    string
	number int   // among the object's
	index  []int // of the Go field
}

type shapeKind uint8

const (
	scalarShape  shapeKind = iota // a string, a number, a word
	objectShape                   // an object with known members
	tableShape                    // an object with any members, of one shape
	listShape                     // a list of values of one shape
	numbersShape                  // a list of numbers, or of null for them
	anyShape                      // whatever JSON has
)

// documentShape is that of Document, and the number of its lists.
var documentShape = sync.OnceValues(func() (*shape, int) {
	lists := 0
	s := shapeOf(reflect.TypeFor[Document](), "", &lists)
	return s, lists
})

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

func shapeOf(t reflect.Type, name string, lists *int) *shape {
	if t.Kind() == reflect.Pointer {
		return shapeOf(t.Elem(), name, lists)
	}
	if reflect.PointerTo(t).Implements(textUnmarshaler) {
		return &shape{}
	}
	s := &shape{name: name}
	switch t.Kind() {
	case reflect.Struct:
		s.kind, s.fields = objectShape, make(map[string]*field)
		for _, f := range reflect.VisibleFields(t) {
			if f.Anonymous {
				continue
			}
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			s.fields[key] = &field{shapeOf(f.Type, strings.TrimPrefix(name+"."+key, "."), lists), key, len(s.fields), f.Index}
		}
		return s
	case reflect.Slice, reflect.Array:
		s.kind, s.elem, s.most = listShape, shapeOf(t.Elem(), name, lists), maxElements
		if isNumber(t.Elem()) {
			s.kind, s.most = numbersShape, maxNumbers
		}
	case reflect.Map:
		s.kind, s.elem, s.most = tableShape, shapeOf(t.Elem(), name, lists), maxElements
	case reflect.Interface:
		s.kind, s.most = anyShape, maxElements
		s.elem = s
	default:
		return s
	}
	if most, ok := maxElementsOf[name]; ok {
		s.most = most
	}
	s.list = *lists
	*lists++
	return s
}

// isNumber reports whether a type is written as a number, or as null.
func isNumber(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64
}

// strainer reads a document.
type strainer struct {
	w      *jsonstream.Window
	out    []byte // what was kept of the running member
	kept   int    // what was kept of the others
	counts []int  // elements by list
	depth  int    // within anyShape
	key    []byte
}

// windowSize is how much of the text the strainer sees at a time.
const windowSize = 128 << 10

// errShape is JSON whose brackets, commas or colons are wrong.
var errShape = errors.New("it is no JSON")

// errLarge is a document beyond the limits.
var errLarge = errors.New("it is larger than any report")

// strain calls member for each known member of a document's object, with its strained text,
// which is valid until member returns; unknown gets the keys of the others.
func strain(src io.Reader, member func(f *field, text []byte) error, unknown func(key []byte)) error {
	s := &strainer{w: jsonstream.NewWindow(src, windowSize, windowSize)}
	top, lists := documentShape()
	s.counts = make([]int, lists)
	if err := s.begin(); err != nil {
		return err
	}
	seen := uint64(0)
	err := s.members(func(key []byte) error {
		f := top.fields[string(key)]
		if f == nil {
			unknown(key)
			return s.skip()
		}
		if err := s.once(&seen, f); err != nil {
			return err
		}
		s.kept += len(s.out)
		s.out = s.out[:0]
		if err := s.value(f.shape); err != nil {
			return err
		}
		return member(f, s.out)
	})
	if err != nil {
		return err
	}
	if _, more := s.w.Space(); more {
		return s.wrong("something follows the document")
	}
	if s.w.Truncated() {
		return s.ends()
	}
	return nil
}

// begin looks at what is before the document's object.
func (s *strainer) begin() error {
	for blanks := 0; ; {
		if s.w.Pos == len(s.w.Buf) && !s.w.More() {
			return s.ends()
		}
		switch s.w.Buf[s.w.Pos] {
		case '{':
			return nil
		case ' ', '\t', '\r', '\n':
			if blanks++; blanks > maxBlanks {
				return s.wrong("it begins with more than %s blanks", words.Count(maxBlanks))
			}
			s.w.Pos++
		case '[':
			return fmt.Errorf("%w, but a list", ErrNoReport)
		default:
			return s.wrong("it does not begin with {")
		}
	}
}

func (s *strainer) wrong(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errShape}, args...)...)
}

func (s *strainer) ends() error {
	if s.w.Truncated() {
		return fmt.Errorf("at byte %d: %w", s.w.Offset(), s.w.Err)
	}
	return s.wrong("it ends at byte %d, before the document does", s.w.Offset())
}

func (s *strainer) unexpected(c byte) error {
	return s.wrong("byte %d is an unexpected %q", s.w.Offset(), c)
}

// members calls visit for each member of the object at the current position, with the
// position at the member's value, which visit takes. The key, as it is written between its
// quotes, is valid until then; nil: a longer one than any of a report.
func (s *strainer) members(visit func(key []byte) error) error {
	s.w.Pos++
	for first := true; ; first = false {
		c, ok := s.w.Space()
		switch {
		case !ok:
			return s.ends()
		case c == '}' && first:
			s.w.Pos++
			return nil
		case c != '"':
			return s.unexpected(c)
		}
		var whole bool
		if s.key, whole, ok = s.w.String(s.key[:0], maxKey); !ok {
			return s.ends()
		}
		key := s.key[1 : len(s.key)-1]
		if !whole {
			key = nil
		}
		if c, ok = s.w.Space(); !ok {
			return s.ends()
		} else if c != ':' {
			return s.unexpected(c)
		}
		s.w.Pos++
		if _, ok = s.w.Space(); !ok {
			return s.ends()
		}
		if err := visit(key); err != nil {
			return err
		}
		if c, ok = s.w.Space(); !ok {
			return s.ends()
		}
		s.w.Pos++
		switch c {
		case '}':
			return nil
		case ',':
		default:
			return s.unexpected(c)
		}
	}
}

// skip takes a value unread.
func (s *strainer) skip() error {
	if !s.w.Skip() {
		return s.ends()
	}
	return nil
}

// value keeps the value at the current position as far as its shape has it. Where there
// is a list or an object that does not belong there, an empty one is kept, for the decoder
// to refuse.
func (s *strainer) value(sh *shape) error {
	if s.kept+len(s.out) > maxText {
		return s.wrong("it has more than %s bytes of what a report has", words.Count(maxText))
	}
	switch s.w.Buf[s.w.Pos] {
	case '{':
		switch sh.kind {
		case objectShape:
			return s.object(sh)
		case tableShape, anyShape:
			return s.nested(sh, s.table)
		}
		s.out = append(s.out, "{}"...)
		return s.skip()
	case '[':
		switch sh.kind {
		case numbersShape:
			return s.numbers(sh)
		case listShape, anyShape:
			return s.nested(sh, s.list)
		}
		s.out = append(s.out, "[]"...)
		return s.skip()
	case '"':
		before := len(s.out)
		out, whole, ok := s.w.String(s.out, maxString)
		if s.out = out; !ok {
			return s.ends()
		}
		if !whole {
			s.out = append(s.out[:before], "null"...)
		}
		return nil
	}
	out, whole, ok := s.w.Scalar(s.out, maxScalar)
	switch s.out = out; {
	case !whole:
		return s.wrong("byte %d is in a number of more than %d digits", s.w.Offset(), maxScalar)
	case !ok:
		return s.ends()
	}
	return nil
}

// object keeps an object's known members, each of which it may have once.
func (s *strainer) object(sh *shape) error {
	seen := uint64(0)
	s.out = append(s.out, '{')
	err := s.members(func(key []byte) error {
		f := sh.fields[string(key)]
		if f == nil {
			return s.skip()
		}
		if seen != 0 {
			s.out = append(s.out, ',')
		}
		if err := s.once(&seen, f); err != nil {
			return err
		}
		s.out = append(append(append(s.out, '"'), key...), `":`...)
		return s.value(f.shape)
	})
	s.out = append(s.out, '}')
	return err
}

// once notes a member of an object, which has each at most once.
func (s *strainer) once(seen *uint64, f *field) error {
	if *seen&(1<<f.number) != 0 {
		return s.wrong("byte %d is in a second %q of an object", s.w.Offset(), f.key)
	}
	*seen |= 1 << f.number
	return nil
}

// nested keeps a list or table, as deep as one may be.
func (s *strainer) nested(sh *shape, keep func(*shape) error) error {
	if s.depth++; s.depth > maxDepth {
		return s.wrong("byte %d is in more than %d lists of lists", s.w.Offset(), maxDepth)
	}
	err := keep(sh)
	s.depth--
	return err
}

// table keeps an object with any members.
func (s *strainer) table(sh *shape) error {
	first := true
	s.out = append(s.out, '{')
	err := s.members(func(key []byte) error {
		if key == nil {
			return s.skip()
		}
		if !first {
			s.out = append(s.out, ',')
		}
		first = false
		s.out = append(append(append(s.out, '"'), key...), `":`...)
		if err := s.count(sh, 1); err != nil {
			return err
		}
		return s.value(sh.elem)
	})
	s.out = append(s.out, '}')
	return err
}

func (s *strainer) list(sh *shape) error {
	s.w.Pos++
	s.out = append(s.out, '[')
	for first := true; ; first = false {
		c, ok := s.w.Space()
		switch {
		case !ok:
			return s.ends()
		case c == ']' && first:
			s.w.Pos++
			s.out = append(s.out, ']')
			return nil
		}
		if err := s.count(sh, 1); err != nil {
			return err
		}
		before := len(s.out)
		if err := s.value(sh.elem); err != nil {
			return err
		}
		if c, ok = s.w.Space(); !ok {
			return s.ends()
		}
		if c != ',' && c != ']' || len(s.out) == before {
			return s.unexpected(c)
		}
		s.w.Pos++
		if s.out = append(s.out, c); c == ']' {
			return nil
		}
	}
}

func (s *strainer) numbers(sh *shape) error {
	at := s.w.Offset()
	out, n, ok := s.w.Numbers(s.out, sh.most-s.counts[sh.list], maxScalar)
	s.out = out
	if err := s.count(sh, n); err != nil {
		return err
	}
	if !ok {
		if s.w.Err != nil && s.w.Pos == len(s.w.Buf) {
			return s.ends()
		}
		return s.wrong("%s, a list at byte %d, has something else than numbers", sh.name, at)
	}
	return nil
}

// count adds to the elements of a list.
func (s *strainer) count(sh *shape, n int) error {
	if s.counts[sh.list] += n; s.counts[sh.list] > sh.most {
		return fmt.Errorf("%w: more than %s elements of %q", errLarge, words.Count(int64(sh.most)), sh.name)
	}
	return nil
}
