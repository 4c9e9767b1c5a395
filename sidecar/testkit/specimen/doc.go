// Package specimen keeps recordings of real programs for tests: the sentence that
// a user reads first is compared with what an expert would have written.
//
// programs/*.txt is a table of programs and notebook cells, each with its headline.
// Every program was run once under the real collectors (sidecar/testkit/specimen/take); its
// recording was reduced to what a diagnosis reads and lies in testdata, with a
// summary beside it that people can read. The test of
// the headlines reads only those, so that the text is the same every time;
// live runs check what may not depend on chance: the cause, the line, and what must
// not be claimed.
//
// Nothing of it is in the shipped program.
package specimen
