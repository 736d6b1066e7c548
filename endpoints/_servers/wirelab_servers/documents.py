"""The files below a document root, for servers without a file server, whose configuration names every document."""

import os


def below(root):
    """The files by their paths relative to the root, with their sizes in bytes."""
    found = {}
    for folder, _, names in os.walk(root):
        for path in (os.path.join(folder, name) for name in names):
            if os.path.isfile(path):
                found[os.path.relpath(path, root)] = os.path.getsize(path)
    return found
