import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeCase } from './case.ts';
import type { ChildReport, ChildTask } from './child.ts';
import { makeCorpus, readCorpus } from './corpus.ts';
import type { Defect } from './judge.ts';

export interface FuzzOptions {
  readonly seed: number;
  readonly seconds: number;
  readonly count: number;
  readonly first: number;
  readonly jobs?: number;
  /** Where failing inputs are kept; null: nowhere. */
  readonly out: string | null;
  readonly onProgress?: (done: number, defects: number) => void;
  /** Ends early; what was found until then is told. */
  readonly signal?: AbortSignal;
}

export interface FoundDefect extends Defect {
  /** Lowest input number that shows it, and how many do. */
  readonly index: number;
  times: number;
  readonly steps: readonly string[];
  readonly saved: string | null;
}

export interface FuzzResult {
  readonly inputs: number;
  readonly reports: number;
  readonly refusals: number;
  readonly seconds: number;
  readonly peakRssMb: number;
  readonly defects: readonly FoundDefect[];
}

const HEAP_MB = 512;
const RSS_MB = 1_024;
/** CPU time for one input; wall time is not ours alone. */
const BUDGET_MS = 5_000;
const POLL_MS = 100;
const TICK_MS = 10;

interface Watch {
  readonly home: string;
  readonly child: ChildProcess;
  readonly task: ChildTask;
  index: number;
  cpuAtStart: number;
  read: number;
  killedFor: Defect | null;
}

function cpuMs(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  } catch {
    return 0;
  }
}

function rssMb(pid: number): number {
  try {
    return Number(/VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

function currentIndex(home: string): number {
  try {
    return Number(readFileSync(join(home, 'progress'), 'latin1').trim() || -1);
  } catch {
    return -1;
  }
}

/** Same mistake, same line: numbers and names of the input are taken out. */
function signature(defect: Defect): string {
  return `${defect.kind}: ${defect.message
    .replace(/`[^`]*`/g, '`…`')
    .replace(/"[^"]*"/g, '"…"')
    .replace(/\d+/g, '0')
    .slice(0, 400)}`;
}

function start(task: ChildTask): Watch {
  const temp = join(task.home, 'tmp');
  rmSync(task.home, { recursive: true, force: true });
  mkdirSync(temp, { recursive: true });
  const child = spawn(
    process.execPath,
    [`--max-old-space-size=${HEAP_MB}`, '--no-warnings', fileURLToPath(new URL('./child.ts', import.meta.url)), JSON.stringify(task)],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, TMPDIR: temp, NODE_OPTIONS: '' }, cwd: task.home },
  );
  return { home: task.home, child, task, index: -1, cpuAtStart: 0, read: 0, killedFor: null };
}

/** Runs one worker to its end, restarting it behind every input that kills it. */
async function drive(
  first: ChildTask,
  stop: () => boolean,
  onReport: (r: ChildReport) => void,
  onPeak: (mb: number) => void,
): Promise<void> {
  let task = first;
  while (task.from < task.until && !stop()) {
    const watch = start(task);
    let errors = '';
    watch.child.stderr!.on('data', (chunk: Buffer) => {
      errors = (errors + chunk.toString()).slice(-4_000);
    });
    const ended = new Promise<number | null>((resolve) => watch.child.on('close', resolve));
    let over = false;
    void ended.then(() => {
      over = true;
    });
    const collect = (): void => {
      const file = join(watch.home, 'results');
      if (!existsSync(file)) return;
      const text = readFileSync(file, 'utf8').slice(watch.read);
      const end = text.lastIndexOf('\n') + 1;
      watch.read += end;
      for (const line of text.slice(0, end).split('\n')) if (line !== '') onReport(JSON.parse(line) as ChildReport);
    };
    while (!over && !stop()) {
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, POLL_MS))]);
      const pid = watch.child.pid!;
      const index = currentIndex(watch.home);
      const cpu = cpuMs(pid);
      if (index !== watch.index) {
        watch.index = index;
        watch.cpuAtStart = cpu;
      } else if (index >= 0 && cpu - watch.cpuAtStart > BUDGET_MS) {
        watch.killedFor = { kind: 'hang', message: `more than ${BUDGET_MS} ms of CPU time` };
        watch.child.kill('SIGKILL');
      }
      const rss = rssMb(pid);
      onPeak(rss);
      if (rss > RSS_MB && watch.killedFor === null) {
        watch.killedFor = { kind: 'memory', message: `more than ${RSS_MB} MB` };
        watch.child.kill('SIGKILL');
      }
    }
    if (!over) watch.child.kill('SIGKILL');
    const code = await ended;
    collect();
    if (stop() && watch.killedFor === null) return;
    if (code === 0) return;
    const index = currentIndex(watch.home);
    const heap = /heap out of memory/.test(errors);
    const why = errors.split('\n').find((l) => /Error|FATAL/.test(l)) ?? `ended with ${code}`;
    onReport({
      index,
      outcome: 'refused',
      defect:
        watch.killedFor ?? (heap ? { kind: 'memory', message: `heap above ${HEAP_MB} MB` } : { kind: 'crash', message: why.slice(0, 300) }),
    });
    task = { ...task, from: (index < 0 ? task.from : index) + task.stride };
  }
}

/** Files that someone else than the harness made in its folder. */
function strangers(root: string): string[] {
  return readdirSync(root).filter((name) => name !== 'corpus' && !/^worker-\d+$/.test(name) && name !== 'minimise');
}

/** Which mutations are needed: leaves them out one by one while the same defect stays. */
async function minimise(task: Omit<ChildTask, 'skip'>, defect: Defect, steps: number): Promise<number[]> {
  const skip: number[] = [];
  if (steps < 2) return skip;
  for (const candidate of [99, 0, 1, 2]) {
    let found: Defect | null = null;
    await drive(
      { ...task, skip: [...skip, candidate] },
      () => false,
      (r) => {
        found = r.defect;
      },
      () => {},
    );
    if (found !== null && signature(found) === signature(defect)) skip.push(candidate);
  }
  return skip;
}

export async function fuzz(options: FuzzOptions): Promise<FuzzResult> {
  const root = await mkdtemp(join(tmpdir(), 'npu-advisor-fuzz-'));
  const corpus = join(root, 'corpus');
  mkdirSync(corpus);
  try {
    await makeCorpus(corpus);
    const started = performance.now();
    const stop = (): boolean => options.signal?.aborted === true || performance.now() - started > options.seconds * 1000;
    const found = new Map<string, { report: ChildReport; times: number }>();
    let reports = 0;
    let refusals = 0;
    let peak = 0;
    const jobs = options.jobs ?? availableParallelism();
    const onReport = (report: ChildReport): void => {
      if (report.outcome === 'report') reports++;
      else refusals++;
      if (report.defect !== null) {
        const key = signature(report.defect);
        const known = found.get(key);
        if (known === undefined) found.set(key, { report, times: 1 });
        else {
          known.times++;
          if (report.index < known.report.index) known.report = report;
        }
      }
      if ((reports + refusals) % 500 === 0) options.onProgress?.(reports + refusals, found.size);
    };
    const base = { seed: options.seed, stride: jobs, until: options.first + options.count, corpus, skip: [] };
    await Promise.all(
      Array.from({ length: jobs }, (_, n) =>
        drive({ ...base, from: options.first + n, home: join(root, `worker-${n}`) }, stop, onReport, (mb) => {
          peak = Math.max(peak, mb);
        }),
      ),
    );
    const seconds = (performance.now() - started) / 1000;
    const left = strangers(root);
    if (left.length > 0)
      found.set('outside', {
        report: { index: -1, outcome: 'report', defect: { kind: 'temp', message: `written outside: ${left[0]}` } },
        times: 1,
      });
    const seeds = await readCorpus(corpus);
    const defects: FoundDefect[] = [];
    for (const { report, times } of [...found.values()].slice(0, 40)) {
      const defect = report.defect!;
      const one = { ...base, from: report.index, until: report.index + 1, home: join(root, 'minimise') };
      const scratch = join(root, 'corpus', 'scratch.db');
      const skip =
        options.out === null || report.index < 0
          ? []
          : await minimise(one, defect, makeCase(seeds, options.seed, report.index, scratch).steps.length);
      const least = makeCase(seeds, options.seed, Math.max(0, report.index), scratch, new Set(skip));
      const saved = options.out === null ? null : await save(options.out, options.seed, report, least);
      defects.push({ ...defect, index: report.index, times, steps: least.steps, saved });
    }
    return { inputs: reports + refusals, reports, refusals, seconds, peakRssMb: peak, defects };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function save(out: string, seed: number, report: ChildReport, one: ReturnType<typeof makeCase>): Promise<string> {
  const folder = join(out, `${report.defect!.kind}-${seed}-${report.index}`);
  const files = one.single === null ? one.files : [[one.single.name, one.single.data] as const];
  for (const [path, data] of files) {
    const to = join(
      folder,
      'input',
      path
        .replaceAll('..', '__')
        .replace(/[^\w./#-]/g, '_')
        .slice(0, 200) || '_',
    );
    mkdirSync(dirname(to), { recursive: true });
    if (!existsSync(to) || statSync(to).isFile()) await writeFile(to, data);
  }
  await writeFile(join(folder, 'case.json'), `${JSON.stringify({ seed, ...report, steps: one.steps }, null, 2)}\n`);
  return folder;
}
