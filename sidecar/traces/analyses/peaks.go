package analyses

import (
	_ "embed" // devices.txt
	"fmt"
	"strconv"
	"strings"
	"sync"
)

//go:embed devices.txt
var devicesText string

// Peak is what a device's maker states of it.
type Peak struct {
	Bandwidth float64            // bytes per second of its memory
	Flops     map[string]float64 // per second by type: bf16
	Source    string
}

// peaks by the driver's name of the device.
var peaks = sync.OnceValue(func() map[string]Peak {
	all, err := readPeaks(devicesText)
	if err != nil { // it is compiled in, and a test reads it
		panic(err)
	}
	return all
})

// PeakOf is that of a device by the name that a trace gives it; ok is false where the table does not have it.
func PeakOf(device string) (peak Peak, ok bool) {
	peak, ok = peaks()[device]
	return peak, ok
}

// readPeaks reads devices.txt.
func readPeaks(text string) (map[string]Peak, error) {
	all := map[string]Peak{}
	source := ""
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			source = strings.Trim(line, "[]")
			continue
		}
		device, figures, ok := strings.Cut(line, ": ")
		if _, again := all[device]; !ok || source == "" || again {
			return nil, fmt.Errorf("line %d: no device with a source, or one that is there already", n+1)
		}
		p := Peak{Flops: map[string]float64{}, Source: source}
		for _, figure := range strings.Fields(figures) {
			key, number, _ := strings.Cut(figure, "=")
			value, err := strconv.ParseFloat(number, 64)
			if err != nil || value <= 0 {
				return nil, fmt.Errorf("line %d: %q is no figure", n+1, figure)
			}
			if key == "bandwidth" {
				p.Bandwidth = value * 1e9
			} else {
				p.Flops[key] = value * 1e12
			}
		}
		all[device] = p
	}
	return all, nil
}
