//go:build !race

package pytasks

const slowdown = 1
