//go:build !race

package report_test

const slowdown = 1
