package request

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseNumbers reads numbers and ranges of them, as in "0,2-5".
func ParseNumbers(text string) ([]int, error) {
	var list []int
	if text == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, err1 := strconv.Atoi(strings.TrimSpace(low))
		to, err2 := strconv.Atoi(strings.TrimSpace(high))
		if err1 != nil || err2 != nil || from < 0 || to < from || to-from > 1<<16 {
			return nil, fmt.Errorf("%q is neither a number nor a range such as 2-5", part)
		}
		for n := from; n <= to; n++ {
			list = append(list, n)
		}
	}
	return list, nil
}
