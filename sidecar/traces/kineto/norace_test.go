//go:build !race

package kineto

const raceDetector = false
