// Package interpret decides what the processes of a recording are: which of them is the
// program, which workers belong to one pool, what each of them is called, and what they did
// while their owner waited for them.
//
// In flow a Recording, out flow plain data. All functions are pure; the package knows
// neither sentences nor who asked.
package interpret
