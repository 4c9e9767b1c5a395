// Package jupyter speaks Jupyter's messaging protocol from outside a kernel.
//
// It reads connection files, checks the signatures of messages, follows a kernel's
// cells and their output on IOPub, and builds the display bundles that the
// extension publishes. It knows nothing of profiling.
//
// An Observer is a guest: it subscribes to IOPub and sends no request. A kernel runs
// Python code to answer any request: for kernel_info_request, IPython 9 draws a tip with
// the user's random.choice, so that seeded programs had other results; one on the shell
// channel changes which cell the output of threads is shown under. IOPub may drop
// messages of a flooding cell, so what the Observer counts is a lower bound, and it
// corroborates the extension's own events rather than replacing them.
//
// Protocol: https://jupyter-client.readthedocs.io/en/stable/messaging.html
package jupyter
