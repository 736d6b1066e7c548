package socket

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"syscall"
	"testing"

	"wirelab/endpoint/contract"
	"wirelab/endpoint/transport"
)

var local = netip.MustParseAddrPort("127.0.0.1:0")

func pointer[T any](value T) *T { return &value }

func TestTCPOptionsAreActiveSettingsOnBothSidesOfAConnection(t *testing.T) {
	for _, noDelay := range []bool{true, false} {
		spec := contract.Transport{Congestion: pointer("reno"), NoDelay: &noDelay}
		ofServer, err := TCPOfServers(&spec)
		if err != nil {
			t.Fatal(err)
		}
		ofClient, err := TCPOfClients(&spec)
		if err != nil {
			t.Fatal(err)
		}
		var accounts transport.Accounts
		listener, err := ofServer.Listen(local, &accounts)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		client, err := ofClient.Dial(context.Background(), listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		accepted, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		for name, side := range map[string]struct {
			options TCP
			socket  syscall.Conn
		}{
			"listener": {ofServer, listener},
			"accepted": {ofServer, accepted.(*Metered)},
			"client":   {ofClient, client},
		} {
			configured, err := side.options.ActiveSettings(side.socket)
			want := contract.Configured{"congestion": "reno", "no_delay": noDelay, "fast_open": false}
			if err != nil || !maps.Equal(configured, want) {
				t.Errorf("the %s has the settings %v, not %v; %v", name, configured, want, err)
			}
		}
		_ = accepted.Close()
		if report := accounts.Report(); report.Connections != 1 || report.PacketsSent == nil {
			t.Errorf("the server's account is %+v", report)
		}
	}
}

func TestWhatTheKernelDoesNotHaveIsUnsupported(t *testing.T) {
	_, err := TCPOfClients(&contract.Transport{Congestion: pointer("none-such")})
	if _, is := errors.AsType[*contract.Unsupported](err); !is {
		t.Errorf("a congestion control that does not exist: %v", err)
	}
	socket, err := ListenUDP(local)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for _, wanted := range []uint64{1, 1 << 40} {
		err := socket.SetBuffers(&contract.Transport{UDPReceiveBuffer: &wanted})
		if _, is := errors.AsType[*contract.Unsupported](err); !is {
			t.Errorf("a buffer of %d bytes: %v", wanted, err)
		}
	}
}

func TestUDPBuffersThatAreAskedForAreActiveSettings(t *testing.T) {
	socket, err := ListenUDP(local)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	spec := contract.Transport{UDPReceiveBuffer: pointer(uint64(100_000)), UDPSendBuffer: pointer(uint64(65_536))}
	if err := socket.SetBuffers(&spec); err != nil {
		t.Fatal(err)
	}
	configured := socket.Buffers()
	if configured["udp_receive_buffer"] != 100_000 || configured["udp_send_buffer"] != 65_536 {
		t.Errorf("the active sizes are %v", configured)
	}
}
