package contract

import (
	"bufio"
	"io"
	"strings"

	"wirelab/endpoint/clock"
)

// Commands are the words on standard input.
type Commands struct{ words chan word }

type word struct {
	text string
	at   clock.Moment
}

// Listen reads words from now on. `stop` and the end of input call onStop at any time, unless the last word
// of the conversation has come before.
func Listen(input io.Reader, last string, onStop func()) *Commands {
	c := &Commands{make(chan word, 8)}
	go func() {
		lines := bufio.NewScanner(input)
		for lines.Scan() {
			text, at := strings.TrimSpace(lines.Text()), clock.Now()
			if text == "stop" {
				break
			}
			select {
			case c.words <- word{text, at}:
			default: // far more words than any conversation has
			}
			if text == last {
				return
			}
		}
		onStop()
	}()
	return c
}

// Each calls on for every word from now on, until stopped is closed.
func (c *Commands) Each(stopped <-chan struct{}, on func(text string)) {
	for {
		select {
		case <-stopped:
			return
		case found := <-c.words:
			on(found.text)
		}
	}
}

// Expect waits for a word and returns the moment of its receipt. Another word ends the conversation.
func (c *Commands) Expect(text string) (clock.Moment, error) {
	found := <-c.words
	if found.text != text {
		return 0, Failed(Other, "the word `%s` came where `%s` was expected", found.text, text)
	}
	return found.at, nil
}
