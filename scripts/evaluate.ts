/*
 * npm run evaluate -- [--seconds N] [--seeds A,B,C]   the labelled corpus: recall, precision, culprits and savings of each rule.
 *                                                     Exit 1 below the bars. Seeds are drawn and printed unless given.
 * npm run evaluate -- --only TEXT [--ranks 2,8,16]    single jobs whose name holds TEXT, each against its truth. Exit 1 on any miss.
 * npm run evaluate -- --compare                       pairs of jobs, head against baseline. Exit 1 below 95 % right verdicts.
 */
import { randomInt } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { corpus, falseAlarms, type Scenario, scores, shortfalls, type Verdict } from '../test/support/corpus.ts';
import { evaluateJob, grid, type JobResult } from '../test/support/grid.ts';
import { comparisonPairs, evaluatePair } from '../test/support/pairs.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '100000' },
    ranks: { type: 'string', default: '2,8,16' },
    only: { type: 'string', default: '' },
    seeds: { type: 'string' },
    compare: { type: 'boolean', default: false },
  },
});
const ranks = values.ranks.split(',').map(Number);
if (ranks.some((n) => !Number.isInteger(n) || n < 2 || n % 2 !== 0)) throw new Error('--ranks takes even numbers, e.g. 2,8,16');
const limit = Number(values.seconds) * 1000;
const begin = performance.now();

const cell = (text: string, width: number): string => (text.length > width ? `${text.slice(0, width - 1)}…` : text.padEnd(width));
const ms = (value: number | null): string => (value === null ? '-' : value.toFixed(1)).padStart(8);

function print(result: JobResult): void {
  const rows = result.outcomes.length === 0 ? [null] : result.outcomes;
  for (const row of rows) {
    const found =
      row === null
        ? '-'
        : row.finding === null
          ? row.ranksRight
            ? 'quiet'
            : 'MISSED'
          : `${row.finding.rule} [${row.finding.ranks.join(',')}]`;
    const error = row?.error == null ? '' : `${(row.error * 100).toFixed(0)} %`;
    process.stdout.write(
      `${cell(result.job.name, 62)} ${cell(row?.expected.rule ?? 'nothing', 28)} ${cell(found, 44)} ${ms(row?.trueMs ?? null)} ${ms(row?.headlineMs ?? null)} ${error.padStart(7)}\n`,
    );
  }
  for (const line of result.complaints) process.stdout.write(`    ! ${line}\n`);
  for (const line of result.remarks) process.stdout.write(`    ~ ${line}\n`);
}

if (values.compare) await comparePairs();
else if (values.only !== '') await runGrid();
else await runCorpus();

/** Verdict, change and first contributor of each pair against the truth. */
async function comparePairs(): Promise<void> {
  process.stdout.write(
    `${cell('head against baseline', 52)} ${cell('verdict', 12)}  true ms measured  interval              first contributor\n`,
  );
  let pairs = 0;
  let right = 0;
  let explained = 0;
  for (const pair of comparisonPairs()) {
    if (!pair.name.includes(values.only)) continue;
    if (performance.now() - begin > limit) {
      process.stdout.write('time is up, the rest of the pairs was not compared\n');
      break;
    }
    const { comparison, expected, complaints } = await evaluatePair(pair);
    const { step, verdict, contributors } = comparison;
    pairs++;
    if (expected.includes(verdict)) right++;
    if (complaints.length === 0) explained++;
    const range = step.interval === null ? '-' : `${step.interval[0].toFixed(2)} … ${step.interval[1].toFixed(2)}`;
    process.stdout.write(
      `${cell(pair.name, 52)} ${cell(verdict, 12)} ${ms(pair.trueMs)} ${ms(step.delta)}  ${cell(range, 20)}  ${contributors[0]?.part ?? '-'} ${ms(contributors[0]?.delta ?? null).trim()}\n`,
    );
    for (const line of complaints) process.stdout.write(`    ! ${line}\n`);
  }
  const share = pairs === 0 ? 1 : right / pairs;
  process.stdout.write(`${pairs} pairs, ${(share * 100).toFixed(0)} % right verdicts, ${explained} without any complaint\n`);
  if (share < 0.95) process.exitCode = 1;
}

async function runGrid(): Promise<void> {
  process.stdout.write(`${cell('job', 62)} ${cell('expected', 28)} ${cell('found', 44)}  true ms head ms   error\n`);
  let jobs = 0;
  let faults = 0;
  let misses = 0;
  let wrong = 0;
  let known = 0;
  let extra = 0;
  for (const job of grid(ranks)) {
    if (!job.name.includes(values.only)) continue;
    if (performance.now() - begin > limit) {
      process.stdout.write('time is up, the rest of the grid was not run\n');
      break;
    }
    const result = await evaluateJob(job);
    jobs++;
    misses += result.outcomes.filter((o) => !o.ranksRight).length;
    const loud = result.outcomes.filter((o) => o.finding !== null || !o.ranksRight);
    faults += loud.length;
    known += loud.filter((o) => o.finding?.saving?.perStepMs.likely != null).length;
    extra += result.falseFindings.length;
    if (result.complaints.length > 0) wrong++;
    print(result);
  }
  const share = faults === 0 ? 1 : known / faults;
  process.stdout.write(
    `${jobs} jobs, ${faults} faults: ${misses} missed or misplaced, ${extra} false findings, ${wrong} jobs with a complaint, likely known for ${(share * 100).toFixed(0)} %\n`,
  );
  if (wrong > 0 || share < 0.8) process.exitCode = 1;
}

/** Every scenario on as many threads as there are cores, then the table. */
async function runCorpus(): Promise<void> {
  const seeds = values.seeds?.split(',').map(Number) ?? Array.from({ length: 3 }, () => randomInt(1, 1_000_000));
  process.stdout.write(`seeds ${seeds.join(',')}\n`);
  const waiting = corpus(seeds);
  const total = waiting.length;
  const verdicts: Verdict[] = [];
  await Promise.all(Array.from({ length: availableParallelism() }, () => drain(waiting, verdicts)));
  if (waiting.length > 0) process.stdout.write(`time is up: ${verdicts.length} of ${total} scenarios were run\n`);
  const table = scores(verdicts);
  const share = (value: number): string => (Number.isNaN(value) ? '-' : `${(value * 100).toFixed(0)} %`).padStart(9);
  process.stdout.write(`\n${cell('rule', 28)} loud quiet    recall precision    ranks    median       p90\n`);
  for (const s of table) {
    const counts = `${String(s.loud).padStart(4)} ${String(s.quiet).padStart(5)}`;
    const shares = [s.recall, s.precision, s.ranksRight, s.medianError, s.p90Error].map(share).join(' ');
    process.stdout.write(`${cell(s.rule, 28)} ${counts} ${shares}\n`);
  }
  const alarms = falseAlarms(verdicts);
  const loud = verdicts.reduce((sum, v) => sum + v.loud.length, 0);
  const wrong = verdicts.reduce((sum, v) => sum + v.wrong.length, 0);
  process.stdout.write(
    `${verdicts.length} jobs, ${loud} faults, ${wrong} false findings, ${verdicts.filter((v) => v.healthy).length} quiet jobs of which ${alarms} with a false alarm\n`,
  );
  for (const line of shortfalls(table, alarms)) {
    process.stdout.write(`! ${line}\n`);
    process.exitCode = 1;
  }
}

/** Feeds one thread until the scenarios or the time run out. */
function drain(waiting: Scenario[], verdicts: Verdict[]): Promise<void> {
  const worker = new Worker(fileURLToPath(new URL('../test/support/corpus-worker.ts', import.meta.url)));
  return new Promise((resolve, reject) => {
    const next = (): void => {
      const scenario = performance.now() - begin > limit ? undefined : waiting.shift();
      if (scenario === undefined) void worker.terminate().then(() => resolve());
      else worker.postMessage(scenario);
    };
    worker.on('message', (verdict: Verdict) => {
      verdicts.push(verdict);
      if (verdict.complaints.length > 0) process.stdout.write(`${verdict.name}\n${verdict.complaints.map((c) => `    ! ${c}\n`).join('')}`);
      next();
    });
    worker.on('error', reject);
    next();
  });
}
