// Package timeline stores what the collectors saw of one recording, bounded in
// memory for a recording of any length, on one clock.
//
// Collectors write into a Builder while the target runs: stacks as changes of a
// thread's state (Set), figures as points of a Track (Add), marks and notes. A
// Recording is the frozen result; diagnose and report read it and nothing else.
//
// Time is Nanos: CLOCK_MONOTONIC since the recording's start. A collector that
// gets times of another clock converts them at its edge with a Bridge.
//
// What is bounded, and how: stack spans and track points are resampled to twice
// the step whenever they reach their limit (Recording.Resolution and
// Track.Resolution show the step in force); the stack tree stops growing at its
// limit, deeper frames then count for their caller (Recording.Notes says so).
package timeline
