package site

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/pattern"
)

// build makes a site with a root that has a file, and a secret beside it.
func build(t *testing.T, features ...string) *Site {
	t.Helper()
	folder := t.TempDir()
	root := filepath.Join(folder, "root")
	for name, content := range map[string]string{"secret": "secret", "root/a.bin": "hello", "root/sub/b.bin": "", "root/a.html": "<p>"} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(folder, "secret"), filepath.Join(root, "leak")); err != nil {
		t.Fatal(err)
	}
	s, err := New(&contract.ServerSpec{DocumentRoot: root, Features: features})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRequestsAreAnsweredAsTheContractSays(t *testing.T) {
	s := build(t, "files", "echo", "bytes", "delay", "heron")
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/a.bin", "", 200, "hello"},
		{"GET", "/a.bin?x=1", "", 200, "hello"},
		{"GET", "/sub/b.bin", "", 200, ""},
		{"GET", "/", "", 404, ""},
		{"GET", "/sub", "", 404, ""},
		{"GET", "/leak", "", 404, ""},
		{"GET", "/../secret", "", 404, ""},
		{"GET", "/%2e%2e/secret", "", 404, ""},
		{"GET", "/bytes/3", "", 200, "\x00\x01\x02"},
		{"GET", "/bytes/0", "", 200, ""},
		{"GET", "/bytes/-1", "", 400, ""},
		{"GET", "/bytes/x", "", 400, ""},
		{"GET", "/delay/1", "", 200, ""},
		{"GET", "/delay/99999999999999", "", 400, ""},
		{"GET", "/heron/4", "", 200, "2.000000000000"},
		{"GET", "/heron/-1", "", 400, ""},
		{"GET", "/heron/x", "", 400, ""},
		{"POST", "/echo", "body", 200, "body"},
		{"POST", "/echo", "", 200, ""},
		{"GET", "/echo", "", 405, ""},
		{"POST", "/a.bin", "", 405, ""},
	} {
		r := httptest.NewRecorder()
		s.ServeHTTP(r, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		if r.Code != c.status || r.Body.String() != c.want || len(r.Header()["Content-Type"])+len(r.Header()["Date"]) > 0 {
			t.Errorf("%s %s: %d, %q, %v", c.method, c.path, r.Code, r.Body, r.Header())
		}
	}
}

func TestFilesOfPagesHaveTheirTypesWhereTheyAreAskedFor(t *testing.T) {
	for _, c := range []struct{ feature, path, want string }{
		{"pages", "/a.html", "text/html"},
		{"pages", "/a.bin", ""},
		{"files", "/a.html", ""},
	} {
		r := httptest.NewRecorder()
		build(t, c.feature).ServeHTTP(r, httptest.NewRequest("GET", c.path, nil))
		if found := r.Header().Get("Content-Type"); r.Code != http.StatusOK || found != c.want {
			t.Errorf("%s of %s: %d, %q", c.path, c.feature, r.Code, found)
		}
	}
}

func TestAFeatureThatWasNotAskedForIsNotThere(t *testing.T) {
	s := build(t)
	for _, path := range []string{"/bytes/3", "/delay/1", "/heron/4", "/echo"} {
		r := httptest.NewRecorder()
		s.ServeHTTP(r, httptest.NewRequest("GET", path, nil))
		if r.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, r.Code)
		}
	}
}

func TestADelayIsKept(t *testing.T) {
	s := build(t, "delay")
	start := clock.Now()
	s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/delay/3000", nil))
	if passed := clock.Now() - start; passed < 3_000_000 {
		t.Errorf("only %d ns passed", passed)
	}
}

func raw(s *Site, header pattern.Header, body int) (string, bool) {
	encoded := header.Encode()
	var out bytes.Buffer
	input := io.MultiReader(bytes.NewReader(encoded[:]), bytes.NewReader(make([]byte, body)))
	went := s.ServeRaw(struct {
		io.Reader
		io.Writer
	}{input, &out})
	return out.String(), went
}

func TestRawRequestsAreAnsweredWithTheWantedSize(t *testing.T) {
	s := build(t, "delay")
	if got, went := raw(s, pattern.Header{Wanted: 3, Body: 5, Delay: 1}, 5); !went || got != "\x00\x01\x02" {
		t.Errorf("answered %q, %v", got, went)
	}
	if got, went := raw(s, pattern.Header{Wanted: 3, Body: 5}, 4); went || got != "" {
		t.Errorf("a body that is too short: answered %q, %v", got, went)
	}
	if _, went := raw(build(t), pattern.Header{Wanted: 3, Delay: 1}, 0); went {
		t.Error("a delay was kept that was not asked for")
	}
}
