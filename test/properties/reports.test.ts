/*
 * Properties that hold for any job: random small jobs from the simulator, random damage to their files.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Fault, type JobSpec, simulate, writeProfiles } from '../../lab/simulator/index.ts';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { Report } from '../../src/model/report.ts';
import { RULES } from '../../src/rules/index.ts';
import { analysePaths, totalsComplaints } from '../support/grid.ts';
import { kernelDetails, readOnly, STEP_HEADER, trace } from '../support/profile-text.ts';
import { reportOf } from '../support/simulated.ts';

const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({
    kind: fc.constant('slow-rank' as const),
    rank: fc.constantFrom(0, 1),
    factor: fc.double({ min: 1.01, max: 1.4, noNaN: true }),
  }),
  fc.record({ kind: fc.constant('layout' as const), us: fc.integer({ min: 20, max: 400 }) }),
  fc.record({ kind: fc.constant('recompile' as const), ms: fc.integer({ min: 1, max: 30 }) }),
  fc.record({ kind: fc.constant('small-ops' as const), perStep: fc.integer({ min: 20, max: 800 }) }),
  fc.record({ kind: fc.constant('slow-loader' as const), single: fc.boolean(), sampleMs: fc.integer({ min: 5, max: 500 }) }),
  fc.record({ kind: fc.constant('rotating-jitter' as const), ms: fc.integer({ min: 1, max: 20 }) }),
);
const spec: fc.Arbitrary<JobSpec> = fc.record({
  ranks: fc.constant(2),
  layers: fc.integer({ min: 2, max: 5 }),
  steps: fc.integer({ min: 1, max: 5 }),
  seed: fc.integer({ min: 1, max: 1_000 }),
  level: fc.constantFrom(0 as const, 1 as const, 2 as const),
  withStack: fc.boolean(),
  faults: fc.uniqueArray(fault, { maxLength: 2, selector: (f) => f.kind }),
});

function expectSound(report: Report): void {
  expect(Report.safeParse(report).error?.issues).toBeUndefined();
  expect(totalsComplaints(report)).toEqual([]);
  expect(JSON.stringify(report)).not.toMatch(/NaN|undefined|Infinity/);
  expect(report.checked.map((c) => c.rule).sort()).toEqual(RULES.map((r) => r.id).sort());
  expect(report.checked.filter((c) => c.outcome === 'error')).toEqual([]);
}

test('any job: the report is sound and claims no more than the step', async () => {
  await fc.assert(
    fc.asyncProperty(spec, async (job) => {
      const dir = await mkdtemp(join(tmpdir(), 'npu-advisor-property-'));
      try {
        await writeProfiles(simulate(job), dir);
        expectSound(await analysePaths([dir]));
      } finally {
        await rm(dir, { recursive: true, force: true });
      }
    }),
    { numRuns: 12, seed: 20250109 },
  );
}, 120_000);

test('any byte changed in any file costs at most that file, never the report', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'npu-advisor-damage-'));
  try {
    const [folder] = await writeProfiles(simulate({ ranks: 2, layers: 2, steps: 2, uploadedRanks: [0] }), dir);
    const names = ['trace_view.json', 'kernel_details.csv', 'step_trace_time.csv', 'communication.json', 'communication_matrix.json'];
    for (const name of names) {
      const file = join(folder!, 'ASCEND_PROFILER_OUTPUT', name);
      const whole = await readFile(file);
      await fc.assert(
        fc.asyncProperty(
          fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
          fc.constantFrom(0, 34, 44, 57, 92, 93, 123, 255),
          async (at, byte) => {
            const damaged = Buffer.from(whole);
            damaged[Math.floor(at * whole.length)] = byte;
            await writeFile(file, damaged);
            expectSound(await analysePaths([dir]));
          },
        ),
        { numRuns: 6, seed: 7 },
      );
      await writeFile(file, whole);
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}, 120_000);

test('a file cut anywhere gives a report or none, never a figure that is none', async () => {
  const files = {
    'rank0/trace_view.json': trace({ steps: 3 }),
    'rank0/kernel_details.csv': kernelDetails({ steps: 3 }),
    'rank0/step_trace_time.csv': `${STEP_HEADER}\n5,3015,1000.25,0,1000.25,4484.75,8500,0,1000.25,500\n`,
  };
  for (const name of Object.keys(files) as (keyof typeof files)[]) {
    await fc.assert(
      fc.asyncProperty(fc.double({ min: 0, max: 1, noNaN: true }), async (share) => {
        const cut = { ...files, [name]: files[name].slice(0, Math.floor(share * files[name].length)) };
        expectSound(reportOf([rankFacts(await readOnly(cut))]));
      }),
      { numRuns: 25, seed: 3 },
    );
  }
});
