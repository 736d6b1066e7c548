// Package contract is the conversation with wirelab: specs in, events out, exit statuses.
package contract

import "fmt"

// Version of the contract that this module speaks.
const Version = 1

// Kind says why a request or an endpoint failed, in the words of the contract. The zero value is no failure.
type Kind uint8

const (
	None Kind = iota
	Refused
	Unreachable
	Certificate
	TLS
	Protocol
	Reset
	Truncated
	Timeout
	Status
	Digest
	Lost
	Other
)

var kinds = [...]string{
	"", "refused", "unreachable", "certificate", "tls", "protocol", "reset", "truncated", "timeout", "status", "digest",
	"lost", "other",
}

func (k Kind) String() string { return kinds[k] }

// Failure is something that went wrong: exit status 1, or the error of a record.
type Failure struct {
	Kind    Kind
	Message string
}

func (f *Failure) Error() string { return f.Message }

// Failed makes a failure of a kind.
func Failed(kind Kind, format string, arguments ...any) *Failure {
	return &Failure{kind, fmt.Sprintf(format, arguments...)}
}

// Unsupported says that the spec asks for something that this endpoint cannot do: exit status 127.
type Unsupported struct{ Message string }

func (u *Unsupported) Error() string { return u.Message }

// Refuse makes an Unsupported.
func Refuse(format string, arguments ...any) *Unsupported {
	return &Unsupported{fmt.Sprintf(format, arguments...)}
}

// Handshake says how a connection with TLS began, as its library proves it. The zero value: not known, or no TLS.
type Handshake uint8

const (
	Unknown Handshake = iota
	Full
	Resumed
	EarlyAccepted
	EarlyRejected
)

var handshakes = [...]string{"", "full", "resumed", "early_accepted", "early_rejected"}

func (h Handshake) String() string { return handshakes[h] }

// Configured has the active settings, by the names of the spec's fields.
type Configured map[string]any

// Add merges others.
func (c Configured) Add(others Configured) {
	for name, value := range others {
		c[name] = value
	}
}
