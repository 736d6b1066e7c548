// Package socket sets and reads back socket options by the spec.
package socket

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"wirelab/endpoint/contract"
)

const (
	// fastOpenQueue is how many connections by Fast Open the kernel lets wait for the server.
	fastOpenQueue = 4096
	// Bits of net.ipv4.tcp_fastopen.
	fastOpenOfClients, fastOpenOfServers = 1, 2
)

// TCP options of a spec.
type TCP struct {
	congestion string
	noDelay    bool
	// FastOpen says whether the first bytes may travel with the SYN.
	FastOpen bool
	role     int
}

// TCPOfClients takes the options of a client, or refuses one that it cannot honour.
func TCPOfClients(t *contract.Transport) (TCP, error) { return tcp(t, fastOpenOfClients) }

// TCPOfServers is the same for a server.
func TCPOfServers(t *contract.Transport) (TCP, error) { return tcp(t, fastOpenOfServers) }

func tcp(t *contract.Transport, role int) (TCP, error) {
	o := TCP{noDelay: t.NoDelay == nil || *t.NoDelay, FastOpen: t.FastOpen != nil && *t.FastOpen, role: role}
	if t.Congestion != nil {
		o.congestion = *t.Congestion
	}
	if o.FastOpen {
		value := sysctl("tcp_fastopen")
		if bits, err := strconv.Atoi(value); err != nil || bits&role == 0 {
			return o, contract.Refuse("transport: `fast_open`: the kernel does not allow it in this role: "+
				"net.ipv4.tcp_fastopen is %s and lacks the bit %d; allow it with `sysctl -w net.ipv4.tcp_fastopen=3`", value, role)
		}
	}
	// Tried on a temporary socket, so that an option that the kernel lacks is refused first.
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return o, fmt.Errorf("making a socket: %w", err)
	}
	defer unix.Close(fd)
	return o, o.set(fd)
}

func (o TCP) set(fd int) error {
	if o.congestion != "" {
		if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, o.congestion); err != nil {
			return contract.Refuse("transport: `congestion` = %q: %v; the kernel has %s", o.congestion, err,
				sysctl("tcp_available_congestion_control"))
		}
	}
	if o.FastOpen {
		name, value := unix.TCP_FASTOPEN, fastOpenQueue
		if o.role == fastOpenOfClients {
			name, value = unix.TCP_FASTOPEN_CONNECT, 1
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, name, value); err != nil {
			return contract.Refuse("transport: `fast_open`: %v", err)
		}
	}
	return nil
}

// control sets the options before a socket connects or listens.
func (o TCP) control(_, _ string, raw syscall.RawConn) error {
	var err error
	if failed := raw.Control(func(fd uintptr) { err = o.set(int(fd)) }); failed != nil {
		return failed
	}
	return err
}

// Dial connects.
func (o TCP) Dial(ctx context.Context, address string) (*net.TCPConn, error) {
	dialer := net.Dialer{Control: o.control}
	dialer.SetMultipathTCP(false)
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	tcp := connection.(*net.TCPConn)
	// Go's default is on.
	if !o.noDelay {
		err = tcp.SetNoDelay(false)
	}
	return tcp, err
}

// ActiveSettings has the options of a connection, read back from the kernel.
func (o TCP) ActiveSettings(connection syscall.Conn) (contract.Configured, error) {
	configured := contract.Configured{}
	err := read(connection, func(fd int) error {
		congestion, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		if err != nil {
			return err
		}
		noDelay, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY)
		if err != nil {
			return err
		}
		name := unix.TCP_FASTOPEN
		if o.role == fastOpenOfClients {
			name = unix.TCP_FASTOPEN_CONNECT
		}
		fastOpen, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, name)
		if err != nil {
			return err
		}
		configured["congestion"] = strings.TrimRight(congestion, "\x00")
		configured["no_delay"], configured["fast_open"] = noDelay != 0, fastOpen != 0
		return nil
	})
	return configured, err
}
