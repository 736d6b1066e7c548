"""The documents below the document root, read into memory before the server says that it is ready.

So a request never touches the file system, and no path leads out of the root: only paths seen in it are known.
"""

import pathlib

from wirelab_endpoint.contract import Failure, Unsupported

LARGEST_TOTAL = 1 << 30  # bytes


def load(root):
    """The content of every file by its path from the root, which begins with a slash."""
    documents, total = {}, 0
    if root is None:
        return documents
    root = pathlib.Path(root).resolve()
    try:
        for path in root.rglob("*"):
            if path.is_file() and root in path.resolve().parents:
                total += path.stat().st_size
                if total > LARGEST_TOTAL:
                    raise Unsupported(f"the document root {root} holds more than {LARGEST_TOTAL} bytes, the most that "
                                      "this server keeps in memory")
                documents["/" + path.relative_to(root).as_posix()] = path.read_bytes()
    except OSError as error:
        raise Failure("other", f"reading the document root {root}: {error}") from error
    return documents
