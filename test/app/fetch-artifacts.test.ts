/*
 * Large artifacts: only what an importer opens is fetched, whatever the storage host does meanwhile. The analysis process that names the
 * parts is the real one.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type LoopbackGitHub, type RepositoryHandle, type RunHandle, startLoopbackGitHub } from '../../lab/loopback-github/index.ts';
import { simulate, writeProfiles } from '../../lab/simulator/index.ts';
import { createAnalysisRunner } from '../../src/app/analysis-runner.ts';
import type { Dependencies } from '../../src/app/jobs/dependencies.ts';
import { type Fetched, fetchArtifacts, sharesOf } from '../../src/app/jobs/fetch-artifacts.ts';
import { planFetch } from '../../src/app/jobs/fetch-plan.ts';
import { type Artifact, listArtifacts } from '../../src/github/artifacts.ts';
import { createGitHub, type Octokit, PERMISSIONS } from '../../src/github/client.ts';
import { createLogger } from '../../src/github/log.ts';
import { createOutboundPolicy } from '../../src/github/outbound.ts';
import type { Share } from '../../src/importers/index.ts';
import { openSource } from '../../src/sources/index.ts';
import { readWhole } from '../../src/sources/source.ts';
import { type ZipEntry, zipOf } from '../support/archives.ts';

const MB = 1 << 20;
const home = mkdtempSync(join(tmpdir(), 'npu-fetch-'));
let hub: LoopbackGitHub;
let repository: RepositoryHandle;
let octokit: Octokit;
let deps: Dependencies;
let log = '';
/** A simulated job of two ranks, as people upload it: 3 MB of tables, and 27 MB of raw data and logs beside them. */
let job: ZipEntry[] = [];
let jobZip: Buffer;
let wanted = 0;

beforeAll(async () => {
  hub = await startLoopbackGitHub({ app: { id: 4242, slug: 'npu-advisor', webhookSecret: 'x'.repeat(40) } });
  repository = hub.addRepository({ owner: 'acme', name: 'train', files: { 'train.py': 'import torch\n' } });
  const sink = new Writable({
    write(chunk, _, done) {
      log += String(chunk);
      done();
    },
  });
  const logger = createLogger('info', sink);
  const github = createGitHub({
    appId: 4242,
    privateKey: hub.privateKeyPem,
    apiUrl: hub.apiUrl,
    userAgent: 'test',
    throttle: false,
    log: logger,
  });
  const target = { id: repository.id, owner: 'acme', name: 'train' };
  octokit = await github.client(repository.installationId!, target, PERMISSIONS.read);
  const scratch = join(home, 'scratch');
  await mkdir(scratch);
  const analyser = pathToFileURL(join(import.meta.dirname, '../../src/app/analyser.ts')).href;
  deps = {
    github,
    store: { usage: { read: async () => 0, add: async () => {} } },
    analysis: createAnalysisRunner(analyser, { timeoutMs: 30_000, memoryMb: 1000 }, scratch),
    policy: createOutboundPolicy([new URL(hub.blobUrl).host], hub.apiUrl),
    log: logger,
    options: {
      maxArtifactBytes: 100 * MB,
      maxDailyBytes: 1e12,
      downloadTimeoutMs: 20_000,
      attempts: 2,
      retryDelaySeconds: 0,
      analyses: 1,
      progressMs: 0,
      isTest: true,
    },
    scratch,
    killPoint: () => undefined,
    signal: new AbortController().signal,
    now: Date.now,
  } as unknown as Dependencies;
  await writeProfiles(simulate({ ranks: 2, seed: 3, faults: [{ kind: 'slow-loader' }] }), join(home, 'job'));
  const source = await openSource(join(home, 'job'));
  for (const { path } of source.entries) {
    const data = readFileSync(join(home, 'job', path));
    job.push({ name: path, data });
  }
  const roots = [...new Set(job.map(({ name }) => String(name).split('/')[0]!))];
  const noise = (name: string, mb: number): ZipEntry => ({ name, data: randomBytes(mb * MB), stored: true });
  job = roots.flatMap((root) => [
    noise(`${root}/PROF_000001_20250108155932372_KEGNPDFQ/device_0/data/ffts_profile.data.0.slice_0`, 10),
    ...job.filter(({ name }) => String(name).startsWith(root)),
    noise(`${root}/checkpoint.pt`, 3),
  ]);
  jobZip = zipOf(job);
  wanted = zipOf(job.filter(({ name }) => !/PROF_|\.pt$/.test(String(name)))).length;
});
afterAll(async () => {
  await hub.close();
  rmSync(home, { recursive: true, force: true });
});
afterEach(() => {
  expect(hub.violations).toEqual([]);
  log = '';
});

type Options = Parameters<RepositoryHandle['addArtifact']>[1];

function run(...artifacts: Partial<Options>[]): { run: RunHandle; ids: number[] } {
  const created = repository.addWorkflowRun({ event: 'push' });
  const ids = artifacts.map((options, i) => repository.addArtifact(created, { name: `npu-profile-${i}`, ...options } as Options).id);
  return { run: created, ids };
}

async function listed(of: RunHandle): Promise<Artifact[]> {
  const all = await listArtifacts(octokit, { id: repository.id, owner: 'acme', name: 'train' }, of.id);
  return all.sort((a, b) => a.id - b.id);
}

interface Over {
  readonly options?: Partial<Dependencies['options']>;
  readonly onBytes?: (done: number) => void;
  /** Called when the directory has been read and nothing else. */
  readonly onPlanned?: () => void;
  readonly mayBeParts?: boolean;
  /** Only some of the ranks. */
  readonly share?: Share;
}

async function fetchOf(
  of: RunHandle,
  { options = {}, onBytes = () => {}, onPlanned = () => {}, mayBeParts = true, share }: Over = {},
): Promise<Fetched> {
  const folder = await mkdtemp(join(deps.scratch, 'job-'));
  const target = { installationId: repository.installationId!, repository: { id: repository.id, owner: 'acme', name: 'train' } };
  const parts: typeof deps.analysis.parts = async (...given) => {
    const answers = await deps.analysis.parts(...given);
    onPlanned();
    return answers;
  };
  const own = { ...deps, options: { ...deps.options, ...options }, analysis: { ...deps.analysis, parts } };
  return fetchArtifacts(own, { octokit, target, artifacts: await listed(of), folder, mayBeParts, onBytes, share: share ?? null });
}

/** Blob requests since. */
function since(mark: number): { requests: number; bytes: number; addresses: number; ranges: (string | null)[] } {
  const own = hub.journal.slice(mark);
  const blobs = own.filter(({ host }) => host === 'blob');
  return {
    requests: blobs.length,
    bytes: blobs.reduce((sum, { bytes }) => sum + bytes, 0),
    addresses: own.filter(({ operation }) => operation === 'actions/download-artifact').length,
    ranges: blobs.map(({ range }) => range),
  };
}

async function verdictOf({ paths, partial }: Fetched): Promise<string> {
  const options = { lang: 'en', thresholds: {}, disabledRules: [], gate: null } as const;
  const report = await deps.analysis.analyse({ paths, partial, options, source: null }, { signal: deps.signal });
  return JSON.stringify([report.verdict, report.findings, report.inputs]);
}

describe('an artifact of which a tenth is wanted', () => {
  it('costs a tenth of its bytes, and gives the same report', async () => {
    const zip = jobZip;
    const mark = hub.journal.length;
    const seen: number[] = [];
    const part = await fetchOf(run({ zipBuffer: zip }).run, { onBytes: (bytes) => seen.push(bytes) });
    const cost = since(mark);
    expect(part.partial).toEqual(part.paths);
    expect(cost.bytes).toBeLessThan(wanted + MB / 2);
    expect(cost.bytes).toBeLessThan(zip.length * 0.2);
    expect(cost.addresses).toBe(1);
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
    expect(statSync(part.paths[0]!).size).toBe(zip.length);
    expect(statSync(part.paths[0]!).blocks * 512).toBeLessThan(zip.length * 0.25);
    expect(log).toContain('only the wanted files of an artifact are fetched');
    expect(hub.journal.slice(mark).filter(({ host, authorization }) => host === 'blob' && authorization)).toEqual([]);

    const whole = await fetchOf(run({ zipBuffer: zip }).run, { mayBeParts: false });
    expect(whole.partial).toEqual([]);
    expect(await verdictOf(part)).toBe(await verdictOf(whole));
  });

  it('is fetched by each worker of a share for its own ranks only', async () => {
    const trace = (rank: number) => ({
      name: `node_${rank}_20250108155932372_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json`,
      data: Buffer.alloc(MB, `[] of rank ${rank} `),
      stored: true,
    });
    const ranks = Array.from({ length: 6 }, (_, rank) => trace(rank));
    const { run: of } = run({ zipBuffer: zipOf(ranks) });
    const [artifact] = await listed(of);
    const target = { installationId: repository.installationId!, repository: { id: repository.id, owner: 'acme', name: 'train' } };
    expect(await sharesOf(deps, octokit, target, artifact!)).toBe(6);
    const read: string[] = [];
    for (let index = 0; index < 3; index++) {
      const mark = hub.journal.length;
      const { paths, partial } = await fetchOf(of, { share: { index, of: 3 } });
      // Two traces; beside them the end of the zip and what comes with its first bytes.
      expect(since(mark).bytes).toBeGreaterThan(2 * MB);
      expect(since(mark).bytes).toBeLessThan(2.6 * MB);
      expect(partial).toEqual(paths);
      expect(statSync(paths[0]!).blocks * 512).toBeLessThan(3 * MB);
      const bytes = readFileSync(paths[0]!);
      const own = ranks.filter(({ data }) => bytes.includes(data)).map(({ name }) => name);
      expect(own).toHaveLength(2);
      read.push(...own);
    }
    expect(read.sort()).toEqual(ranks.map(({ name }) => name));
  });

  it('is read with a zip64 end, too', async () => {
    const part = await fetchOf(run({ zipBuffer: zipOf(job, { zip64: true }) }).run);
    expect(part.partial).toHaveLength(1);
    expect(await verdictOf(part)).toContain('"outcome":"causes"');
  });

  it('is read although it is larger than the limit, which is one on what is fetched', async () => {
    const { run: of } = run({ zipBuffer: jobZip });
    expect((await fetchOf(of, { options: { maxArtifactBytes: 5 * MB } })).partial).toHaveLength(1);
    await expect(fetchOf(of, { options: { maxArtifactBytes: MB } })).rejects.toMatchObject({
      reason: { kind: 'too-large', limitBytes: MB },
    });
  });

  it('of several, each is fetched by itself; small ones as a whole', async () => {
    const small = zipOf([{ name: 'x.json', data: '[]' }]);
    const mark = hub.journal.length;
    const part = await fetchOf(run({ zipBuffer: jobZip }, { zipBuffer: small }, { zipBuffer: jobZip }).run);
    expect(part.paths).toHaveLength(3);
    expect(part.partial).toEqual([part.paths[0], part.paths[2]]);
    expect(readFileSync(part.paths[1]!)).toEqual(small);
    expect(since(mark).bytes).toBeLessThan(2 * (wanted + MB / 2) + small.length);
  });

  it('keeps the archives inside, of which only the content tells what they are', async () => {
    const inner = zipOf([{ name: 'ASCEND_PROFILER_OUTPUT/trace_view.json', data: '[]' }]);
    const raw = { name: 'raw.bin', data: randomBytes(20 * MB), stored: true };
    const part = await fetchOf(run({ zipBuffer: zipOf([raw, { name: 'rank0.zip', data: inner }]) }).run);
    const source = await openSource(
      part.paths[0]!,
      undefined,
      (files) => new Set(files.map(({ path }) => path).filter((p) => p !== 'raw.bin')),
    );
    const found = source.entries.find(({ path }) => path === 'rank0.zip/ASCEND_PROFILER_OUTPUT/trace_view.json')!;
    expect(String(await readWhole(found, 100))).toBe('[]');
    await source.close();
  });
});

describe('an artifact that is fetched as a whole', () => {
  const expectWhole = async (options: Partial<Options>, why: RegExp): Promise<void> => {
    const whole = await fetchOf(run(options).run);
    expect(whole.partial).toEqual([]);
    expect(statSync(whole.paths[0]!).size).toBe(options.zipBuffer!.length);
    expect(log).toMatch(why);
  };

  it('because the host ignores ranges', async () => {
    await expectWhole({ zipBuffer: jobZip, ignoreRange: true }, /sends everything instead of a part/);
  });
  it('because most of it is wanted', async () => {
    const tables = { name: 'ASCEND_PROFILER_OUTPUT/trace_view.json', data: randomBytes(18 * MB), stored: true };
    await expectWhole({ zipBuffer: zipOf([tables, { name: 'x.log', data: randomBytes(MB), stored: true }]) }, /most of it is wanted/);
  });
  it('because it is no zip', async () => {
    await expectWhole({ zipBuffer: Buffer.concat([Buffer.from([0x1f, 0x8b]), randomBytes(17 * MB)]) }, /it is no zip/);
  });
  it('because its end is lost; what is wrong with it is told by the reading', async () => {
    await expectWhole({ zipBuffer: Buffer.concat([jobZip, Buffer.alloc(100_000)]) }, /its end is not that of a zip/);
  });
});

describe('a storage host on a bad day', () => {
  it('another file in its place in the middle: everything is fetched, of the new one', async () => {
    const { run: of, ids } = run({ zipBuffer: jobZip, digest: null });
    const replacement = zipOf(job.slice(1));
    const onPlanned = (): void => repository.replaceArtifact({ id: ids[0]!, name: '', size: 0, digest: null }, replacement);
    const whole = await fetchOf(of, { onPlanned });
    expect(log).toContain('is another than before');
    expect(whole.partial).toEqual([]);
    expect(readFileSync(whole.paths[0]!).equals(replacement)).toBe(true);
  });

  it('the address expires in the middle: GitHub is asked for another', async () => {
    const { run: of } = run({ zipBuffer: jobZip });
    const mark = hub.journal.length;
    const part = await fetchOf(of, { onPlanned: () => hub.advanceClock(61_000) });
    expect(part.partial).toHaveLength(1);
    expect(since(mark).addresses).toBeGreaterThan(1);
    expect(hub.journal.slice(mark).filter(({ host, status }) => host === 'blob' && status === 403).length).toBeGreaterThan(0);
    expect(await verdictOf(part)).toContain('"outcome":"causes"');
  });

  it('the connection breaks: the part is gone on with where it stopped', async () => {
    const json = randomBytes(4 * MB);
    const zip = zipOf([
      { name: 'x.log', data: randomBytes(30 * MB), stored: true },
      { name: 'x.json', data: json, stored: true },
    ]);
    const { run: of } = run({ zipBuffer: zip, truncateAt: 32 * MB });
    const mark = hub.journal.length;
    const part = await fetchOf(of);
    expect(part.partial).toHaveLength(1);
    // What was still on its way when the connection broke may be lost, no more.
    expect(Number(/^bytes=(\d+)-/.exec(since(mark).ranges.at(-1)!)![1])).toBeGreaterThan(31 * MB);
    expect(since(mark).bytes).toBeLessThan(5 * MB);
    const source = await openSource(part.paths[0]!);
    expect(await readWhole(source.entries[1]!, 5 * MB)).toEqual(json);
    await source.close();
  });

  it('a refusal now and then is waited out, one without end is not', async () => {
    const { run: of } = run({ zipBuffer: jobZip });
    const some = hub.fault({ match: /^BLOB GET/, skip: 2, times: 2, status: 503 });
    expect((await fetchOf(of)).partial).toHaveLength(1);
    expect(some.hits).toBe(2);
    const all = hub.fault({ match: /^BLOB GET/, skip: 2, times: 1000, status: 503 });
    await expect(fetchOf(of)).rejects.toThrow('the storage host answered 503');
    all.times = 0;
    expect(all.hits).toBeLessThan(20);
  });

  it('an artifact that is deleted meanwhile has expired', async () => {
    const { run: of, ids } = run({ zipBuffer: jobZip });
    const onPlanned = (): void => {
      hub.advanceClock(61_000);
      repository.expireArtifact({ id: ids[0]!, name: '', size: 0, digest: null });
    };
    const part = fetchOf(of, { onPlanned });
    await expect(part).rejects.toMatchObject({ reason: { kind: 'expired' } });
  });
});

describe('a hostile archive', () => {
  it.each<[string, ZipEntry[], RegExp]>([
    ['a name that leads out', [{ name: '../../x.json', data: 'x' }], /invalid relative path/],
    ['a link', [{ name: 'x.json', data: '/etc/passwd', mode: 0o120777 }], /symbolic link/],
    [
      'two files of one name',
      [
        { name: 'x.json', data: 'a' },
        { name: 'X.json', data: 'b' },
      ],
      /same name/,
    ],
    [
      'a bomb',
      [
        { name: 'x.json', data: 'x', claimedSize: 0xfffffff0 },
        ...Array.from({ length: 200 }, (_, i) => ({ name: `${i}.json`, data: 'x', claimedSize: 0xfffffff0 })),
      ],
      /size limit/,
    ],
  ])('with %s is refused before it is fetched', async (_, entries, why) => {
    const zip = zipOf([{ name: 'raw.bin', data: randomBytes(17 * MB), stored: true }, ...entries]);
    const mark = hub.journal.length;
    await expect(fetchOf(run({ zipBuffer: zip }).run)).rejects.toMatchObject({
      reason: { kind: 'corrupt', detail: { en: expect.stringMatching(why), zh: expect.not.stringMatching(/JSON/) } },
    });
    expect(since(mark).bytes).toBeLessThan(MB);
  });

  it('whose wanted file is damaged costs that file, found by its checksum', async () => {
    const zip = Buffer.from(jobZip);
    const at = zip.indexOf('kernel_details.csv', 0, 'latin1') + 500;
    zip[at] = zip[at]! ^ 0xff;
    const part = await fetchOf(run({ zipBuffer: zip }).run);
    expect(part.partial).toHaveLength(1);
    expect(await verdictOf(part)).toMatch(/kernel_details\.csv","kind":"unreadable"/);
  });

  it('cannot make the parent fetch what is not there', () => {
    const answer = (ranges: { start: number; end: number }[]) => ({ ok: true, parts: { files: 2, wantedFiles: 1, ranges } }) as const;
    for (const ranges of [
      [{ start: -1, end: 5 }],
      [{ start: 5, end: 5 }],
      [{ start: 0, end: 1e12 }],
      [{ start: 0.5, end: 7 }],
      [
        { start: 8, end: 9 },
        { start: 0, end: 3 },
      ],
      [{ start: Number.NaN, end: 3 }],
    ]) {
      expect(planFetch(100 * MB, answer(ranges))).toEqual({ kind: 'whole', because: 'its directory could not be judged' });
    }
    expect(planFetch(100 * MB, undefined).kind).toBe('whole');
    expect(planFetch(100 * MB, answer([{ start: 0, end: 20 * MB }]))).toMatchObject({ kind: 'parts', bytes: 20 * MB });
    expect(planFetch(100 * MB, answer([{ start: 0, end: 90 * MB }])).kind).toBe('whole');
    const many = Array.from({ length: 75 }, (_, i) => ({ start: i * MB + i, end: i * MB + i + 1 }));
    expect(planFetch(100 * MB, answer(many)).kind).toBe('parts');
    expect(planFetch(90 * MB, answer(many)).kind).toBe('whole');
  });
});

describe('an address that leads elsewhere', () => {
  it.each(['http://169.254.169.254/latest/meta-data', 'http://127.0.0.1:1/x', 'https://evil.example/x.zip'])(
    '%s is not followed',
    async (location) => {
      const fault = hub.fault({ match: /^GET \S*\/artifacts\/\d+\/zip/, status: 302, headers: { location }, times: 10 });
      await expect(fetchOf(run({ zipBuffer: jobZip }).run)).rejects.toMatchObject({ code: 'download-refused' });
      fault.times = 0;
    },
  );
});

describe('a plain download that breaks', () => {
  it('is gone on with where it stopped', async () => {
    const zip = randomBytes(6 * MB);
    const { run: of } = run({ zipBuffer: zip, truncateAt: 4 * MB });
    const mark = hub.journal.length;
    const whole = await fetchOf(of);
    expect(readFileSync(whole.paths[0]!).equals(zip)).toBe(true);
    expect(since(mark).ranges.slice(0, 2)).toEqual([null, expect.stringMatching(/^bytes=[34]\d{6}-$/)]);
    expect(since(mark).bytes).toBeLessThan(6.2 * MB);
  });
});
