package origin

import (
	"strings"
	"testing"
)

func TestDefines(t *testing.T) {
	lines := strings.Split(`def plain():
    return lambda x: x
@cache(
    maxsize=1,  # the last one
)
@other
async def decorated():
    return [x for x in ()]
class  Net:
    def forward(self): ...

plainer = 1`, "\n")
	for _, c := range []struct {
		first    int
		function string
		want     bool
	}{
		{1, "plain", true},
		{1, "plai", false},
		{2, "plain", false},
		{2, "plain.<locals>.<lambda>", true},
		{1, "<lambda>", false},
		{3, "decorated", true},
		{6, "decorated", true},
		{7, "decorated", true},
		{3, "plain", false},
		{8, "decorated.<locals>.<listcomp>", true},
		{9, "Net", true},
		{10, "Net.forward", true},
		{11, "plain", false},
		{12, "plain", false},
		{0, "plain", false},
		{99, "plain", false},
	} {
		if got := Defines(lines, c.first, c.function); got != c.want {
			t.Errorf("%s at line %d: %v, want %v", c.function, c.first, got, c.want)
		}
	}
}
