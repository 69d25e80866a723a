import { type Files, tarOf, zipOf } from './archives.ts';
import type { Seed } from './corpus.ts';
import { mutateBytes } from './mutate-bytes.ts';
import { mutateCsv } from './mutate-csv.ts';
import { mutateJson } from './mutate-json.ts';
import { mutateSqlite } from './mutate-sqlite.ts';
import { type Random, randomOf } from './random.ts';

/** One input: a folder of files, or a single file. */
export interface FuzzCase {
  readonly seed: Seed;
  /** null: the files as a folder; else one file of this name. */
  readonly single: { readonly name: string; readonly data: Buffer } | null;
  readonly files: Files;
  /** What was done, one line each. */
  readonly steps: readonly string[];
}

const OTHER_NAMES = [
  'profiler_info.json',
  'profiler_info_7.json',
  'communication.json',
  'communication_matrix.json',
  'kernel_details.csv',
  'trace_view.json',
  'op_statistic.csv',
  'analysis.db',
];

/** Bigger inputs than this test patience, not parsers. */
const MAX_BYTES = 24 << 20;

function rename(path: string, random: Random): string {
  const at = path.lastIndexOf('/') + 1;
  return path.slice(0, at) + random.pick(OTHER_NAMES);
}

/** The input with this number. `skip` leaves out mutations by position, to find out which one matters. */
export function makeCase(
  seeds: readonly Seed[],
  seed: number,
  index: number,
  scratch: string,
  skip: ReadonlySet<number> = new Set(),
): FuzzCase {
  const plan = randomOf(seed, index);
  const start = plan.pick(seeds);
  const others = seeds.flatMap((s) => s.files.map(([, data]) => data));
  const files: (readonly [string, Buffer])[] = [...start.files];
  const steps: string[] = [];
  const count = 1 + plan.int(3);
  const form = plan.int(100);
  for (let n = 0; n < count; n++) {
    const random = randomOf(seed, index, n + 1);
    const at = random.int(files.length);
    const [path, data] = files[at]!;
    if (skip.has(n)) continue;
    if (random.chance(0.03)) {
      const to = rename(path, random);
      steps.push(`${path}: renamed to ${to}`);
      files[at] = [to, data];
      continue;
    }
    if (random.chance(0.02)) {
      files.splice(at, 1);
      steps.push(`${path}: left out`);
      if (files.length === 0) files.push(['empty.json', Buffer.alloc(0)]);
      continue;
    }
    const grammar = random.chance(0.65);
    const result = !grammar
      ? mutateBytes(data, random, others)
      : path.endsWith('.json')
        ? mutateJson(data, random)
        : path.endsWith('.csv')
          ? mutateCsv(data, random)
          : path.endsWith('.db')
            ? mutateSqlite(data, random, scratch)
            : mutateBytes(data, random, others);
    steps.push(`${path}: ${result.what}`);
    if (result.data.length <= MAX_BYTES) files[at] = [path, result.data];
  }
  const unique = [...new Map(files).entries()];
  const random = randomOf(seed, index, 99);
  const lying = skip.has(99) || random.chance(0.35) ? null : random;
  if (form < 12) return archived('profile.zip', zipOf(unique, lying));
  if (form < 15) return archived('profile.tar', tarOf(unique, false, lying));
  if (form < 20) return archived('profile.tar.gz', tarOf(unique, true, lying));
  if (form < 24) {
    const [path, data] = random.pick(unique);
    return { seed: start, single: { name: path.slice(path.lastIndexOf('/') + 1), data }, files: unique, steps };
  }
  return { seed: start, single: null, files: unique, steps };

  function archived(name: string, archive: { data: Buffer; what: string }): FuzzCase {
    steps.push(`${name}: ${archive.what}`);
    return { seed: start, single: { name, data: archive.data }, files: unique, steps };
  }
}
