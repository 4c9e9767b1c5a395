//go:build race

package traces

const raceDetector = true
