package main

import (
	"wirelab/endpoint/contract"
	"wirelab/endpoint/httpload"
	"wirelab/endpoint/pattern"
)

// takeRequest makes the request once, or says what of it cannot be honoured.
func (d *driver) takeRequest() (err error) {
	if d.spec.HTTP() {
		d.template, err = httpload.NewTemplate(d.spec)
		d.http3.DisableCompression = true
		if err == nil && d.spec.Resumption == "zero_rtt" && (d.spec.Request.Method != "GET" || d.template.HasBody()) {
			err = contract.Refuse("`resumption` = \"zero_rtt\" with %s: http3 sends a GET without a body alone as 0-RTT",
				d.spec.Request.Method)
		}
		return err
	}
	header := pattern.Header{Wanted: d.spec.Request.BodySize, Body: d.spec.Request.BodySize, Delay: delayOf(d.spec.Request.Path)}
	if d.spec.Request.Expect != nil {
		header.Wanted = d.spec.Request.Expect.BodySize
	}
	d.raw = newRawRequest(header)
	return nil
}
