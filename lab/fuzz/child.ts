import { appendFileSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type FuzzCase, makeCase } from './case.ts';
import { readCorpus, type Seed } from './corpus.ts';
import { type Defect, judge } from './judge.ts';

/** A worker of the harness: judges inputs until it is told to stop. The parent watches it through its progress file. */
export interface ChildTask {
  readonly seed: number;
  readonly from: number;
  readonly stride: number;
  readonly until: number;
  readonly corpus: string;
  /** Folder of this worker. */
  readonly home: string;
  readonly skip: readonly number[];
}

export interface ChildReport {
  readonly index: number;
  readonly outcome: 'report' | 'refused';
  readonly defect: Defect | null;
}

/** Every n-th input is also rendered and digested. */
const THOROUGH = 8;
const task = JSON.parse(process.argv[2]!) as ChildTask;
const scratch = join(task.home, 'scratch.db');
const input = join(task.home, 'input');
const progress = openSync(join(task.home, 'progress'), 'w');
const word = Buffer.alloc(16);

// A harness that was killed cannot stop its workers.
const parent = process.ppid;
setInterval(() => process.ppid !== parent && process.exit(3), 1000).unref();

function begin(index: number): void {
  word.write(String(index).padEnd(16), 'latin1');
  writeSync(progress, word, 0, 16, 0);
}

/** Folders of unchanged profiles; a case overwrites what it changed and puts it back afterwards. */
const standing = new Map<Seed, string>();

function put(root: string, path: string, data: Buffer): void {
  const to = join(root, path);
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, data);
}

function layOut(one: FuzzCase): { path: string; restore: () => void } {
  if (one.single !== null) {
    put(input, one.single.name, one.single.data);
    const path = join(input, one.single.name);
    return { path, restore: () => rmSync(path) };
  }
  let root = standing.get(one.seed);
  if (root === undefined) {
    root = join(task.home, 'seeds', one.seed.name);
    for (const [path, data] of one.seed.files) put(root, path, data);
    standing.set(one.seed, root);
  }
  const was = new Map(one.seed.files);
  const now = new Map(one.files);
  const touched = [...new Set([...was.keys(), ...now.keys()])].filter((p) => was.get(p) !== now.get(p));
  for (const path of touched) {
    if (now.has(path)) put(root, path, now.get(path)!);
    else rmSync(join(root, path));
  }
  return {
    path: root,
    restore: () => {
      for (const path of touched) {
        if (was.has(path)) put(root, path, was.get(path)!);
        else rmSync(join(root, path));
      }
    },
  };
}

async function main(): Promise<void> {
  const seeds = await readCorpus(task.corpus);
  mkdirSync(input, { recursive: true });
  for (let index = task.from; index < task.until; index += task.stride) {
    begin(index);
    const one = makeCase(seeds, task.seed, index, scratch, new Set(task.skip));
    const { path, restore } = layOut(one);
    const verdict = await judge(path, index % THOROUGH === 0);
    restore();
    const report: ChildReport = { index, ...verdict };
    appendFileSync(join(task.home, 'results'), `${JSON.stringify(report)}\n`);
  }
}

await main();
