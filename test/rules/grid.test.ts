/*
 * A representative part of the grid of `npm run evaluate`: more ranks, pipelines, two faults at once.
 * Models of fewer layers than there keep it short.
 */
import { describe, expect, test } from 'vitest';
import type { Fault, JobSpec } from '../../lab/simulator/index.ts';
import { evaluateJob, nameOf, pairs, pipelineFaults } from '../support/grid.ts';

const known: boolean[] = [];

async function check(spec: JobSpec): Promise<void> {
  const result = await evaluateJob({ name: nameOf(spec), spec });
  expect(result.complaints).toEqual([]);
  for (const o of result.outcomes) if (o.finding !== null) known.push(o.finding.saving!.perStepMs.likely !== null);
}

describe('healthy jobs report no saving', () => {
  test.each<JobSpec>([
    { ranks: 8, layers: 4 },
    { ranks: 8, pp: 2, layers: 4 },
    { ranks: 2, seed: 7 },
    { ranks: 2, steps: 1 },
    { ranks: 2, steps: 7, era: '2025-11' },
    { ranks: 2, itemEveryStep: false },
    { ranks: 2, level: 2 },
  ])('%j', check, 120_000);
});

describe('one fault', () => {
  test('slow-rank of sixteen', async () => check({ ranks: 16, layers: 4, faults: [{ kind: 'slow-rank', rank: 11 }] }), 120_000);
  test.each<Fault>([{ kind: 'slow-loader', ranks: [6] }, { kind: 'rotating-jitter' }])(
    '$kind of eight ranks',
    async (fault) => check({ ranks: 8, layers: 4, faults: [fault] }),
    120_000,
  );
  // Every second; `npm run evaluate`, which CI runs as well, judges all of them, and the pairs of newer rules.
  test.each(pipelineFaults(4).filter((_, i) => i % 2 === 0))(
    '$kind in a pipeline',
    async (fault) => check({ ranks: 4, pp: 2, layers: 8, faults: [fault] }),
    120_000,
  );
});

describe('two faults at once are both found and no third', () => {
  test.each(
    pairs(2)
      .slice(0, 6)
      .map((p): [string, JobSpec] => [nameOf({ ranks: 2, pp: p.pp, faults: p.faults }), { ranks: 2, pp: p.pp, faults: p.faults }]),
  )('%s', async (_, spec) => check(spec), 120_000);
});

test('two faults that hide each other are found although each alone saves nothing or little', async () => {
  await check({ ranks: 8, layers: 4, steps: 5, faults: [{ kind: 'slow-rank', rank: 5 }, { kind: 'slow-loader' }] });
});

test('a likely saving is known for at least 80 % of the faults found above', () => {
  expect(known.length).toBeGreaterThan(15);
  expect(known.filter(Boolean).length).toBeGreaterThanOrEqual(0.8 * known.length);
});
