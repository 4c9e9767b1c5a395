// Package words writes what every display has in common: numbers with their
// units, counted things, lists, and text from the user's program, cut to a width.
//
// In flow figures and foreign text, out flow strings; the package knows no
// document and no sentence (those are package wording's). One figure is written
// in one way everywhere.
package words
