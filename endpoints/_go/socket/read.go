package socket

import (
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"wirelab/endpoint/transport"
)

// ReadTCP reads the kernel's counters of an open connection (TCP_INFO, Linux 4.19 or later): one system call.
func ReadTCP(connection syscall.Conn) transport.Reading {
	var info *unix.TCPInfo
	err := read(connection, func(fd int) (err error) {
		info, err = unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		return err
	})
	if err != nil {
		return transport.Reading{}
	}
	r := transport.Reading{
		RoundTrip: transport.Sampled(uint64(info.Rtt) * 1000),
		Sent:      transport.Known(uint64(info.Segs_out)),
		Lost:      transport.Known(uint64(info.Total_retrans)),
		BytesLost: transport.Known(info.Bytes_retrans),
		Window:    transport.Sampled(uint64(info.Snd_cwnd) * uint64(info.Snd_mss)),
	}
	// The kernel's word for "no sample yet" is the largest number.
	if info.Min_rtt != ^uint32(0) {
		r.RoundTripMin = transport.Sampled(uint64(info.Min_rtt) * 1000)
	}
	return r
}

func setNoDelay(connection syscall.Conn, on bool) error {
	value := 0
	if on {
		value = 1
	}
	return read(connection, func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, value) })
}

func read(connection syscall.Conn, look func(fd int) error) error {
	raw, err := connection.SyscallConn()
	if err != nil {
		return err
	}
	if failed := raw.Control(func(fd uintptr) { err = look(int(fd)) }); failed != nil {
		return failed
	}
	return err
}

func sysctl(name string) string {
	value, err := os.ReadFile("/proc/sys/net/ipv4/" + name)
	if err != nil {
		return "unknown (" + err.Error() + ")"
	}
	return strings.TrimSpace(string(value))
}
