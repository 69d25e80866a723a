/** Processes of the product as an operator starts them, to be killed and measured. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Modules are read again by every process that is started. */
const CACHE = join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'compile');
const CLI = join(import.meta.dirname, '..', '..', 'src', 'cli', 'main.ts');

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ProductProcess {
  readonly child: ChildProcess;
  /** Resolves when it serves or works; rejects when it ends instead. */
  readonly ready: Promise<void>;
  readonly exited: Promise<Exit>;
}

/** Starts `npu-advise serve` or `worker`; its log is appended to a file. Ready when the log says so, or when `readyUrl` answers. */
export function startProduct(
  command: 'serve' | 'worker',
  env: Record<string, string>,
  logFile: string,
  readyUrl: string | null = null,
): ProductProcess {
  const log = createWriteStream(logFile, { flags: 'a' });
  const { PATH = '', NODE_COMPILE_CACHE = CACHE } = process.env;
  const child = spawn(process.execPath, [CLI, command], { env: { PATH, NODE_COMPILE_CACHE, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let isReady: () => void = () => undefined;
  const ready = new Promise<void>((resolve, reject) => {
    isReady = resolve;
    child.once('exit', (code, signal) => reject(new Error(`${command} ended with ${signal ?? code} before it was ready, see ${logFile}`)));
  });
  ready.catch(() => undefined);
  if (readyUrl !== null) {
    const timer = setInterval(() => {
      fetch(readyUrl).then(
        ({ ok }) => {
          if (!ok) return;
          clearInterval(timer);
          isReady();
        },
        () => undefined,
      );
    }, 200);
    child.once('exit', () => clearInterval(timer));
  }
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      log.write(text);
      if (/"msg":"(?:server|worker) started"/.test(text)) isReady();
    });
  }
  const exited = new Promise<Exit>((resolve) =>
    child.once('exit', (code, signal) => {
      log.end();
      resolve({ code, signal });
    }),
  );
  return { child, ready, exited };
}

/** Resident memory of a process in MB, and how many files it has open; Linux only. */
export function measure(pid: number): { readonly rssMb: number; readonly files: number } {
  const [, resident] = readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ');
  return { rssMb: (Number(resident) * 4096) / 2 ** 20, files: readdirSync(`/proc/${pid}/fd`).length };
}

/** Files below a folder. */
export function countFiles(folder: string): number {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length;
  } catch {
    return 0;
  }
}

/** Numbers from a seed, from 0 up to 1. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
