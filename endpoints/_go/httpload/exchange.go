package httpload

import (
	"io"
	"net/http"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/load"
)

// Exchange sends one request over a connection and reads the response until its end or a failure.
func (t *Template) Exchange(connection http.RoundTripper, scratch *load.Scratch, by clock.Moment, look func([]byte)) (
	answer load.Answer, err error) {
	lane := of(scratch)
	request, cancel := t.next(lane, by)
	defer cancel()
	response, err := connection.RoundTrip(request)
	if err == nil {
		answer.FirstByte, answer.Status = clock.Moment(lane.firstByte.Load()), response.StatusCode
		answer.BytesIn, err = readAll(response.Body, scratch.Buffer, look)
		answer.LastByte = clock.Now()
		_ = response.Body.Close()
	}
	if ctx := request.Context(); err != nil && ctx.Err() != nil {
		// The library may report that the stream was cancelled. The cause is this failure.
		err = ctx.Err()
	}
	return answer, err
}

func readAll(body io.Reader, buffer []byte, look func([]byte)) (size uint64, err error) {
	for err == nil {
		var n int
		n, err = body.Read(buffer)
		size += uint64(n)
		if look != nil {
			look(buffer[:n])
		}
	}
	if err == io.EOF {
		err = nil
	}
	return size, err
}
