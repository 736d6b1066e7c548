// The entry point of every endpoint: `describe`, `server --spec FILE`, `client --spec FILE`.

import path from 'node:path';

import { Unsupported, VERSION, conduct } from './contract.js';
import { readSpec } from './fields.js';

/** `folder` is the endpoint's; `library` is described in `README.md`. */
export function main(folder, library) {
  const [role, option, file, ...rest] = process.argv.slice(2);
  if (role === 'describe' && option === undefined) return describe(folder, library);
  if (!['server', 'client'].includes(role) || option !== '--spec' || file === undefined || rest.length > 0) {
    console.error('usage: describe | server --spec FILE | client --spec FILE');
    process.exit(2);
  }
  conduct(async () => {
    const spec = readSpec(file);
    if (!library[role]) throw new Unsupported(`${library.name} has no ${role} here`);
    // The other role's code is not loaded.
    const [{ run }, part] = await Promise.all([import(`./${role}/${role}.js`), library[role].load()]);
    await run(spec, { ...library[role], ...part });
  });
}

function describe(folder, library) {
  const role = (about) => about && { protocols: about.protocols, features: about.features };
  const description = {
    contract: VERSION,
    name: path.basename(folder),
    library: library.name,
    version: library.version,
    language: 'JavaScript',
    server: role(library.server),
    client: role(library.client),
  };
  console.log(JSON.stringify(description));
}
