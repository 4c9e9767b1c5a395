package jsonstream_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestMembersAndElements: what a visit takes, what it leaves, and what is larger than the window.
func TestMembersAndElements(t *testing.T) {
	long := strings.Repeat("x", 100)
	w := open(`{"a": 1, "skipped": {"a": [2, "]"]}, "list" : [ {"b": "}\""}, 3, "`+long+`", [] ], "c":true} rest`, 32)
	var got []string
	take := func() bool {
		value, whole, ok := w.Value()
		got = append(got, fmt.Sprintf("%s %t", value, whole))
		return ok
	}
	ok := w.Members(func(key string) bool {
		switch key {
		case "skipped":
			return true
		case "list":
			return w.Elements(take)
		}
		got = append(got, key)
		return take()
	})
	want := `[a 1 true {"b": "}\""} true 3 true  false [] true c true true]`
	if !ok || fmt.Sprint(got) != want || string(w.Buf[w.Pos:])[:2] != " r" {
		t.Errorf("got %t %v, want %s; %q is left", ok, got, want, w.Buf[w.Pos:])
	}
}

// TestWalksOfDamage end, wherever the text does.
func TestWalksOfDamage(t *testing.T) {
	for _, text := range []string{`{"a"`, `{"a":`, `{"a":[1,`, `{"a":"b`, `{1:2}`, `{"a"}`, `{"a":]}`, `{"a":,}`, `{`, `]`, `{"a": 12`} {
		w := open(text, 64)
		if w.Members(func(string) bool { return w.Elements(func() bool { _, _, ok := w.Value(); return ok }) }) {
			t.Errorf("%s: ok", text)
		}
	}
	w := open(`{"a":1,"b":2}`, 64)
	if w.Members(func(key string) bool { return key != "b" }) {
		t.Error("a visit cannot end the walk")
	}
}

// FuzzWalk: no text moves a walk beyond its end, or keeps it from ending.
func FuzzWalk(f *testing.F) {
	for _, text := range []string{`{"a":[1,{"b":"\""},[]],"c":null}`, `[{"a":`, `{"a":[}]`, `{}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w := open(text, 64)
		var walk func(depth int) bool
		walk = func(depth int) bool {
			if c, ok := w.Space(); ok && depth < 8 {
				switch c {
				case '{':
					return w.Members(func(string) bool { return walk(depth + 1) })
				case '[':
					return w.Elements(func() bool { return walk(depth + 1) })
				}
			}
			_, _, ok := w.Value()
			return ok
		}
		walk(0)
		if w.Pos > len(w.Buf) || w.Offset() > int64(len(text)) {
			t.Errorf("the walk of %q ended at %d", text, w.Offset())
		}
	})
}
