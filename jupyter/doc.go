// Package jupyter speaks Jupyter's messaging protocol from outside a kernel.
//
// It reads connection files, signs and checks messages, follows a kernel's
// cells and their output on IOPub, and builds the display bundles that the
// extension publishes. It knows nothing of profiling.
//
// An Observer is a guest: it subscribes to IOPub and asks kernel_info on the
// control channel, nothing else. IOPub may drop messages of a flooding cell, so
// what it counts is a lower bound, and it corroborates the extension's own
// events rather than replacing them.
//
// Protocol: https://jupyter-client.readthedocs.io/en/stable/messaging.html
package jupyter
