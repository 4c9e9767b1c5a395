package scene

// Theme says on which background a chart will be looked at.
type Theme string

// The themes. Auto follows the page or, in an image, the viewer's preference.
const (
	Auto  Theme = "auto"
	Light Theme = "light"
	Dark  Theme = "dark"
)

// Options of a picture; the zero value is usable.
type Options struct {
	Width  float64 // pixels; 0 = 1120, at least 560
	Theme  Theme   // empty = Auto
	Inline bool    // SVG inside an HTML document: no XML declaration
}

const (
	DefaultWidth = 1120
	MinWidth     = 560
	maxWidth     = 4000
)

// WithDefaults fills in what is not given, within the bounds.
func (o Options) WithDefaults() Options {
	switch {
	case !(o.Width > 0): // NaN too
		o.Width = DefaultWidth
	case o.Width < MinWidth:
		o.Width = MinWidth
	case o.Width > maxWidth:
		o.Width = maxWidth
	}
	if o.Theme != Light && o.Theme != Dark {
		o.Theme = Auto
	}
	return o
}
