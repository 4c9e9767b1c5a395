//go:build race

package report_test

// slowdown is what the race detector makes of reading.
const slowdown = 10
