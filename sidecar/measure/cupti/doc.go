// Package cupti takes in what GPUs did for processes that record it themselves: kernels, copies and fills,
// each with its begin and end, as CUPTI's activity records have them.
//
// In flow the rings that the library of the folder shim writes, one file a process, in a folder that is private
// to the session; out flow timeline.DeviceWork, on the recording's clock, and in which stretches nothing is
// missing. The library is loaded by `%%omni_perf --exact` and by `omni-perf run --exact`: docs/exact.md.
// The package does not know who asked, and concludes nothing.
//
// A ring has one writer and one reader. The writer stores head with release when the records before it are
// whole, the reader loads it with acquire; the reader stores tail with release when it has read what is before
// it, the writer loads that with acquire before it writes over a record. What is in the file is the process's,
// which may write anything there or cut it: all of it is checked, and a fault while reading is an error.
package cupti
