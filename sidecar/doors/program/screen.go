package program

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/omni-perf/omni-perf/sidecar/show/live/panel"

	"github.com/omni-perf/omni-perf/sidecar/show/live"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the alternate screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	restOfLine  = "\x1b[K"
	restOfAll   = "\x1b[J"

	notesShown = 4 // below the picture
	notesKept  = 1000
)

// Screen is the Audience at a terminal: one picture that is drawn anew in its place. What
// is reported, and the last picture, stay on the terminal when it is closed. Messages are
// written to it too.
type Screen struct {
	To     io.Writer
	Size   func() (columns, rows int) // of the terminal, which may change
	Colour bool

	mu      sync.Mutex
	name    string
	now     *live.Now
	resting bool
	notes   []string
	open    bool
}

// Watch names what is followed.
func (s *Screen) Watch(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.name = name
	s.draw()
}

// Look draws a look.
func (s *Screen) Look(now *live.Now) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.resting = now, false
	s.draw()
}

// Rest says that nothing runs.
func (s *Screen) Rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resting = true
	s.draw()
}

// Note keeps a sentence.
func (s *Screen) Note(sentence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(sentence)
	s.draw()
}

// Write keeps messages, each of which is a text of its own.
func (s *Screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range strings.SplitSeq(strings.TrimRight(string(text), "\n"), "\n") {
		s.note(strings.TrimPrefix(line, "omni-perf: "))
	}
	s.draw()
	return len(text), nil
}

func (s *Screen) note(sentence string) {
	s.notes = append(s.notes, words.Clean(sentence, 4*words.MaxName))
	s.notes = s.notes[max(len(s.notes)-notesKept, 0):]
}

// Redraw draws the picture for the size that the terminal has now.
func (s *Screen) Redraw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		s.draw()
	}
}

// draw writes the whole picture at once; nothing before it is known what is followed.
func (s *Screen) draw() {
	if s.name == "" {
		return
	}
	columns, rows := s.Size()
	lines := s.picture(columns)
	notes := s.notes[max(len(s.notes)-notesShown, 0):]
	for i, n := range notes {
		if i == 0 {
			lines = append(lines, "")
		}
		lines = append(lines, words.Cut(n, columns))
	}
	lines = lines[:min(len(lines), max(rows-1, 1))]
	var b strings.Builder
	if !s.open {
		s.open = true
		b.WriteString(enterScreen)
	}
	b.WriteString(home)
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + restOfLine)
	}
	b.WriteString(restOfAll)
	_, _ = io.WriteString(s.To, b.String())
}

// picture is all but the messages.
func (s *Screen) picture(columns int) []string {
	title := words.Cut("omni-perf top · "+s.name, columns)
	if s.Colour {
		title = "\x1b[2m" + title + "\x1b[0m"
	}
	lines := []string{title, ""}
	switch {
	case s.resting:
		lines = append(lines, words.Cut("idle: no cell runs", columns))
	case s.now == nil:
		lines = append(lines, words.Cut("looking …", columns))
	default:
		lines = append(lines, panel.Text(s.now, columns, s.Colour)...)
	}
	return lines
}

// Close gives the terminal back, with the last picture and what was reported on it.
func (s *Screen) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	if s.open {
		s.open = false
		b.WriteString(leaveScreen)
		if s.now != nil {
			columns, _ := s.Size()
			s.resting = false
			b.WriteString(strings.Join(s.picture(columns), "\n") + "\n\n")
		}
	}
	for _, n := range s.notes {
		b.WriteString(n + "\n")
	}
	s.notes, s.name = nil, ""
	_, _ = io.WriteString(s.To, b.String())
}

// Lines is the Audience at a file or pipe: a line for each look.
type Lines struct {
	To io.Writer
}

// Watch names what is followed.
func (l Lines) Watch(name string) { l.write("following " + name) }

// Look writes a look.
func (l Lines) Look(now *live.Now) { l.write(panel.Line(now)) }

// Rest writes nothing: a log of a kernel that idles says nothing.
func (l Lines) Rest() {}

// Note writes a sentence.
func (l Lines) Note(sentence string) { l.write(sentence) }

func (l Lines) write(text string) { fmt.Fprintln(l.To, words.Clean(text, 4*words.MaxName)) }
