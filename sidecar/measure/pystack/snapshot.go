package pystack

// StackFrame is one frame of a Snapshot.
type StackFrame struct {
	Function, File  string
	Line, FirstLine int
}

// ThreadStack is one thread of a Snapshot.
type ThreadStack struct {
	NativeID  int
	Name      string
	Main      bool
	Frames    []StackFrame // root first
	Truncated bool         // frames nearer the leaf are missing
}

// Snapshot reads the stack of every thread once.
func (p *Process) Snapshot() ([]ThreadStack, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.findThreads(); err != nil {
		return nil, err
	}
	var out []ThreadStack
	for _, g := range p.gils {
		for _, t := range g.threads {
			t.unsure = true
			v, err := p.reader.sample(t, false)
			if err != nil {
				return nil, err
			}
			if v == threadGone {
				continue
			}
			p.identify(t)
			s := ThreadStack{NativeID: t.nativeID, Name: t.name, Main: p.isMain(t), Truncated: v != stackWhole}
			if v != stackLost {
				for _, f := range t.stack {
					s.Frames = append(s.Frames, f.describe())
				}
			}
			out = append(out, s)
		}
	}
	return out, nil
}

func (f *frame) describe() StackFrame {
	return StackFrame{Function: f.object.Function, File: f.object.File,
		Line: int(f.object.Line(f.index)), FirstLine: int(f.object.FirstLine)}
}
