import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { AdviseError } from '../../base/errors.ts';

/** Identity of a process: a pid alone comes back after a restart, its start time does not. */
interface Owner {
  readonly pid: number;
  readonly started: string;
  readonly host: string;
}

export interface FolderLock {
  release(): void;
}

const FILE = 'lock.json';
/** An owner on another host cannot be asked; it touches its lock, and a lock untouched for this long is given up. */
const FOREIGN_STALE_MS = 60_000;
const TOUCH_MS = 10_000;

/** When the process started, or null when there is no such process. */
function startedAt(pid: number): string | null {
  try {
    if (process.platform === 'linux') {
      const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // Fields after the command name, which may itself hold spaces and brackets; field 3 is the state, 22 the start time.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return fields[0] === 'Z' ? null : `${boot}:${fields[19]}`;
    }
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || null;
  } catch {
    return null;
  }
}

function parseOwner(text: string): Owner | null {
  try {
    const value = JSON.parse(text) as Partial<Owner>;
    if (typeof value.pid !== 'number' || typeof value.started !== 'string' || typeof value.host !== 'string') return null;
    return { pid: value.pid, started: value.started, host: value.host };
  } catch {
    return null;
  }
}

function isAlive(owner: Owner, path: string): boolean {
  if (owner.host === hostname()) return startedAt(owner.pid) === owner.started;
  return Date.now() - statSync(path).mtimeMs < FOREIGN_STALE_MS;
}

function inUse(folder: string, owner: Owner | null): AdviseError {
  const who =
    owner === null
      ? { en: 'another process', zh: '另一个进程' }
      : { en: `process ${owner.pid} on ${owner.host}`, zh: `${owner.host} 上的进程 ${owner.pid} ` };
  return new AdviseError(
    'store-in-use',
    { en: `the data folder ${folder} is in use by ${who.en}`, zh: `数据目录 ${folder} 正被${who.zh}使用` },
    {
      en: 'Stop that process, choose another folder with NPU_ADVISOR_DATA_DIR, or share one PostgreSQL with DATABASE_URL.',
      zh: '停止该进程，用 NPU_ADVISOR_DATA_DIR 另选目录，或用 DATABASE_URL 共用一个 PostgreSQL。',
    },
  );
}

/**
 * Takes the folder for this process or refuses. The embedded database does not lock its own folder, and two processes
 * writing to it lose data silently. A lock left by a process that is gone is taken over.
 */
export function lockFolder(folder: string): FolderLock {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, FILE);
  const mine = JSON.stringify({ pid: process.pid, started: startedAt(process.pid) ?? 'unknown', host: hostname() } satisfies Owner);
  const draft = join(folder, `lock.${process.pid}.${Date.now()}.tmp`);
  writeFileSync(draft, mine, { mode: 0o600 });
  try {
    for (let attempt = 0; ; attempt++) {
      try {
        // link() fails when the name exists and never exposes a half-written file.
        linkSync(draft, path);
        break;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
      let seen: string;
      try {
        seen = readFileSync(path, 'utf8');
        const owner = parseOwner(seen);
        if (attempt >= 3 || (owner !== null && isAlive(owner, path))) throw inUse(folder, owner);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue;
        throw error;
      }
      const aside = `${path}.${process.pid}.stale`;
      try {
        renameSync(path, aside);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue;
        throw error;
      }
      const moved = readFileSync(aside, 'utf8');
      if (moved !== seen) {
        // Someone else took the stale lock over between our read and our rename: give it back.
        linkSync(aside, path);
        rmSync(aside, { force: true });
        throw inUse(folder, parseOwner(moved));
      }
      rmSync(aside, { force: true });
    }
  } finally {
    rmSync(draft, { force: true });
  }

  const timer = setInterval(() => {
    try {
      const now = new Date();
      utimesSync(path, now, now);
    } catch {
      // The folder is gone; nothing left to protect.
    }
  }, TOUCH_MS);
  timer.unref();
  return {
    release() {
      clearInterval(timer);
      try {
        if (readFileSync(path, 'utf8') === mine) rmSync(path, { force: true });
      } catch {
        // Already gone.
      }
    },
  };
}
