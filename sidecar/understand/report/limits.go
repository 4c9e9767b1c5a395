package report

// What a document may have. docs/report.md states these limits. A recording is far below
// them (262,144 spans, 65,536 stacks, 4,096 threads); they leave room for reports merged of
// many, and bound what a file that nobody recorded can cost.
const (
	// maxBlanks is the white space before the document.
	maxBlanks = 1 << 20
	// maxString is the length in bytes of a string as it is written; a longer one counts
	// as null, unread.
	maxString = 1 << 20
	// maxScalar is the length of a number as it is written.
	maxScalar = 64
	// maxKey is the length of a key as it is written; members with a longer one are
	// unknown.
	maxKey = 256
	// maxText is the length of what the reader keeps of all members: what it knows,
	// without white space.
	maxText = 256 << 20
	// maxDepth is how deep the arguments of findings and notes are nested.
	maxDepth = 16
	// maxElements is how many elements the lists of one name have together, over the
	// whole document, where maxElementsOf has no number of its own.
	maxElements = 1 << 18
	// maxNumbers is the same for lists of numbers: the columns of stacks, spans and tracks.
	maxNumbers = 1 << 23
)

// maxElementsOf has the lists that are shorter or longer than others.
var maxElementsOf = map[string]int{
	"hosts":         1 << 12,
	"targets":       1 << 12,
	"devices":       1 << 14,
	"functions":     1 << 20,
	"files.lines":   1 << 20,
	"steps":         1 << 20,
	"kernels.names": 1 << 20,
}
