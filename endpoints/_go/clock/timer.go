package clock

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Timer waits for moments. The runtime's own timers are up to a millisecond late on an idle process, because its network
// poller waits in whole milliseconds. A kernel timer (timerfd) wakes that poller at the moment itself, without spinning.
// The zero value is ready; it takes a file descriptor when it is first needed. It belongs to one goroutine.
type Timer struct{ file *os.File }

// Until returns at a moment, or at once if that has passed.
func (t *Timer) Until(at Moment) {
	if at <= Now() {
		return
	}
	if t.file == nil && !t.open() {
		// No file descriptor is left. A wait that is late shows in the records as lag.
		time.Sleep(time.Duration(at - Now()))
		return
	}
	raw, err := t.file.SyscallConn()
	if err != nil {
		time.Sleep(time.Duration(at - Now()))
		return
	}
	armed := false
	// Called at first, and whenever the poller says that the timer expired; it may speak of an earlier wait.
	err = raw.Read(func(fd uintptr) bool {
		left := at - Now()
		if left <= 0 {
			return true
		}
		if !armed {
			armed = true
			length := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(left))}
			return unix.TimerfdSettime(int(fd), 0, &length, nil) != nil
		}
		return false
	})
	if left := at - Now(); err != nil || left > 0 {
		time.Sleep(time.Duration(left))
	}
}

func (t *Timer) open() bool {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return false
	}
	t.file = os.NewFile(uintptr(fd), "timerfd")
	return true
}

// Close gives the file descriptor back.
func (t *Timer) Close() {
	if t.file != nil {
		_ = t.file.Close()
		t.file = nil
	}
}
