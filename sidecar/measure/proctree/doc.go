// Package proctree knows the processes that descend from a root while they live:
// which there are, what each of them is for its owner, when it began, how it ended.
//
// In flow /proc and pidfds, out flow Recording.Processes of a Sink and, to a
// Listener, the news. The package reads no stacks and no figures and does not know
// who asked.
//
// How a new process is found within tens of milliseconds without walking the tree
// again and again: the kernel publishes the last process id it gave away in
// /proc/loadavg. While that stays, there is nobody new; when it has moved, only the
// ids in between can be (find.go). The tree is walked at the start and once a second,
// which also finds out whether loadavg can be believed (lxcfs and gVisor make up their
// own); where not, it is walked at each look. Netlink's process connector would show
// at once, but only to CAP_NET_ADMIN of the first user namespace.
//
// A process is a pid and a start time. It stays a member when its parent has died,
// whoever adopts it. One that was adopted before anybody saw it, as daemons are, is
// known by its session, by being a fork of a member (image.go), or by a mark in its
// environment.
package proctree
