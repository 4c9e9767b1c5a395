// Package usercode distinguishes a program's own stacks from what surrounds them: the notebook's kernel
// around a cell, IPython's magics within it, our own extension, the machinery that starts a script.
//
// In flows a Recording as it was sampled, out flows one in which
//
//   - stacks begin with the user's code: what the kernel runs above a cell is cut off, what our
//     extension does around it is gone, and so are its threads;
//   - code that a magic compiled (%%time's "<timed exec>", the body of %%capture) is shown at the
//     line of the cell where it was typed (text.go);
//   - what runs in the cell's time but not in its code, as the display of its value or figures drawn
//     after its last line, is shown under a frame that names the phase;
//   - time before our call at the cell's start has returned, and after its exception came out, is cut off.
//
// It knows the files and functions of IPython 8.12 to 9 and ipykernel 6.17 to 7 (ipython.go), and
// nothing of displays. What it does not recognise it leaves as it is.
package usercode
