import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { AdviseError } from '../../base/errors.ts';
import { VERSION } from '../../engine/version.ts';
import type { Artifact } from '../../github/artifacts.ts';
import { PERMISSIONS } from '../../github/client.ts';
import { limitOf, RateLimited } from '../../github/limits.ts';
import { ProfileUnavailable } from '../../github/storage.ts';
import type { Share } from '../../importers/index.ts';
import { factsToJson } from '../../model/facts-json.ts';
import { FACTS_SCHEMA } from '../../model/facts-schema.ts';
import type { L10n, Message } from '../../model/lang.ts';
import { MAX_BLOB_BYTES } from '../../store/blobs/blobs.ts';
import type { Portion } from '../../store/ports.ts';
import { ARCHIVE_ERROR, NOT_FETCHED } from '../analysis-protocol.ts';
import type { Dependencies } from './dependencies.ts';
import { fetchArtifacts, sharesOf } from './fetch-artifacts.ts';
import type { Progress } from './progress.ts';
import type { Target } from './request.ts';
import { subjectOf } from './subject.ts';

/** More artifacts than this share portions. */
const MAX_PORTIONS = 256;
/** How often it is looked for portions that have ended, and for those nobody has taken up. */
const LOOK_MS = 1000;
const TEST_LOOK_MS = 100;
const WAKE_MS = 5000;
/** A portion in which nothing happens for so many times its limits of download and analysis is given up, and the rest reported. */
const PATIENCE = 3;

/** What a portion is told to do. */
interface Payload {
  readonly target: Target;
  readonly artifacts: readonly Artifact[];
  /** Only these ranks of its one artifact. */
  readonly share?: Share & { readonly isAlone: boolean };
}

/** Why a portion failed. */
interface Failure {
  readonly code: string;
  readonly told: AdviseError['told'];
}

/** A job whose portions have all ended. */
export interface Gathered {
  /** Writes the facts of each portion to a file. */
  write(folder: string): Promise<string[]>;
  /** The report is made; nothing of the portions is needed any more. */
  done(): Promise<void>;
}

/** Whether several workers read it faster than one: small jobs stay in one process. */
function isWorthSpreading(artifacts: readonly Artifact[], spreadBytes: number): boolean {
  if (spreadBytes === 0 || artifacts.some(({ expired }) => expired)) return false;
  return artifacts.reduce((sum, { bytes }) => sum + bytes, 0) >= spreadBytes;
}

type Divided = Omit<Payload, 'target'>;

/** More processes than this seldom read one zip side by side. */
const MAX_SHARES = 32;

/** One portion for each artifact, of a large zip for some of its ranks; very many artifacts share portions of about the same size. */
async function divide(deps: Dependencies, target: Target, artifacts: readonly Artifact[]): Promise<Divided[]> {
  const large = artifacts.filter(({ bytes }) => bytes > deps.options.portionBytes);
  if (large.length === 0 || artifacts.length * MAX_SHARES > MAX_PORTIONS) return together(artifacts).map((of) => ({ artifacts: of }));
  const octokit = await deps.github.client(target.installationId, target.repository, PERMISSIONS.read);
  const divided: Divided[] = [];
  for (const artifact of artifacts) {
    const useful = Math.min(MAX_SHARES, Math.ceil(artifact.bytes / deps.options.portionBytes));
    const of = useful < 2 ? 1 : Math.min(useful, await sharesOf(deps, octokit, target, artifact));
    if (of < 2) divided.push({ artifacts: [artifact] });
    for (let index = 0; of >= 2 && index < of; index++)
      divided.push({ artifacts: [artifact], share: { index, of, isAlone: artifacts.length === 1 } });
  }
  return divided;
}

function together(artifacts: readonly Artifact[]): Artifact[][] {
  const portions = Array.from({ length: Math.min(MAX_PORTIONS, artifacts.length) }, () => ({ bytes: 0, artifacts: [] as Artifact[] }));
  for (const artifact of [...artifacts].sort((a, b) => b.bytes - a.bytes)) {
    const least = portions.reduce((a, b) => (b.bytes < a.bytes ? b : a));
    least.artifacts.push(artifact);
    least.bytes += artifact.bytes;
  }
  return portions.map((portion) => portion.artifacts);
}

interface Gathering {
  readonly artifacts: readonly Artifact[];
  readonly progress: Pick<Progress, 'tell'>;
  /** It is a large job, and is being read from now on. */
  readonly onSpread: () => Promise<void>;
}

/**
 * Lets all workers read the artifacts of a large job side by side and waits until each has ended, well or not. null: it is small enough for
 * one process. Needs no slot while it waits.
 */
export async function gather(deps: Dependencies, target: Target, { artifacts, progress, onSpread }: Gathering): Promise<Gathered | null> {
  if (!isWorthSpreading(artifacts, deps.options.spreadBytes)) return null;
  const { portions } = deps.store;
  const { repository } = target;
  const inputs = artifacts.map(({ id, bytes, digest, createdAt, place }) => [id, bytes, digest, createdAt, place]);
  const job = createHash('sha256')
    .update(JSON.stringify([VERSION, FACTS_SCHEMA, inputs]))
    .digest('hex')
    .slice(0, 32);
  // One that is found again was divided before, and perhaps by other settings.
  const isPlanned = (await portions.of(repository.id, job)).length > 0;
  const divided = isPlanned ? [] : await divide(deps, target, artifacts);
  if (divided.length === 1) return null;
  await portions.plan(
    repository.id,
    job,
    divided.map((of): Payload => ({ target, ...of })),
  );
  deps.log.info(
    { repository: repository.id, job, artifacts: artifacts.length, portions: divided.length },
    'a large job is read in portions',
  );

  await onSpread();
  const bytesOf = ({ payload }: Portion): number => sizeOf(payload as Payload);
  const patienceMs = PATIENCE * (deps.options.downloadTimeoutMs + deps.options.analysisTimeoutMs);
  let wokenAt = Number.NEGATIVE_INFINITY;
  let changedAt = deps.now();
  let all: readonly Portion[] = [];
  try {
    for (;;) {
      all = await portions.of(repository.id, job);
      const waiting = all.filter(({ state }) => state === 'waiting');
      const ended = all.filter(({ state }) => state !== 'waiting');
      progress.tell({
        kind: 'read',
        bytes: { done: ended.reduce((sum, one) => sum + bytesOf(one), 0), total: all.reduce((sum, one) => sum + bytesOf(one), 0) },
        ranks: { done: 0, total: 0 },
      });
      if (waiting.length === 0) break;
      changedAt = Math.max(changedAt, ...all.map(({ updatedAt }) => updatedAt));
      if (deps.now() - changedAt > patienceMs) {
        for (const { id } of waiting) await portions.fail(id, JSON.stringify(LATE));
        continue;
      }
      if (performance.now() - wokenAt > WAKE_MS) {
        // Found again, with what has been read until then, when the limit is over; meanwhile others need the place.
        const putOffMs = await deps.queue.putOffFor(subjectOf.portion(repository, job, ''));
        if (putOffMs !== null) throw new RateLimited('a portion', deps.now() + putOffMs);
        for (const { place } of waiting) await deps.queue.pokeIfIdle(subjectOf.portion(repository, job, place));
        wokenAt = performance.now();
      }
      await sleep(deps.options.isTest ? TEST_LOOK_MS : LOOK_MS, undefined, { signal: deps.signal });
    }
  } catch (error) {
    // The pull request has moved on, or this process stops; in the first case nobody asks for the rest, in the second it is found again.
    if (deps.isOvertaken?.() === true) await portions.drop(repository.id, job).catch(() => undefined);
    throw error;
  }
  const failed = all.filter(({ state }) => state === 'failed');
  if (failed.length === all.length && failed.length > 0) {
    await portions.drop(repository.id, job);
    const { code, told } = failureOf(failed[0]!);
    throw AdviseError.from(code, told);
  }
  return {
    async write(folder) {
      const paths: string[] = [];
      const lost: Portion[] = [];
      for (const portion of all) {
        const { id, place, state } = portion;
        if (state !== 'done') continue;
        const bytes = await portions.facts(id);
        if (bytes === null) {
          lost.push({ ...portion, note: JSON.stringify(LOST) });
          continue;
        }
        const path = join(folder, `portion-${place}.json.gz`);
        await writeFile(path, bytes, { mode: 0o600 });
        paths.push(path);
      }
      const without = [...failed, ...lost];
      if (without.length > 0) {
        const path = join(folder, 'portions-missing.json.gz');
        await writeFile(path, missing(without, all.length), { mode: 0o600 });
        paths.push(path);
      }
      return paths;
    },
    done: () => portions.drop(repository.id, job),
  };
}

/** Bytes of a portion: of a share, about. */
function sizeOf({ artifacts, share }: Divided): number {
  return artifacts.reduce((sum, { bytes }) => sum + bytes, 0) / (share?.of ?? 1);
}

const LATE: Failure = {
  code: 'portion-late',
  told: {
    en: { message: 'it was not read in time', hint: 'Ask again with `/npu-advise rerun`.' },
    zh: { message: '未能及时读取', hint: '可用 `/npu-advise rerun` 重试。' },
  },
};

const LOST: Failure = {
  code: 'portion-lost',
  told: {
    en: { message: 'what was read of it is gone', hint: 'Ask again with `/npu-advise rerun`.' },
    zh: { message: '其读取结果已丢失', hint: '可用 `/npu-advise rerun` 重试。' },
  },
};

const CANNOT: L10n = { en: 'cannot be read: {why:text}', zh: '无法读取：{why:text}' };

function failureOf({ note }: Portion): Failure {
  return JSON.parse(note) as Failure;
}

/** A digest without ranks that says which artifacts could not be read, so that the report does. */
function missing(failed: readonly Portion[], total: number): Buffer {
  const inputs = failed.flatMap((portion) => {
    const { told } = failureOf(portion);
    const text = { en: CANNOT.en.replace('{why:text}', '{en:code}'), zh: CANNOT.zh.replace('{why:text}', '{zh:code}') };
    const note: Message = { text, params: { en: told.en.message, zh: told.zh.message } };
    const { artifacts, share } = portion.payload as Payload;
    const part = share === undefined ? '' : ` (${share.index + 1}/${share.of})`;
    return artifacts.map(({ name, bytes }) => ({
      path: `${name}${part}`,
      kind: 'artifact',
      bytes,
      status: 'refused' as const,
      note,
    }));
  });
  const names = inputs.slice(0, 5).map(({ path }) => path);
  const note: Message = {
    text: {
      en: '{failed:int} of {total:int} parts of the upload could not be read ({names:code}); this report is of the others.',
      zh: '上传内容共 {total:int} 部分，其中 {failed:int} 部分无法读取（{names:code}）；本报告仅基于其余部分。',
    },
    params: { failed: failed.length, total, names: names.join(', ') },
  };
  return gzipSync(factsToJson([], { inputs, notes: [note], otherRanks: [] }));
}

/** Reads one portion. What is wrong with the upload ends it at once; anything else is tried again, as often as any job. */
export async function handlePortion(deps: Dependencies, subject: string): Promise<void> {
  const [, repoId = '', job = '', place = ''] = subject.split('/');
  const { portions } = deps.store;
  const find = (): Promise<Portion | null> => portions.find(Number(repoId), job, Number(place));
  const portion = await find();
  if (portion === null || portion.state !== 'waiting') return;
  if (portion.attempts >= deps.options.attempts) return portions.fail(portion.id, JSON.stringify(failure(null)));
  await portions.begin(portion.id);
  const dropped = new AbortController();
  const timer = setInterval(() => {
    find().then(
      (now) => {
        if (now?.state !== 'waiting') dropped.abort(new Error('nobody waits for this portion any more'));
      },
      () => undefined,
    );
  }, WAKE_MS);
  try {
    const watched = { ...deps, signal: AbortSignal.any([deps.signal, dropped.signal]) };
    await portions.finish(
      portion.id,
      await deps.analysisSlot(() => readPortion(watched, portion.payload as Payload), { diskBytes: sizeOf(portion.payload as Payload) }),
    );
  } catch (error) {
    if (deps.signal.aborted || limitOf(error) !== null) {
      await portions.uncount(portion.id);
      throw error;
    }
    if (dropped.signal.aborted) return;
    const isFinal = error instanceof AdviseError || error instanceof ProfileUnavailable || portion.attempts + 1 >= deps.options.attempts;
    deps.log.warn({ err: error, subject, attempt: portion.attempts + 1, isFinal }, 'a portion could not be read');
    if (!isFinal) throw error;
    await portions.fail(portion.id, JSON.stringify(failure(error)));
  } finally {
    clearInterval(timer);
  }
}

function failure(error: unknown): Failure {
  if (error instanceof AdviseError) return { code: error.code, told: error.told };
  if (error instanceof ProfileUnavailable) {
    const cannot = { en: 'the artifact cannot be used', zh: 'artifact 无法使用' };
    return { code: `${ARCHIVE_ERROR}unavailable`, told: new AdviseError('', cannot, '').told };
  }
  const again = { en: 'Ask again with `/npu-advise rerun`.', zh: '可用 `/npu-advise rerun` 重试。' };
  return { code: 'portion-failed', told: new AdviseError('', { en: 'reading it failed every time', zh: '每次读取均失败' }, again).told };
}

async function readPortion(deps: Dependencies, payload: Payload): Promise<Uint8Array> {
  try {
    return await fetchAndRead(deps, payload, true);
  } catch (error) {
    if (!(error instanceof AdviseError) || error.code !== NOT_FETCHED) throw error;
    return fetchAndRead(deps, payload, false);
  }
}

async function fetchAndRead(deps: Dependencies, { target, artifacts, share }: Payload, mayBeParts: boolean): Promise<Uint8Array> {
  await mkdir(deps.scratch, { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(join(deps.scratch, 'job-'));
  try {
    const octokit = await deps.github.client(target.installationId, target.repository, PERMISSIONS.read);
    const { paths, partial } = await deps.timed('fetch', () =>
      fetchArtifacts(deps, { octokit, target, artifacts, folder, mayBeParts, share: share ?? null, onBytes: () => undefined }),
    );
    deps.killPoint('after-download');
    const out = { path: join(folder, 'facts.json.gz'), maxBytes: MAX_BLOB_BYTES };
    await deps.analysis.digest({ paths, partial, out, share: share ?? null }, { signal: deps.signal });
    return await readFile(out.path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
