package activity

import (
	"regexp"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// need is what an evaluation takes beside a loader's batches that go through a model.
type need uint8

const (
	nothingElse need = iota // its text says that no gradients are computed
	noGradients             // none are computed of what a line calls the function for
	othersTrain             // likewise, and of what another line calls it for they are
)

// scope is a part of a function of the user's own that may be an evaluation.
type scope struct {
	at    Place // of its header
	need  need
	loop  bool // a for, or a comprehension
	batch bool // it is one, and the frame's line is where the next batch comes from
	calls bool // the loop is in a function that is called in it
	evals bool // a model is made to evaluate before the loop: that it runs need not be seen, which may take a hundredth of the time
}

// scopesOf are the scopes that a frame's line is in, the innermost first.
func (s *Stacks) scopesOf(id timeline.FrameID) (list []scope) {
	f := s.Rec.Frames[id]
	looped := comprehends(f.Function)
	for _, h := range s.enclosing(f.File, f.Line) {
		at := Place{f.File, h.line}
		if strings.HasPrefix(h.text, "for ") {
			looped = true
			evals := s.evalBefore(at)
			list = append(list, scope{at: at, need: s.needOf(at, evals), loop: true, batch: h.own, evals: evals})
			continue
		}
		if !strings.HasPrefix(h.text, "with ") {
			continue
		}
		switch without, perhaps := gradients(h.text); {
		case without:
			list = append(list, scope{at: at, calls: !looped})
		case perhaps:
			list = append(list, scope{at: at, need: noGradients, calls: !looped})
		}
	}
	first := Place{f.File, f.FirstLine}
	for at := first; at.Line < s.definition(first).Line; at.Line++ {
		if text := s.source.Line(at.File, at.Line); strings.HasPrefix(text, "@") {
			if without, _ := gradients(text); without {
				return append(list, scope{at: at, calls: !looped})
			}
		}
	}
	return list
}

// comprehends reports whether a function is a comprehension's: of generators, and of all before Python 3.12.
func comprehends(function string) bool {
	return strings.HasSuffix(function, "<genexpr>") || strings.HasSuffix(function, "comp>")
}

// comprehension is in the text of a statement that has a loop of its own.
var comprehension = regexp.MustCompile(`\S.*\bfor\b.+\bin\b`)

// ownHeader is a header, or a line's own statement where it is a loop or begins a block.
type ownHeader struct {
	header
	own bool
}

// enclosing are the loops and blocks that a line is in, with its own.
func (s *Stacks) enclosing(file string, line int) (list []ownHeader) {
	first, text := s.source.statement(file, line)
	text = strings.TrimPrefix(text, "async ")
	if comprehension.MatchString(text) {
		list = append(list, ownHeader{header{first, "for " + text}, true})
	}
	if strings.HasPrefix(text, "for ") || strings.HasPrefix(text, "if ") || strings.HasPrefix(text, "with ") && strings.Contains(text, behindHeader) {
		list = append(list, ownHeader{header{first, text}, true})
	}
	for _, h := range s.source.headers(file, first) {
		list = append(list, ownHeader{h, false})
	}
	return list
}

// behindHeader is between a header's call and what follows in the same line.
const behindHeader = "): "

// switching is what computes no gradients below it, and what it is called with.
var switching = regexp.MustCompile(`\b(no_grad|inference_mode|set_grad_enabled)\b(?:\((?:mode=)?([^)]*))?`)

// choosing is in the text of a header that has two things to choose from.
var choosing = regexp.MustCompile(`\bif\b`)

// gradients reports whether the text of a header, or of a decorator, says that no gradients are computed below it, or that
// they are or not, as a value has it.
func gradients(text string) (without, perhaps bool) {
	text, _, _ = strings.Cut(text, behindHeader)
	found := switching.FindStringSubmatch(text)
	if found == nil {
		return false, false
	}
	function, value := found[1], strings.TrimSpace(found[2])
	switch {
	case choosing.MatchString(text):
		return false, true
	case function == "no_grad", function == "inference_mode" && (value == "" || value == "True"), function == "set_grad_enabled" && value == "False":
		return true, false
	}
	return false, value != "True" && value != "False"
}

// needOf is what a loop needs: less where its text has no gradients for a part of it, or a model is made to evaluate before.
func (s *Stacks) needOf(loop Place, evals bool) need {
	if evals || s.switches(loop) {
		return noGradients
	}
	return othersTrain
}

// switches reports whether a loop's batches are, or may be, without gradients somewhere in it. Loops in it have their own.
func (s *Stacks) switches(loop Place) bool {
	indent, inner := indentation(s.source.written(loop.File, loop.Line)), -1
	for line := loop.Line + 1; line <= loop.Line+maxAbove; line++ {
		text := s.source.Line(loop.File, line)
		in := indentation(s.source.written(loop.File, line))
		if text == "" || text[0] == '#' || inner >= 0 && in > inner {
			continue
		}
		if in <= indent && text[0] != ')' {
			return false
		}
		if inner = -1; strings.HasPrefix(text, "for ") || strings.HasPrefix(text, "def ") {
			inner = in
		}
		if strings.HasPrefix(text, "with ") {
			_, text = s.source.statement(loop.File, line)
			if without, perhaps := gradients(text); without || perhaps {
				return true
			}
		}
	}
	return false
}

// modes are what makes a model evaluate, or train.
var modes = regexp.MustCompile(`\.eval\(\)|\.train\(([^)]*)\)`)

// evalBefore reports whether a model is made to evaluate before a loop, in its function: the last that is written counts.
func (s *Stacks) evalBefore(loop Place) bool {
	indent := indentation(s.source.written(loop.File, loop.Line))
	for line := loop.Line - 1; line >= max(loop.Line-maxAbove, 1); line-- {
		text, in := s.source.Line(loop.File, line), indentation(s.source.written(loop.File, line))
		if text == "" || text[0] == '#' || in > indent {
			continue
		}
		if indent = in; strings.HasPrefix(text, "def ") || strings.HasPrefix(text, "async def ") {
			return false
		}
		if found := modes.FindAllStringSubmatch(text, -1); found != nil {
			last := found[len(found)-1]
			return last[0] == ".eval()" || last[1] == "False"
		}
	}
	return false
}
