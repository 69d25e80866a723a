/* Facts as the charts of the page get them: bounded, folded by the worst, and silent where nothing was measured. */
import { describe, expect, it } from 'vitest';
import { jobFacts } from '../../src/facts/job/index.ts';
import { TRANSPORTS } from '../../src/model/capture.ts';
import type { KernelGroup, RankFacts } from '../../src/model/facts.ts';
import { inputView } from '../../src/report/input-view.ts';
import { kernelsView } from '../../src/report/kernels-view.ts';
import { linksView } from '../../src/report/links-view.ts';
import { transfersView } from '../../src/report/transfers-view.ts';

import { reportFor } from '../support/simulated.ts';

const MS = 1e6;

/** A rank of which only what the views read is filled. */
function rank(number: number, fields: object = {}): RankFacts {
  const step = (id: number) => ({
    id,
    start: id * 1000 * MS,
    end: (id + 1) * 1000 * MS,
    breakdown: {
      stepMs: 1000,
      stageMs: 1000,
      computingMs: 500,
      communicationMs: 0,
      exposedMs: 0,
      overlappedMs: 0,
      freeMs: 500,
      bubbleMs: 0,
      preparingMs: 0,
      tailMs: 0,
      source: 'x',
    },
  });
  return {
    folder: `rank${number}`,
    rank: number,
    originUs: 0,
    files: {},
    settings: {},
    groups: [],
    worldSize: null,
    parallel: {},
    links: null,
    capabilities: new Set(),
    steps: [step(10), step(11)],
    collectives: [],
    tape: null,
    loader: null,
    host: null,
    kernels: null,
    layout: null,
    casts: null,
    ...fields,
  } as unknown as RankFacts;
}

describe('input', () => {
  const fetches = (ms: number) => [
    { step: 0, start: 0, end: 30 * MS, stall: ms * MS },
    { step: 1, start: 0, end: 40 * MS, stall: 0 },
    // Before the first captured step.
    { step: -1, start: 0, end: 500 * MS, stall: 500 * MS },
  ];
  it('is nothing where no fetch was recorded', () => {
    expect(inputView(jobFacts([rank(0), rank(1)]))).toBeNull();
  });
  it('sums fetches and stalls of each captured step, most waiting first, and says how many ranks there are', () => {
    const ranks = Array.from({ length: 20 }, (_, i) => rank(i, { loader: { iterator: 'multi', frame: null, fetches: fetches(i) } }));
    const view = inputView(jobFacts([...ranks, rank(20)]))!;
    expect(view.of).toEqual({ ranks: 20, steps: 2 });
    expect(view.ranks.map((r) => r.rank)).toEqual(Array.from({ length: 16 }, (_, i) => 19 - i));
    expect(view.ranks[0]).toEqual({
      rank: 19,
      iterator: 'multi',
      steps: [
        { step: 10, fetchMs: 30, stallMs: 19, prepareMs: 0, prepareIdleMs: 0 },
        { step: 11, fetchMs: 40, stallMs: 0, prepareMs: 0, prepareIdleMs: 0 },
      ],
    });
  });
});

describe('links', () => {
  /** Links of one rank to its ring neighbour and to one rank of the next server of eight. */
  const linked = (from: number, n: number, slow: number): RankFacts => {
    const server = from - (from % 8);
    const ends = [server + ((from + 1) % 8), (from + 8) % n];
    return rank(from, {
      links: {
        ids: new Map(),
        packets: [],
        links: {
          group: ['g', 'g'],
          op: ['allReduce', 'allReduce'],
          global: true,
          source: Int32Array.of(from, from),
          target: Int32Array.from(ends),
          transport: Uint8Array.of(TRANSPORTS.indexOf('HCCS'), TRANSPORTS.indexOf('RDMA')),
          bytes: Float64Array.of(1e9, 1e9),
          ms: Float64Array.of(from === slow ? 500 : 50, 100),
          sampleLink: new Int32Array(),
          sampleCall: [],
          sampleBytes: new Float64Array(),
          sampleMs: new Float64Array(),
        },
      },
    });
  };
  const job = (n: number, slow: number) => jobFacts(Array.from({ length: n }, (_, i) => linked(i, n, slow)));

  it('are nothing where none was captured', () => {
    expect(linksView(jobFacts([rank(0), rank(1)]))).toEqual([]);
  });
  it('of few ranks stand each for itself, in both directions', () => {
    const [view] = linksView(job(16, 3));
    expect(view).toMatchObject({ group: null, foldedBy: null });
    expect(view!.rows).toHaveLength(16);
    expect(view!.cells.find((c) => c.from === 3 && c.to === 4)).toEqual({
      from: 3,
      to: 4,
      transport: 'HCCS',
      bytes: 1e9,
      ms: 500,
      links: 1,
      worst: [3, 4],
    });
    expect(view!.cells.some((c) => c.from === 4 && c.to === 3)).toBe(false);
  });
  it('of many ranks are folded by server, and the one slow link among hundreds survives by name', () => {
    const [view] = linksView(job(256, 83));
    expect(view).toMatchObject({ foldedBy: 'server' });
    expect(view!.rows).toHaveLength(32);
    const cell = view!.cells.find((c) => c.from === 10 && c.to === 10)!;
    expect(cell).toMatchObject({ worst: [83, 84], ms: 500, links: 8 });
    expect(view!.cells.filter((c) => c.ms === 500)).toHaveLength(1);
  });
});

describe('collectives by size', () => {
  it('are nothing without collectives, and a sample of what is drawn when there are thousands', () => {
    expect(transfersView(jobFacts([rank(0)]))).toBeNull();
    const call = (r: number, i: number) => {
      const bytes = 1000 * 2 ** (i % 12);
      return {
        step: 10,
        key: `g/hcom_allReduce__1_${i}_1`,
        name: `hcom_allReduce__1_${i}_1`,
        op: 'allReduce',
        group: 'g',
        p2p: false,
        // Rank 1 comes 5 ms later: its own part is the transfer.
        start: (i * 20 + r * 5) * MS,
        end: (i * 20 + 5) * MS + (0.05 + bytes / 17e6) * MS,
        transitMs: Number.NaN,
        waitMs: Number.NaN,
        bytes,
        sdmaMs: Number.NaN,
        rdmaBytes: 0,
        rdmaMs: Number.NaN,
        payload: bytes,
        exposed: 0,
        blocked: Number.NaN,
        launch: Number.NaN,
        issued: Number.NaN,
        node: -1,
      };
    };
    const n = 2400;
    const groups = [{ hash: 'g', role: 'default_group', ranks: [0, 1] }];
    const ranks = [0, 1].map((r) => rank(r, { groups, worldSize: 2, collectives: Array.from({ length: n }, (_, i) => call(r, i)) }));
    const view = transfersView(jobFacts(ranks))!;
    expect(view.of).toBe(n);
    expect(view.mayWait).toBe(0);
    // Without its partner a rank cannot tell moving from waiting.
    expect(transfersView(jobFacts([ranks[0]!]))!.mayWait).toBe(n);
    expect(view.kinds).toHaveLength(1);
    const [kind] = view.kinds;
    expect(kind!.points.length).toBeLessThanOrEqual(1000);
    expect(kind!.points.length).toBeGreaterThan(500);
    for (const [bytes, ms] of kind!.points) expect(ms).toBeCloseTo(0.05 + bytes / 17e6, 2);
    expect(kind!.line!.startUpMs).toBeCloseTo(0.05, 2);
    expect(1 / kind!.line!.msPerByte / 1e6).toBeCloseTo(17, 0);
    // Without a timeline of computing nobody can say what it covers.
    expect(view.groups).toEqual([expect.objectContaining({ name: 'default_group', calls: n, exposedMs: 0, overlappedMs: 0 })]);
    expect(view.groups[0]!.unknownMs).toBeGreaterThan(0);
  });
});

describe('kernels', () => {
  const none = {
    mac: Number.NaN,
    vec: Number.NaN,
    scalar: Number.NaN,
    mte1: Number.NaN,
    mte2: Number.NaN,
    mte3: Number.NaN,
    fixpipe: Number.NaN,
  };
  const group = (i: number, fields: Partial<KernelGroup> = {}): KernelGroup =>
    ({
      type: `Op${i}`,
      core: 'AI_CORE',
      inputShapes: '8,8',
      inputTypes: 'FLOAT',
      count: 10,
      ns: (100 - i) * MS,
      pipes: none,
      l2Hit: Number.NaN,
      frame: null,
      ...fields,
    }) as KernelGroup;
  const layout = {
    steps: [
      { step: 0, count: 4, ns: 10 * MS, computeNs: 500 * MS, removable: [], removableNs: 6 * MS },
      { step: 1, count: 4, ns: 20 * MS, computeNs: 500 * MS, removable: [], removableNs: 6 * MS },
    ],
  };

  it('are nothing without a kernel table', () => {
    expect(kernelsView(jobFacts([rank(0)]))).toBeNull();
  });
  it('keep the largest, say what the rest takes, and never turn what was not measured into 0', () => {
    const pipes = { ...none, mac: 0.85, mte2: 0.3 };
    const groups = [group(0, { pipes, l2Hit: 0.63 }), ...Array.from({ length: 39 }, (_, i) => group(i + 1))];
    const view = kernelsView(jobFacts([rank(0, { kernels: { groups, other: { count: 5, ns: MS } }, layout })]))!;
    expect(view.groups).toHaveLength(25);
    expect(view.groups[0]).toMatchObject({ boundBy: 'mac', l2Hit: 0.63, ms: 100, meanUs: 10_000 });
    expect(view.groups[1]).toMatchObject({ pipes: null, boundBy: null, l2Hit: null });
    const all = groups.reduce((sum, g) => sum + g.ns / MS, 1);
    expect(view.groups.reduce((sum, g) => sum + g.ms, view.other.ms)).toBeCloseTo(all, 6);
    expect(view.cores).toEqual([{ core: 'AI_CORE', ms: all - 1 }]);
    expect(view.layout).toEqual({ ms: 15, removableMs: 6, count: 4, ofMs: 500 });
    expect(view.casts).toBeNull();
  });
});

describe('of a whole job', () => {
  it('a cause below the reporting floor is kept as a near miss, beside the floor', async () => {
    // The small kernels run behind a full launch queue: a fused update would gain their time on the card only, 0.33 ms of 76 ms.
    const { views, findings } = await reportFor({ ranks: 2, itemEveryStep: false, faults: [{ kind: 'small-ops' }, { kind: 'recompile' }] });
    expect(findings.map((f) => f.rule)).not.toContain('unfused-optimizer');
    expect(views.nearMisses).toMatchObject([{ rule: 'unfused-optimizer', ranks: [0, 1], floorMs: 0.5 }]);
    const [{ ms }] = views.nearMisses as [{ ms: number }];
    expect(ms).toBeGreaterThan(0.2);
    expect(ms).toBeLessThan(0.5);
  });

  it('what a finding costs in each step adds up to its likely saving', async () => {
    const { views, findings } = await reportFor({ ranks: 2, faults: [{ kind: 'slow-rank', rank: 1 }] });
    const finding = findings.find((f) => f.rule === 'slow-rank')!;
    const losses = views.losses as { findingId: string; steps: { step: number; ms: number }[] }[];
    const of = losses.find((l) => l.findingId === finding.id)!;
    expect(of.steps.map((s) => s.step)).toEqual([11, 12, 13]);
    for (const { ms } of of.steps) expect(Math.abs(ms - finding.saving!.perStepMs.likely!)).toBeLessThan(0.1);
  });
});
