package scene

import (
	"errors"
	"testing"
)

type failing struct{ room int }

var errFull = errors.New("no space left on device")

func (f *failing) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriteErrorsAreReported(t *testing.T) {
	s := &Scene{Width: 1000, Height: 500}
	for range 1000 {
		s.Texts = append(s.Texts, Label{S: "a text of a picture"})
	}
	if err := writeSVG(&failing{room: 1 << 20}, s, 1, Options{Theme: Auto}); err != nil {
		t.Fatal(err)
	}
	if err := writeSVG(&failing{room: 1 << 14}, s, 1, Options{Theme: Auto}); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}
