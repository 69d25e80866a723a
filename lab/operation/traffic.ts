/** Traffic of many repositories: pull requests with profiles of mixed size, and what must have become of them. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Plan } from '../../test/app/support/fake-analyser.ts';
import { makeZip } from '../../test/app/support/zip.ts';
import { type LoopbackGitHub, type PullHandle, type RepositoryHandle, startLoopbackGitHub } from '../loopback-github/index.ts';
import { randomFrom } from './processes.ts';

const SECRET = 'a-webhook-secret-of-more-than-32-bytes-for-the-lab';
const TRAIN = ['import torch', 'loader = DataLoader(data, num_workers=0)', 'for batch in loader:', '    step(batch)', ''].join('\n');
const MARKER = '<!-- npu-advisor';

export interface Traffic {
  readonly hub: LoopbackGitHub;
  /** What a process of the product needs to find it; the analyses are planned, so that they cost next to no computing. */
  readonly env: Record<string, string>;
  /** Opens a pull request, lets its workflow finish and delivers both; sometimes with a second push on its heels. */
  send(index: number): Promise<PullHandle>;
  close(): Promise<void>;
}

export interface TrafficOptions {
  readonly seed: number;
  readonly installations: number;
  readonly repositories: number;
  /** Longest time an analysis takes, ms. */
  readonly longestMs: number;
  /** Bytes of the largest artifact. */
  readonly largest: number;
}

export async function createTraffic(options: TrafficOptions): Promise<Traffic> {
  const hub = await startLoopbackGitHub({ app: { id: 4242, slug: 'npu-advisor', webhookSecret: SECRET } });
  const random = randomFrom(options.seed);
  const repositories: RepositoryHandle[] = [];
  for (let owner = 0; owner < options.installations; owner++) {
    for (let i = 0; i < options.repositories; i++) {
      repositories.push(
        hub.addRepository({
          owner: `owner-${owner}`,
          name: `train-${i}`,
          files: { 'README.md': '# train\n', 'train.py': 'import torch\n' },
        }),
      );
    }
  }
  const zipOf = (delayMs: number, bytes: number): Buffer => {
    const edit = { file: 'train.py', line: 2, after: 'loader = DataLoader(data, num_workers=8)' };
    const plan: Plan = { delayMs, findings: [{ id: 'dataloader-stall:train', edit }] };
    return makeZip({ 'prof/plan.json': JSON.stringify(plan), 'prof/rest.bin': randomBytes(bytes) });
  };
  const upload = async (repository: RepositoryHandle, pr: PullHandle): Promise<void> => {
    // Many small ones, few large ones.
    const size = random() ** 4;
    const run = repository.addWorkflowRun({ pr, status: 'completed', conclusion: 'success' });
    repository.addArtifact(run, {
      name: 'npu-profile',
      zipBuffer: zipOf(Math.round(size * options.longestMs), Math.round(size * options.largest)),
    });
    await hub.deliver('workflow_run', { action: 'completed', run });
  };
  return {
    hub,
    env: {
      APP_ID: '4242',
      PRIVATE_KEY: hub.privateKeyPem,
      WEBHOOK_SECRET: SECRET,
      GHE_HOST: new URL(hub.apiUrl).host,
      GHE_PROTOCOL: 'http',
      NPU_ADVISOR_ARTIFACT_HOSTS: new URL(hub.blobUrl).host,
      NPU_ADVISOR_TEST: '1',
      NPU_ADVISOR_TEST_ANALYSER: join(import.meta.dirname, '..', '..', 'test', 'app', 'support', 'fake-analyser.ts'),
    },
    async send(index) {
      // The first owner has as many jobs as all others together.
      const own = random() < 0.5 ? options.repositories : repositories.length;
      const repository = repositories[Math.floor(random() * own)]!;
      const pull = repository.openPullRequest({
        author: 'alice',
        branch: `faster-${index}`,
        title: 'Train faster',
        changes: { 'train.py': `${TRAIN}# ${index}\n` },
      });
      await hub.deliver('pull_request', { action: 'opened', pr: pull });
      await upload(repository, pull);
      if (random() < 0.1) {
        repository.pushTo(pull, { 'train.py': `${TRAIN}# ${index} again\n` });
        await hub.deliver('pull_request', { action: 'synchronize', pr: pull });
        await upload(repository, pull);
      }
      return pull;
    },
    close: () => hub.close(),
  };
}

/** Whether everything that must be said of a pull request is said. */
export function isSettled(hub: LoopbackGitHub, pull: PullHandle): boolean {
  const { comments, checks, headSha } = hub.view(pull);
  return comments.length > 0 && checks.some((check) => check.headSha === headSha) && checks.every(({ status }) => status === 'completed');
}

/** What is wrong with a pull request at the end, in words; empty: exactly one comment and one concluded check for each commit. */
export function faultsOf(hub: LoopbackGitHub, pull: PullHandle): string[] {
  const { comments, checks, reviews, headSha } = hub.view(pull);
  const faults: string[] = [];
  const name = `${pull.repository.fullName}#${pull.number}`;
  const own = comments.filter(({ body }) => body.startsWith(MARKER));
  if (own.length !== 1) faults.push(`${name}: ${own.length} comments`);
  else if (!own[0]!.body.includes('Data loader starves')) faults.push(`${name}: the comment does not say what was found`);
  else if (!own[0]!.body.includes(headSha.slice(0, 7))) faults.push(`${name}: the comment is of another commit`);
  for (const [sha, of] of Map.groupBy(checks, (check) => check.headSha)) {
    if (of.length !== 1) faults.push(`${name}: ${of.length} checks on ${sha.slice(0, 7)}`);
    for (const check of of) if (check.status !== 'completed') faults.push(`${name}: a check of ${sha.slice(0, 7)} is ${check.status}`);
  }
  if (!checks.some((check) => check.headSha === headSha)) faults.push(`${name}: no check on the newest commit`);
  const texts = reviews.flatMap((review) => review.comments.map(({ body }) => `${review.commitId} ${body}`));
  if (new Set(texts).size !== texts.length) faults.push(`${name}: the same suggestion twice`);
  if (reviews.length === 0) faults.push(`${name}: no suggestion`);
  return faults;
}

/** Middle and 99th part of some times. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))] ?? Number.NaN;
}
