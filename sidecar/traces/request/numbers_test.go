package request

import (
	"reflect"
	"testing"
)

func TestParseNumbers(t *testing.T) {
	got, err := ParseNumbers("0,2-4")
	if err != nil || !reflect.DeepEqual(got, []int{0, 2, 3, 4}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, wrong := range []string{"-1", "4-2", "a", "1,,2", "0-99999999"} {
		if got, err := ParseNumbers(wrong); err == nil {
			t.Errorf("%q was read as %v", wrong, got)
		}
	}
}
