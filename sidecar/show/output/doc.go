// Package output writes result files. It is the one place that knows how a result
// gets to where the user wants it; it does not know what a result is.
//
// The rule, for every file that a user names:
//
//   - A regular file is replaced by rename, so that it is the old one or the whole
//     new one at any moment, whatever fails. The new one is readable by its owner
//     only (0600). A file that its user has write-protected is left alone.
//   - A character device, a FIFO, and a name of one of our own descriptors
//     (/dev/stdout, /dev/fd/3) are written through: never replaced, never removed.
//   - Refused are links to files (the file they lead to would lose its link or its
//     content), folders, sockets and block devices.
//
// Check reports before the work begins what would be refused after it. What could
// not be written where it was asked for goes to a temporary folder (Results).
package output
