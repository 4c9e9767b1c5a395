package scene

import (
	"math"
	"strconv"
)

// pathData writes SVG path data with one decimal. It keeps the pen's place in
// tenths of a pixel, so that relative moves do not add up their rounding.
type pathData struct {
	b    []byte
	x, y int
}

func tenths(v float64) int { return int(math.Round(v * 10)) }

func (p *pathData) number(n int) {
	if n < 0 {
		p.b = append(p.b, '-')
		n = -n
	}
	if n >= 10 || n == 0 {
		p.b = strconv.AppendInt(p.b, int64(n/10), 10)
	}
	if n%10 != 0 {
		p.b = append(p.b, '.', byte('0'+n%10))
	}
}

func (p *pathData) moveTo(x, y float64) {
	nx, ny := tenths(x), tenths(y)
	if len(p.b) == 0 {
		p.b = append(p.b, 'M')
		p.number(nx)
		p.b = append(p.b, ' ')
		p.number(ny)
	} else {
		p.b = append(p.b, 'm')
		p.number(nx - p.x)
		p.b = append(p.b, ' ')
		p.number(ny - p.y)
	}
	p.x, p.y = nx, ny
}

func (p *pathData) lineTo(x, y float64) {
	nx, ny := tenths(x), tenths(y)
	switch {
	case nx == p.x && ny == p.y:
		return
	case ny == p.y:
		p.b = append(p.b, 'h')
		p.number(nx - p.x)
	case nx == p.x:
		p.b = append(p.b, 'v')
		p.number(ny - p.y)
	default:
		p.b = append(p.b, 'l')
		p.number(nx - p.x)
		p.b = append(p.b, ' ')
		p.number(ny - p.y)
	}
	p.x, p.y = nx, ny
}

func (p *pathData) String() string { return string(p.b) }
