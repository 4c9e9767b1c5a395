package recorder

import "errors"

// Children says what is recorded of the target's descendants.
type Children uint8

const (
	ChildrenStacks Children = iota // everything: figures, and the stacks of those that run Python
	ChildrenTracks                 // figures only
	ChildrenNone                   // nothing
)

// ErrChildren is of a word that names no Children.
var ErrChildren = errors.New("children are recorded as none, tracks or stacks")

// ChildrenWords are what a user says.
func ChildrenWords() []string { return []string{"none", "tracks", "stacks"} }

// ParseChildren reads what a user says; the empty word is the default.
func ParseChildren(word string) (Children, error) {
	switch word {
	case "", "stacks":
		return ChildrenStacks, nil
	case "tracks":
		return ChildrenTracks, nil
	case "none":
		return ChildrenNone, nil
	}
	return ChildrenStacks, ErrChildren
}
