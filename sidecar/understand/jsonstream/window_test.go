package jsonstream_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/omni-perf/omni-perf/sidecar/understand/jsonstream"
)

// open is a window of the smallest size, at the first byte of a text.
func open(text string, most int) *jsonstream.Window {
	w := jsonstream.NewWindow(strings.NewReader(text), 8, most)
	w.More()
	return w
}

func TestSkip(t *testing.T) {
	for _, value := range []string{
		`0`, `-12.5e+300`, `null`, `""`, `"a"`, `"a\"b"`, `"\\"`, `"1234567\\"`, `"123456\\\""`, `"\\\\\\\\\\\\\\\\\\"`,
		`[]`, `{}`, `[1,[2,{"a":"]}"}],"\"]"]`, `{"a":{"b":[[[[[[[[[[[[]]]]]]]]]]]]},"c":"{"}`, `"` + strings.Repeat("x", 100) + `"`,
	} {
		for _, after := range []string{",1", " ,", "]", "}"} {
			w := open(value+after, 8)
			if ok := w.Skip(); !ok || w.Offset() != int64(len(value)) {
				t.Errorf("%s: %v, is at %d, want %d", value, ok, w.Offset(), len(value))
			}
		}
		for cut := 1; cut < len(value); cut++ {
			if w := open(value[:cut], 8); strings.IndexByte(`"[{`, value[0]) >= 0 && w.Skip() {
				t.Errorf("%s is a whole value", value[:cut])
			}
		}
	}
}

func TestString(t *testing.T) {
	for value, most := range map[string]int{`""`: 2, `"abc"`: 5, `"0123456\"8\\"`: 20} {
		out, whole, ok := open(value+",", 8).String([]byte("before "), most)
		if string(out) != "before "+value || !whole || !ok {
			t.Errorf("%s: %q, %v, %v", value, out, whole, ok)
		}
		w := open(value+",", 8)
		if out, whole, ok := w.String(nil, len(value)-1); len(out) >= len(value) || whole || !ok || w.Offset() != int64(len(value)) {
			t.Errorf("%s: %q of %d bytes less one, %v, %v, at %d", value, out, len(value), whole, ok, w.Offset())
		}
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]struct {
		kept string
		n    int
		ok   bool
	}{
		"[]":                   {"[]", 0, true},
		"[ ]":                  {"[]", 0, true},
		"[1,2,3]":              {"[1,2,3]", 3, true},
		"[ 1 ,\n-2.5e7, null]": {"[1 ,-2.5e7,null]", 3, true},
		"[1 2]":                {"[1 2]", 1, true}, // for the decoder to refuse
		"[1,2,3,4,5,6]":        {"", 6, true},      // more than five
		`[1,"2"]`:              {"", 0, false},
		"[1,[2]]":              {"", 0, false},
		"[1,2":                 {"", 0, false},
		"[12345678901]":        {"", 0, false}, // more than ten bytes
	} {
		out, n, ok := open(text+"   ", 8).Numbers(nil, 5, 10)
		if ok != want.ok || ok && n != want.n || want.kept != "" && string(out) != want.kept {
			t.Errorf("%s: %q, %d, %v, want %q, %d, %v", text, out, n, ok, want.kept, want.n, want.ok)
		}
	}
}

func TestTry(t *testing.T) {
	quote := func(b []byte, i int) int {
		if n := bytes.IndexByte(b[i:], '"'); n >= 0 {
			return i + n + 1
		}
		return jsonstream.Short
	}
	w := open(strings.Repeat("x", 20)+`"`, 32)
	if value, next := w.Try(quote); len(value) != 21 || next < 0 || w.Offset() != 21 {
		t.Errorf("%q, %d, at %d", value, next, w.Offset())
	}
	w = open(strings.Repeat("x", 40)+`"`, 32)
	if _, next := w.Try(quote); next != jsonstream.Short || !w.Full() || w.Offset() != 0 {
		t.Errorf("%d, full %v, at %d: a value larger than the window", next, w.Full(), w.Offset())
	}
	w = open("xxx", 32)
	if _, next := w.Try(quote); next != jsonstream.Short || w.Full() || w.Truncated() {
		t.Errorf("%d, full %v, truncated %v: the text ended", next, w.Full(), w.Truncated())
	}
	w = jsonstream.NewWindow(io.MultiReader(strings.NewReader("xxx"), iotest.ErrReader(io.ErrClosedPipe)), 8, 8)
	if _, next := w.Try(quote); next != jsonstream.Short || !w.Truncated() {
		t.Errorf("%d, truncated %v: reading failed", next, w.Truncated())
	}
}

// Every value of sound JSON is skipped to its end, however small the window.
func FuzzSkip(f *testing.F) {
	for _, text := range []string{`[1,{"a":"\\\"]"},null]`, `"\u0000\\"`, `{"":[]}`, `-1e9`, `{"a":{"b":[true,false]}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		w := jsonstream.NewWindow(iotest.OneByteReader(bytes.NewReader(text)), 4, 4)
		first, some := w.Space()
		sound := json.Valid(text)
		if !some {
			if sound {
				t.Fatal("there is a value")
			}
			return
		}
		ok := w.Skip()
		if _, more := w.Space(); sound && more {
			t.Fatalf("stops at %d of %d", w.Offset(), len(text))
		}
		if sound && !ok && bytes.IndexByte([]byte(`"[{`), first) >= 0 {
			t.Fatal("not to the end")
		}
		for _, at := range []func() bool{
			func() bool { _, _, ok := w.String(nil, 3); return ok },
			func() bool { _, _, ok := w.Scalar(nil, 3); return ok },
			func() bool { _, _, ok := w.Numbers(nil, 3, 3); return ok },
		} {
			if w = jsonstream.NewWindow(bytes.NewReader(text), 4, 4); w.More() {
				at()
			}
		}
	})
}
