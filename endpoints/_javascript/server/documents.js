// The documents below the document root, read into memory before the server says that it is ready.
//
// A request never touches the file system, so the protocol is measured and not a page cache; and since only paths that were
// seen while walking the root are known, no path leads out of it.

import fs from 'node:fs';
import path from 'node:path';

import { Unsupported } from '../contract.js';

const LARGEST_TOTAL = 2 ** 30; // bytes

/** The content of every file below `root`, by its path from there with a leading slash. */
export function readDocuments(root) {
  const documents = new Map();
  const top = fs.realpathSync(root);
  let total = 0;
  const walk = (folder) => {
    for (const name of fs.readdirSync(folder)) {
      const found = path.join(folder, name);
      const real = fs.realpathSync(found);
      if (!real.startsWith(top + path.sep)) continue; // links are followed only where they stay below the root
      const about = fs.statSync(real);
      if (about.isDirectory() && real === found) walk(found);
      if (!about.isFile()) continue;
      total += about.size;
      if (total > LARGEST_TOTAL) {
        throw new Unsupported(`document_root: ${root} holds more than ${LARGEST_TOTAL} bytes, the most held in memory`);
      }
      documents.set(found.slice(top.length), fs.readFileSync(found));
    }
  };
  walk(top);
  return documents;
}
