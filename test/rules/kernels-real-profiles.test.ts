/*
 * What the rules about kernels say of the real text sets.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import type { Report } from '../../src/model/report.ts';
import { analysePaths } from '../support/grid.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { checkOf, findingOf } from '../support/simulated.ts';

const SETS = ['level0', 'level1', 'level2', 'st', 'gpt0', 'quotedTimes', 'arithmetic'] as const;
type Outcome = 'pass' | 'finding' | 'notApplicable';

/** p = pass, f = finding, n = not applicable; sets in the order above. */
const SAID: Readonly<Record<string, string>> = {
  'aicpu-op': 'nppp ppp',
  'cast-churn': 'nppp ppp',
  'cube-utilisation': 'nppf npn',
  'vector-bound': 'nppf npn',
  'pipe-utilisation': 'nppp npn',
  'block-dim': 'nnnp npn',
  'frequency-drop': 'pppn nnn',
  'l2-miss': 'nnnn nnn',
};
const WORD: Readonly<Record<string, Outcome>> = { p: 'pass', f: 'finding', n: 'notApplicable' };
const plain = (text: string): string => text.replaceAll('\u00a0', ' ');

describe.skipIf(!HAVE_PROFILES)(`real text sets${WHY_SKIPPED}`, () => {
  const reports = new Map<string, Report>();
  beforeAll(async () => {
    for (const set of SETS) reports.set(set, await analysePaths([PATHS[set]]));
  });

  test.each(Object.keys(SAID))('%s', (rule) => {
    const outcomes = SAID[rule]!.replace(' ', '');
    SETS.forEach((set, i) => {
      expect(checkOf(reports.get(set)!, rule).outcome, set).toBe(WORD[outcomes[i]!]);
    });
  });

  test('st/level2: the products over a vocabulary of 151,936 leave cube and memory waiting, a bound of 19.6 ms', () => {
    const finding = findingOf(reports.get('st')!, 'cube-utilisation')!;
    // The other ranks with that product have no kernel table.
    expect(finding).toMatchObject({ ranks: [2], severity: 'medium', saving: { basis: 'bound', perStepMs: { floor: 0, likely: null } } });
    expect(finding.saving!.perStepMs.ceiling).toBeCloseTo(19.6, 1);
    expect(plain(finding.evidence[0]!.text)).toMatch(
      /`MatMulV3` `4096,151936;151936,1024` takes 36\.8 ms per step; cube busy 27 %, the busiest pipe \(`mte2`\) 44 %; the last axis of `4096,151936` is 303,872 bytes/,
    );
  });

  test('st/level2: the loss over that vocabulary is written out, a bound of 46 of 73 ms', () => {
    const finding = findingOf(reports.get('st')!, 'vector-bound')!;
    expect(finding).toMatchObject({ ranks: [2], severity: 'medium', saving: { basis: 'bound', perStepMs: { floor: 0, likely: null } } });
    expect(finding.saving!.perStepMs.ceiling).toBeCloseTo(46.0, 1);
    expect(finding.evidence.map((e) => plain(e.text)).join('\n')).toMatch(
      /`Exp`, `ReduceSum`, `RealDiv` on `4096,1,151936`, 2 times: 38\.6 ms/,
    );
  });

  test('msprof-analyze: seven casts of scalars on the AI CPU are 0.8 ms of 517 and no finding', () => {
    expect(plain(checkOf(reports.get('arithmetic')!, 'aicpu-op').reason)).toBe('operators on the AI CPU take 0.8 ms per step');
  });

  test('text/level1 and 2: the frequency is 1,800 MHz throughout; cores are not known, since the device is not named', () => {
    for (const set of ['level1', 'level2']) {
      expect(checkOf(reports.get(set)!, 'frequency-drop').reason).toMatch(/1,800 MHz on average on the slowest rank, 1,800 MHz at best/);
      expect(checkOf(reports.get(set)!, 'block-dim').reason).toMatch(/number of cores is not known/);
    }
  });

  test('text sets have an l2_cache.csv without one hit rate: said, not judged', () => {
    for (const set of ['level0', 'level1', 'level2']) {
      const file = reports.get(set)!.inputs.find((i) => i.path.endsWith('l2_cache.csv'))!;
      expect(file).toMatchObject({ status: 'ignored', note: 'holds no hit rate' });
      expect(checkOf(reports.get(set)!, 'l2-miss').reason).toMatch(/needs hit rates/);
    }
  });

  test('Level0 has neither cores nor counters: it is never said to be clean', () => {
    for (const rule of Object.keys(SAID))
      if (rule !== 'frequency-drop') expect(checkOf(reports.get('level0')!, rule).outcome, rule).toBe('notApplicable');
  });
});
