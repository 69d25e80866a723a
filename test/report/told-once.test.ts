import { describe, expect, test } from 'vitest';
import type { RankFacts } from '../../src/model/facts.ts';
import type { RawFinding, Rule } from '../../src/model/rule.ts';
import { reportOf, simulated } from '../support/simulated.ts';

/** A rule that always finds that these kernels of rank 0 need not be there. */
function ruleOf(id: string, nodes: readonly number[], explainedBy: readonly string[], over: Partial<RawFinding> = {}): Rule {
  const text = { en: id, zh: id };
  const finding: RawFinding = {
    title: { text },
    ranks: [0],
    steps: [],
    groups: [],
    confidence: 'high',
    evidence: [],
    caveats: [],
    removal: { likely: new Map([[0, { nodes: new Set(nodes) }]]) },
    boundMs: 5,
    boundMethod: { text },
    information: false,
    symptomOf: null,
    explainedBy,
    frames: [],
    remedies: [],
    hotspot: id,
    ...over,
  };
  return {
    id,
    title: text,
    category: 'compute',
    maturity: 'preview',
    needs: [],
    options: {},
    remedies: [],
    detect: () => ({ outcome: 'findings', findings: [finding] }),
  };
}

/** The longest kernels of the second captured step: without them the step is shorter. */
function longest({ tape }: RankFacts, count: number): number[] {
  return [...tape!.duration.keys()]
    .filter((i) => tape!.kind[i] === 0)
    .sort((a, b) => tape!.duration[b]! - tape!.duration[a]!)
    .slice(0, count);
}

async function owners(make: (nodes: readonly number[]) => readonly Rule[]): Promise<Record<string, string | null>> {
  const { ranks } = await simulated({ ranks: 1, layers: 4 });
  const report = reportOf(ranks, {}, make(longest(ranks[0]!, 120)));
  const rule = new Map(report.findings.map((f) => [f.id, f.rule]));
  return Object.fromEntries(report.findings.map((f) => [f.rule, f.symptomOf === null ? null : rule.get(f.symptomOf)!]));
}

describe('findings about the same kernels', () => {
  test('most of one are the other rule’s: told there', async () => {
    expect(await owners((n) => [ruleOf('a', n, []), ruleOf('b', n.slice(0, 80), ['a'])])).toEqual({ a: null, b: 'a' });
  });

  test('few of them, or none: both stand, on whichever rank', async () => {
    expect(await owners((n) => [ruleOf('a', n.slice(0, 60), []), ruleOf('b', n.slice(40), ['a'])])).toEqual({ a: null, b: null });
  });

  test('a finding that is not about kernels meets the other on a rank', async () => {
    const host = { removal: null };
    expect(await owners((n) => [ruleOf('a', n, [], host), ruleOf('b', n.slice(0, 80), ['a'])])).toMatchObject({ b: 'a' });
  });

  test('each may own the other: the first one does', async () => {
    expect(await owners((n) => [ruleOf('a', n, ['b']), ruleOf('b', n, ['a'])])).toEqual({ a: null, b: 'a' });
  });

  test('a part is owned by the whole, also where the whole may be owned by the part', async () => {
    expect(await owners((n) => [ruleOf('a', n.slice(0, 30), ['b']), ruleOf('b', n, ['a'])])).toEqual({ a: 'b', b: null });
  });
});
