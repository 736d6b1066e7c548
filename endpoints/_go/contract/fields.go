package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Fields is a JSON object. Every field must be taken: one that is left at the end is unsupported, never ignored.
//
// All objects of a spec share one problem, which keeps the first error. After it, every taken value is zero.
type Fields struct {
	where   string
	left    map[string]json.RawMessage
	problem *error
}

// Parse reads a spec.
func Parse(text []byte) *Fields {
	problem := new(error)
	return parse(text, "spec", problem)
}

func parse(text []byte, where string, problem *error) *Fields {
	f := &Fields{where, map[string]json.RawMessage{}, problem}
	if err := json.Unmarshal(text, &f.left); err != nil || f.left == nil {
		f.refuse("%s is not an object: %.60s", where, text)
		f.left = map[string]json.RawMessage{}
	}
	// A null field counts as absent.
	maps.DeleteFunc(f.left, func(_ string, value json.RawMessage) bool { return bytes.Equal(value, []byte("null")) })
	return f
}

func (f *Fields) refuse(format string, arguments ...any) {
	if *f.problem == nil {
		*f.problem = Refuse(format, arguments...)
	}
}

// Err is the first error.
func (f *Fields) Err() error { return *f.problem }

// Has says whether the field is there and was not taken yet.
func (f *Fields) Has(name string) bool {
	_, has := f.left[name]
	return has
}

// End refuses the spec if a field is left.
func (f *Fields) End() {
	if len(f.left) > 0 {
		names := slices.Sorted(maps.Keys(f.left))
		f.refuse("%s: cannot honour `%s`", f.where, strings.Join(names, "`, `"))
	}
}

func (f *Fields) take(name string) (json.RawMessage, bool) {
	value, has := f.left[name]
	delete(f.left, name)
	if !has {
		f.refuse("%s: the field `%s` is missing", f.where, name)
	}
	return value, has
}

func taken[T any](f *Fields, name, wanted string) (value T) {
	if text, has := f.take(name); has {
		if err := json.Unmarshal(text, &value); err != nil {
			f.refuse("%s: `%s` = %.60s; supported: %s", f.where, name, text, wanted)
		}
	}
	return value
}

// Text takes a string.
func (f *Fields) Text(name string) string { return taken[string](f, name, "text") }

// Bool takes a truth value.
func (f *Fields) Bool(name string) bool { return taken[bool](f, name, "true and false") }

// Texts takes a list of strings.
func (f *Fields) Texts(name string) []string { return taken[[]string](f, name, "lists of words") }

// Number takes a number.
func (f *Fields) Number(name string) float64 { return taken[float64](f, name, "numbers") }

// Count takes a whole number of these bounds.
func (f *Fields) Count(name string, least, most uint64) uint64 {
	text, has := f.take(name)
	if !has {
		return 0
	}
	number, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil || number < least || number > most {
		f.refuse("%s: `%s` = %.60s; supported: whole numbers from %d to %d", f.where, name, text, least, most)
	}
	return number
}

// Choose takes a string that must be one of the known ones.
func (f *Fields) Choose(name string, known ...string) string {
	value := f.Text(name)
	if *f.problem == nil && !slices.Contains(known, value) {
		f.refuse("%s: `%s` = %q; supported: %s", f.where, name, value, strings.Join(known, ", "))
	}
	return value
}

// Inner takes an object.
func (f *Fields) Inner(name string) *Fields {
	text, has := f.take(name)
	if !has {
		text = []byte("{}")
	}
	return parse(text, fmt.Sprintf("%s.%s", f.where, name), f.problem)
}

// Optional returns a pointer to the value of take, or nil if the field is absent.
func Optional[T any](f *Fields, name string, take func(string) T) *T {
	if !f.Has(name) {
		return nil
	}
	value := take(name)
	return &value
}
