package kineto

// Frame has what only HolisticTraceAnalysis's rules want of a file: the complete
// events that carry a stream or a correlation, in the file's order, as that
// program's DataFrame has them. Its "device" is a stream that is a number other
// than -1, whatever the category.
type Frame struct {
	Rows []FrameRow
	// Decimals: some ts is written with a decimal point, which makes it round
	// them all.
	Decimals bool
	// Zero is the file's first event, if it is a complete one with a category.
	Zero *FrameRow
}

// FrameRow is one event.
type FrameRow struct {
	Start, Dur          int64  // ns
	Index               uint32 // place in traceEvents
	Stream, Correlation int64  // -1: none
	Name                Sym
	Kind                FrameKind
	Row                 int32 // of Trace.Device or Trace.Calls, as Kind says; else -1
}

// FrameKind is the other table that a FrameRow refers to.
type FrameKind uint8

const (
	FrameOther FrameKind = iota
	FrameDevice
	FrameCall
)

// add notes the record that was just filed into t's tables.
func (f *Frame) add(t *Trace, r *record, c class, name Sym, index uint32) {
	row := FrameRow{
		Start: r.start, Dur: r.dur, Index: index, Name: name, Row: -1,
		Stream: r.args.frameStream(), Correlation: r.args.correlation,
	}
	if row.Correlation == None {
		row.Correlation = -1
	}
	switch c {
	case classKernel, classMemcpy, classMemset, classMTIA:
		row.Kind, row.Row = FrameDevice, int32(t.Device.Len()-1)
	case classCall:
		row.Kind, row.Row = FrameCall, int32(t.Calls.Len()-1)
	}
	if index == 0 {
		zero := row
		f.Zero = &zero
	}
	if row.Kind != FrameOther || row.Stream != -1 || row.Correlation != -1 {
		f.Rows = append(f.Rows, row)
	}
}

// frameStream is the stream, -1 unless it is a number or a decimal text.
func (a *arguments) frameStream() int64 {
	if a.stream == None || a.streamHex {
		return -1
	}
	return a.stream
}

// compact follows the removal of rows from a table; f may be nil.
func (f *Frame) compact(kind FrameKind, keep []bool) {
	if f == nil {
		return
	}
	moved := make([]int32, len(keep))
	n := int32(0)
	for row, kept := range keep {
		moved[row] = -1
		if kept {
			moved[row] = n
			n++
		}
	}
	kept := f.Rows[:0]
	for _, r := range f.Rows {
		if r.Kind == kind {
			if r.Row = moved[r.Row]; r.Row < 0 {
				continue
			}
		}
		kept = append(kept, r)
	}
	f.Rows = kept
}
