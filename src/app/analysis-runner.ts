import { type ChildProcess, fork } from 'node:child_process';
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { setPriority } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AdviseError } from '../base/errors.ts';
import type { Share } from '../importers/index.ts';
import {
  type AnalysisMessage,
  type AnalysisProgress,
  type AnalysisRequest,
  type AnalysisTask,
  type DigestRequest,
  type NamedAnswer,
  type NamedFiles,
  OUT_OF_MEMORY,
  type PartsAnswer,
  type ReportInBoth,
} from './analysis-protocol.ts';
import { siblingModule } from './sibling-module.ts';

export interface AnalysisLimits {
  readonly timeoutMs: number;
  readonly memoryMb: number;
}

export interface AnalysisHooks {
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: AnalysisProgress) => void;
  readonly onStarted?: () => void;
  /** Reads files of the repository that stacks name; asked at most once, and not answered in time or at all is an empty list. */
  readonly onNamed?: (frames: readonly string[]) => Promise<NamedFiles>;
}

/** The analysis process, started anew for each task. Whatever reads foreign bytes happens in it. */
export interface AnalysisRunner {
  analyse(request: AnalysisRequest, hooks: AnalysisHooks): Promise<ReportInBoth>;
  /** Reads a portion of a job into a file of facts. */
  digest(request: DigestRequest, hooks: AnalysisHooks): Promise<void>;
  /** What must be fetched of zips of which only the directory is on disk. */
  parts(paths: readonly string[], hooks: AnalysisHooks, share?: Share | null): Promise<readonly PartsAnswer[]>;
}

/** Paths of frames that an analysis may ask for. */
const MAX_NAMED = 200;
/** Nodes of the Python parser hold memory that the collector does not count: it must run often (515 to 385 MB for 3,000 files). */
const YOUNG_SPACE = '--max-semi-space-size=4';
const MEMORY_POLL_MS = 250;
const PAGE = 4096;
const NICENESS = 10;
/** A directory of 200,000 files is read in two seconds. */
const PARTS_TIMEOUT_MS = 60_000;

/** Resident memory of a process in MB, where the system tells (Linux); buffers count there and not in the heap limit. */
function residentMb(pid: number): number {
  try {
    return (Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE) / 1024 / 1024;
  } catch {
    return 0;
  }
}

/** Files and folders a task is about. */
function givenIn(task: AnalysisTask): readonly string[] {
  if (task.kind === 'parts') return task.paths;
  if (task.kind === 'digest') return task.request.paths;
  return [...task.request.paths, ...(task.request.baseline ?? []).map(({ path }) => path)];
}

/** A path, and where it leads when it is a link. */
function withTarget(path: string): string[] {
  try {
    return [...new Set([path, realpathSync(path)])];
  } catch {
    return [path];
  }
}

/** What is read of a package besides the folder of a module: never all of it, as an operator may keep an `.env` there. */
const READ_OF_PACKAGE = ['package.json', 'templates'];

/** Where the code of modules lies, and the folders their dependencies may lie in: of their package, and of the folders around it. */
function codeFolders(modules: readonly string[]): string[] {
  const folders = new Set<string>();
  for (const module of modules.flatMap(withTarget)) {
    let isFound = false;
    for (let folder = dirname(module); folder !== dirname(folder); folder = dirname(folder)) {
      if (!isFound && existsSync(join(folder, 'package.json'))) {
        isFound = true;
        for (const name of [relative(folder, module).split(sep)[0]!, ...READ_OF_PACKAGE]) folders.add(join(folder, name));
      }
      if (isFound && existsSync(join(folder, 'node_modules')))
        for (const path of withTarget(join(folder, 'node_modules'))) folders.add(path);
    }
    // Without a package around it, only what lies beside it.
    if (!isFound) folders.add(dirname(module));
  }
  return [...folders];
}

/** Lets the webhook and the jobs go first on a busy machine. */
function beNice(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, NICENESS);
  } catch {
    // Not allowed here: then all are equal.
  }
}

/** The process reads foreign files, so what it asks for is foreign too. */
function isPath(frame: unknown): boolean {
  return typeof frame === 'string' && frame.length <= 1_000;
}

function tooLarge(): AdviseError {
  return new AdviseError(
    OUT_OF_MEMORY,
    { en: 'the profile needs more memory than this installation allows', zh: '分析这份 profile 所需的内存超过此处的限制' },
    {
      en: 'Upload fewer steps or ranks, or let the operator raise NPU_ADVISOR_ANALYSIS_MEMORY_MB.',
      zh: '减少上传的迭代或卡，或由运维人员调大 NPU_ADVISOR_ANALYSIS_MEMORY_MB。',
    },
  );
}

function tooSlow(timeoutMs: number): AdviseError {
  const seconds = Math.round(timeoutMs / 1000);
  return new AdviseError(
    'analysis-timeout',
    { en: `the analysis took longer than ${seconds} s`, zh: `分析时间超过 ${seconds} s` },
    {
      en: 'Upload fewer steps or ranks, or let the operator raise NPU_ADVISOR_ANALYSIS_TIMEOUT_S.',
      zh: '减少上传的迭代或卡，或由运维人员调大 NPU_ADVISOR_ANALYSIS_TIMEOUT_S。',
    },
  );
}

/**
 * Runs analyses in a process of their own, with a limit on time and memory and an environment that holds no secrets.
 * `analyser` is the address of the module that exports `analyseArtifact`; `scratch` is where it may write.
 */
export function createAnalysisRunner(analyser: string, limits: AnalysisLimits, scratch: string): AnalysisRunner {
  const code = codeFolders([fileURLToPath(import.meta.url), fileURLToPath(analyser)]);
  const isInside = (path: string): boolean => path.startsWith(join(scratch, '/'));
  /** The folder below `scratch` that all files of a task lie in: analyses at the same time have one each. Without such a folder, `scratch`. */
  const folderOf = (paths: readonly string[]): string => {
    const [first, ...others] = new Set(paths.filter(isInside).map((path) => join(scratch, relative(scratch, path).split(sep)[0]!)));
    const isFolder = first !== undefined && others.length === 0 && statSync(first, { throwIfNoEntry: false })?.isDirectory() === true;
    return isFolder ? first : scratch;
  };
  const start = (task: AnalysisTask): ChildProcess => {
    const given = givenIn(task);
    const folder = folderOf(given);
    const outside = given.filter((path) => !isInside(path)).flatMap(withTarget);
    return fork(siblingModule('analysis-worker', import.meta.url), [analyser], {
      execArgv: [
        `--max-old-space-size=${Math.floor(limits.memoryMb)}`,
        YOUNG_SPACE,
        '--disable-warning=ExperimentalWarning',
        // Reads our code and what it is given, writes in its own folder; no processes of its own. The Python parser is an addon.
        '--permission',
        ...[...code, ...withTarget(folder), ...outside].map((path) => `--allow-fs-read=${path}`),
        `--allow-fs-write=${folder}`,
        '--allow-worker',
        '--allow-addons',
      ],
      env: { PATH: process.env.PATH ?? '', TMPDIR: folder, NODE_ENV: 'production' },
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      serialization: 'advanced',
    });
  };

  /** Runs one task; `answer` picks its result out of the messages. */
  const run = <T>(
    task: AnalysisTask,
    hooks: AnalysisHooks,
    timeoutMs: number,
    answer: (message: AnalysisMessage) => T | undefined,
  ): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      const child = start(task);
      beNice(child.pid);
      let stderr = '';
      let settled = false;
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        stderr = (stderr + text).slice(-4000);
      });

      const end = (settle: () => void): void => {
        if (settled) return;
        settled = true;
        clearTimeout(timer);
        clearInterval(memory);
        hooks.signal.removeEventListener('abort', abort);
        child.kill('SIGKILL');
        settle();
      };
      const fail = (error: Error): void => end(() => reject(error));
      const abort = (): void => fail(hooks.signal.reason instanceof Error ? hooks.signal.reason : new Error('the analysis was stopped'));
      const timer = setTimeout(() => fail(tooSlow(timeoutMs)), timeoutMs);
      const memory = setInterval(() => {
        if (child.pid !== undefined && residentMb(child.pid) > limits.memoryMb) fail(tooLarge());
      }, MEMORY_POLL_MS);
      if (hooks.signal.aborted) return abort();
      hooks.signal.addEventListener('abort', abort);

      child.on('message', (raw) => {
        const message = raw as AnalysisMessage;
        switch (message.type) {
          case 'started':
            return hooks.onStarted?.();
          case 'progress':
            if (!settled) hooks.onProgress?.(message.progress);
            return;
          case 'named': {
            const files =
              hooks.onNamed?.(message.frames.filter(isPath).slice(0, MAX_NAMED)).catch((): NamedFiles => []) ?? Promise.resolve([]);
            void files.then((named) => {
              if (!settled) child.send({ kind: 'files', files: named } satisfies NamedAnswer);
            });
            return;
          }
          case 'refused':
            return fail(message.code === OUT_OF_MEMORY ? tooLarge() : AdviseError.from(message.code, message.told));
          case 'defect':
            return fail(Object.assign(new Error(`the analysis failed: ${message.message}`), { stack: message.stack }));
          default: {
            const result = answer(message);
            if (result !== undefined) end(() => resolve(result));
          }
        }
      });
      child.on('error', fail);
      child.on('exit', (code, signal) => {
        const isMemory = /heap out of memory|allocation failed/i.test(stderr);
        fail(isMemory ? tooLarge() : new Error(`the analysis process ended with ${signal ?? code}: ${stderr.slice(-500)}`));
      });
      child.send(task);
    });

  return {
    analyse: (request, hooks) =>
      run({ kind: 'analyse', request }, hooks, limits.timeoutMs, (message) => (message.type === 'report' ? message.report : undefined)),
    digest: async (request, hooks) => {
      await run({ kind: 'digest', request }, hooks, limits.timeoutMs, (message) => (message.type === 'digested' ? true : undefined));
    },
    parts: (paths, hooks, share = null) =>
      run({ kind: 'parts', paths, share }, hooks, Math.min(PARTS_TIMEOUT_MS, limits.timeoutMs), (message) =>
        message.type === 'parts' ? message.answers : undefined,
      ),
  };
}
