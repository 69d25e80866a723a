import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { AdviseError } from '../base/errors.ts';
import type { Report } from '../model/report.ts';
import type { AnalysisMessage, AnalysisProgress, AnalysisRequest } from './analysis-protocol.ts';
import { siblingModule } from './sibling-module.ts';

export interface AnalysisLimits {
  readonly timeoutMs: number;
  readonly memoryMb: number;
}

export interface AnalysisHooks {
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: AnalysisProgress) => void;
  readonly onStarted?: () => void;
}

export type RunAnalysis = (request: AnalysisRequest, hooks: AnalysisHooks) => Promise<Report>;

const MEMORY_POLL_MS = 500;
const PAGE = 4096;
const NICENESS = 10;

/** Resident memory of a process in MB, where the system tells (Linux); buffers count there and not in the heap limit. */
function residentMb(pid: number): number {
  try {
    return (Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE) / 1024 / 1024;
  } catch {
    return 0;
  }
}

/** Lets the webhook and the jobs go first on a busy machine. */
function beNice(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, NICENESS);
  } catch {
    // Not allowed here: then all are equal.
  }
}

/**
 * Runs analyses in a process of their own, with a limit on time and memory and an environment that holds no secrets.
 * `analyser` is the address of the module that exports `analyseArtifact`; `scratch` is where it may write.
 */
export function createAnalysisRunner(analyser: string, limits: AnalysisLimits, scratch: string): RunAnalysis {
  return (request, hooks) =>
    new Promise<Report>((resolve, reject) => {
      const child = fork(siblingModule('analysis-worker', import.meta.url), [analyser], {
        execArgv: [
          `--max-old-space-size=${Math.floor(limits.memoryMb)}`,
          '--disable-warning=ExperimentalWarning',
          // Reading only, apart from its own scratch folder; no processes of its own. The Python parser is an addon.
          '--permission',
          '--allow-fs-read=*',
          `--allow-fs-write=${scratch}`,
          '--allow-worker',
          '--allow-addons',
        ],
        env: { PATH: process.env.PATH ?? '', TMPDIR: scratch, NODE_ENV: 'production' },
        cwd: scratch,
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
        serialization: 'advanced',
      });
      beNice(child.pid);
      let stderr = '';
      let settled = false;
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        stderr = (stderr + text).slice(-4000);
      });

      const finish = (outcome: Report | Error): void => {
        if (settled) return;
        settled = true;
        clearTimeout(timer);
        clearInterval(memory);
        hooks.signal.removeEventListener('abort', abort);
        child.kill('SIGKILL');
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      };
      const tooLarge = (): AdviseError =>
        new AdviseError(
          'analysis-memory',
          'the profile needs more memory than this installation allows',
          'Upload fewer steps or ranks, or let the operator raise NPU_ADVISOR_ANALYSIS_MEMORY_MB.',
        );
      const abort = (): void => finish(hooks.signal.reason instanceof Error ? hooks.signal.reason : new Error('the analysis was stopped'));
      const timer = setTimeout(() => {
        const seconds = Math.round(limits.timeoutMs / 1000);
        const hint = 'Upload fewer steps or ranks, or let the operator raise NPU_ADVISOR_ANALYSIS_TIMEOUT_S.';
        finish(new AdviseError('analysis-timeout', `the analysis took longer than ${seconds} s`, hint));
      }, limits.timeoutMs);
      const memory = setInterval(() => {
        if (child.pid !== undefined && residentMb(child.pid) > limits.memoryMb) finish(tooLarge());
      }, MEMORY_POLL_MS);
      if (hooks.signal.aborted) return abort();
      hooks.signal.addEventListener('abort', abort);

      child.on('message', (raw) => {
        const message = raw as AnalysisMessage;
        switch (message.type) {
          case 'started':
            return hooks.onStarted?.();
          case 'progress':
            return hooks.onProgress?.(message.progress);
          case 'report':
            return finish(message.report);
          case 'refused':
            return finish(new AdviseError(message.code, message.message, message.hint));
          case 'defect':
            return finish(Object.assign(new Error(`the analysis failed: ${message.message}`), { stack: message.stack }));
        }
      });
      child.on('error', (error) => finish(error));
      child.on('exit', (code, signal) => {
        const isMemory = /heap out of memory|allocation failed/i.test(stderr);
        finish(isMemory ? tooLarge() : new Error(`the analysis process ended with ${signal ?? code}: ${stderr.slice(-500)}`));
      });
      child.send(request);
    });
}
