// Package heron is the square root of the feature `heron`, as the contract defines it.
package heron

import (
	"math"
	"strconv"
	"strings"
)

// Root is the square root of a number by Heron's method; NaN if the number has none.
func Root(number float64) float64 {
	switch {
	case !(number >= 0) || math.IsInf(number, 1):
		return math.NaN()
	case number == 0:
		return 0
	}
	// Never below the root, from where each mean falls towards it until rounding keeps it from falling.
	for guess := max(number, 1); ; {
		mean := (guess + number/guess) / 2
		if mean >= guess {
			return guess
		}
		guess = mean
	}
}

// Number is that of a path `/heron/NUMBER`, whether or not it has a root.
func Number(path string) (float64, bool) {
	text, is := strings.CutPrefix(path, "/heron/")
	number, err := strconv.ParseFloat(text, 64)
	return number, is && err == nil
}

// Text is a root as the text of an HTTP response.
func Text(root float64) string { return strconv.FormatFloat(root, 'f', 12, 64) }
