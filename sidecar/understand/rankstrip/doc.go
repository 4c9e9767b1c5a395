// Package rankstrip compares the steps of the ranks of a distributed run with each other, for a picture with a row
// for each rank and a cell for each of its steps.
//
// In flows a report, out flows a Strip: plain data, in nanoseconds, nothing of which depends on how it is drawn. Of
// training what counts is a rank's own time in a step, outside of collectives, as the ranks of synchronous training
// leave each step together: the lengths of their steps are equal, whoever was late.
package rankstrip
