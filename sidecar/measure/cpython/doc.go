// Package cpython knows how CPython 3.11 to 3.15 lies in memory: where the fields of
// its structures are, and what code objects, line tables, strings, coroutines and
// attributes look like from outside.
//
// In flow a process's memory and the address of its _PyRuntime; out flow a Layout and,
// by Objects, single objects read from addresses. The package neither finds the
// interpreter nor walks stacks, and knows no process, no time and no sampling: what is
// read may change under it or be no such object at all, which is an error or a wrong
// answer that the caller must be able to check (Code.Identity).
//
// Each offset carries CPython's own name of the field and the header that has it
// (fields.go). From 3.13 on the interpreter describes most of them itself, in
// _Py_DebugOffsets at the start of _PyRuntime (debugoffsets.go). headers_test.go
// compares with the headers of the interpreters that are installed with theirs.
package cpython
