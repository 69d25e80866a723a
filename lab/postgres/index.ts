/**
 * A PostgreSQL of one's own: a cluster in a folder that is thrown away, on a free port of 127.0.0.1. Tests restart and kill it. The server
 * refuses to run as root, so there it runs as `postgres`, or as `nobody` where the package brought no such user.
 */

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { chownSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../free-port.ts';

export interface TemporaryPostgres {
  readonly url: string;
  /** Stops the server and starts it again; `immediate` is like a crash: what was not committed is gone, connections break. */
  restart(mode: 'fast' | 'immediate', downMs?: number): Promise<void>;
  stop(): Promise<void>;
}

/** Folder with `initdb` and `postgres`; null: not installed here. Debian keeps them out of the PATH. */
function findPostgres(): string | null {
  const folders = [...(process.env.PATH ?? '').split(':'), ...globSync('/usr/lib/postgresql/*/bin').sort().reverse()];
  return folders.find((folder) => ['initdb', 'postgres', 'pg_ctl', 'pg_isready'].every((name) => existsSync(join(folder, name)))) ?? null;
}

function userFor(): { uid: number; gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  const fields = ['postgres', 'nobody']
    .map((name) => lines.find((line) => line.startsWith(`${name}:`))?.split(':'))
    .find((f) => f !== undefined);
  if (fields === undefined) throw new Error('no user to run PostgreSQL as');
  return { uid: Number(fields[2]), gid: Number(fields[3]) };
}

/** Starts a new, empty server; null where PostgreSQL is not installed. */
export async function startTemporaryPostgres(): Promise<TemporaryPostgres | null> {
  const bin = findPostgres();
  if (bin === null) return null;
  const user = userFor();
  // Not below the TMPDIR of a test, which the other user may not enter.
  const root = mkdtempSync('/tmp/npu-advisor-postgres-');
  const data = join(root, 'data');
  if (user !== null) chownSync(root, user.uid, user.gid);
  const options = { ...(user ?? {}), cwd: root, env: { PATH: `${bin}:${process.env.PATH ?? ''}`, LC_ALL: 'C.UTF-8' } };
  const remove = (): void => rmSync(root, { recursive: true, force: true });
  try {
    execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'npu', '-A', 'trust', '-E', 'UTF8', '--no-sync', '--no-instructions'], {
      ...options,
      stdio: 'pipe',
    });
  } catch (error) {
    remove();
    throw error;
  }
  const port = await freePort();
  const isReady = (): boolean => spawnSync(join(bin, 'pg_isready'), ['-q', '-h', '127.0.0.1', '-p', String(port)], options).status === 0;
  const start = async (): Promise<void> => {
    const settings = [
      `port=${port}`,
      'listen_addresses=127.0.0.1',
      `unix_socket_directories=${root}`,
      'max_connections=200',
      'shared_buffers=64MB',
    ];
    const child = spawn(join(bin, 'postgres'), ['-D', data, ...settings.flatMap((setting) => ['-c', setting])], {
      ...options,
      stdio: 'ignore',
    });
    child.unref();
    const end = Date.now() + 60_000;
    while (!isReady()) {
      if (child.exitCode !== null || Date.now() > end) throw new Error('PostgreSQL did not start');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const halt = async (mode: 'fast' | 'immediate'): Promise<void> => {
    const child = spawn(join(bin, 'pg_ctl'), ['stop', '-D', data, '-m', mode, '-w', '-t', '30'], { ...options, stdio: 'ignore' });
    await new Promise((resolve) => child.once('exit', resolve));
  };
  await start();
  return {
    url: `postgres://npu@127.0.0.1:${port}/postgres`,
    async restart(mode, downMs = 0) {
      await halt(mode);
      await new Promise((resolve) => setTimeout(resolve, downMs));
      await start();
    },
    async stop() {
      await halt('immediate');
      remove();
    },
  };
}
