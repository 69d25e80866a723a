import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { AdviseError } from '../base/errors.ts';
import { lockFolder } from '../store/embedded/folder-lock.ts';
import { openForReading } from '../store/open.ts';
import type { KeptProfile, Store } from '../store/ports.ts';
import { defaultOf } from './env.ts';

export interface ExportOptions {
  /** `owner/name`, or its number; null: all. */
  readonly repository: string | null;
  readonly job: string | null;
  readonly format: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

const BATCH = 500;

/** `npu-advise history export`: figures of every profile that is kept, oldest first. */
export async function exportHistory(env: Environment, options: ExportOptions, write: (text: string) => void): Promise<void> {
  const databaseUrl = env.DATABASE_URL?.trim() || null;
  const dataDir = resolve(env.NPU_ADVISOR_DATA_DIR?.trim() || defaultOf('NPU_ADVISOR_DATA_DIR'));
  if (databaseUrl === null && !existsSync(join(dataDir, 'pglite')))
    throw new AdviseError(
      'no-store',
      { en: `there is no store in ${dataDir}`, zh: `${dataDir} 中没有存储数据` },
      {
        en: 'Set NPU_ADVISOR_DATA_DIR or DATABASE_URL as for the server.',
        zh: '将 NPU_ADVISOR_DATA_DIR 或 DATABASE_URL 设为与服务器相同。',
      },
    );
  // The embedded store has one owner; with PostgreSQL the server may go on.
  const lock = databaseUrl === null ? lockFolder(dataDir) : null;
  try {
    const { store, close } = await openForReading({ databaseUrl, dataDir });
    try {
      await writeHistory(store, options, write);
    } finally {
      await close();
    }
  } finally {
    lock?.release();
  }
}

/** Writes what a store holds. */
export async function writeHistory(
  store: Pick<Store, 'profiles' | 'repositories'>,
  { repository, job, format: wanted }: ExportOptions,
  write: (text: string) => void,
): Promise<void> {
  const format = FORMATS[wanted];
  if (format === undefined)
    throw new AdviseError(
      'usage',
      { en: `there is no format ${wanted}`, zh: `没有名为 ${wanted} 的格式` },
      { en: 'Use --format json or csv.', zh: '使用 --format json 或 csv。' },
    );
  const names = new Map((await store.repositories.list()).map(({ repoId, owner, name }) => [repoId, `${owner}/${name}`]));
  const repoId = repository === null ? undefined : idOf(repository, names);
  write(format.head);
  let count = 0;
  for (let after = 0; ; ) {
    const filter = { ...(repoId === undefined ? {} : { repoId }), ...(job === null ? {} : { job }) };
    const profiles = await store.profiles.list({ ...filter, after, limit: BATCH });
    for (const profile of profiles) write(format.row(rowOf(profile, names.get(profile.repoId) ?? null), count++));
    if (profiles.length < BATCH) break;
    after = profiles.at(-1)!.id;
  }
  write(format.tail);
}

function idOf(repository: string, names: ReadonlyMap<number, string>): number {
  if (/^\d{1,15}$/.test(repository)) return Number(repository);
  const found = [...names].find(([, name]) => name.toLowerCase() === repository.toLowerCase());
  if (found !== undefined) return found[0];
  throw new AdviseError(
    'usage',
    { en: `nothing is kept of ${repository}`, zh: `没有保存 ${repository} 的数据` },
    {
      en: 'Give owner/name as the App last saw it, or the number of the repository.',
      zh: '给出 App 最近一次见到的 owner/name，或仓库的编号。',
    },
  );
}

type Row = ReturnType<typeof rowOf>;

function rowOf({ repoId, job, sha, branch, pr, trusted, recordedAt, metrics, factsSchema }: KeptProfile, repository: string | null) {
  return {
    repository,
    repositoryId: repoId,
    job,
    branch,
    pullRequest: pr,
    commit: sha,
    recordedAt: new Date(recordedAt).toISOString(),
    fromFork: !trusted,
    comparable: factsSchema !== null,
    stepTimeMs: metrics.stepTimeMs,
    idleShare: metrics.freeShare,
    exposedCommunicationMs: metrics.exposedMs,
    causes: metrics.top,
  };
}

interface Format {
  readonly head: string;
  readonly tail: string;
  readonly row: (row: Row, index: number) => string;
}

const COLUMNS = [
  ...(['repository', 'job', 'branch', 'pullRequest', 'commit', 'recordedAt', 'fromFork', 'comparable'] as const),
  ...(['stepTimeMs', 'idleShare', 'exposedCommunicationMs', 'causes'] as const),
];

const FORMATS: Readonly<Record<string, Format>> = {
  json: {
    head: '{"schema":"npu-advisor.history/1","profiles":[',
    tail: '\n]}\n',
    row: (row, index) => `${index === 0 ? '' : ','}\n${JSON.stringify(row)}`,
  },
  csv: {
    head: `${COLUMNS.join(',')}\r\n`,
    tail: '',
    row: (row) => `${COLUMNS.map((column) => cell(row[column])).join(',')}\r\n`,
  },
};

/** A field of RFC 4180. A text that a spreadsheet would take for a formula is marked as text. */
function cell(value: Row[keyof Row]): string {
  if (value === null) return '';
  if (typeof value !== 'string' && typeof value !== 'object') return String(value);
  const text = typeof value === 'string' ? value : value.map(({ rule, savingMs }) => `${rule}=${savingMs}`).join(' ');
  return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}
