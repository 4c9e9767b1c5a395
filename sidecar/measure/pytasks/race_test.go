//go:build race

package pytasks

// slowdown is what the race detector makes of reading.
const slowdown = 5
