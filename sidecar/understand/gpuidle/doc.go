// Package gpuidle divides the idle time of GPUs over what a thread of the program did meanwhile.
//
// In flow the windows over which a device's activity was measured and the activity.History of
// the thread that feeds it, out a Breakdown by cause, kind and line, each with its bounds and
// with the Certainty of it all. Where the windows are longer than what the thread did, a
// regression or a queue finds what happened inside them. docs/gpu-idle.md explains the method.
//
// Time is counted in integer nanoseconds so that the parts add up exactly: busy + idle +
// unknown is the recording's duration for every device, and the causes of a device are its
// idle time.
package gpuidle
