import { expect, test } from 'vitest';
import { mutateJson } from '../../lab/fuzz/mutate-json.ts';
import { randomOf } from '../../lab/fuzz/random.ts';
import { fuzz } from '../../lab/fuzz/run.ts';

/** The same inputs every time; `npm run fuzz -- --seed N` looks further. */
const SEED = 20_260_101;
const SECONDS = 10;

test('damaged and hostile inputs end in a report or a clear refusal', async () => {
  const result = await fuzz({ seed: SEED, seconds: SECONDS, count: 2_000, first: 0, jobs: 1, out: null });
  expect(result.defects).toEqual([]);
  expect(result.inputs).toBeGreaterThan(20);
  expect(result.reports).toBeGreaterThan(0);
  expect(result.refusals).toBeGreaterThan(0);
});

test('a document that is nested deeper than any stack is still mutated', () => {
  const deep = Buffer.from(`{"traceEvents":${'['.repeat(20_000)}1${']'.repeat(20_000)}}`);
  const changed = Array.from({ length: 60 }, (_, n) => mutateJson(deep, randomOf(n)));
  expect(changed.some(({ data }) => !data.equals(deep))).toBe(true);
});
