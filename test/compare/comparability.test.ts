/* What keeps two jobs from being compared, and what is only said. Everything is taken from one simulated job and changed by hand. */
import { beforeAll, describe, expect, test } from 'vitest';
import { say } from '../../src/base/phrase.ts';
import { compareJobs } from '../../src/compare/index.ts';
import { jobFacts } from '../../src/facts/job/index.ts';
import type { CaptureSettings, GroupInfo } from '../../src/model/capture.ts';
import type { JobComparison } from '../../src/model/comparison.ts';
import type { RankFacts } from '../../src/model/facts.ts';
import { compareFacts, LIMITS } from '../support/pairs.ts';
import { simulated } from '../support/simulated.ts';

let head: readonly RankFacts[];
let slow: readonly RankFacts[];
beforeAll(async () => {
  head = (await simulated({ ranks: 2, layers: 2, steps: 8, soc: 'Ascend910B3' })).ranks;
  slow = (await simulated({ ranks: 2, layers: 2, steps: 8, soc: 'Ascend910B3', faults: [{ kind: 'slow-rank', rank: 1 }] })).ranks;
});

const withSettings = (ranks: readonly RankFacts[], over: Partial<CaptureSettings>): RankFacts[] =>
  ranks.map((r) => ({ ...r, settings: { ...r.settings, ...over } }));

/** The job as baseline, changed; head is 10 % slower. */
function against(base: readonly RankFacts[]): JobComparison {
  return compareFacts(slow, base);
}

const saysWhy = (of: JobComparison): string => of.refusals.map((r) => say(r.text, 'en')).join('; ');

describe('refused, with one sentence why', () => {
  test.each<[string, Partial<CaptureSettings>, string, RegExp]>([
    ['another device', { soc: 'Ascend910B1' }, 'device', /^device `Ascend910B3`, baseline `Ascend910B1`$/],
    ['another CANN', { cann: '7.0.0' }, 'cann', /^CANN `8\.0\.0`, baseline `7\.0\.0`$/],
    ['another torch_npu', { torchNpu: '1.11.0' }, 'torch-npu', /^torch_npu `2\.1\.0\.post10`, baseline `1\.11\.0`$/],
    ['stacks on one side', { withStack: false }, 'capture', /on one side only: `with_stack`$/],
    ['memory on one side', { profileMemory: true }, 'capture', /`profile_memory`/],
    ['Level2 on one side', { level: 'Level2' }, 'capture', /`profiler_level=Level2`/],
  ])('%s', (_, settings, what, why) => {
    const comparison = against(withSettings(head, settings));
    expect(comparison.verdict).toBe('incomparable');
    expect(comparison.refusals.map((r) => r.what)).toEqual([what]);
    expect(saysWhy(comparison)).toMatch(why);
    expect(say(comparison.refusals[0]!.text, 'zh')).toMatch(/[\u4e00-\u9fff]/);
    // What cannot be subtracted is not.
    expect(comparison.step).toMatchObject({ delta: null, interval: null });
    expect(comparison.contributors).toEqual([]);
    expect(comparison.metrics).toEqual([]);
  });

  test('another number of ranks', () => {
    const sized = (ranks: readonly RankFacts[], worldSize: number): RankFacts[] => ranks.map((r) => ({ ...r, worldSize }));
    expect(against(sized(head, 4)).refusals.map((r) => r.what)).toEqual(['world-size']);
    const unknown = head.map((r) => ({ ...r, worldSize: null, groups: [], links: null }));
    const few = compareFacts(
      slow.slice(0, 1).map((r) => ({ ...r, worldSize: null, groups: [], links: null })),
      unknown,
    );
    expect(few.refusals.map((r) => r.what)).toEqual(['world-size']);
    expect(saysWhy(few)).toMatch(/not recorded/);
  });

  test('another batch, as the trainer recorded it', () => {
    const batch = (ranks: readonly RankFacts[], n: number): RankFacts[] => ranks.map((r) => ({ ...r, parallel: { global_batch_size: n } }));
    const comparison = compareFacts(batch(slow, 64), batch(head, 32));
    expect(comparison.refusals.map((r) => r.what)).toEqual(['batch']);
    expect(saysWhy(comparison)).toBe('64 samples per step, baseline 32');
    expect(compareFacts(batch(slow, 64), batch(head, 64)).verdict).toBe('regression');
  });

  test('another batch, as only the shapes tell', async () => {
    const half = await simulated({
      ranks: 2,
      layers: 2,
      steps: 8,
      soc: 'Ascend910B3',
      faults: [{ kind: 'sync-per-microstep', off: true }],
    });
    const comparison = compareFacts(slow, half.ranks);
    expect(comparison.refusals.map((r) => r.what)).toEqual(['shapes']);
    expect(saysWhy(comparison)).toMatch(/^batch or sequence length/);
  });

  test('the same batch in other shapes is said and compared', async () => {
    const batch = (ranks: readonly RankFacts[]): RankFacts[] => ranks.map((r) => ({ ...r, parallel: { global_batch_size: 64 } }));
    const micro = await simulated({
      ranks: 2,
      layers: 2,
      steps: 8,
      soc: 'Ascend910B3',
      faults: [{ kind: 'sync-per-microstep', off: true }],
    });
    const comparison = compareFacts(batch(micro.ranks), batch(head));
    expect(comparison.refusals).toEqual([]);
    expect(comparison.warnings.map((w) => w.what)).toEqual(['shapes']);
  });

  test('another split of the model', () => {
    const split = (ranks: readonly RankFacts[], tp: number): RankFacts[] =>
      ranks.map((r) => ({ ...r, parallel: { tensor_model_parallel_size: tp, pipeline_model_parallel_size: 2 / tp } }));
    const comparison = compareFacts(split(slow, 2), split(head, 1));
    expect(comparison.refusals.map((r) => r.what)).toEqual(['layout']);
    expect(saysWhy(comparison)).toBe('parallel layout `tp=2 pp=1`, baseline `tp=1 pp=2`');
    const roles = (ranks: readonly RankFacts[], role: string): RankFacts[] =>
      ranks.map((r) => ({ ...r, groups: r.groups.map((g): GroupInfo => ({ ...g, role })) }));
    expect(compareFacts(roles(slow, 'tp'), roles(head, 'tp')).refusals).toEqual([]);
  });

  test('a step on one side, a device span on the other', () => {
    const spans = head.map((r) => ({
      ...r,
      capabilities: new Set([...r.capabilities].filter((c) => c !== 'steps')),
      steps: r.steps.map((s) => ({ ...s, start: Number.NaN, end: Number.NaN, breakdown: { ...s.breakdown, stepMs: Number.NaN } })),
    }));
    expect(against(spans).refusals.map((r) => r.what)).toEqual(['step-basis']);
    expect(against(head.map((r) => ({ ...r, steps: [], capabilities: new Set() }))).refusals.map((r) => r.what)).toContain('step-basis');
  });
});

describe('compared, and said', () => {
  test.each<[string, Partial<CaptureSettings>, string]>([
    ['a newer CANN', { cann: '8.3.RC1' }, 'cann'],
    ['a newer torch_npu', { torchNpu: '2.7.1' }, 'torch-npu'],
    ['no shapes', { recordShapes: false }, 'capture'],
    ['other counters', { aicMetrics: 'ACL_AICORE_NONE' }, 'capture'],
    ['a lower level', { level: 'Level0' }, 'capture'],
    ['a device nobody recorded', { soc: null }, 'unknown'],
  ])('%s', (_, settings, what) => {
    const comparison = against(withSettings(head, settings));
    expect(comparison.verdict).toBe('regression');
    expect(comparison.warnings.map((w) => w.what)).toEqual([what]);
  });

  test('nothing, where nothing differs', () => {
    const comparison = against(head);
    expect(comparison.verdict).toBe('regression');
    expect(comparison.warnings).toEqual([]);
  });

  test('a model that was changed in part', async () => {
    // Two layers more: all shapes of the baseline are still there.
    const deeper = await simulated({ ranks: 2, layers: 4, steps: 8, soc: 'Ascend910B3' });
    expect(compareFacts(deeper.ranks, head).verdict).toBe('regression');
    const other = slow.map((r) => ({
      ...r,
      tape: { ...r.tape!, shapes: r.tape!.shapes.map((s) => (s.startsWith('8192,1024') ? s.replaceAll('1024', '1280') : s)) },
    }));
    const comparison = compareFacts(other, head);
    expect(comparison.verdict).toBe('regression');
    expect(comparison.warnings.map((w) => w.what)).toEqual(['shapes']);
  });

  test('shapes that change from step to step', () => {
    const dynamic = (ranks: readonly RankFacts[], seed: number): RankFacts[] =>
      ranks.map((r) => {
        const tape = r.tape!;
        const shapes = [...tape.shapes];
        const shape = tape.shape.map((id, i) => (id < 0 ? id : shapes.push(`${tape.shapes[id]};${seed + tape.step[i]!}`) - 1));
        return { ...r, tape: { ...tape, shapes, shape } };
      });
    const comparison = compareFacts(dynamic(slow, 1_000), dynamic(head, 2_000));
    expect(comparison.verdict).toBe('regression');
    expect(comparison.warnings.map((w) => w.what)).toEqual(['shapes']);
    expect(say(comparison.warnings[0]!.text, 'en')).toMatch(/from step to step/);
  });

  test('operators of another name with the same shapes are the same work', () => {
    const renamed = head.map((r) => ({ ...r, tape: { ...r.tape!, types: r.tape!.types.map((t) => t.replace('MatMulV2', 'MatMulV3')) } }));
    const comparison = against(renamed);
    expect(comparison.verdict).toBe('regression');
    expect(comparison.warnings).toEqual([]);
  });
});

describe('throughput', () => {
  const batch = (ranks: readonly RankFacts[]): RankFacts[] =>
    ranks.map((r) => ({ ...r, parallel: { global_batch_size: 32, seq_length: 512 } }));

  test('samples and tokens per second, more is better', () => {
    const { metrics, step } = compareFacts(batch(slow), batch(head));
    const [samples, tokens] = ['samples-per-second', 'tokens-per-second'].map((m) => metrics.find((x) => x.metric === m)!);
    expect(samples).toMatchObject({ better: 'higher', verdict: 'regression' });
    expect(samples!.head).toBeCloseTo(32_000 / step.head!, 6);
    expect(samples!.base).toBeCloseTo(32_000 / step.base!, 6);
    expect(tokens!.head).toBeCloseTo(512 * samples!.head!, 3);
  });

  test('is unknown without a batch', () => {
    expect(compareFacts(slow, head).metrics.map((m) => m.metric)).toEqual(['computing', 'communication', 'idle']);
  });

  test('of the configuration counts where the profile says nothing', () => {
    const given = { batch: { globalBatchSize: 48, sequenceLength: null } };
    const job = jobFacts(slow, [], given);
    expect(job.batch).toEqual({ samplesPerStep: 48, tokensPerSample: null, basis: 'config' });
    expect(jobFacts(batch(slow), [], given).batch).toEqual({ samplesPerStep: 32, tokensPerSample: 512, basis: 'profile' });
    const { metrics } = compareJobs(job, [{ label: 'base', job: jobFacts(head, [], given) }], LIMITS);
    expect(metrics.some((m) => m.metric === 'samples-per-second')).toBe(true);
  });
});

test('parts have their own verdict: a step may stay as it is while a part of it gets worse', () => {
  const traded = head.map((r) => ({
    ...r,
    tape: null,
    idle: null,
    steps: r.steps.map((s) => ({
      ...s,
      breakdown: { ...s.breakdown, computingMs: s.breakdown.computingMs + 3, exposedMs: Math.max(0, s.breakdown.exposedMs - 3) },
    })),
  }));
  const { verdict, metrics } = compareFacts(traded, head);
  expect(verdict).toBe('noise');
  expect(metrics.find((m) => m.metric === 'computing')).toMatchObject({ verdict: 'regression', better: 'lower' });
});
