// Package interpret decides what a recording is about: what each process is for, which workers
// belong to one pool, which process is the program, and which thread explains where the time
// went. It writes that into the recording, and everything after reads it. It also sums up
// what the members of a pool did while their owner waited for them.
//
// In flow a Recording as it was measured, out flows one as it is reported. All functions are
// pure; the package knows neither sentences nor who asked.
package interpret
