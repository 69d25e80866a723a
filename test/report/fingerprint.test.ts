import { describe, expect, it } from 'vitest';
import type { RawFinding, Rule } from '../../src/model/rule.ts';
import { reportOf, simulated } from '../support/simulated.ts';

const SPEC = { ranks: 1, layers: 2, steps: 5, faults: [{ kind: 'slow-loader', single: true }, { kind: 'layout' }] } as const;
const idsOf = async (over: { seed: number; steps?: number }): Promise<Map<string, string>> => {
  const { ranks } = await simulated({ ...SPEC, ...over, faults: [...SPEC.faults] });
  return new Map(reportOf(ranks).findings.map(({ rule, id }) => [rule, id]));
};

/** A rule that finds one thing at a place. */
function ruleAt(hotspot: string): Rule {
  const text = { en: 'x', zh: 'x' };
  const finding: RawFinding = {
    title: { text },
    ranks: [],
    steps: [],
    groups: [],
    confidence: 'high',
    evidence: [],
    caveats: [],
    removal: null,
    boundMs: null,
    boundMethod: { text },
    information: false,
    severity: 'high',
    symptomOf: null,
    frames: [],
    remedies: [],
    hotspot,
  };
  const of = { id: 'x', title: text, category: 'host', maturity: 'preview', needs: [], options: {}, remedies: [] } as const;
  return { ...of, detect: () => ({ outcome: 'findings', findings: [finding] }) };
}

describe('the fingerprint of a finding', () => {
  it('is the same for the same cause in another run with other times and another number of steps', async () => {
    const [once, again] = [await idsOf({ seed: 1 }), await idsOf({ seed: 2, steps: 6 })];
    const both = [...once.keys()].filter((rule) => again.has(rule));
    expect(both).toEqual(expect.arrayContaining(['dataloader-stall', 'transpose-hotspot']));
    for (const rule of both) expect([rule, again.get(rule)]).toEqual([rule, once.get(rule)]);
  });

  it('does not hold where a runner keeps its workspace, nor a user', async () => {
    const { ranks } = await simulated({ ...SPEC, seed: 1, faults: [...SPEC.faults] });
    const idOf = (place: string): string => reportOf(ranks, {}, [ruleAt(place)]).findings[0]!.id;
    const same = ['/actions-runner-1/_work/bert/bert/train.py:main', '/data/runners/7/_work/bert/bert/train.py:main', 'train.py:main'];
    expect(new Set(same.map(idOf)).size).toBe(1);
    expect(idOf('many:/home/bob/bert/train.py:main')).toBe(idOf('many:/home/eve/bert/train.py:main'));
    expect(idOf('train.py:main')).not.toBe(idOf('train.py:validate'));
  });
});
