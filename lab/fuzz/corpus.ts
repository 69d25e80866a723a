import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { collectRanks } from '../../src/engine/collect-ranks.ts';
import { factsToJson } from '../../src/model/facts-json.ts';
import { openSource } from '../../src/sources/index.ts';
import { type Export, type JobSpec, simulate, writeProfiles } from '../simulator/index.ts';

/** A small valid profile to start from. */
export interface Seed {
  readonly name: string;
  /** Relative path and content, in a fixed order. */
  readonly files: readonly (readonly [path: string, data: Buffer])[];
}

const TINY: JobSpec = { ranks: 1, steps: 1, layers: 1 };
const JOBS: readonly { name: string; spec: JobSpec; kind: Export; keep: number }[] = [
  { name: 'one', spec: TINY, kind: 'text', keep: 0.25 },
  { name: 'steps', spec: { ...TINY, steps: 4, faults: [{ kind: 'slow-loader' }, { kind: 'recompile' }] }, kind: 'text', keep: 0.15 },
  {
    name: 'ranks',
    spec: { ...TINY, ranks: 2, steps: 2, faults: [{ kind: 'small-ops', perStep: 40 }, { kind: 'layout' }] },
    kind: 'text',
    keep: 0.2,
  },
  { name: 'stages', spec: { ...TINY, ranks: 2, layers: 2, pp: 2, microBatches: 2, level: 0, era: '2025-11' }, kind: 'text', keep: 0.3 },
  { name: 'database', spec: TINY, kind: 'db', keep: 1 },
  { name: 'databases', spec: { ...TINY, ranks: 2, steps: 2, era: '2025-11' }, kind: 'db', keep: 1 },
];

/** Thins what only makes the input long: a part of the events and of the rows tests the same code. */
function thin(path: string, data: Buffer, keep: number): Buffer {
  if (keep === 1) return data;
  const kept = (i: number): boolean => Math.floor((i + 1) * keep) > Math.floor(i * keep);
  if (path.endsWith('trace_view.json')) {
    const events = data.toString('utf8').split('}, {');
    const last = events.length - 1;
    const wanted = events.filter(
      (e, i) => i === 0 || i === last || e.includes('"ph": "M"') || e.includes('ProfilerStep') || e.includes('hcom') || kept(i),
    );
    return Buffer.from(wanted.join('}, {'));
  }
  if (path.endsWith('operator_details.csv')) return data.subarray(0, 4_000);
  if (path.endsWith('kernel_details.csv')) {
    const lines = data.toString('utf8').split('\r\n');
    return Buffer.from(lines.filter((_, i) => i === 0 || kept(i)).join('\r\n'));
  }
  return data;
}

async function filesBelow(root: string, prefix = ''): Promise<string[]> {
  const out: string[] = [];
  for (const child of (await readdir(join(root, prefix), { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = prefix === '' ? child.name : `${prefix}/${child.name}`;
    if (child.isDirectory()) out.push(...(await filesBelow(root, path)));
    else out.push(path);
  }
  return out;
}

async function write(root: string, seed: Seed): Promise<void> {
  for (const [path, data] of seed.files) {
    const to = join(root, seed.name, path);
    await mkdir(join(to, '..'), { recursive: true });
    await writeFile(to, data);
  }
}

/** Makes the starting profiles below `root`, with the simulator. */
export async function makeCorpus(root: string): Promise<void> {
  for (const { name, spec, kind, keep } of JOBS) {
    const whole = await mkdtemp(join(root, 'whole-'));
    await writeProfiles(simulate(spec), whole, { export: kind });
    const files: [string, Buffer][] = [];
    for (const path of await filesBelow(whole)) files.push([path, thin(path, await readFile(join(whole, path)), keep)]);
    await rm(whole, { recursive: true });
    await write(root, { name, files });
    if (kind !== 'text') continue;
    const source = await openSource(join(root, name));
    const { ranks } = await collectRanks([source], { onBytes: () => {} });
    await write(root, { name: `facts-${name}`, files: [['facts.json', Buffer.from(factsToJson(ranks))]] });
  }
}

export async function readCorpus(root: string): Promise<Seed[]> {
  const seeds: Seed[] = [];
  for (const child of (await readdir(root, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (!child.isDirectory()) continue;
    const paths = await filesBelow(join(root, child.name));
    seeds.push({
      name: child.name,
      files: await Promise.all(paths.map(async (p) => [p, await readFile(join(root, child.name, p))] as const)),
    });
  }
  return seeds;
}
