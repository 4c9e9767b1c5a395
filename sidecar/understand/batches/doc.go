// Package batches finds out what a training's steps worked on where the program does not report it: of which epoch each was, and
// how many samples it had.
//
// In flow what was read of torch's loaders, which is how many batches a pass over one had handed out at some times, and the
// ends of the training's steps; out flow the passes that the training made, its epochs, and the samples of each step. A
// reading is of a moment at which the next batch was asked for: the steps of the batches before it have ended by
// then, but for those that a program fetches ahead. The package knows neither stacks nor reports.
package batches
