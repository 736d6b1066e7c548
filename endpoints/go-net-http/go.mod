module wirelab/go-net-http

go 1.26.0

require wirelab/endpoint v0.0.0

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace wirelab/endpoint => ../_go
