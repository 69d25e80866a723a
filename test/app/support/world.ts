import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type LoopbackGitHub,
  type LoopbackGitHubOptions,
  type PullHandle,
  type PullView,
  type RepositoryHandle,
  type RunHandle,
  startLoopbackGitHub,
} from '../../../lab/loopback-github/index.ts';
import { copyEmptyStore } from './empty-store.ts';
import type { Plan } from './fake-analyser.ts';
import { makeZip } from './zip.ts';

export const SECRET = 'a-webhook-secret-of-more-than-32-bytes-for-tests';
const SERVE = join(import.meta.dirname, 'serve.ts');

export const TRAIN_PY = ['import torch', 'loader = DataLoader(data, num_workers=0)', 'for batch in loader:', '    step(batch)', ''].join(
  '\n',
);

/** A server process of the product, started for real. */
export interface ServerProcess {
  readonly child: ChildProcess;
  readonly webhookUrl: string;
  readonly url: string;
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  log(): string;
  stop(): Promise<void>;
}

export interface World {
  readonly hub: LoopbackGitHub;
  readonly repository: RepositoryHandle;
  readonly dataDir: string;
  readonly env: Record<string, string>;
  start(extra?: Record<string, string>): Promise<ServerProcess>;
  close(): Promise<void>;
}

/** A GitHub with one repository, and a data folder for a server. */
export async function createWorld(
  options: Partial<LoopbackGitHubOptions> & { config?: string; databaseUrl?: string } = {},
): Promise<World> {
  const hub = await startLoopbackGitHub({ app: { id: 4242, slug: 'npu-advisor', webhookSecret: SECRET }, ...options });
  const files: Record<string, string> = { 'README.md': '# train\n', 'train.py': 'import torch\n' };
  if (options.config !== undefined) files['.github/npu-advisor.yml'] = options.config;
  const repository = hub.addRepository({ owner: 'acme', name: 'train', files });
  const dataDir = mkdtempSync(join(tmpdir(), 'npu-advisor-app-'));
  if (options.databaseUrl === undefined) await copyEmptyStore(dataDir);
  const host = new URL(hub.apiUrl).host;
  const env: Record<string, string> = {
    APP_ID: '4242',
    PRIVATE_KEY: hub.privateKeyPem,
    WEBHOOK_SECRET: SECRET,
    GHE_HOST: host,
    GHE_PROTOCOL: 'http',
    PORT: '0',
    NPU_ADVISOR_DATA_DIR: dataDir,
    NPU_ADVISOR_ARTIFACT_HOSTS: new URL(hub.blobUrl).host,
    NPU_ADVISOR_RETRY_DELAY_S: '0',
    NPU_ADVISOR_SWEEP_S: '0.5',
    NPU_ADVISOR_DRAIN_S: '5',
    NPU_ADVISOR_TEST: '1',
    NPU_ADVISOR_TEST_ANALYSER: join(import.meta.dirname, 'fake-analyser.ts'),
    LOG_LEVEL: process.env.NPU_ADVISOR_TEST_LOG ?? 'info',
    ...(options.databaseUrl === undefined ? {} : { DATABASE_URL: options.databaseUrl }),
  };
  const running = new Set<ServerProcess>();
  return {
    hub,
    repository,
    dataDir,
    env,
    async start(extra = {}) {
      const server = await startServer({ ...env, ...extra });
      running.add(server);
      hub.webhookUrl = server.webhookUrl;
      return server;
    },
    async close() {
      for (const server of running) await server.stop();
      await hub.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Starts a server process and waits until it listens. Rejects with its last words when it ends instead. */
export async function startServer(env: Record<string, string>): Promise<ServerProcess> {
  const { PATH = '', NODE_COMPILE_CACHE = '' } = process.env;
  const child = spawn(process.execPath, [SERVE], { env: { PATH, NODE_COMPILE_CACHE, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) =>
    child.once('exit', (code, signal) => resolve({ code, signal })),
  );
  const url = await new Promise<string>((resolve, reject) => {
    const take = (text: string): void => {
      log += text;
      if (process.env.NPU_ADVISOR_TEST_LOG) process.stderr.write(text);
      const match = /^LISTENING (\S+)$/m.exec(log);
      if (match !== null) resolve(match[1]!);
    };
    child.stdout.setEncoding('utf8').on('data', take);
    child.stderr.setEncoding('utf8').on('data', take);
    void exited.then(() => setTimeout(() => reject(new Error(`the server did not start: ${log}`)), 50));
  });
  return {
    child,
    url,
    webhookUrl: `${url}/api/github/webhooks`,
    exited,
    log: () => log,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      await exited;
    },
  };
}

let branches = 0;

/** A pull request that changes train.py. */
export function openPull(
  world: Pick<World, 'repository'>,
  over: { branch?: string; author?: string; fork?: string; train?: string } = {},
): PullHandle {
  return world.repository.openPullRequest({
    author: over.author ?? 'alice',
    branch: over.branch ?? `faster-${++branches}`,
    title: 'Train faster',
    // A line of its own, so that no two pull requests of a test run have the same commit.
    changes: { 'train.py': over.train ?? `${TRAIN_PY}# ${branches}\n` },
    ...(over.fork === undefined ? {} : { fork: { owner: over.fork } }),
  });
}

export const ONE_FINDING: Plan = {
  findings: [{ id: 'dataloader-stall:train', edit: { file: 'train.py', line: 2, after: 'loader = DataLoader(data, num_workers=8)' } }],
};

/** A finished run of a pull request that uploaded what the plan says. */
export function addRun(
  world: Pick<World, 'repository'>,
  pull: PullHandle,
  upload: Plan | { files: Record<string, string | Buffer> } | { content: Buffer } | null,
  name = 'npu-profile',
): RunHandle {
  const run = world.repository.addWorkflowRun({ pr: pull, status: 'completed', conclusion: 'success' });
  if (upload !== null) {
    const content =
      'content' in upload ? upload.content : makeZip('files' in upload ? upload.files : { 'prof/plan.json': JSON.stringify(upload) });
    world.repository.addArtifact(run, { name, zipBuffer: content });
  }
  return run;
}

/** Waits until the pull request looks as wanted, and returns how it looks. */
export async function until(
  world: Pick<World, 'hub'>,
  pull: PullHandle,
  wanted: (view: PullView) => boolean,
  what: string,
  timeoutMs = 30_000,
): Promise<PullView> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const view = world.hub.view(pull);
    if (wanted(view)) return view;
    if (Date.now() > end)
      throw new Error(`timed out waiting for: ${what}\n${JSON.stringify({ ...view, files: undefined }, null, 1).slice(0, 3000)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export const isConcluded = (view: PullView): boolean => view.checks.some((check) => check.status === 'completed');

/** Waits until nothing has been written to GitHub for a while. */
export async function untilQuiet(world: Pick<World, 'hub'>, quietMs = 1200): Promise<void> {
  const writes = (): number => world.hub.journal.filter((exchange) => exchange.method !== 'GET').length;
  let seen = writes();
  let since = Date.now();
  while (Date.now() - since < quietMs) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    if (writes() === seen) continue;
    seen = writes();
    since = Date.now();
  }
}

/** Addresses of details pages in a text, each once. */
export function linksIn(text: string | null): string[] {
  return [...new Set(text?.match(/\bhttps?:\/\/[\w.:-]+\/details\/[\w/-]+/g) ?? [])];
}
