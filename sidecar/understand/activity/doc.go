// Package activity says what a thread did: of each moment a cause, and the line of the user's
// code that it is charged to; and, where the thread waited, for whom.
//
// In flow a *timeline.Recording and the text of the program's lines, out a Reading of a thread
// (its History and what its stacks have in common) and its Bystanders. The package knows
// neither how a GPU's idle time is divided over a History (gpuidle) nor what is worth a
// finding (diagnose), and it has no text for people.
package activity
