import { describe, expect, test } from 'vitest';
import type { JobSpec } from '../../lab/simulator/index.ts';
import { codeFacts } from '../../src/facts/code/index.ts';
import { jobFacts } from '../../src/facts/job/index.ts';
import { wrongValues } from '../../src/model/environment-values.ts';
import type { Report } from '../../src/model/report.ts';
import { differences } from '../../src/rules/environment/values.ts';
import { RULES } from '../../src/rules/index.ts';
import { sourceTreeFrom } from '../../src/source/source-tree-from.ts';
import { adviceOf } from '../remedies/situations.ts';
import { analysePaths } from '../support/grid.ts';
import { HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';
import { checkOf, findingOf, reportFor, reportOf, simulated } from '../support/simulated.ts';

const RULE = 'environment';
const JOB = { ranks: 2, layers: 4, steps: 3 } as const;
/** The card starves for a good part of the step. */
const STARVED: JobSpec = { ...JOB, faults: [{ kind: 'small-ops' }] };
const all = (report: Report) => report.findings.filter((f) => f.rule === RULE);

describe('quiet', () => {
  test('equal values without a cost', async () => {
    expect(checkOf(await reportFor({ ...JOB, env: { TASK_QUEUE_ENABLE: '1' } }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test.each<[string, string]>([
    ['ASCEND_GLOBAL_LOG_LEVEL', '1'],
    ['TASK_QUEUE_ENABLE', '0'],
    ['ACLNN_CACHE_LIMIT', '100'],
    ['CPU_AFFINITY_CONF', '0'],
    ['HCCL_ALGO', 'level0:fullmesh'],
  ])('trap: %s=%s where the profile shows nothing of it', async (name, value) => {
    // Device-bound: one rank, no communication, hardly a launch gap.
    expect(checkOf(await reportFor({ ...JOB, ranks: 1, layers: 12, env: { [name]: value } }), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test.each(['HCCL_CONNECT_TIMEOUT', 'ACLNN_CACHE_LIMIT', 'HOST_CACHE_CAPACITY', 'PYTORCH_NPU_ALLOC_CONF'])(
    'trap: %s unset is the default and never blamed',
    async (name) => {
      expect(all(await reportFor({ ...STARVED, env: { [name]: '' } }))).toEqual([]);
    },
  );

  test('names of places differ by right', () => {
    expect(
      differences([
        { HCCL_IF_IP: '10.0.0.1', ASCEND_RT_VISIBLE_DEVICES: '0', MY_TOKEN: 'a', HCCL_SOCKET_IFNAME: 'eth0', RANK: '0' },
        { HCCL_IF_IP: '10.0.0.2', ASCEND_RT_VISIBLE_DEVICES: '1', MY_TOKEN: 'b', HCCL_SOCKET_IFNAME: 'eth1', RANK: '1' },
      ]),
    ).toEqual([]);
  });
});

describe('loud: with the symptom', () => {
  test.each<[string, string, string]>([
    ['ASCEND_GLOBAL_LOG_LEVEL', '1', 'medium'],
    ['TASK_QUEUE_ENABLE', '0', 'medium'],
    ['ACLNN_CACHE_LIMIT', '100', 'medium'],
    ['CPU_AFFINITY_CONF', '', 'info'],
  ])('%s=%s with launch gaps is %s, without a saving of its own', async (name, value, severity) => {
    const [finding] = all(await reportFor({ ...STARVED, env: { [name]: value } }));
    expect(finding).toMatchObject({ severity, saving: null, ranks: [0, 1] });
    expect(finding!.evidence[1]!.text).toMatch(/nothing was launched/);
  });

  test('a setting is blamed where its rank shows it', async () => {
    const findings = all(await reportFor({ ...STARVED, envOfRank: { 1: { TASK_QUEUE_ENABLE: '0' } }, env: { TASK_QUEUE_ENABLE: '1' } }));
    expect(findings.map((f) => f.title).join('\n')).toMatch(/Ranks disagree on `TASK_QUEUE_ENABLE`/);
    expect(findings.find((f) => /turns the dispatch queue off/.test(f.title))!.ranks).toEqual([1]);
  });

  test('launch blocking is high: every launch is waited for', async () => {
    const { ranks } = await simulated({ ...JOB, faults: [{ kind: 'launch-blocking' }] });
    const own = findingOf(
      reportOf(
        ranks,
        {},
        RULES.filter((r) => r.id !== 'stream-sync'),
      ),
      RULE,
    )!;
    expect(own).toMatchObject({ severity: 'high', confidence: 'high', saving: null });
    expect(own.title).toMatch(/every launch waits for the card/);
    // With the rule that measures the waits it is the evidence of what that one reports.
    const report = reportOf(ranks);
    const measured = findingOf(report, 'stream-sync')!;
    expect(measured.saving!.perStepMs.likely).toBeGreaterThan(0);
    expect(findingOf(report, RULE)).toMatchObject({ symptomOf: measured.id, title: own.title, evidence: own.evidence });
  });
});

describe('loud: always', () => {
  test('ranks that disagree, the few against the many', async () => {
    const report = await reportFor({ ...JOB, ranks: 3, envOfRank: { 2: { HCCL_RDMA_TC: '136', PYTORCH_NPU_ALLOC_CONF: '' } } });
    const [finding] = all(report);
    expect(finding).toMatchObject({ severity: 'medium', confidence: 'high', ranks: [2], saving: null });
    expect(finding!.evidence.map((e) => e.text)).toEqual([
      'rank 0, 1: `HCCL_RDMA_TC` is `unset`',
      'rank 2: `HCCL_RDMA_TC` is `136`',
      'rank 0, 1: `PYTORCH_NPU_ALLOC_CONF` is `expandable_segments:True`',
      'rank 2: `PYTORCH_NPU_ALLOC_CONF` is `unset`',
    ]);
  });

  test('of two ranks nobody can say which is right', async () => {
    expect(all(await reportFor({ ...JOB, envOfRank: { 1: { HCCL_ALGO: 'x' } }, era: '2025-11' }))[0]!.ranks).toEqual([]);
  });

  test.each<[Record<string, string>, RegExp | null]>([
    [{ HCCL_RDMA_TC: '130' }, /`HCCL_RDMA_TC` accepts .*not `130`/],
    [{ HCCL_RDMA_TC: '132' }, null],
    [{ HCCL_RDMA_SL: '9' }, /`HCCL_RDMA_SL` accepts 0–7/],
    [{ TASK_QUEUE_ENABLE: '3' }, /accepts 0, 1, 2/],
    [{ STREAMS_PER_DEVICE: '16' }, /accepts 8, 32/],
    [{ PYTORCH_NPU_ALLOC_CONF: 'a', PYTORCH_ALLOC_CONF: 'b' }, /the process exits/],
    [{ PYTORCH_NPU_ALLOC_CONF: 'expandable_segments:True,max_split_size_mb:64' }, /excludes/],
    [{ HCCL_INTRA_PCIE_ENABLE: '1', HCCL_INTRA_ROCE_ENABLE: '1' }, /no supported pair/],
    [{ HCCL_INTRA_PCIE_ENABLE: '0', HCCL_INTRA_ROCE_ENABLE: '' }, /no supported pair/],
    [{ HCCL_INTRA_PCIE_ENABLE: '0', HCCL_INTRA_ROCE_ENABLE: '1' }, null],
    [{ HCCL_INTRA_PCIE_ENABLE: '0' }, null],
    [{ HCCL_DETERMINISTIC: 'TRUE', ACLNN_CACHE_LIMIT: '0' }, null],
  ])('%j', (env, why) => {
    const wrong = wrongValues(env).map(({ why }) =>
      why.text.en
        .replace(/\{(\w+):code\}/g, (_, k: string) => `\`${why.params![k]}\``)
        .replace(/\{(\w+):text\}/g, (_, k: string) => String(why.params![k])),
    );
    if (why === null) expect(wrong).toEqual([]);
    else expect(wrong.join()).toMatch(why);
  });

  test('a value that is refused is reported without any symptom', async () => {
    const [finding] = all(await reportFor({ ...JOB, env: { HCCL_RDMA_TC: '130' } }));
    expect(finding).toMatchObject({ severity: 'medium', confidence: 'high', saving: null, ranks: [0, 1] });
  });
});

test('HCCL_RDMA_TC has a text under its right name: the vendor table spells it HCCL_RDAM_TC', async () => {
  const report = await reportFor({ ...JOB, env: { HCCL_RDMA_TC: '136' } }, { [RULE]: { minShare: 0 } });
  const finding = all(report).find((f) => f.title.includes('`HCCL_RDMA_TC` = `136`'))!;
  expect(finding.title).toMatch(/has to equal the plan of the switch/);
  const advice = adviceOf('set-environment', { params: { kind: 'symptom', name: 'HCCL_RDMA_TC' } })!;
  expect(advice.text.en).toMatch(/`HCCL_RDMA_TC` is a multiple of 4/);
  expect(JSON.stringify(advice)).not.toMatch(/RDAM/);
});

test('without recorded variables it is not applicable', async () => {
  const { factsOf: _, reportOf, simulated } = await import('../support/simulated.ts');
  const { ranks } = await simulated(JOB);
  const bare = ranks.map((r) => ({ ...r, settings: { ...r.settings, env: {} } }));
  expect(checkOf(reportOf(bare), RULE).outcome).toBe('notApplicable');
});

describe.skipIf(!HAVE_PROFILES)(`real captures${WHY_SKIPPED}`, () => {
  // The vendor's advisor lists unset variables of level1 as findings; unset is the default.
  test.each(['level0', 'level1', 'level2', 'st'] as const)('%s: nothing to blame', async (set) => {
    expect(checkOf(await analysePaths([PATHS[set]]), RULE)).toMatchObject({ outcome: 'pass' });
  });

  test('fragments without metadata: not applicable', async () => {
    expect(checkOf(await analysePaths([PATHS.gpt0]), RULE).outcome).toBe('notApplicable');
  });
});

describe('what the profiler does not record may stand in a launch script', () => {
  const detect = async (files: Readonly<Record<string, string>>, env: Readonly<Record<string, string>> = {}) => {
    const { ranks: recorded } = await simulated(STARVED);
    const ranks = recorded.map((rank) => ({ ...rank, settings: { ...rank.settings, env: { ...rank.settings.env, ...env } } }));
    const rule = RULES.find(({ id }) => id === RULE)!;
    return rule.detect(jobFacts(ranks), { minShare: 0.1 }, codeFacts(sourceTreeFrom({ files: Object.entries(files) })));
  };
  const OFF = { 'run.sh': '#!/bin/bash\nexport TASK_QUEUE_ENABLE=0\n' };

  test('loud: the script turns the queue off, and the card starves', async () => {
    expect(await detect(OFF)).toMatchObject({
      outcome: 'findings',
      findings: [
        { hotspot: 'TASK_QUEUE_ENABLE', confidence: 'low', evidence: [{ message: { params: { place: 'run.sh:2', value: '0' } } }, {}] },
      ],
    });
  });

  test('the remedy points at the lines, and says when files do not agree', () => {
    const source = sourceTreeFrom({ files: Object.entries({ ...OFF, 'ci.yml': 'env:\n  TASK_QUEUE_ENABLE: 2\n' }) });
    const { text, locations } = adviceOf('set-environment', { params: { kind: 'symptom', name: 'TASK_QUEUE_ENABLE' }, source })!;
    expect(text.en).toContain('The files do not agree: `ci.yml:2 = 2`, `run.sh:2 = 0`.');
    expect(text.zh).toContain('`ci.yml:2 = 2`、`run.sh:2 = 0`');
    expect(locations).toEqual([{ file: 'run.sh', line: 2, symbol: null }]);
  });

  test.each<[string, Readonly<Record<string, string>>, Readonly<Record<string, string>>]>([
    ['the profile records another value', OFF, { TASK_QUEUE_ENABLE: '1' }],
    ['files disagree', { ...OFF, 'other.sh': 'export TASK_QUEUE_ENABLE=2' }, {}],
    ['only a default', { 'run.sh': 'export TASK_QUEUE_ENABLE=\u0024{TASK_QUEUE_ENABLE:-0}' }, {}],
    ['a debug script', { 'debug.sh': 'export TASK_QUEUE_ENABLE=0' }, {}],
    ['no script', {}, {}],
  ])('quiet: %s', async (_, files, env) => {
    expect((await detect(files, env)).outcome).not.toBe('findings');
  });
});
