package contract

import "slices"

// ServerSpec is the spec of a server.
type ServerSpec struct {
	Common
	TLS          *ServerTLS
	DocumentRoot string
	Features     []string
	// Counts: the word `count` may come at any time.
	Counts bool
}

// ServerTLS is a server's TLS material.
type ServerTLS struct {
	Certificate, Key, KeyLog string
	Resumption, EarlyData    bool
}

// Wants says whether the trial needs a feature.
func (s *ServerSpec) Wants(feature string) bool { return slices.Contains(s.Features, feature) }

// ReadServerSpec takes every field of a spec, or says which one it cannot honour.
func ReadServerSpec(spec *Fields, protocols, features []string) (*ServerSpec, error) {
	s := &ServerSpec{Common: readCommon(spec, protocols), Features: spec.Texts("features")}
	for _, feature := range s.Features {
		if !slices.Contains(features, feature) {
			spec.refuse("features: `%s`; supported: %v", feature, features)
		}
	}
	if spec.Has("document_root") {
		s.DocumentRoot = spec.Text("document_root")
	}
	if spec.Has("tls") {
		f := spec.Inner("tls")
		s.TLS = &ServerTLS{Certificate: f.Text("certificate"), Key: f.Text("key")}
		if f.Has("key_log") {
			s.TLS.KeyLog = f.Text("key_log")
		}
		s.TLS.EarlyData = f.Bool("early_data")
		s.TLS.Resumption = f.Bool("resumption") || s.TLS.EarlyData
		f.End()
	}
	s.Counts = spec.Has("counts") && spec.Bool("counts")
	spec.End()
	if spec.Err() == nil && (s.Wants("files") || s.Wants("pages")) && s.DocumentRoot == "" {
		return nil, Failed(Other, "spec: the feature `files` or `pages` is asked for without a `document_root`")
	}
	return s, spec.Err()
}
