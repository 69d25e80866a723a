import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** What one run of a program cost. */
export interface Run {
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** Highest sum over the process and its children, MB (10^6 bytes). */
  readonly peakRssMb: number;
  readonly output: string;
}

const SAMPLE_MS = 20;
const TICKS = 100;

function children(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((t) =>
      readFileSync(`/proc/${pid}/task/${t}/children`, 'utf8')
        .split(' ')
        .filter((c) => c !== '')
        .map(Number),
    );
  } catch {
    return [];
  }
}

function treeOf(pid: number): number[] {
  return [pid, ...children(pid).flatMap(treeOf)];
}

function statusKb(pid: number, field: string): number {
  try {
    return Number(new RegExp(`${field}:\\s*(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

function cpuTicks(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    return Number(fields[11]) + Number(fields[12]);
  } catch {
    return 0;
  }
}

/** Runs a script of ours in a process of its own and watches its memory. */
export function run(script: string, args: readonly string[], flags: readonly string[] = []): Promise<Run> {
  return runProgram(process.execPath, ['--no-warnings', ...flags, script, ...args]);
}

/** Runs any program and watches the memory of its processes. Rejects when it cannot be started or ends with another code than 0. */
export function runProgram(program: string, args: readonly string[]): Promise<Run> {
  return new Promise((resolve, reject) => {
    const started = performance.now();
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    let errors = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      errors += chunk.toString();
    });
    let peak = 0;
    let ticks = 0;
    const sample = (): void => {
      const tree = treeOf(child.pid!);
      // One process alone knows its own peak; several together are added up as they are now.
      const now = tree.length === 1 ? statusKb(child.pid!, 'VmHWM') : tree.reduce((sum, pid) => sum + statusKb(pid, 'VmRSS'), 0);
      peak = Math.max(peak, now);
      ticks = Math.max(
        ticks,
        tree.reduce((sum, pid) => sum + cpuTicks(pid), 0),
      );
    };
    const timer = setInterval(sample, SAMPLE_MS);
    child.on('error', reject);
    child.on('exit', () => clearInterval(timer));
    child.on('close', (code) => {
      if (code !== 0) reject(new Error(`${program} ${args.join(' ')} ended with ${code}: ${errors.slice(-2_000)}`));
      else resolve({ seconds: (performance.now() - started) / 1000, cpuSeconds: ticks / TICKS, peakRssMb: (peak * 1024) / 1e6, output });
    });
  });
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Distance of the extremes, as a share of the median: how noisy the machine was. */
export function spread(values: readonly number[]): number {
  return (Math.max(...values) - Math.min(...values)) / median(values);
}

/** Runs each program in turn, round by round, so that a busy minute of the machine hits all of them. */
export async function rounds(
  programs: Readonly<Record<string, () => Promise<Run>>>,
  count: number,
  stop: () => boolean,
): Promise<Record<string, Run[]>> {
  const all: Record<string, Run[]> = {};
  for (let n = 0; n < count && (n === 0 || !stop()); n++) {
    for (const [name, program] of Object.entries(programs)) {
      const list = all[name] ?? [];
      all[name] = list;
      list.push(await program());
    }
  }
  return all;
}

const seconds = (r: Run): number => r.seconds;

/** One line per program: rate, time, memory, noise. */
export function table(all: Readonly<Record<string, readonly Run[]>>, mb: number): string {
  const lines = ['program              MB/s   wall s    cpu s   RSS MB   spread'];
  for (const [name, list] of Object.entries(all)) {
    const wall = median(list.map(seconds));
    lines.push(
      [
        name.padEnd(18),
        (mb / wall).toFixed(0).padStart(6),
        wall.toFixed(2).padStart(8),
        median(list.map((r) => r.cpuSeconds))
          .toFixed(2)
          .padStart(8),
        Math.max(...list.map((r) => r.peakRssMb))
          .toFixed(0)
          .padStart(8),
        `${(100 * spread(list.map(seconds))).toFixed(0)} %`.padStart(8),
      ].join(' '),
    );
  }
  return lines.join('\n');
}

export function ratio(all: Readonly<Record<string, readonly Run[]>>, a: string, b: string): string {
  const of = (name: string, value: (r: Run) => number): number => median((all[name] ?? []).map(value));
  return `${(of(a, seconds) / of(b, seconds)).toFixed(2)} (cpu ${(of(a, (r) => r.cpuSeconds) / of(b, (r) => r.cpuSeconds)).toFixed(2)})`;
}
