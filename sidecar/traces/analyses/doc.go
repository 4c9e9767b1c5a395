// Package analyses answers where the device time of PyTorch traces went.
//
// In flow traces as package kineto reads them, out flow tables of plain columns.
// Every question is answered in two steps: [Observe] takes from one file what it
// contributes, so that its events can be let go, and [Answer] joins the files of
// a rank (cycles of schedule(repeat=…) are one rank) and the ranks. Both are pure;
// Observe may run for several traces at once. The package knows nothing of
// files, terminals, charts or notebooks.
//
// # Modes
//
// Exact counts what is true: nanoseconds, one definition of a device event,
// every device for itself, nothing rounded. HTA reproduces HolisticTraceAnalysis
// with its microsecond rounding, HTANs the same with HTA_DISABLE_NS_ROUNDING=1;
// both copy its faults on purpose, so that numbers can be compared with older
// notebooks. They need traces read with kineto.Options.Frame.
package analyses
