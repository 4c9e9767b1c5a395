package diagnose

import "cmp"

// A finding's place in the list follows from its rule's group and weight, and from the share
// of the subject's wall time that the rule measured as lost: findings are in the order of
// their groups, and within a group in that of weight times share. Rules that come out the
// same are in the order of the table. The test's table of pairs, priority_test.go, says
// what must come before what.

// findingGroup is what a finding answers.
type findingGroup uint8

const (
	undecided findingGroup = iota // which of several causes has most of the time cannot be told: nothing else may claim it
	timeSpent                     // where the time went
	hazard                        // what may slow or break the program; what it costs is not known
	limits                        // what can be said of the recording at all: qualifies the headline, and is none
)

// The weights that several rules have, with their reason. Those of one rule are at the rule.
const (
	plainly  = 1   // the time was spent so
	wasted   = 2   // it served no purpose: without it the same work is done in less time
	moreThan = 1.2 // says of the same time more than another finding does
	partly   = 0.5 // a part of the time was needed, or lost to something else
)

// ranked is a finding with what it is ordered by.
type ranked struct {
	Finding
	group    findingGroup
	priority float64
}

func compareRanked(a, b ranked) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(b.priority, a.priority))
}
