// Package server is the sidecar as a process: it takes the start message, makes
// the socket, checks every peer and call, answers the RPCs of api/omni_perf.proto
// from a recorder, and ends with the kernel it serves.
//
// # Starting a sidecar
//
// The launcher (the extension in the kernel) runs
//
//	omni-perf serve --detach
//
// in a session of its own with pipes on stdin and stdout, writes one line of JSON
// to stdin and reads one line of JSON from stdout. Nothing secret is in argv or in
// the environment.
//
// stdin, one line, at most 64 KiB:
//
//	{"token": "…", "kernel_pid": 1234, "kernel_start": 567890, "version": "0.1.0"}
//
//	token         required: at least 32 characters of [A-Za-z0-9_-], new for each
//	              sidecar; every call carries "authorization: Bearer TOKEN"
//	kernel_pid    required: the process to serve, by the id the launcher itself
//	              sees (os.getpid()); launcher and sidecar share a pid namespace
//	kernel_start  optional: field 22 of /proc/PID/stat; guards against a pid that
//	              was used again before the sidecar looked
//	version       optional: of the extension, for the log; Hello negotiates
//
// Fields the sidecar does not know are ignored. stdin may be closed after the line.
//
// stdout, one line within 50 ms or so, then end of file:
//
//	{"socket": "/run/user/1000/omni_perf-4321-x7Kq/s", "pid": 4321, "version": "0.1.0", "api": 1}
//
// or, when it cannot start, with exit status 1:
//
//	{"error": "The sidecar could not make its folder in /tmp: … ."}
//
// The socket accepts connections when the line is written. pid is the sidecar's
// own, which PR_SET_PTRACER takes. No line at all (end of file at once) means that
// the program could not be executed or was killed.
//
// With --detach the process that was started (A) starts the sidecar (B) in a new
// session, hands both pipes on and exits with status 0 at once; the launcher must
// wait for A, which takes some ms, and then has no child. A launcher that double
// forks by itself runs "omni-perf serve" without the flag.
//
// # While it runs
//
// The folder is 0700 and the socket in it 0600, under $XDG_RUNTIME_DIR when that
// is ours and writable, else under /tmp. A peer of another uid is hung up on, a
// call without the token ends with Unauthenticated. The sidecar writes to its log
// only: the file $OMNI_PERF_LOG, else the file "log" in its folder.
//
// It ignores SIGINT and SIGHUP. It ends, and removes socket, log and folder, when
// the kernel's pidfd fires (within 1 s), on SIGTERM, or when nobody was connected
// for a minute (a kernel that called exec has forgotten it). Folders that a killed
// sidecar left are removed by the next one: a living one holds a lock on its own,
// from before the folder has its name. A start that takes more than 5 s ends itself,
// for its launcher has given up.
//
// A cell that waits for nobody is announced, too: the socket "c" in the folder takes datagrams, which its thread
// sends itself, each one JSON object of at most 64 KiB.
//
//	{"token": "…", "begin": {BeginRequest}, "delay_ns": 5000000}
//	{"token": "…", "over": "cell_id"}
//
// The recording begins delay_ns after the first, unless its Begin has come before, which else finds it begun: code that
// keeps the GIL keeps the extension's thread from calling. The second stops what has begun so; its End is still to come.
//
// Of a kernel that died in a cell a last report is kept, for the next kernel of the same notebook: the file KEY.json,
// 0600, in the folder omni_perf-last-UID, 0700, beside the sidecars' folders. KEY is what Hello calls the notebook.
// Whoever reads it removes it; a sidecar that starts removes those that are older than a day.
package server
