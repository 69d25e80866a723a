import { deflateRawSync } from 'node:zlib';
import type { Lang } from '../../src/model/lang.ts';
import type { BreakdownRow, Report } from '../../src/model/report.ts';
import { breakdownRow, caseB, comparison, threeCauses } from './reports.ts';

/** Slices as the page reads them, written independently of the product. */
export function packed(slices: readonly (readonly [start: number, duration: number, name: number, kind: number])[]): string {
  const bytes: number[] = [];
  let before = 0;
  for (const [start, duration, name, kind] of slices) {
    for (let value of [start - before, duration, name, kind]) {
      for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
      bytes.push(value);
    }
    before = start;
  }
  return deflateRawSync(Buffer.from(bytes)).toString('base64');
}

const RANKS = [0, 1, 2, 3, 4, 5, 6, 7];
const STEPS = [46, 47, 48, 49, 50, 51, 52, 53];

function rows(): BreakdownRow[] {
  return RANKS.flatMap((rank) =>
    STEPS.map((step) => {
      const slow = rank === 5 ? 38 : 0;
      return breakdownRow(rank, step, [503 + slow, 141.4 - slow + (step === 53 ? 7 : 0), 168]);
    }),
  );
}

const kernel = (type: string, core: string, ms: number, mac: number, l2Hit: number | null) => ({
  type,
  core,
  shapes: '"8192,1024;1024,4096"',
  dataTypes: 'DT_BF16;DT_BF16',
  count: 96,
  ms,
  meanUs: (ms / 96) * 1000,
  pipes: { mac, vec: 0.1, scalar: 0.05, mte1: 0.4, mte2: 0.5, mte3: 0.2, fixpipe: 0.1 },
  boundBy: mac >= 0.8 ? ('mac' as const) : null,
  l2Hit,
  place: { file: '/workspace/repo/train.py', line: 41 },
});

/** Link 0 → 1 is slow; two servers of four cards. */
function links() {
  return RANKS.flatMap((from) =>
    RANKS.filter((to) => to !== from).map((to) => {
      const transport = from >> 2 === to >> 2 ? ('HCCS' as const) : ('RDMA' as const);
      const gbs = from === 0 && to === 1 ? 3 : transport === 'HCCS' ? 17 : 9;
      return { from, to, transport, bytes: gbs * 1e8, ms: 100, links: 1, worst: [from, to] };
    }),
  );
}

export const POINTS: readonly (readonly [number, number])[] = Array.from({ length: 60 }, (_, i) => [
  1000 * 2 ** (i / 4),
  0.05 + (1000 * 2 ** (i / 4)) / 17e6,
]);

export const STALLS = [94, 88, 90, 97, 93, 95, 92, 118];
export const TREND = [741, 742, 739, 745, 741, 812];

/** Every section of the page has something to show: the job of the wireframes, slower than its baseline, with three causes. */
export function fullReport(lang: Lang): Report {
  const of = caseB(lang).report;
  const trendPoint = (stepTimeMs: number) => ({
    stepTimeMs,
    freeShare: 0.2,
    exposedMs: 141,
    top: [{ rule: 'dataloader-stall', savingMs: 94 }],
  });
  return {
    ...of,
    findings: threeCauses(lang).map((f) =>
      lang === 'en' ? f : { ...f, saving: { ...f.saving!, method: '去掉该原因后重放采集到的迭代' } },
    ),
    breakdown: rows(),
    comparison: comparison(lang),
    patch:
      '--- a/train.py\n+++ b/train.py\n@@ -88 +88 @@\n-loader = DataLoader(train_set)\n+loader = DataLoader(train_set, num_workers=8)\n',
    views: {
      paceRank: 5,
      idleAccount: [
        ['loader', 94, 1, 'dl-7f3a'],
        ['sync', 31.2, 12, null],
        ['launch', 30.4, 410, null],
        ['unexplained', 12.4, 33, null],
      ].flatMap(([cause, ms, gaps, findingId]) => STEPS.map((step) => ({ rank: 5, step, cause, ms, gaps, findingId }))),
      gapHistogram: [
        { rank: 5, upToUs: 10, cause: 'launch', ms: 30.4 },
        { rank: 5, upToUs: 1000, cause: 'sync', ms: 31.2 },
        { rank: 5, upToUs: 1e6, cause: 'loader', ms: 94 },
      ],
      waits: RANKS.map((rank) => ({ rank, causedMs: rank === 5 ? 38 : 0, waitedMs: rank === 5 ? 0 : 38, lastCount: rank === 5 ? 208 : 1 })),
      clock: RANKS.map((rank) => ({ rank, offsetUs: rank * 10, madUs: 1.5 })),
      arrivals: [
        {
          group: '586',
          ranks: RANKS,
          members: 8,
          matched: 216,
          columns: Array.from({ length: 27 }, (_, i) => ({
            op: 'allReduce',
            step: STEPS[i % 8],
            folded: 8,
            culprit: i === 3 ? null : 5,
            skewMs: 4,
            perRankUs: RANKS.map((rank) => (i === 3 ? 0 : rank === 5 ? 4000 : rank * 10)),
          })),
        },
      ],
      operators: [
        {
          rank: 5,
          types: [
            { type: 'MatMulV2', core: 'AI_CORE', count: 1176, ms: 382.2 },
            { type: 'TransData', core: 'AI_VECTOR_CORE', count: 384, ms: 88.4 },
          ],
        },
      ],
      kernels: {
        rank: 5,
        groups: [kernel('MatMulV2', 'AI_CORE', 382.2, 0.82, 0.63), kernel('TransData', 'AI_VECTOR_CORE', 88.4, 0, null)],
        other: { count: 5512, ms: 102 },
        cores: [
          { core: 'AI_CORE', ms: 382.2 },
          { core: 'AI_VECTOR_CORE', ms: 88.4 },
        ],
        layout: { ms: 11, removableMs: 8, count: 48, ofMs: 110 },
        casts: { ms: 7.9, removableMs: 0, count: 24 },
      },
      losses: [{ findingId: 'dl-7f3a', of: 8, steps: STALLS.map((ms, i) => ({ step: STEPS[i], ms: i === 3 ? -1.2 : ms })) }],
      smallOps: {
        rank: 5,
        steps: 8,
        launchUs: 2,
        classes: [
          { fromUs: 1, toUs: 1.778, count: 400, ms: 0.6 },
          { fromUs: 1.778, toUs: 3.162, count: 900, ms: 2.4 },
        ],
        below: { count: 400, ms: 0.6 },
        total: { count: 1300, ms: 3 },
      },
      links: [{ group: null, rows: RANKS.map((rank) => [rank]), foldedBy: null, cells: links() }],
      transfers: {
        of: 120,
        mayWait: 0,
        kinds: [
          {
            op: 'allReduce',
            members: 8,
            betweenServers: true,
            calls: 60,
            bytes: POINTS.reduce((sum, [b]) => sum + b, 0),
            ms: POINTS.reduce((sum, [, ms]) => sum + ms, 0),
            line: { startUpMs: 0.05, msPerByte: 1 / 17e6, kneeBytes: 850_000 },
            points: POINTS,
          },
        ],
        groups: [{ group: '586', name: 'dp', calls: 60, exposedMs: 29, overlappedMs: 27.7, unknownMs: 0 }],
      },
      input: {
        ranks: [5, 2].map((rank) => ({
          rank,
          iterator: 'multi',
          steps: STEPS.map((step, i) => ({ step, fetchMs: STALLS[i]! + 6, stallMs: STALLS[i]!, prepareMs: 2, prepareIdleMs: 1 })),
        })),
        of: { ranks: 8, steps: 8 },
      },
      memory: [
        {
          rank: 5,
          deviceBytes: 64e9,
          peaks: { allocated: 50e9, reserved: 58e9 },
          peakAt: { ms: 300, operator: 'aten::empty' },
          curve: {
            startMs: [0, 100, 200, 300],
            allocatedMin: [10e9, 20e9, 30e9, 20e9],
            allocatedMax: [12e9, 24e9, 50e9, 22e9],
            reserved: [30e9, 30e9, 58e9, 58e9],
            active: [12e9, 24e9, 50e9, 22e9],
          },
        },
      ],
      trend: {
        branch: 'main',
        points: TREND.slice(0, -1).map((ms, i) => ({ sha: `${i}`.padEnd(40, 'a'), at: i, metrics: trendPoint(ms) })),
        now: trendPoint(812.4),
      },
      timeline: {
        parts: [2, 5].map((rank) => ({
          rank,
          step: 53,
          startUs: 1_200_000,
          lengthMs: 800,
          shiftMs: 0,
          names: ['MatMulV2', 'hcom_allReduce_1', 'DataLoader.__next__'],
          lanes: [
            { lane: 'host', stream: null, count: 1, data: packed([[410_000, 11_800_000, 2, 3]]) },
            {
              lane: 'device',
              stream: 2,
              count: 600,
              data: packed(Array.from({ length: 600 }, (_, i) => [13_000_000 + i * 100_000, 60_000, 0, 0])),
            },
            {
              lane: 'communication',
              stream: -1,
              count: 2,
              data: packed([
                [40_000_000, 5_000_000, 1, 1],
                [70_000_000, 3_000_000, 1, 1],
              ]),
            },
          ],
        })),
        leftOut: { ranks: 6, steps: 7 },
      },
    },
  };
}
