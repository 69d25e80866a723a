// Runs on whatever Node the machine has: installs the pinned dependencies (Node 24 among them) when they are missing or out of date,
// then runs the command it was given. A shell would go on using the `node` it found before the installation.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const stamp = `${root}node_modules/.installed-lock`;
const lock = createHash('sha256')
  .update(readFileSync(`${root}package-lock.json`))
  .digest('hex');
if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== lock) {
  console.error('npu-advisor: installing dependencies (npm ci) …');
  const done = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  if (done.status !== 0) {
    console.error('npu-advisor: npm ci failed; the lines above say why. The npm registry must be reachable.');
    process.exit(done.status ?? 1);
  }
  writeFileSync(stamp, lock);
}

const [command, ...args] = process.argv.slice(2);
if (command !== undefined) {
  const child = spawn(command, args, { stdio: 'inherit', shell: process.platform === 'win32' });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  // A shell that npm ends passes nothing on: its command ends with it.
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && child.kill('SIGTERM'), 1000).unref();
  child.once('error', (error) => {
    console.error(`npu-advisor: ${command} could not be started: ${error.message}`);
    process.exit(2);
  });
  child.once('exit', (code) => process.exit(code ?? 1));
}
