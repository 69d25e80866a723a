/** Writes the bill of materials of what is installed for production (CycloneDX): `npm run sbom -- FILE`. Needs no network. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const { name } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));
const args = ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx', '--omit', 'dev'];
const bom = JSON.parse(
  execFileSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 64 << 20, shell: process.platform === 'win32' }),
);
// npm names the package after its folder.
bom.metadata.component.name = name;
const text = `${JSON.stringify(bom, null, 2)}\n`;
const [file] = process.argv.slice(2);
if (file === undefined) process.stdout.write(text);
else writeFileSync(file, text);
