import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LoopbackGitHub, type PullView, startLoopbackGitHub } from '../loopback-github/index.ts';
import { waitForAnswer } from './answer.ts';
import { writeExample } from './example.ts';
import type { DemoOptions } from './options.ts';
import { answerText, violationText } from './print.ts';
import { baseFiles, headFiles } from './repository.ts';
import { type AppServer, startServer } from './start-server.ts';
import { zipFolder } from './zip-folder.ts';

/** Where the demo writes. */
export interface Terminal {
  print(text: string): void;
  progress(text: string): void;
}

/** A demo whose answer was printed and whose page is served. */
export interface RunningDemo {
  /** Whether everything was as GitHub wants it. */
  isClean: boolean;
  close(): Promise<void>;
}

const EXAMPLE_TIMEOUT_MS = 120_000;
/** The App's own limit for an analysis; profiles of the visitor may be large. */
const PATH_TIMEOUT_MS = 1_800_000;

const WORKFLOW = '.github/workflows/perf.yml';

const BODY = `Doubles the global batch to 256 sequences without more memory: four micro batches of 8 per card.

- accumulates gradients over four micro batches
- compiles the operators for our one shape
- lets gradients live in DDP's buckets`;

/** Plays the pull request and prints the answer. Everything that was started is stopped again when it fails. */
export async function startDemo(options: DemoOptions, terminal: Terminal, signal: AbortSignal): Promise<RunningDemo> {
  const folder = await mkdtemp(join(tmpdir(), 'npu-advisor-demo-'));
  const parts: { close(): Promise<void> }[] = [];
  const close = async (): Promise<void> => {
    for (const part of parts.splice(0).reverse()) await part.close();
    await rm(folder, { recursive: true, force: true });
  };
  const removeFolder = (): void => rmSync(folder, { recursive: true, force: true });
  process.once('exit', removeFolder);
  try {
    const hub = await startHub(options.port, terminal);
    parts.push(hub);
    terminal.progress('starting the App with its embedded store');
    // Together, because the App starts in a process of its own.
    const [server, zipPath] = await Promise.allSettled([
      startServer(hub, join(folder, 'data')),
      makeArtifact(options, { folder, terminal, signal }),
    ]);
    if (server.status === 'rejected') throw server.reason;
    parts.push({ close: () => server.value.stop() });
    if (zipPath.status === 'rejected') throw zipPath.reason;
    signal.throwIfAborted();
    hub.webhookUrl = server.value.webhookUrl;
    const view = await play(options, { hub, server: server.value, zipPath: zipPath.value, terminal, signal });
    terminal.print(answerText(view));
    const isClean = hub.violations.length === 0;
    if (!isClean) terminal.print(violationText(hub.violations));
    terminal.print(`Page: ${view.url}`);
    return { isClean, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** On the wanted port, or on any free one when that is taken. */
async function startHub(port: number, terminal: Terminal): Promise<LoopbackGitHub> {
  const app = { id: 4242, slug: 'npu-advisor', name: 'NPU Advisor', webhookSecret: randomBytes(32).toString('hex') };
  try {
    return await startLoopbackGitHub({ app, port, autoDeliver: true });
  } catch (error) {
    if (port === 0 || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    terminal.progress(`port ${port} is in use, taking a free one`);
    return startLoopbackGitHub({ app, autoDeliver: true });
  }
}

interface Workshop {
  folder: string;
  terminal: Terminal;
  signal: AbortSignal;
}

interface Stage {
  hub: LoopbackGitHub;
  server: AppServer;
  zipPath: string;
  terminal: Terminal;
  signal: AbortSignal;
}

/** What happens on GitHub when somebody opens a pull request and CI runs: webhooks follow each change in order. */
async function play(options: DemoOptions, stage: Stage): Promise<PullView> {
  const { hub, server, zipPath, terminal, signal } = stage;
  const repository = hub.addRepository({ owner: 'demo', name: 'bert-npu', files: baseFiles(options.lang) });
  const pull = repository.openPullRequest({
    author: 'mei',
    branch: 'accumulate-gradients',
    title: 'Double the global batch with gradient accumulation',
    body: BODY,
    message: 'Accumulate gradients over four micro batches',
    changes: headFiles(),
  });
  terminal.progress(`pull request #${pull.number} of demo/bert-npu is open, its perf run starts`);
  const run = repository.addWorkflowRun({ pr: pull, status: 'requested', path: WORKFLOW, name: 'perf' });
  repository.updateWorkflowRun(run, { status: 'in_progress' });
  repository.addArtifact(run, { name: 'ascend-profile-node0', zipPath });
  terminal.progress(`the run uploaded ${megabytes(statSync(zipPath).size)} of profile and ended; waiting for the answer`);
  repository.updateWorkflowRun(run, { status: 'completed', conclusion: 'success' });
  await hub.settled();
  checkDeliveries(hub);
  return waitForAnswer(hub, pull, {
    timeoutMs: options.path === null ? EXAMPLE_TIMEOUT_MS : PATH_TIMEOUT_MS,
    onWaiting: (seconds) => terminal.progress(`still waiting (${seconds} s)`),
    hopeless() {
      signal.throwIfAborted();
      return server.hasEnded() ? `the App ended: ${server.lastWords()}` : null;
    },
  });
}

/** The artifact of the run as a zip: the visitor's profile, or the simulated example. */
async function makeArtifact({ path, ranks }: DemoOptions, { folder, terminal, signal }: Workshop): Promise<string> {
  const zipPath = join(folder, 'ascend-profile-node0.zip');
  if (path !== null && isZip(path)) return path;
  if (path !== null) {
    terminal.progress(`zipping ${path}`);
    await zipFolder(path, zipPath, signal);
    return zipPath;
  }
  terminal.progress(`simulating the profiled run on ${ranks} cards`);
  const profiles = join(folder, 'profile');
  await writeExample(ranks, profiles);
  await zipFolder(profiles, zipPath);
  await rm(profiles, { recursive: true });
  return zipPath;
}

/** Runners upload folders as zips; a zip is taken as such an upload. */
function isZip(path: string): boolean {
  if (!statSync(path).isFile()) return false;
  const file = openSync(path, 'r');
  const start = Buffer.alloc(4);
  readSync(file, start, 0, 4, 0);
  closeSync(file);
  return start.equals(Buffer.from('PK\x03\x04', 'latin1'));
}

function checkDeliveries(hub: LoopbackGitHub): void {
  const failed = hub.deliveries.find(({ statusCode }) => statusCode < 200 || statusCode > 299);
  if (failed) throw new Error(`the App refused the webhook ${failed.event}.${failed.action ?? ''}: ${failed.status}`);
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 10e6 ? 1 : 0)} MB`;
}
