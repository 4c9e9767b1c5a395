package usercode

import (
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// mode is where in a stack, from its root on, one is.
type mode uint8

const (
	around  mode = iota // in frames of the kernel that surround the user's code
	program             // in the user's code and what it calls
	magic               // in IPython's machinery that the user's code called: it may call their code
	hidden              // in our extension around a cell
	called              // in our extension, or what it calls, below the user's code: the time is the caller's
)

// position is what one knows of a stack at one of its frames.
type position struct {
	mode  mode
	shown timeline.NodeID // what of the stack so far is shown, in the new tree
	base  timeline.NodeID // around: what is shown above the phase
	phase timeline.Phase  // around, and of what it called
	// inCell means that the recorded cell's code is on the stack.
	inCell bool
	// level is of the innermost frame at the module level of a cell; top means that it is the last one.
	level level
	top   bool
	after timeline.NodeID // magic: what is shown if it calls the user's code
	cells bool            // magic: it is a cell magic
	// runsCode means that the frame above calls a cell's code, and then what prints its exception.
	runsCode bool
	// starts is what the outermost frame is, below those that start a thread; known means that there is one.
	starts role
	known  bool
}

// level is a frame at the module level of a cell.
type level struct {
	before timeline.NodeID // what is shown above it
	region region
}

// step goes on to the next frame of a stack.
func (s *stripper) step(p position, id timeline.FrameID) position {
	m := &s.meanings[id]
	if m.passesOn {
		return p
	}
	starts, known := p.starts, p.known
	if !known && !m.startsThread {
		starts, known = m.role, true
	}
	switch {
	case m.recorded: // wherever it is called from, a cell's stack begins with it
		p = s.enter(position{mode: program, inCell: true}, timeline.RootNode, m)
	case m.customizes: // finding, compiling and running ours is nobody's; a file of the user's own that it imports begins its stacks
		p = position{mode: called}
	case p.mode == around:
		p = s.stepAround(p, m)
	case p.mode == program:
		p = s.stepProgram(p, m)
	case p.mode == magic:
		p = s.stepMagic(p, m)
	case (p.mode == called || p.mode == program) && m.role == ours && m.phase == timeline.PhaseTorchTrace:
		p.mode, p.top, p.phase = called, false, m.phase
		p.shown = s.phase(timeline.RootNode, m.phase)
	case p.mode == called && (m.role == own || m.role == cellLevel): // a function that it was given
		p = s.stepProgram(p, m)
	}
	p.starts, p.known, p.runsCode = starts, known, m.runsCode
	return p
}

// phaseOf is the phase that a frame around a cell's code begins. What prints an exception may be
// anybody's: set_custom_exc and rich.traceback.install put their own in the place of IPython's.
func (p position) phaseOf(m *meaning) timeline.Phase {
	if p.runsCode && m.role != cellLevel && m.shown.Function != moduleLevel {
		return timeline.PhaseTraceback
	}
	return m.phase
}

func (s *stripper) stepAround(p position, m *meaning) position {
	switch m.role {
	case ours:
		return position{mode: hidden}
	case eventLoop:
		p.phase, p.shown = timeline.PhaseNone, p.base
		return p
	case runner:
		return p
	}
	if phase := p.phaseOf(m); phase != timeline.PhaseNone {
		p.phase = phase
		p.shown = s.phase(p.base, phase)
	}
	if m.role == kernel {
		return p
	}
	p.mode = program
	return s.stepProgram(p, m)
}

func (s *stripper) stepProgram(p position, m *meaning) position {
	switch {
	case p.top && m.displays:
		p.mode, p.top, p.phase, p.base = around, false, timeline.PhaseDisplay, p.level.before
		p.shown = s.phase(p.base, p.phase)
		return p
	case m.role == ours:
		p.mode, p.top = called, false
		return p
	case m.role == cellLevel:
		p.mode = program
		return s.enter(p, p.shown, m)
	case m.role == kernel:
		p.mode, p.after, p.cells = magic, p.shown, m.cellMagic
	default:
		p.mode = program
	}
	p.shown, p.top = s.child(p.shown, m), false
	return p
}

func (s *stripper) stepMagic(p position, m *meaning) position {
	if p.phaseOf(m) == timeline.PhaseTraceback { // of what the magic ran
		p.mode, p.top, p.base = around, false, p.level.before
		return s.stepAround(p, m)
	}
	switch m.role {
	case ours:
		if !p.inCell { // the line magic around the statement that is recorded
			return position{mode: hidden}
		}
		return p
	case magicBody:
		p.mode = program
		// Of a line magic, or the set-up of %%timeit, which has no line of the body: the line is on the stack.
		if !p.cells || p.level.region.text == nil || m.shown.Line == 0 {
			p.shown, p.top = p.after, false
			return p
		}
		r := p.level.region
		if r.magic {
			r = r.body()
		}
		f := m.shown
		f.Function = moduleLevel
		return s.enter(p, p.level.before, &meaning{region: r, shown: r.frame(f)})
	case cellLevel:
		p.mode = program
		if p.cells && m.region.text == p.level.region.text && m.region.text != nil { // the body, run as a cell of its own
			return s.enter(p, p.level.before, m)
		}
		return s.enter(p, p.after, m)
	case own:
		p.mode, p.top = program, false
		p.shown = s.child(p.after, m)
		return p
	}
	p.cells = p.cells || m.cellMagic
	p.shown = s.child(p.shown, m)
	return p
}

// enter goes on to a frame at the module level of a cell.
func (s *stripper) enter(p position, before timeline.NodeID, m *meaning) position {
	p.level, p.top = level{before, m.region}, true
	p.shown = s.child(before, m)
	return p
}
