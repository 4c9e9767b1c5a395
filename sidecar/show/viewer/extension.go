package viewer

// MimeType marks an output that the JupyterLab extension shows: a bundle that has it
// holds an HTML of ours beside it, with the image and the data. The data is there and
// nowhere else, so that a notebook has it once and every front end finds it. What the
// mark holds is a Mark. Its v1 is the version of this arrangement; that of the data is
// in the payload.
const MimeType = "application/vnd.omni-perf.chart.v1+json"

// Mark says what an output shows.
type Mark struct {
	Kind Kind `json:"kind"`
}

// Kind of an output.
type Kind string

// The kinds, all of which Script shows.
const (
	KindChart      Kind = "chart"
	KindComparison Kind = "comparison"
)

// PictureClass is the class of pictures that the extension shows; assets/picture.css
// is their style sheet.
const PictureClass = "op-lab"
