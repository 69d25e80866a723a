/* A large job in several artifacts, read by whoever is free: each artifact down to its facts, then one report of all. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JobSpec } from '../../lab/simulator/index.ts';
import { simulate, writeProfiles } from '../../lab/simulator/index.ts';
import { analyseArtifact } from '../../src/app/analyser.ts';
import { digestUpload } from '../../src/app/digest-upload.ts';
import type { Dependencies } from '../../src/app/jobs/dependencies.ts';
import { gather, handlePortion } from '../../src/app/jobs/portions.ts';
import { partsOf } from '../../src/app/parts.ts';
import { listArtifacts } from '../../src/github/artifacts.ts';
import type { Report } from '../../src/model/report.ts';
import type { Blobs } from '../../src/store/blobs/blobs.ts';
import { createStore } from '../../src/store/tables.ts';
import { DEFAULT_OPTIONS } from '../support/grid.ts';
import { type Jobs, openJobs } from './support/jobs.ts';
import { makeZip } from './support/zip.ts';

const spec: JobSpec = { ranks: 4, seed: 11, layers: 3, steps: 3, faults: [{ kind: 'slow-rank', rank: 2, factor: 1.5 }] };
const home = mkdtempSync(join(tmpdir(), 'npu-portions-'));
let jobs: Jobs;
let zips: Buffer[] = [];
let all: Buffer;
let uploads = 0;

beforeAll(async () => {
  const folders = await writeProfiles(simulate(spec), join(home, 'job'));
  const made = await Promise.all(
    [folders, folders.slice(0, 2), folders.slice(2)].map(async (of) => {
      const files: Record<string, Buffer> = {};
      for (const folder of of) {
        for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
          const path = join(entry.parentPath, entry.name);
          if (entry.isFile()) files[path.slice(home.length + 5)] = await readFile(path);
        }
      }
      return makeZip(files);
    }),
  );
  all = made[0]!;
  zips = made.slice(1);
  jobs = await openJobs({ spreadBytes: 1, attempts: 2 });
});
afterAll(async () => {
  await jobs.close();
  rmSync(home, { recursive: true, force: true });
});

/** Uploads some zips, lets them be read in portions, and makes the report of what was gathered. */
async function spread(contents: readonly Buffer[], over: Partial<Dependencies> = {}) {
  const repository = jobs.hub.addRepository({ owner: `acme-${++uploads}`, name: 'train', files: { 'train.py': 'import torch\n' } });
  const pr = repository.openPullRequest({ author: 'alice', branch: 'b', title: 't', changes: { 'train.py': '# b\n' } });
  const run = repository.addWorkflowRun({ pr, status: 'completed', conclusion: 'success' });
  contents.forEach((zipBuffer, i) => void repository.addArtifact(run, { name: `node-${i}`, zipBuffer }));
  const target = { installationId: repository.installationId!, repository: { id: repository.id, owner: repository.owner, name: 'train' } };
  const octokit = await jobs.deps.github.client(target.installationId, target.repository, { actions: 'read' });
  const artifacts = await listArtifacts(octokit, target.repository, run.id);
  const handled: string[] = [];
  const deps: Dependencies = {
    ...jobs.deps,
    analysis: {
      ...jobs.deps.analysis,
      digest: (request) => digestUpload(request, () => undefined),
      parts: (paths, _, share = null) => partsOf(paths, share),
    },
    ...over,
  };
  // Whoever hears of it does it, as often as it fails, as the queue does.
  const work = async (subject: string): Promise<void> => {
    handled.push(subject);
    await handlePortion(deps, subject).catch(() => work(subject));
  };
  const queue = {
    ...jobs.deps.queue,
    pokeIfIdle: async (subject: string) => {
      if (!handled.includes(subject)) void work(subject);
    },
  };
  let spreads = 0;
  const progress = { tell: () => undefined };
  const gathered = await gather({ ...deps, queue }, target, { artifacts, progress, onSpread: async () => void spreads++ });
  const report = async (): Promise<Report> => {
    const folder = join(home, `gathered-${uploads}`);
    mkdirSync(folder);
    return analyse(await gathered!.write(folder));
  };
  return { gathered, report, handled, spreads, left: () => deps.store.database.query('SELECT id FROM npu_advisor.portions') };
}

const analyse = (paths: readonly string[]): Promise<Report> =>
  analyseArtifact(
    { paths, partial: [], options: DEFAULT_OPTIONS, source: null },
    { onProgress: () => undefined, signal: new AbortController().signal },
  );

describe('a job in portions', () => {
  it('gives the report of one process, and leaves nothing behind', async () => {
    const { gathered, report, handled, left } = await spread(zips);
    expect(handled).toHaveLength(2);
    const whole = { ...(await report()), inputs: [] };
    await gathered!.done();
    expect(await left()).toEqual([]);
    expect(whole.job.ranks).toEqual([0, 1, 2, 3]);
    const paths = await Promise.all(
      zips.map(async (zip, i) => {
        const path = join(home, `node-${i}.zip`);
        await writeFile(path, zip);
        return path;
      }),
    );
    const one = { ...(await analyse(paths)), inputs: [] };
    // Only the names of the files differ, which hold the number of the artifact.
    const plain = (r: object): unknown => JSON.parse(JSON.stringify(r).replaceAll(/[\w-]+\.zip/g, 'zip'));
    expect(plain(whole)).toEqual(plain(one));
    expect(whole.findings.find(({ rule }) => rule === 'slow-rank')?.ranks).toEqual([2]);
  });

  it('says which artifact could not be read, and reports the rest', async () => {
    const { report, handled } = await spread([zips[0]!, Buffer.from('no zip at all')]);
    expect(handled).toHaveLength(2);
    const { job, notes, inputs, verdict } = await report();
    expect(job.ranks).toEqual([0, 1]);
    expect(verdict.outcome).not.toBe('no-data');
    expect(notes.join('\n')).toMatch(/1 of 2 parts of the upload could not be read \(.*node-1/);
    expect(inputs.find(({ path }) => path === 'node-1')).toMatchObject({
      status: 'refused',
      note: expect.stringMatching(/cannot be read/),
    });
  });

  it('says which part is gone when a blob is lost, and reports the rest', async () => {
    const kept = new Map<string, Uint8Array>();
    const blobs: Blobs = {
      write: async (key, bytes) => void kept.set(key, bytes),
      read: async (key) => (key.endsWith('/1') ? null : (kept.get(key) ?? null)),
      remove: async (key) => void kept.delete(key),
    };
    const store = { ...jobs.deps.store, portions: createStore(jobs.deps.store.database, jobs.deps.now, blobs).portions };
    const { gathered, report } = await spread(zips, { store });
    const { job, notes, inputs } = await report();
    expect(job.ranks).toEqual([0, 1]);
    expect(notes.join('\n')).toMatch(/1 of 2 parts of the upload could not be read \(.*node-1/);
    expect(inputs.find(({ path }) => path === 'node-1')?.note).toMatch(/what was read of it is gone/);
    expect(kept.size).toBe(2);
    await gathered!.done();
    expect(kept.size).toBe(0);
  });

  it('tries what fails for another reason again, and gives it up in the end', async () => {
    let tries = 0;
    const digest: Dependencies['analysis']['digest'] = async (request) => {
      if (request.paths[0]!.includes('node-1') || tries++ > 0) throw new Error('the process died');
      throw new Error('the first try of the first, too');
    };
    await expect(spread(zips, { analysis: { ...jobs.deps.analysis, digest } })).rejects.toThrow(/reading it failed every time/);
  });

  it('does not wait for ever for what nobody takes up', async () => {
    const late = { ...jobs.deps.options, downloadTimeoutMs: 50, analysisTimeoutMs: 50 };
    const stuck = { ...jobs.deps.analysis, digest: () => new Promise<void>(() => undefined) };
    await expect(spread(zips, { options: late, analysis: stuck })).rejects.toThrow(/was not read in time/);
  });

  it('divides one zip by its ranks, and reports the rest when a part fails', async () => {
    const options = { ...jobs.deps.options, portionBytes: Math.ceil(all.length / 3) };
    const { report, handled } = await spread([all], { options });
    expect(handled).toHaveLength(3);
    const path = join(home, 'all.zip');
    await writeFile(path, all);
    const plain = (r: object): unknown => JSON.parse(JSON.stringify(r).replaceAll(/[\w-]+\.zip/g, 'zip'));
    const sorted = (r: Report) => plain({ ...r, inputs: [...r.inputs].sort((a, b) => (a.path < b.path ? -1 : 1)) });
    expect(sorted(await report())).toEqual(sorted(await analyse([path])));

    const digest: Dependencies['analysis']['digest'] = (request) => {
      if (request.share?.index === 1) throw new Error('the process died');
      return digestUpload(request, () => undefined);
    };
    const partsHere: Dependencies['analysis']['parts'] = (paths, _, share = null) => partsOf(paths, share);
    const part = await (await spread([all], { options, analysis: { ...jobs.deps.analysis, digest, parts: partsHere } })).report();
    expect(part.job.ranks.length).toBeGreaterThan(0);
    expect(part.job.ranks.length).toBeLessThan(4);
    expect(part.notes.join('\n')).toMatch(/1 of 3 parts of the upload could not be read \(.*node-0 \(2\/3\)/);
  });

  it('stays in one process when it is small or one artifact', async () => {
    expect((await spread([zips[0]!])).gathered).toBeNull();
    const small = { ...jobs.deps.options, spreadBytes: 1e9 };
    const { gathered, spreads } = await spread(zips, { options: small });
    expect([gathered, spreads]).toEqual([null, 0]);
  });
});
