package glance

import (
	"fmt"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// column is one of the table.
type column struct {
	heading string
	of      func(Cell) string
	total   func([]Cell) string // of all cells; nil: there is none
}

const (
	unknown = "–"

	maxCode     = 80 // characters of the code
	maxHeadline = words.MaxName
)

// columns are those of a notebook's table: GPU idle time is one where a cell used a device, energy where one counts it.
func (n Notebook) columns() []column {
	all := []column{
		{"cell", number, nil},
		{"time", func(c Cell) string { return words.Duration(c.Duration) }, totalTime},
		{"CPU", func(c Cell) string { return cpu(c.Figures) }, totalCPU},
		{"peak memory", func(c Cell) string { return peak(c.Figures) }, highestPeak},
		{"kept memory", func(c Cell) string { return kept(c.Figures.Kept) }, n.totalKept},
	}
	if slices.ContainsFunc(n.Cells, func(c Cell) bool { return c.Figures.Idle != nil }) {
		all = append(all, column{"GPU idle", func(c Cell) string { return idle(c.Figures) }, totalIdle})
	}
	if slices.ContainsFunc(n.Cells, func(c Cell) bool { return c.Figures.Energy != nil }) {
		all = append(all, column{"GPU energy", func(c Cell) string { return energy(c.Figures) }, totalEnergy})
	}
	return all
}

func energy(f Figures) string {
	if f.Energy == nil {
		return unknown
	}
	return words.Quantity(*f.Energy, "J")
}

func number(c Cell) string {
	if c.Number <= 0 {
		return unknown
	}
	return fmt.Sprintf("[%d]", c.Number)
}

func cpu(f Figures) string {
	if f.CPU == nil {
		return unknown
	}
	return words.Duration(*f.CPU)
}

func peak(f Figures) string {
	switch {
	case f.Peak == nil:
		return unknown
	case f.PeakAtLeast:
		return "≥ " + words.Quantity(float64(*f.Peak), "B")
	}
	return words.Quantity(float64(*f.Peak), "B")
}

// least is the growth below which a cell is said to have kept nothing: the interpreter's own.
const least = 1 << 20

func kept(bytes *int64) string {
	switch {
	case bytes == nil:
		return unknown
	case *bytes < 0 && *bytes <= -least:
		return "−" + words.Quantity(float64(-*bytes), "B")
	case *bytes < least:
		return "0"
	}
	return "+" + words.Quantity(float64(*bytes), "B")
}

func idle(f Figures) string {
	if f.Idle == nil || f.Known <= 0 {
		return unknown
	}
	return words.Duration(*f.Idle) + " (" + words.Percent(f.Idle.Seconds()/f.Known.Seconds()) + ")"
}

func totalTime(cells []Cell) string {
	var sum time.Duration
	for _, c := range cells {
		sum += c.Duration
	}
	return words.Duration(sum)
}

// sum adds up the figures of all cells, as far as they are known.
func sum(cells []Cell) (total Figures) {
	var used, idle time.Duration
	var grown int64
	var joules float64
	for _, c := range cells {
		f := c.Figures
		if f.CPU != nil {
			used += *f.CPU
			total.CPU = &used
		}
		if f.Peak != nil && (total.Peak == nil || *f.Peak > *total.Peak) {
			total.Peak, total.PeakAtLeast = f.Peak, f.PeakAtLeast
		}
		if f.Kept != nil {
			grown += *f.Kept
			total.Kept = &grown
		}
		if f.Energy != nil {
			joules += *f.Energy
			total.Energy = &joules
		}
		if f.Idle != nil {
			idle += *f.Idle
			total.Idle = &idle
			total.Known += f.Known
		}
	}
	return total
}

func totalCPU(cells []Cell) string    { return cpu(sum(cells)) }
func highestPeak(cells []Cell) string { return peak(sum(cells)) }
func totalEnergy(cells []Cell) string { return energy(sum(cells)) }
func totalIdle(cells []Cell) string   { return idle(sum(cells)) }

// totalKept is what all cells have kept: where that is known itself, that of a cell need not be.
func (n Notebook) totalKept(cells []Cell) string {
	if n.Kept != nil {
		return kept(n.Kept)
	}
	return kept(sum(cells).Kept)
}

// title is what a cell is called: its name, or its first line.
func (c Cell) title() string {
	if c.Name != "" {
		return words.Clean(c.Name, maxCode)
	}
	return words.Clean(c.Code, maxCode)
}

// trouble says how the cell ended, where that is worth saying.
func (c Cell) trouble() string {
	if c.Outcome == "ok" {
		return ""
	}
	return words.Clean(c.Outcome, maxCode)
}

// InShort is a cell in a line.
func (c Cell) InShort() string {
	text := words.Duration(c.Duration) + "  " + c.title()
	if t := c.trouble(); t != "" {
		text += "  (" + t + ")"
	}
	return text
}

// longest is the time of the cell that took most.
func (n Notebook) longest() (most time.Duration) {
	for _, c := range n.Cells {
		most = max(most, c.Duration)
	}
	return most
}

// share is the part that a cell has in the longest one's time.
func (c Cell) share(longest time.Duration) float64 {
	if longest <= 0 {
		return 0
	}
	return c.Duration.Seconds() / longest.Seconds()
}

// about says what the table has.
func (n Notebook) about() string {
	return words.Plural(len(n.Cells), "cell", "cells") + " in " + totalTime(n.Cells)
}
