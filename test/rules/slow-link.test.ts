import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { simulate, writeProfiles } from '../../lab/simulator/index.ts';
import { jobFacts } from '../../src/facts/job/index.ts';
import { judgeLinks, linksOf } from '../../src/facts/job/links.ts';
import type { RankFacts } from '../../src/model/facts.ts';
import rule from '../../src/rules/slow-link/index.ts';
import { communication, factsFrom, hashOf, type Link, matrix, metadata, reportFrom, stepTimes } from '../support/communication-files.ts';
import { accuracy, checkOf, factsOf, findingOf, reportFor, simulated } from '../support/simulated.ts';

const RULE = 'slow-link';
const GROUP = hashOf('group_name_0');

/** A mesh of `ranks` in which each call moves 20 MB per link at 18 GB/s, but where `slower` says how many times as long. */
function mesh(ranks: number, calls: number, slower: (a: number, b: number, call: number) => number): Record<string, string> {
  const files: Record<string, string> = {};
  for (let rank = 0; rank < ranks; rank++) {
    const links: Link[] = [];
    for (let call = 0; call < calls; call++) {
      for (let peer = 0; peer < ranks; peer++) {
        const name = `hcom_allReduce__586_${call + 1}_1`;
        const ms = peer === rank ? 0.05 : (20 / 18) * slower(Math.min(rank, peer), Math.max(rank, peer), call);
        links.push({ group: GROUP, call: name, ends: `${rank}-${peer}`, type: peer === rank ? 'LOCAL' : 'HCCS', mb: 20, ms });
      }
    }
    const own = `rank_${rank}_ascend_pt/`;
    files[`${own}profiler_info_${rank}.json`] = JSON.stringify({ rank_id: rank });
    files[`${own}profiler_metadata.json`] = metadata(
      { group_name_0: { role: 'default_group', ranks: Array.from({ length: ranks }, (_, r) => r) } },
      rank,
      ranks,
    );
    files[`${own}ASCEND_PROFILER_OUTPUT/communication_matrix.json`] = matrix(links);
    files[`${own}ASCEND_PROFILER_OUTPUT/step_trace_time.csv`] = stepTimes(60, 30, 10);
    files[`${own}ASCEND_PROFILER_OUTPUT/communication.json`] = communication(
      Array.from({ length: calls }, (_, call) => ({
        name: `hcom_allReduce__586_${call + 1}_1`,
        group: GROUP,
        at: 1_000 + 10_000 * call,
        ms: 8,
        moved: { HCCS: { mb: 20 * (ranks - 1), ms: (20 / 18) * (ranks - 1) } },
      })),
    );
  }
  return files;
}

describe('quiet', () => {
  test('healthy links differ by a few percent', async () => {
    const report = await reportFor({ ranks: 4, layers: 4 });
    expect(checkOf(report, RULE)).toMatchObject({
      outcome: 'pass',
      reason: expect.stringMatching(/of 6 links the slowest takes 1(\.0\d)? ×/),
    });
  });

  test('a slow link that computing hides costs nothing', async () => {
    const report = await reportFor({ ranks: 4, layers: 6, faults: [{ kind: 'slow-link', ranks: [1, 2], factor: 1.3 }] });
    expect(findingOf(report, RULE)).toBeUndefined();
  });

  test('the only link of two ranks has none to be compared with, however slow', async () => {
    const report = await reportFor({ ranks: 2, layers: 6, faults: [{ kind: 'slow-link', ranks: [0, 1] }] });
    expect(checkOf(report, RULE)).toMatchObject({ outcome: 'pass', reason: expect.stringMatching(/none of them with two others/) });
  });

  test('one slow call of many is other traffic', async () => {
    const report = await reportFrom(
      mesh(4, 6, (a, b, call) => (a === 0 && b === 2 && call === 0 ? 3 : 1)),
      rule,
    );
    expect(findingOf(report, RULE)).toBeUndefined();
  });

  test('Level0 has no figures of links', async () => {
    expect(checkOf(await reportFor({ ranks: 4, layers: 4, level: 0 }), RULE).outcome).toBe('notApplicable');
  });

  test('a link that moved nothing is unused, not slow', async () => {
    const files = mesh(4, 4, () => 1);
    for (const [path, text] of Object.entries(files)) {
      if (!path.endsWith('communication_matrix.json')) continue;
      const json = JSON.parse(text);
      for (const links of Object.values(json.step5.collective) as Record<string, Record<string, number>>[])
        if (links['0-3'] !== undefined)
          links['0-3'] = { ...links['0-3'], 'Transit Size(MB)': 0, 'Transit Time(ms)': 0, 'Bandwidth(GB/s)': 0 };
      files[path] = JSON.stringify(json);
    }
    const report = await reportFrom(files, rule);
    expect(checkOf(report, RULE).outcome).toBe('pass');
    expect(linksOf(jobFacts(await factsFrom(files))).map((l) => l.key)).toHaveLength(6);
  });
});

describe('loud', () => {
  test.each([4, 8])('one slow pair of %i ranks: its two ends, saving within 20 percent', async (ranks) => {
    const fault = { kind: 'slow-link' as const, ranks: [1, 2] as [number, number] };
    const { finding, headline, truth } = await accuracy({ ranks, layers: 6, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([1, 2]);
    expect(finding.title).toMatch(/HCCS link 1–2/);
    expect(Math.abs(headline - truth)).toBeLessThan(0.2 * truth);
    expect(finding.confidence).toBe('high');
  });

  test('a slow pair between servers is compared with the other pairs between servers', async () => {
    const fault = { kind: 'slow-link' as const, ranks: [1, 9] as [number, number] };
    const { finding } = await accuracy({ ranks: 16, layers: 4, faults: [fault] }, fault, RULE);
    expect(finding.ranks).toEqual([1, 9]);
    expect(finding.title).toMatch(/RDMA link 1–9/);
    expect(finding.evidence[0]!.text).toMatch(/7 other RDMA links/);
  }, 60_000);

  test('four ranks are enough: three peers, no z-score', async () => {
    const report = await reportFrom(
      mesh(4, 3, (a, b) => (a === 0 && b === 2 ? 4 : 1)),
      rule,
    );
    const finding = findingOf(report, RULE)!;
    expect(finding.ranks).toEqual([0, 2]);
    expect(finding.title).toMatch(/0–2 takes 4 × as long/);
    expect(finding.evidence[0]!.text).toMatch(/4\.5 GB\/s in 6 calls, 5 other HCCS links of the same calls 18 GB\/s/);
    // 3.33 ms more per call, three calls.
    expect(finding.saving!.perStepMs).toMatchObject({ floor: 0, likely: null, ceiling: expect.closeTo(10, 1) });
  });

  test('all links of one card slow: the card, not the pairs', async () => {
    const report = await reportFrom(
      mesh(5, 3, (a, b) => (a === 3 || b === 3 ? 3 : 1)),
      rule,
    );
    const finding = findingOf(report, RULE)!;
    expect(finding.ranks).toEqual([3]);
    expect(finding.title).toMatch(/Every link of rank 3/);
  });

  test('with ranks missing it is a bound and says so', async () => {
    const report = await reportFor({ ranks: 4, layers: 6, uploadedRanks: [0, 1], faults: [{ kind: 'slow-link', ranks: [1, 2] }] });
    const finding = findingOf(report, RULE)!;
    expect(finding.ranks).toEqual([1]);
    expect(finding.saving).toMatchObject({ basis: 'bound', perStepMs: { likely: null } });
    expect(finding.caveats.join()).toMatch(/2 of 4 ranks are here/);
  });
});

describe('A08: links over PCIe', () => {
  // The figures of a report on a first-generation card: one call, two links, the step without a number.
  const reported = {
    step: {
      collective: {
        'allreduce-top1@6297232067196334501': {
          '0-1': {
            'Transport Type': 'HCCS',
            'Transit Size(MB)': 134.2,
            'Transit Time(ms)': 7.4,
            'Bandwidth(GB/s)': 18.1,
            'Op Name': 'hcom_allReduce__501_3_1',
          },
          '0-4': {
            'Transport Type': 'PCIE',
            'Transit Size(MB)': 134.2,
            'Transit Time(ms)': 58.3,
            'Bandwidth(GB/s)': 2.3,
            'Op Name': 'hcom_allReduce__501_3_1',
          },
        },
      },
      p2p: {},
    },
  };

  test('the slow pair, both rates and what to do; a topology, so only a ceiling', async () => {
    const files = {
      'ASCEND_PROFILER_OUTPUT/communication_matrix.json': JSON.stringify(reported),
      'ASCEND_PROFILER_OUTPUT/step_trace_time.csv': `${stepTimes(100, 80, 20).replace('\n5,', '\n,')}`,
    };
    const finding = findingOf(await reportFrom(files, rule), RULE)!;
    expect(finding.title).toMatch(/joined by PCIe \(#0–#4\) take 7\.88 × as long as those joined by HCCS/);
    expect(finding.ranks).toEqual([]);
    expect(finding.evidence[0]!.text).toMatch(/2\.3 GB\/s; HCCS links of the same calls: 18\.14 GB\/s/);
    expect(finding.saving!.perStepMs).toMatchObject({ floor: 0, likely: null, ceiling: expect.closeTo(50.9, 1) });
    expect(finding.caveats.join()).toMatch(/not a fault/);
  });

  test('tiny transfers say nothing of a link', async () => {
    const tiny = structuredClone(reported);
    for (const link of Object.values(tiny.step.collective['allreduce-top1@6297232067196334501'])) {
      link['Transit Size(MB)'] = 0.003;
      link['Transit Time(ms)'] = link['Transport Type'] === 'PCIE' ? 0.0016 : 0.0011;
    }
    const files = {
      'ASCEND_PROFILER_OUTPUT/communication_matrix.json': JSON.stringify(tiny),
      'ASCEND_PROFILER_OUTPUT/step_trace_time.csv': stepTimes(100, 80, 20),
    };
    expect(findingOf(await reportFrom(files, rule), RULE)).toBeUndefined();
  });
});

describe('which ranks a link joins', () => {
  const keysOf = async (files: Record<string, string>): Promise<string[]> =>
    linksOf(jobFacts(await factsFrom(files)))
      .map((l) => l.key)
      .sort();

  test('numbers of the group are translated by the metadata', async () => {
    const files = mesh(2, 2, () => 1);
    for (const rank of [0, 1]) {
      const ranks = [4, 6];
      files[`rank_${rank}_ascend_pt/profiler_metadata.json`] = metadata({ group_name_0: { role: 'dp', ranks } }, ranks[rank]!, 8);
      files[`rank_${rank}_ascend_pt/profiler_info_${ranks[rank]}.json`] = JSON.stringify({ rank_id: ranks[rank] });
      delete files[`rank_${rank}_ascend_pt/profiler_info_${rank}.json`];
    }
    expect(await keysOf(files)).toEqual(['4-6/HCCS']);
  });

  test('without metadata only what the ranks themselves report under is known', async () => {
    const files = mesh(4, 2, () => 1);
    for (const path of Object.keys(files)) if (/metadata|rank_[23]_/.test(path)) delete files[path];
    // Ranks 0 and 1 of four report under their own numbers, and the four are all there are: the default group.
    expect(await keysOf(files)).toEqual(['0-1/HCCS', '0-2/HCCS', '0-3/HCCS', '1-2/HCCS', '1-3/HCCS']);
    const alone = Object.fromEntries(Object.entries(files).filter(([path]) => !path.startsWith('rank_1_')));
    expect(await keysOf(alone)).toEqual([`${GROUP}/0-1/HCCS`, `${GROUP}/0-2/HCCS`, `${GROUP}/0-3/HCCS`]);
  });

  test('text and database of one job give the same links', async () => {
    const spec = { ranks: 4, layers: 4, faults: [{ kind: 'slow-link' as const, ranks: [0, 3] as [number, number] }] };
    const dir = await mkdtemp(join(tmpdir(), 'npu-advisor-links-'));
    try {
      await writeProfiles(simulate(spec), dir, { export: 'db' });
      const [text, database] = [(await simulated(spec)).ranks, await factsOf(dir)].map((ranks) => judgeLinks(jobFacts(ranks)));
      expect(text).toHaveLength(6);
      expect(text![0]!.link.key).toBe('0-3/HCCS');
      expect(database).toEqual(text);
      const packets = (ranks: readonly RankFacts[]) => ranks.map((r) => r.links!.packets);
      expect(packets(await factsOf(dir))).toEqual(packets((await simulated(spec)).ranks));
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });
});

describe('options', () => {
  test.each([
    ['minSlowdown', 20],
    ['minCalls', 500],
    ['minShare', 0.9],
  ])('a higher %s silences the rule', async (name, value) => {
    const spec = { ranks: 4, layers: 6, faults: [{ kind: 'slow-link' as const, ranks: [1, 2] as [number, number] }] };
    expect(findingOf(await reportFor(spec, { [RULE]: { [name]: value } }), RULE)).toBeUndefined();
  });
});
