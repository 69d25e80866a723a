/*
 * Figures of the real text sets against an independent count (INDEX.md beside the profiles), within 0.1 %.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { jobFacts } from '../../src/facts/job/index.ts';
import { rankFacts } from '../../src/facts/rank/index.ts';
import type { KernelTable, RankCapture, Spans } from '../../src/model/capture.ts';
import type { RankFacts } from '../../src/model/facts.ts';
import { captures, HAVE_PROFILES, PATHS, WHY_SKIPPED } from '../support/real-profiles.ts';

type SetName = 'level0' | 'level1' | 'level2' | 'st' | 'gpt0' | 'gpt1';

interface Breakdown {
  computing: number;
  exposed: number;
  communication: number;
  overlapped: number;
  free: number;
  stage: number;
  bubble: number;
  preparing: number | null;
}

interface Truth {
  set: SetName;
  rank: number;
  step: number;
  breakdown: Breakdown;
  kernels?: {
    compute: number;
    communication: number;
    computeUs: number;
    communicationUs: number;
    small: number;
    top: [type: string, us: number, count: number, share: number][];
  };
  /** Elapsed, transit, wait of communication.json, ms. */
  collectives?: { ops: number; elapsed: number; transit: number; wait: number };
  p2p?: { ops: number; elapsed: number; wait: number };
  /** Sums and counts of the overlap lanes, µs. */
  lanes?: { computing: [number, number]; free: [number, number]; communication: [number, number]; exposed: [number, number] };
  stepMs?: number;
  fetchMs?: number;
}

const row = (
  stage: number,
  computing: number,
  exposed: number,
  communication: number,
  overlapped: number,
  free: number,
  preparing: number | null,
): Breakdown => ({ stage, computing, exposed, communication, overlapped, free, bubble: 0, preparing });

const TRUTH: Truth[] = [
  {
    set: 'level0',
    rank: 0,
    step: 50,
    breakdown: row(116.251, 8.827, 81.516, 85.517, 4.001, 25.908, 19.358),
    kernels: { compute: 187, communication: 4, computeUs: 8827.454, communicationUs: 85516.886, small: 53, top: [] },
    lanes: { computing: [8827.473, 187], free: [25908.102, 90], communication: [85516.889, 4], exposed: [81515.607, 101] },
    stepMs: 136.898,
    fetchMs: 3.618,
  },
  {
    set: 'level0',
    rank: 1,
    step: 50,
    breakdown: row(100.602, 8.813, 64.616, 68.606, 3.99, 27.173, 18.92),
    kernels: { compute: 187, communication: 4, computeUs: 8813.154, communicationUs: 68605.708, small: 55, top: [] },
    lanes: { computing: [8813.173, 187], free: [27172.943, 90], communication: [68605.71, 4], exposed: [64616.114, 101] },
    stepMs: 120.891,
    fetchMs: 4.404,
  },
  {
    set: 'level1',
    rank: 0,
    step: 50,
    breakdown: row(136.581, 8.874, 101.963, 105.992, 4.029, 25.744, 17.9025),
    kernels: {
      compute: 187,
      communication: 4,
      computeUs: 8873.737,
      communicationUs: 105991.876,
      small: 51,
      top: [
        ['ForeachAddList', 1959.1, 3, 0.2208],
        ['TransData', 1423.2, 57, 0.1604],
        ['MatMulV2', 921.5, 8, 0.1038],
        ['Conv2D', 723.4, 5, 0.0815],
        ['Conv2DBackpropFilter', 645.4, 5, 0.0727],
      ],
    },
    collectives: { ops: 4, elapsed: 105.9919, transit: 3.6834, wait: 5.9406 },
    lanes: { computing: [8873.756, 187], free: [25744.05, 90], communication: [105991.878, 4], exposed: [101963.203, 101] },
    stepMs: 155.986,
    fetchMs: 3.332,
  },
  {
    set: 'level1',
    rank: 1,
    step: 50,
    breakdown: row(131.912, 8.878, 96.359, 100.375, 4.016, 26.675, 20.43325),
    kernels: {
      compute: 187,
      communication: 4,
      computeUs: 8878.275,
      communicationUs: 100375.284,
      small: 51,
      top: [
        ['ForeachAddList', 1954.1, 3, 0.2201],
        ['TransData', 1416.0, 57, 0.1595],
        ['MatMulV2', 947.6, 8, 0.1067],
        ['Conv2D', 722.5, 5, 0.0814],
        ['Conv2DBackpropFilter', 652.4, 5, 0.0735],
      ],
    },
    collectives: { ops: 4, elapsed: 100.3753, transit: 3.8597, wait: 0.1914 },
    lanes: { computing: [8878.295, 187], free: [26675.274, 90], communication: [100375.286, 4], exposed: [96359.047, 101] },
    stepMs: 153.888,
    fetchMs: 3.606,
  },
  {
    set: 'level2',
    rank: 0,
    step: 50,
    breakdown: row(129.863, 8.868, 95.962, 99.973, 4.011, 25.033, 17.48375),
    kernels: {
      compute: 187,
      communication: 4,
      computeUs: 8868.215,
      communicationUs: 99973.276,
      small: 50,
      top: [
        ['ForeachAddList', 1954.7, 3, 0.2204],
        ['TransData', 1393.3, 57, 0.1571],
        ['MatMulV2', 938.3, 8, 0.1058],
        ['Conv2D', 721.9, 5, 0.0814],
        ['Conv2DBackpropFilter', 663.1, 5, 0.0748],
      ],
    },
    collectives: { ops: 4, elapsed: 99.9733, transit: 4.0419, wait: 2.7063 },
    lanes: { computing: [8868.24, 187], free: [25032.619, 90], communication: [99973.278, 4], exposed: [95962.016, 101] },
    stepMs: 148.786,
    fetchMs: 3.562,
  },
  {
    set: 'level2',
    rank: 1,
    step: 50,
    breakdown: row(128.756, 8.902, 93.412, 97.455, 4.044, 26.442, 18.3255),
    kernels: {
      compute: 187,
      communication: 4,
      computeUs: 8902.276,
      communicationUs: 97455.326,
      small: 52,
      top: [
        ['ForeachAddList', 1949.1, 3, 0.2189],
        ['TransData', 1418.6, 57, 0.1594],
        ['MatMulV2', 958.4, 8, 0.1077],
        ['Conv2D', 722.2, 5, 0.0811],
        ['Conv2DBackpropFilter', 660.3, 5, 0.0742],
      ],
    },
    collectives: { ops: 4, elapsed: 97.4553, transit: 3.9704, wait: 8.776 },
    lanes: { computing: [8902.301, 187], free: [26441.689, 90], communication: [97455.326, 4], exposed: [93411.782, 101] },
    stepMs: 148.452,
    fetchMs: 3.698,
  },
  {
    set: 'st',
    rank: 0,
    step: 13,
    breakdown: row(810.022, 231.29, 420.174, 420.174, 0, 158.558, 0.20625),
    kernels: {
      compute: 2448,
      communication: 15,
      computeUs: 231290.1,
      communicationUs: 420174.26,
      small: 827,
      top: [
        ['FlashAttentionScoreGrad', 63128.7, 28, 0.2729],
        ['MatMulV3', 48000.8, 280, 0.2075],
        ['FlashAttentionScore', 24718.7, 28, 0.1069],
        ['Add', 14646.7, 457, 0.0633],
        ['RmsNormGrad', 12817.1, 112, 0.0554],
      ],
    },
    collectives: { ops: 12, elapsed: 106.2965, transit: 0, wait: 5.6381 },
    p2p: { ops: 3, elapsed: 313.8778, wait: 158.5055 },
  },
  {
    set: 'st',
    rank: 1,
    step: 13,
    breakdown: row(809.432, 230.904, 441.708, 441.708, 0, 136.82, 0.205),
    collectives: { ops: 12, elapsed: 118.7278, transit: 0.0066, wait: 6.7354 },
    p2p: { ops: 3, elapsed: 322.9806, wait: 164.0514 },
  },
  {
    set: 'st',
    rank: 2,
    step: 13,
    breakdown: row(809.803, 400.448, 277.65, 277.65, 0, 131.705, 0.189),
    kernels: {
      compute: 2564,
      communication: 23,
      computeUs: 400448.26,
      communicationUs: 277649.66,
      small: 941,
      top: [
        ['MatMulV3', 99557.4, 284, 0.2486],
        ['FlashAttentionScoreGrad', 62998.9, 28, 0.1573],
        ['Cast', 26745.1, 302, 0.0668],
        ['FlashAttentionScore', 24469.9, 28, 0.0611],
        ['Mul', 22492.4, 192, 0.0562],
      ],
    },
    collectives: { ops: 20, elapsed: 204.986, transit: 0.0126, wait: 11.5405 },
    p2p: { ops: 3, elapsed: 72.6637, wait: 0.8074 },
  },
  {
    set: 'st',
    rank: 3,
    step: 13,
    breakdown: row(810.15, 401.132, 261.498, 261.498, 0, 147.52, 0.27875),
    collectives: { ops: 20, elapsed: 186.5117, transit: 0.0167, wait: 0.0282 },
    p2p: { ops: 3, elapsed: 74.9867, wait: 0.8073 },
  },
  {
    set: 'gpt0',
    rank: 0,
    step: 2,
    breakdown: row(291.698, 75.175, 146.614, 153.601, 6.987, 69.91, null),
    kernels: {
      compute: 17,
      communication: 4,
      computeUs: 27132.428,
      communicationUs: 10238.538,
      small: 9,
      top: [
        ['FlashAttentionScore', 21114.7, 4, 0.7782],
        ['DSAStatelessGenBitMask', 5344.2, 2, 0.197],
        ['ZerosLike', 496.9, 1, 0.0183],
        ['Cast', 150.8, 3, 0.0056],
        ['NonZero', 19.5, 3, 0.0007],
      ],
    },
    collectives: { ops: 27, elapsed: 151.3584, transit: 5.4139, wait: 116.6362 },
    p2p: { ops: 1, elapsed: 0.8965, wait: 0 },
  },
  {
    set: 'gpt1',
    rank: 1,
    step: 2,
    breakdown: row(294.587, 75.422, 151.304, 158.433, 7.129, 67.861, null),
    kernels: {
      compute: 20,
      communication: 2,
      computeUs: 2017.1,
      communicationUs: 9497.76,
      small: 15,
      top: [
        ['GatherV2', 648.4, 1, 0.3215],
        ['ZerosLike', 498.4, 1, 0.2471],
        ['Tril', 364.9, 1, 0.1809],
        ['Less', 288.8, 2, 0.1432],
        ['OnesLike', 175.2, 2, 0.0868],
      ],
    },
    collectives: { ops: 27, elapsed: 156.2708, transit: 5.4061, wait: 114.8799 },
    p2p: { ops: 1, elapsed: 0.8966, wait: 0 },
  },
];

/** Within 0.1 %, or within the last printed digit of the independent count. */
function near(value: number, truth: number, digit: number, what: string): void {
  expect(Math.abs(value - truth), `${what}: ${value} against ${truth}`).toBeLessThanOrEqual(Math.max(Math.abs(truth) * 0.001, digit));
}

function sumOf(values: Iterable<number>): number {
  let total = 0;
  for (const v of values) total += v;
  return total;
}

function laneUs(spans: Spans): [number, number] {
  return [sumOf(spans.duration) / 1000, spans.duration.length];
}

function computeRows(kernels: KernelTable): number[] {
  return [...kernels.duration.keys()].filter((i) => kernels.isCommunication[i] === 0);
}

const read = new Map<SetName, RankCapture[]>();
const facts = new Map<RankCapture, RankFacts>();

describe.skipIf(!HAVE_PROFILES)(`real text profiles${WHY_SKIPPED}`, () => {
  beforeAll(async () => {
    for (const set of ['level0', 'level1', 'level2', 'st', 'gpt0', 'gpt1'] as const) {
      const list = await captures(PATHS[set]);
      read.set(set, list);
      for (const capture of list) facts.set(capture, rankFacts(capture));
    }
  });
  const captureOf = (truth: Truth): RankCapture => read.get(truth.set)!.find((c) => c.rank === truth.rank)!;

  test('every folder has its rank', () => {
    expect([...read].map(([set, list]) => [set, list.map((c) => c.rank)])).toEqual([
      ['level0', [0, 1]],
      ['level1', [0, 1]],
      ['level2', [0, 1]],
      ['st', [0, 1, 2, 3]],
      ['gpt0', [0]],
      ['gpt1', [1]],
    ]);
  });

  describe.each(TRUTH)('$set rank $rank', (truth) => {
    test('the time split of the step', () => {
      const steps = facts.get(captureOf(truth))!.steps;
      expect(steps.map((s) => s.id)).toEqual([truth.step]);
      const b = steps[0]!.breakdown;
      const t = truth.breakdown;
      near(b.computingMs, t.computing, 0.0005, 'computing');
      near(b.exposedMs, t.exposed, 0.0005, 'exposed');
      near(b.communicationMs, t.communication, 0.0005, 'communication');
      near(b.overlappedMs, t.overlapped, 0.0005, 'overlapped');
      near(b.freeMs, t.free, 0.0005, 'free');
      near(b.stageMs, t.stage, 0.0005, 'stage');
      near(b.bubbleMs, t.bubble, 0.0005, 'bubble');
      if (t.preparing === null) expect(b.preparingMs).toBeNaN();
      else near(b.preparingMs, t.preparing, 0.0003, 'preparing');
      near(b.computingMs + b.exposedMs + b.freeMs, b.stageMs + b.bubbleMs, 0.002, 'identity');
    });

    test.runIf(truth.kernels !== undefined)('the kernels', () => {
      const { kernels, names } = captureOf(truth);
      const t = truth.kernels!;
      const rows = computeRows(kernels!);
      expect(rows).toHaveLength(t.compute);
      expect(kernels!.duration.length - rows.length).toBe(t.communication);
      const us = (i: number): number => kernels!.duration[i]! / 1000;
      near(sumOf(rows.map(us)), t.computeUs, 0.001, 'compute time');
      near(sumOf([...kernels!.duration.keys()].filter((i) => kernels!.isCommunication[i] === 1).map(us)), t.communicationUs, 0.001, 'hcom');
      expect(rows.filter((i) => us(i) < 10)).toHaveLength(t.small);
      if (t.top.length === 0) return;
      const types = new Map<string, { us: number; count: number }>();
      for (const i of rows) {
        const type = names.get(kernels!.type[i]!);
        const sum = types.get(type) ?? { us: 0, count: 0 };
        types.set(type, { us: sum.us + us(i), count: sum.count + 1 });
      }
      const top = [...types].sort((a, b) => b[1].us - a[1].us).slice(0, 5);
      expect(top.map(([type, sum]) => [type, sum.count])).toEqual(t.top.map(([type, , count]) => [type, count]));
      top.forEach(([type, sum], i) => {
        near(sum.us, t.top[i]![1], 0.05, type);
        near(sum.us / t.computeUs, t.top[i]![3], 0.00005, `${type} share`);
      });
    });

    test.runIf(truth.collectives !== undefined)('communication.json', () => {
      const { collectives } = captureOf(truth);
      const of = (kind: 'collective' | 'p2p') => collectives.filter((c) => c.kind === kind);
      const t = truth.collectives!;
      expect(of('collective')).toHaveLength(t.ops);
      near(sumOf(of('collective').map((c) => c.elapsedMs)), t.elapsed, 0.0002, 'elapsed');
      near(sumOf(of('collective').map((c) => c.transitMs)), t.transit, 0.0002, 'transit');
      near(sumOf(of('collective').map((c) => c.waitMs)), t.wait, 0.0002, 'wait');
      for (const c of collectives) {
        expect(Math.abs(c.elapsedMs - c.transitMs - c.waitMs - c.idleMs)).toBeLessThan(1e-6);
        expect(c.synchronizationMs).toBeLessThanOrEqual(c.waitMs + 1e-9);
      }
      expect(of('p2p')).toHaveLength(truth.p2p?.ops ?? 0);
      near(sumOf(of('p2p').map((c) => c.elapsedMs)), truth.p2p?.elapsed ?? 0, 0.0002, 'p2p elapsed');
      near(sumOf(of('p2p').map((c) => c.waitMs)), truth.p2p?.wait ?? 0, 0.0002, 'p2p wait');
    });

    test.runIf(truth.lanes !== undefined)('the overlap lanes, the host step and the loader', () => {
      const capture = captureOf(truth);
      const lanes = capture.trace!.lanes!;
      for (const lane of ['computing', 'communication', 'exposed', 'free'] as const) {
        const [us, count] = laneUs(lanes[lane]);
        expect(count).toBe(truth.lanes![lane][1]);
        near(us, truth.lanes![lane][0], 0.001, lane);
      }
      expect(capture.trace!.steps.map((s) => s.id)).toEqual([truth.step]);
      near(capture.trace!.steps[0]!.duration / 1e6, truth.stepMs!, 0.0005, 'host step');
      const fetches = facts.get(capture)!.loader!.fetches;
      expect(fetches).toHaveLength(1);
      near((fetches[0]!.end - fetches[0]!.start) / 1e6, truth.fetchMs!, 0.0005, 'fetch');
      expect(facts.get(capture)!.loader!.iterator).toBe('multi');
    });
  });

  test('the same collective ends within 0.1 ms on both ranks once the clocks are aligned', () => {
    for (const set of ['level1', 'level2'] as const) {
      const job = jobFacts(read.get(set)!.map((c) => facts.get(c)!));
      expect(job.matches.filter((m) => m.ranks.length === 2)).toHaveLength(4);
      expect(job.clock.usable).toBe(true);
      for (const m of job.matches) {
        const [a, b] = m.ranks.map((r, k) => job.ranks[r]!.collectives[m.calls[k]!]!.end + job.clock.offset[r]!);
        expect(Math.abs(a! - b!)).toBeLessThan(100_000);
      }
    }
  });

  test('every kernel of the trace finds the row and the type of kernel_details', () => {
    for (const capture of read.get('level1')!) {
      const { tape } = facts.get(capture)!;
      const types = tape!.types;
      const kernels = [...tape!.kind.keys()].filter((i) => tape!.kind[i] === 0);
      expect(kernels).toHaveLength(187);
      expect(kernels.filter((i) => types[tape!.type[i]!] === 'TransData')).toHaveLength(57);
      expect(kernels.filter((i) => Number.isNaN(tape!.launch[i]!)).length).toBeLessThan(4);
    }
  });

  test('types of Level0 are taken from the names', () => {
    for (const { kernels, names } of read.get('level0')!) {
      expect(kernels!.typesFromNames).toBe(true);
      const rows = computeRows(kernels!).filter((i) => names.get(kernels!.type[i]!) === 'TransData');
      expect(rows).toHaveLength(57);
    }
  });

  test('quoted time stamps with a tab inside and shapes in doubled quotes are read', async () => {
    const [capture] = await captures(PATHS.quotedTimes);
    const { kernels, names } = capture!;
    expect(kernels!.start.every((t) => !Number.isNaN(t))).toBe(true);
    expect([...kernels!.step].filter((s) => s === 19).length).toBeGreaterThan(0);
    expect(names.find('N/A')).toBe(-1);
  });

  test('a loader without workers and a trace with pretty separators are read', async () => {
    const [capture] = await captures(PATHS.singleProcess);
    expect(rankFacts(capture!).loader!.iterator).toBe('single');
    expect(capture!.trace!.truncated).toBe(false);
  });
});
