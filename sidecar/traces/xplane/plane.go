package xplane

import (
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of the messages of a plane.
const (
	planeName         = 2
	planeLines        = 3
	planeEventNames   = 4 // map from id to XEventMetadata
	planeStatNames    = 5 // map from id to XStatMetadata
	planeStats        = 6
	mapKey, mapValue  = 1, 2
	eventMetadataName = 2
	statMetadataName  = 2

	lineID          = 1
	lineName        = 2
	lineTimestampNs = 3
	lineEvents      = 4

	eventMetadataID = 1
	eventOffsetPs   = 2
	eventDurationPs = 3
	eventStats      = 4

	statMetadataID = 1
	statUint64     = 3
	statInt64      = 4
	statText       = 5
	statRef        = 7 // of a text, as the name of a stat
)

// environmentPlane says when the profiler ran.
const environmentPlane = "Task Environment"

// plane is an XPlane whose lines are not read yet. It is walked through again for these: a list of them could be
// larger than the file.
type plane struct {
	message []byte
	name    string
	events  map[int64]string // names by id
	stats   map[int64]string
	whole   bool
}

// mostNames bounds the names of a plane; events beyond have none.
const mostNames = 1 << 20

func parsePlane(message []byte) *plane {
	p := &plane{message: message, events: map[int64]string{}, stats: map[int64]string{}, whole: true}
	whole := fields(message, func(number protowire.Number, v value) {
		switch number {
		case planeName:
			p.name = string(v.bytes)
		case planeEventNames:
			p.entry(p.events, v.bytes, eventMetadataName)
		case planeStatNames:
			p.entry(p.stats, v.bytes, statMetadataName)
		}
	})
	p.whole = p.whole && whole
	return p
}

// entry reads an entry of a map: an id and a message that has a name.
func (p *plane) entry(to map[int64]string, message []byte, nameField protowire.Number) {
	id, name := int64(0), ""
	whole := fields(message, func(number protowire.Number, v value) {
		switch number {
		case mapKey:
			id = int64(v.number)
		case mapValue:
			p.whole = fields(v.bytes, func(number protowire.Number, v value) {
				if number == nameField {
					name = string(v.bytes)
				}
			}) && p.whole
		}
	})
	p.whole = p.whole && whole
	if len(to) < mostNames {
		to[id] = name
	}
}

// each visits the values of a field of the plane.
func (p *plane) each(field protowire.Number, visit func(message []byte)) {
	fields(p.message, func(number protowire.Number, v value) {
		if number == field {
			visit(v.bytes)
		}
	})
}

// isHost reports whether a plane has threads.
func (p *plane) isHost() bool { return strings.HasPrefix(p.name, "/host:") }

// deviceName is the name of a device's plane.
var deviceName = regexp.MustCompile(`^/device:(GPU|TPU):(\d{1,6})$`)

// device is the number of the device that a plane is of.
func (p *plane) device() (number int32, isTPU, ok bool) {
	m := deviceName.FindStringSubmatch(p.name)
	if m == nil {
		return 0, false, false
	}
	n, err := strconv.Atoi(m[2])
	return int32(n), m[1] == "TPU", err == nil
}

// line is an XLine whose events are not read yet.
type line struct {
	message []byte
	id      int64
	name    string
	start   int64 // ns
}

func (p *plane) line(message []byte) line {
	l := line{message: message}
	p.whole = fields(message, func(number protowire.Number, v value) {
		switch number {
		case lineID:
			l.id = int64(v.number)
		case lineName:
			l.name = string(v.bytes)
		case lineTimestampNs:
			l.start = int64(v.number)
		}
	}) && p.whole
	return l
}

// event is an XEvent, with the stats that are used.
type event struct {
	name        string
	known       bool  // it refers to a name
	start, end  int64 // ns
	correlation int64
	correlated  bool
	copied      bool // it is a copy
	filled      bool // it is a fill
	details     string
	step        int64
	isStep      bool
}

const picoseconds = 1000 // a nanosecond

func (p *plane) event(l *line, message []byte) event {
	var e event
	var offset, duration int64
	p.whole = fields(message, func(number protowire.Number, v value) {
		switch number {
		case eventMetadataID:
			e.name, e.known = p.events[int64(v.number)], true
		case eventOffsetPs:
			offset = int64(v.number)
		case eventDurationPs:
			duration = int64(v.number)
		case eventStats:
			p.stat(&e, v.bytes)
		}
	}) && p.whole
	e.start = l.start + offset/picoseconds
	e.end = l.start + (offset+max(0, duration))/picoseconds
	return e
}

// stat reads an XStat of an event.
func (p *plane) stat(e *event, message []byte) {
	name, number, text := p.statOf(message)
	switch name {
	case "correlation_id":
		e.correlation, e.correlated = number, true
	case "memcpy_details":
		e.copied, e.details = true, text
	case "memset_details":
		e.filled, e.details = true, text
	case "step_num":
		e.step, e.isStep = number, true
	}
}

func (p *plane) statOf(message []byte) (name string, number int64, text string) {
	p.whole = fields(message, func(field protowire.Number, v value) {
		switch field {
		case statMetadataID:
			name = p.stats[int64(v.number)]
		case statUint64, statInt64:
			number = int64(v.number)
		case statText:
			text = string(v.bytes)
		case statRef:
			text = p.stats[int64(v.number)]
		}
	}) && p.whole
	return name, number, text
}
