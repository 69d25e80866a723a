import { randomFillSync } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import { zipFolder } from '../lab/demo/zip-folder.ts';
import { startLoopbackGitHub } from '../lab/loopback-github/index.ts';
import { createAnalysisRunner } from '../src/app/analysis-runner.ts';
import type { Dependencies } from '../src/app/jobs/dependencies.ts';
import { fetchArtifacts } from '../src/app/jobs/fetch-artifacts.ts';
import { listArtifacts } from '../src/github/artifacts.ts';
import { createGitHub, PERMISSIONS } from '../src/github/client.ts';
import { createLogger } from '../src/github/log.ts';
import { createOutboundPolicy } from '../src/github/outbound.ts';
import type { Bench } from './lib/bench.ts';
import { bytesBelow, profileFolder } from './lib/inputs.ts';
import { run, table } from './lib/measure.ts';

const SELF = fileURLToPath(import.meta.url);
const RAW_SHARE = 0.9;
/** What one connection to a storage host carries, bytes per second. */
const RATE = 40e6;

interface Job {
  readonly apiUrl: string;
  readonly blobHost: string;
  readonly key: string;
  readonly repository: { readonly id: number; readonly owner: string; readonly name: string };
  readonly installationId: number;
  readonly runId: number;
  readonly scratch: string;
  readonly mayBeParts: boolean;
}

/** Fetches and analyses as a job of the App does, in a process of its own that is measured. */
async function work(job: Job): Promise<void> {
  const log = createLogger('silent');
  const github = createGitHub({ appId: 1, privateKey: job.key, apiUrl: job.apiUrl, userAgent: 'bench', throttle: true, log });
  const octokit = await github.client(job.installationId, job.repository, PERMISSIONS.read);
  const analyser = pathToFileURL(fileURLToPath(new URL('../src/app/analyser.ts', import.meta.url))).href;
  const analysis = createAnalysisRunner(analyser, { timeoutMs: 600_000, memoryMb: 8_000 }, job.scratch);
  const deps = {
    analysis,
    log,
    policy: createOutboundPolicy([job.blobHost], job.apiUrl),
    options: { maxArtifactBytes: 2 ** 40, downloadTimeoutMs: 600_000, isTest: false },
    killPoint: () => undefined,
    signal: new AbortController().signal,
  } as unknown as Dependencies;
  const artifacts = await listArtifacts(octokit, job.repository, job.runId);
  const folder = await mkdtemp(join(job.scratch, 'job-'));
  const target = { installationId: job.installationId, repository: job.repository };
  const started = performance.now();
  const fetched = await fetchArtifacts(deps, { octokit, target, artifacts, folder, mayBeParts: job.mayBeParts, onBytes: () => {} });
  const seconds = (performance.now() - started) / 1000;
  const peakMb = process.resourceUsage().maxRSS / 1000;
  const options = { lang: 'en', thresholds: {}, disabledRules: [], gate: null } as const;
  const report = await analysis.analyse({ ...fetched, options, source: null }, { signal: deps.signal });
  await rm(folder, { recursive: true, force: true });
  console.log(JSON.stringify({ seconds, peakMb, verdict: report.verdict.text }));
}

/** An upload of which a tenth is wanted: tables of each rank, and the raw data that lies beside them. */
async function upload(dir: string, mb: number): Promise<string> {
  const zip = join(dir, `upload-${mb}.zip`);
  if (existsSync(zip)) return zip;
  const ranks = 8;
  // A step of a rank is some 150 kB when it is packed.
  const steps = Math.max(2, Math.round((mb * (1 - RAW_SHARE)) / ranks / 0.15));
  const folder = await profileFolder(dir, `upload-${mb}`, { ranks, steps, layers: 2, pythonFrames: 6, itemEveryStep: false });
  const packed = join(dir, `upload-${mb}-tables.zip`);
  await zipFolder(folder, packed);
  const { size } = await stat(packed);
  await rm(packed);
  const roots = (await readdir(folder)).filter((name) => name.endsWith('_ascend_pt'));
  const each = Math.round((size * RAW_SHARE) / (1 - RAW_SHARE) / roots.length);
  const noise = randomFillSync(Buffer.alloc(each));
  for (const [i, root] of roots.entries()) {
    const raw = join(folder, root, 'PROF_000001_20250108155932372_KEGNPDFQ', 'device_0', 'data');
    await mkdir(raw, { recursive: true });
    noise.writeUInt32LE(i);
    await writeFile(join(raw, 'ffts_profile.data.0.slice_0'), noise);
  }
  await zipFolder(folder, `${zip}.part`);
  await rename(`${zip}.part`, zip);
  return zip;
}

export const fetch: Bench = {
  name: 'fetch',
  about: 'an artifact with 90 % raw data: fetched by parts and as a whole, then analysed',
  async run({ dir, runs, mb }) {
    const zip = await upload(dir, mb ?? 500);
    const hub = await startLoopbackGitHub({ app: { id: 1, slug: 'npu-advisor', webhookSecret: 'x'.repeat(40) } });
    try {
      const handle = hub.addRepository({ owner: 'acme', name: 'train' });
      const workflow = handle.addWorkflowRun({ event: 'push' });
      const { size } = handle.addArtifact(workflow, {
        name: 'npu-profile',
        zipPath: zip,
        digest: null,
        slowBytesPerSecond: RATE,
      });
      console.log(
        `${(size / 1e6).toFixed(0)} MB on the host; ${((await bytesBelow(zip.replace(/\.zip$/, ''))) / 1e6).toFixed(0)} MB unpacked`,
      );
      const scratch = join(dir, 'fetch-scratch');
      await mkdir(scratch, { recursive: true });
      for (const mayBeParts of [true, false]) {
        const all = [];
        const mark = hub.journal.length;
        for (let n = 0; n < runs; n++) {
          const repository = { id: handle.id, owner: handle.owner, name: handle.name };
          const job: Job = {
            apiUrl: hub.apiUrl,
            blobHost: new URL(hub.blobUrl).host,
            key: hub.privateKeyPem,
            repository,
            installationId: handle.installationId!,
            runId: workflow.id,
            scratch,
            mayBeParts,
          };
          all.push(await run(SELF, [JSON.stringify(job)]));
        }
        const blobs = hub.journal.slice(mark).filter(({ host }) => host === 'blob');
        const pulled = blobs.reduce((sum, { bytes }) => sum + bytes, 0) / runs / 1e6;
        const { seconds, peakMb } = JSON.parse(all[0]!.output) as { seconds: number; peakMb: number };
        const name = mayBeParts ? 'parts' : 'whole';
        console.log(
          `${name}: ${pulled.toFixed(0)} MB pulled in ${blobs.length / runs} requests, fetched in ${seconds.toFixed(1)} s, this process ${peakMb.toFixed(0)} MB`,
        );
        console.log(table({ [`${name} + analysis`]: all }, size / 1e6));
      }
    } finally {
      await hub.close();
    }
  },
};

if (isMainThread && process.argv[1] === SELF && process.argv[2] !== undefined) await work(JSON.parse(process.argv[2]) as Job);
