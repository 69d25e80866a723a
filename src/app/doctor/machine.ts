/** What the machine gives: Node, memory, disk, proxy. */
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, ftruncateSync, mkdirSync, openSync, readFileSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import type { ServerOptions } from '../env.ts';
import { bad, both, look, type Outcome, ok, skipped } from './outcome.ts';

const MB = 1024 * 1024;
/** The embedded database alone is about 100 MB; its log grows between checkpoints. */
const LEAST_FREE_MB = 1024;
/** Of the server itself, measured: 250 MB with PostgreSQL, up to 1 GB with the embedded store. */
const SERVER_MB = { embedded: 1024, postgres: 256 };

const gb = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`;

export function checkNode(version: string): Promise<Outcome> {
  return look('node', both('Node.js', 'Node.js'), () => {
    const [major = 0, minor = 0] = version.split('.').map(Number);
    const found = both(`version ${version}`, `版本 ${version}`);
    if (major > 22 || (major === 22 && minor >= 13)) return ok(found);
    return bad(found, both('Install Node 22.13 or newer; 24 is what is tested.', '请安装 Node 22.13 或更新版本（推荐 24）。'));
  });
}

/** Limit of the control group of this process in bytes (version 2, then 1); null: none. */
export function memoryLimit(read: (path: string) => string = (path) => readFileSync(path, 'utf8')): number | null {
  const limits: number[] = [];
  const take = (path: string): void => {
    try {
      const limit = Number(read(path).trim());
      // Version 1 writes a number near 2^63 for "none".
      if (Number.isFinite(limit) && limit > 0 && limit < 2 ** 60) limits.push(limit);
    } catch {
      // Not of this version.
    }
  };
  let own: string[] = [];
  try {
    own = read('/proc/self/cgroup').split('\n');
  } catch {
    // Not Linux.
  }
  for (const line of own) {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    const parts = path.split('/').filter(Boolean);
    // A limit of any group above holds, too.
    for (let depth = 0; depth <= parts.length; depth++) {
      const folder = parts.slice(0, depth).join('/');
      if (controllers === '') take(join('/sys/fs/cgroup', folder, 'memory.max'));
      if (controllers.split(',').includes('memory')) take(join('/sys/fs/cgroup/memory', folder, 'memory.limit_in_bytes'));
    }
  }
  return limits.length === 0 ? null : Math.min(...limits);
}

export function checkMemory(options: ServerOptions, limit: number | null = memoryLimit()): Promise<Outcome> {
  return look('memory', both('Memory', '内存'), () => {
    const { analyses, analysisMemoryMb, databaseUrl } = options;
    const has = Math.min(limit ?? Number.POSITIVE_INFINITY, totalmem());
    const needs = (analyses * analysisMemoryMb + SERVER_MB[databaseUrl === null ? 'embedded' : 'postgres']) * MB;
    const what = limit === null ? both('no limit on this process', '本进程无内存上限') : both('limit of the container', '容器内存上限');
    const found = both(
      `${gb(has)} (${what.en}); ${analyses} × ${analysisMemoryMb} MB for analyses and the server: ${gb(needs)}`,
      `${gb(has)}（${what.zh}）；${analyses} × ${analysisMemoryMb} MB 用于分析，加上服务本身共 ${gb(needs)}`,
    );
    if (has >= needs) return ok(found);
    return bad(
      found,
      both(
        'Give it more memory, or lower NPU_ADVISOR_ANALYSIS_MEMORY_MB or NPU_ADVISOR_ANALYSES; else a large profile may end the whole process.',
        '请增加内存，或调低 NPU_ADVISOR_ANALYSIS_MEMORY_MB / NPU_ADVISOR_ANALYSES；否则大的 profile 可能使整个进程被杀。',
      ),
    );
  });
}

/** Why nothing can be written to a folder, as a code of the system; null: it can. Writes and removes a file of 64 kB. */
function writeProblem(folder: string): string | null {
  const path = join(folder, `.doctor-${process.pid}-${randomBytes(4).toString('hex')}`);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const file = openSync(path, 'wx', 0o600);
    try {
      const bytes = randomBytes(64 * 1024);
      for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown';
  } finally {
    try {
      rmSync(path, { force: true });
    } catch {
      // What kept it from being written keeps it from being there.
    }
  }
}

/** Whether a file with a hole takes no room for it. */
function keepsHoles(folder: string): boolean {
  const path = join(folder, `.doctor-${process.pid}-hole`);
  const file = openSync(path, 'w', 0o600);
  try {
    ftruncateSync(file, 4 * MB);
    return statSync(path).blocks * 512 < MB;
  } finally {
    closeSync(file);
    rmSync(path, { force: true });
  }
}

export function checkDataFolder({ dataDir, maxArtifactBytes, databaseUrl }: ServerOptions): Promise<Outcome> {
  return look('data-folder', both('Data folder', '数据目录'), () => {
    const problem = writeProblem(dataDir);
    if (problem !== null) {
      const full = problem === 'ENOSPC' || problem === 'EDQUOT';
      return bad(
        both(`${dataDir} ${full ? 'is full' : 'cannot be written'} (${problem})`, `${dataDir} ${full ? '已满' : '不可写'}（${problem}）`),
        full
          ? both('Free space or enlarge the volume; deliveries cannot be accepted until then.', '请清理或扩容；在此之前无法接收事件。')
          : both(
              'Set NPU_ADVISOR_DATA_DIR to a folder the process owns; in a container mount a volume there.',
              '请将 NPU_ADVISOR_DATA_DIR 设为进程拥有的目录；容器中请在此挂载卷。',
            ),
      );
    }
    const { bavail, bsize, ffree, files } = statfsSync(dataDir);
    const free = bavail * bsize;
    const hasHoles = keepsHoles(dataDir);
    const found = both(
      `${dataDir} is writable, ${gb(free)} free${hasHoles ? '' : ', keeps no holes in files'}`,
      `${dataDir} 可写，剩余 ${gb(free)}${hasHoles ? '' : '，文件系统不支持稀疏文件'}`,
    );
    if (files > 0 && ffree < 1000)
      return bad(
        found,
        both('No room for more files (inodes): remove old files or enlarge the volume.', 'inode 将用尽：请清理旧文件或扩容。'),
      );
    if (free < LEAST_FREE_MB * MB)
      return bad(
        found,
        both(
          `Keep at least ${LEAST_FREE_MB / 1024} GB free${databaseUrl === null ? '; the store lies here, too' : ''}.`,
          `请至少保留 ${LEAST_FREE_MB / 1024} GB${databaseUrl === null ? '（内置存储也在此目录）' : ''}。`,
        ),
      );
    if (free < maxArtifactBytes)
      return ok(
        found,
        both(
          `An artifact of NPU_ADVISOR_MAX_ARTIFACT_MB (${gb(maxArtifactBytes)}) would not fit: lower the limit or enlarge the volume.`,
          `放不下一个达到 NPU_ADVISOR_MAX_ARTIFACT_MB（${gb(maxArtifactBytes)}）的 artifact：请调低该上限或扩容。`,
        ),
      );
    return ok(found);
  });
}

export function checkTempFolder(folder: string): Promise<Outcome> {
  return look('temp-folder', both('Temporary folder', '临时目录'), () => {
    const problem = writeProblem(folder);
    if (problem === null) return ok(both(`${folder} is writable`, `${folder} 可写`));
    return bad(
      both(`${folder} cannot be written (${problem})`, `${folder} 不可写（${problem}）`),
      both(
        'Set TMPDIR, or mount a small tmpfs there when the root file system is read-only.',
        '请设置 TMPDIR；若根文件系统只读，请在此挂载小的 tmpfs。',
      ),
    );
  });
}

export function checkProxy(env: Readonly<Record<string, string | undefined>>, version = process.versions.node): Promise<Outcome> {
  return look('proxy', both('Proxy and certificates', '代理与证书'), () => {
    const proxy = env.HTTPS_PROXY ?? env.https_proxy ?? '';
    const authorities = env.NODE_EXTRA_CA_CERTS ?? '';
    const extra = authorities === '' ? null : both(`certificates of ${authorities}`, `证书 ${authorities}`);
    if (proxy === '') {
      return extra === null ? skipped(both('none is set', '未设置')) : ok(extra);
    }
    const isUsed = env.NODE_USE_ENV_PROXY === '1' || /--use-env-proxy\b/.test(env.NODE_OPTIONS ?? '');
    const and = (text: 'en' | 'zh'): string => (extra === null ? '' : `, ${extra[text]}`);
    // The address may hold a password.
    if (isUsed) return ok(both(`HTTPS_PROXY is used${and('en')}`, `使用 HTTPS_PROXY${and('zh')}`));
    const [major = 0] = version.split('.').map(Number);
    return bad(
      both('HTTPS_PROXY is set, and Node does not use it', '设置了 HTTPS_PROXY，但 Node 未使用'),
      major >= 24
        ? both('Set NODE_USE_ENV_PROXY=1, or unset HTTPS_PROXY.', '请设置 NODE_USE_ENV_PROXY=1，或取消 HTTPS_PROXY。')
        : both(
            'Use Node 24 with NODE_USE_ENV_PROXY=1, or unset HTTPS_PROXY.',
            '请使用 Node 24 并设置 NODE_USE_ENV_PROXY=1，或取消 HTTPS_PROXY。',
          ),
    );
  });
}
