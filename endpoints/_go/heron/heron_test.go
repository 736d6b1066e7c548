package heron

import (
	"math"
	"testing"
)

func TestRoot(t *testing.T) {
	for _, number := range []float64{0, 5e-324, 1e-300, 0.25, 1, 3, 4, 1e10, 12_345.678, math.MaxFloat64} {
		if root, exact := Root(number), math.Sqrt(number); math.Abs(root-exact) > exact*0x1p-52 {
			t.Errorf("the root of %v is %v, not %v", number, root, exact)
		}
	}
	// To the bit, as wirelab's own endpoints have it.
	if bits := math.Float64bits(Root(2)); bits != 0x3ff6a09e667f3bcc {
		t.Errorf("the root of 2 is %#x", bits)
	}
	for _, number := range []float64{-1, math.NaN(), math.Inf(1)} {
		if !math.IsNaN(Root(number)) {
			t.Errorf("%v has a root", number)
		}
	}
}

func TestNumberAndText(t *testing.T) {
	if number, is := Number("/heron/2"); !is || number != 2 {
		t.Errorf("the number is %v, %v", number, is)
	}
	for _, path := range []string{"/heron/two", "/heron/", "/2"} {
		if number, is := Number(path); is {
			t.Errorf("%s has the number %v", path, number)
		}
	}
	if text := Text(Root(2)); text != "1.414213562373" {
		t.Errorf("the text is %s", text)
	}
}
