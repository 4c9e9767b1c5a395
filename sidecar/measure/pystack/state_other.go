//go:build !amd64

package pystack

var archCalls map[int]call
