// Package straggler compares the processes of a distributed run: how long each of them was
// in collectives, by what is on its stack, and which one the others waited for.
//
// In flows a Lane for each rank, made from a recording or from a report, out flow plain
// data. All functions are pure; the package knows neither sentences nor who asked.
package straggler
