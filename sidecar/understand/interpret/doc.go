// Package interpret sees through the pools of a recording: which worker processes belong
// together, what each of them is called, and what they did while their owner waited
// for them.
//
// In flow a Recording, out flow plain data. All functions are pure; the package knows
// neither sentences nor who asked.
package interpret
