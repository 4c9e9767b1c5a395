package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode"

	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// messages is standard error for our own messages. Names of files and texts of programs
// are in it, and a terminal must not take them for commands.
var messages io.Writer = plainText{os.Stderr}

// plainText writes text with a mark in the place of every control character but the
// end of a line and the tabulator. Each Write is a text of its own.
type plainText struct{ to io.Writer }

func (p plainText) Write(text []byte) (int, error) {
	if _, err := io.WriteString(p.to, plain(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)) {
			return '␣'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// complain reports an error. One of package os, with nothing before it, begins like a command: "open x.json: …".
func complain(err error) {
	text := err.Error()
	if as := new(fs.PathError); errors.As(err, &as) && strings.HasPrefix(text, as.Error()) {
		text = "cannot " + text
	}
	fmt.Fprintf(messages, "omni-perf: %s\n", words.Sentence(text))
}
