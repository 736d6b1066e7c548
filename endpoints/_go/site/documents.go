// Package site is what a server has to offer: files, generated bodies, echoes, delays.
package site

import (
	"io/fs"
	"os"
	"path/filepath"

	"wirelab/endpoint/contract"
)

// largestTotal is the most that is kept in memory.
const largestTotal = 1 << 30

// loadDocuments reads every file below a root, by its path with a leading slash.
//
// A request never touches the file system, so the measurement is of the protocol, not of a page cache. Since only paths
// seen while walking the root are known, no path leads out of it.
func loadDocuments(path string) (map[string][]byte, error) {
	documents, total := map[string][]byte{}, int64(0)
	// Links that lead out of the root are not followed.
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, contract.Failed(contract.Other, "opening the document root: %v", err)
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := fs.Stat(root.FS(), name)
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		if total += info.Size(); total > largestTotal {
			return contract.Refuse("`document_root` holds more than %d bytes, the most that this server keeps in memory", largestTotal)
		}
		content, err := fs.ReadFile(root.FS(), name)
		documents["/"+filepath.ToSlash(name)] = content
		return err
	})
	return documents, err
}
