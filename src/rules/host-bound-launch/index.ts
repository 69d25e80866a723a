import { ranksAbove } from '../../facts/job/culprits.ts';
import { biasCaveat, launchStretches, quoted } from '../../facts/job/host-time.ts';
import type { JobFacts } from '../../facts/job/index.ts';
import { launchGaps } from '../../facts/job/launch-gaps.ts';
import { smallLoops } from '../../facts/job/loops.ts';
import { dataConfidence, medianOfUsed, sumByStep } from '../../facts/job/per-step.ts';
import { COMPUTE, type RankFacts } from '../../model/facts.ts';
import { type Detection, defineRule, type RawEvidence } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

/** Launches this much further apart than on the other ranks are the host of that rank (see slow-rank). */
const SLOW_HOST = 1.5;
/** Waits per kernel from which the waits are the cause (see stream-sync). */
const BLOCKING = 0.5;
/** Without step marks: where the card is idle for so long, no kernel is worth a look before that (sgl-project/sglang#23565). */
const IDLE = 0.4;
/** A slow host leaves a gap before nearly every kernel, anything else before some. */
const NEARLY_ALL = 0.8;

function kernelsPerStep(rank: RankFacts): { count: number[]; ns: number[] } {
  const count = new Array<number>(rank.steps.length).fill(0);
  const ns = new Array<number>(rank.steps.length).fill(0);
  const { tape } = rank;
  if (tape !== null) {
    for (let i = 0; i < tape.start.length; i++) {
      const step = tape.step[i]!;
      if (step < 0 || tape.kind[i] !== COMPUTE) continue;
      count[step] = count[step]! + 1;
      ns[step] = ns[step]! + tape.duration[i]!;
    }
  }
  return { count, ns };
}

/** A capture without step marks, as of serving: gaps before nearly every kernel, which only launches leave. */
function withoutSteps(job: JobFacts, minMs: number): Detection | null {
  const gaps = job.ranks.map((r) => launchGaps(r));
  const share = (r: number): number => gaps[r]!.idle / (gaps[r]!.idle + gaps[r]!.busy);
  const ranks = job.ranks
    .map((_, r) => r)
    .filter((r) => gaps[r] !== null && gaps[r]!.before >= NEARLY_ALL && share(r) >= IDLE && gaps[r]!.idle / 1e6 >= minMs);
  if (ranks.length === 0) return null;
  const top = ranks.reduce((a, b) => (gaps[b]!.idle > gaps[a]!.idle ? b : a));
  const own = gaps[top]!;
  const facts = job.ranks[top]!;
  const seen = ranks.every((r) => gaps[r]!.seen);
  const file = facts.capabilities.has('kernel-types') ? 'kernel_details.csv' : 'trace_view.json';
  const evidence: RawEvidence[] = [
    {
      message: {
        text: {
          en: 'rank {rank:text}: a gap comes before {before:pct} of the kernels, {gap:int} µs where the kernels take {kernel:int} µs (medians); the card works for {busy:ms} and is idle for {idle:ms} between',
          zh: '卡 {rank:text}：{before:pct} 的 kernel 之前有空隙，中位数 {gap:int} µs，而 kernel 中位数 {kernel:int} µs；NPU 工作 {busy:ms}，其间空闲 {idle:ms}',
        },
        params: {
          rank: facts.rank ?? '?',
          before: own.before,
          gap: own.medianGap / 1e3,
          kernel: own.medianKernel / 1e3,
          busy: own.busy / 1e6,
          idle: own.idle / 1e6,
        },
      },
      file,
      rank: top,
      start: own.longest.start,
      duration: own.longest.duration,
    },
    {
      message: {
        text: {
          en: 'a block of {n:int} kernels repeats {count:int} times: idle for {idle:int} of {whole:int} µs ({share:pct}), at work for {busy:int} µs',
          zh: '由 {n:int} 个 kernel 组成的块重复 {count:int} 次：{whole:int} µs 中空闲 {idle:int} µs（{share:pct}），工作 {busy:int} µs',
        },
        params: {
          n: own.block.kernels,
          count: own.block.count,
          idle: own.block.idle / 1e3,
          whole: own.block.duration / 1e3,
          share: own.block.idle / own.block.duration,
          busy: (own.block.duration - own.block.idle) / 1e3,
        },
      },
      file,
      rank: top,
    },
  ];
  return {
    outcome: 'findings',
    findings: [
      {
        title: {
          text: {
            en: 'Launch-bound: the card is idle before almost every kernel, {share:pct} of the time',
            zh: '下发受限：几乎每个 kernel 之前 NPU 都空闲，占 {share:pct}',
          },
          params: { share: own.block.idle / own.block.duration },
        },
        ranks,
        steps: [],
        groups: [],
        confidence: seen ? 'medium' : 'low',
        evidence,
        caveats: seen
          ? biasCaveat(facts)
          : [
              {
                text: {
                  en: 'the host was not recorded: that it was launching follows from the gaps alone',
                  zh: '没有采集 Host 侧：仅由空隙推断 Host 正在下发',
                },
              },
            ],
        removal: null,
        boundMs: own.idle / 1e6,
        boundMethod: {
          text: {
            en: 'idle time before kernels over the whole capture, if all of it went',
            zh: '整个采集中 kernel 之前的空闲，全部消除时的上限',
          },
        },
        information: false,
        symptomOf: null,
        frames: [],
        remedies: [{ id: 'launch-settings', params: { inference: true, kernels: own.kernels } }],
        hotspot: 'launch-gaps',
      },
    ],
  };
}

export default defineRule({
  id: 'host-bound-launch',
  title: { en: 'The card waits for launches through the whole step', zh: '整个迭代 NPU 都在等待下发' },
  category: 'host',
  maturity: 'stable',
  needs: ['steps', 'host-ops', 'kernels', 'launches'],
  options: {
    minShare: {
      default: 0.1,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest wait for launches reported, as a share of the step', zh: '可报告的最小下发等待，占迭代耗时的比例' },
      why: {
        en: 'some launches are late in any step; from 10 % on the host sets the pace of a good part of it',
        zh: '任何迭代都有部分下发来不及；达到 10% 时，迭代中相当一部分由 Host 决定步调',
      },
    },
    minMs: {
      default: 1,
      unit: 'ms',
      min: 0,
      max: 10_000,
      description: { en: 'smallest wait for launches reported', zh: '可报告的最小下发等待' },
      why: {
        en: 'some 40 launches; less is not worth a change',
        zh: '约 40 次下发；更少则不值得修改',
      },
    },
  },
  remedies: ['launch-settings'],
  detectWithoutSteps: (job, options) => withoutSteps(job, options.minMs),
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const small = smallLoops(job);
    // What repeated small kernels are late with is theirs, the start of the step is step-start-gap's.
    const late = job.ranks.map((r, i) => {
      if (r.idle === null || r.host === null) return Number.NaN;
      const loops = sumByStep(r.steps.length, small.ranks.includes(i) ? small.loops[i]! : [], (f) => f.starved);
      return medianOfUsed(
        job,
        r.idle.steps.map((s) => Math.max(0, s.launch - s.leadLaunch - (loops[s.step] ?? 0)) / 1e6),
      );
    });
    const floor = Math.max(options.minShare * step, options.minMs);
    const above = ranksAbove(late, floor);
    const others = job.ranks.filter((_, i) => !above.includes(i)).map((r) => r.tape?.launchInterval ?? Number.NaN);
    const fastest = Math.min(...others.filter((v) => !Number.isNaN(v)));
    const ranks = above.filter((i) => !(job.ranks[i]!.tape!.launchInterval > SLOW_HOST * fastest));
    if (ranks.length === 0) {
      const known = late.filter((v) => !Number.isNaN(v));
      return {
        outcome: 'pass',
        reason:
          above.length > 0
            ? {
                text: {
                  en: 'only the host of rank {ranks:ranks} is slow to launch, see {rule:code}',
                  zh: '只有卡 {ranks:ranks} 的 Host 下发慢，见 {rule:code}',
                },
                params: { ranks: above.map((i) => job.ranks[i]!.rank ?? -1), rule: 'slow-rank' },
              }
            : {
                text: {
                  en: 'outside repeated small kernels and the start of the step the card waited {ms:ms} per step for launches',
                  zh: '除重复的小算子与迭代开头外，NPU 每迭代等待下发 {ms:ms}',
                },
                params: { ms: Math.max(0, ...known) },
              },
      };
    }
    const pace = quoted(job, ranks, late);
    const facts = job.ranks[pace]!;
    const { count, ns } = kernelsPerStep(facts);
    const kernels = medianOfUsed(job, count) || 0;
    const waits = medianOfUsed(
      job,
      sumByStep(
        facts.steps.length,
        facts.host!.syncs.filter((s) => s.kind === 'stream').flatMap((s) => s.costs),
        (c) => c.count,
      ),
    );
    if (waits >= BLOCKING * kernels) {
      return {
        outcome: 'pass',
        reason: {
          text: { en: 'every launch waits for the card, see {rule:code}', zh: '每次下发都等待 NPU，见 {rule:code}' },
          params: { rule: 'stream-sync' },
        },
      };
    }
    const stretches = new Map(ranks.map((r) => [r, launchStretches(job.ranks[r]!)] as const));
    const own = stretches.get(pace)!;
    let worst = 0;
    for (let i = 1; i < own.start.length; i++) if (own.end[i]! - own.start[i]! > own.end[worst]! - own.start[worst]!) worst = i;
    const at = own.start[worst];
    const stepAt = facts.steps.findIndex((s) => at !== undefined && at >= s.start && at < s.end);
    const evidence: RawEvidence[] = [
      {
        message: {
          text: {
            en: 'rank {rank:text}: {n:int} kernels per step, {kernel:ms} each on average, launched every {interval:ms}; the card had nothing queued for {late:ms} of the step ({share:pct})',
            zh: '卡 {rank:text}：每迭代 {n:int} 个 kernel，平均 {kernel:ms}，每 {interval:ms} 下发一个；NPU 有 {late:ms} 无任务可执行（占迭代 {share:pct}）',
          },
          params: {
            rank: facts.rank ?? '?',
            n: kernels,
            kernel: (medianOfUsed(job, ns) || 0) / Math.max(1, kernels) / 1e6,
            interval: facts.tape!.launchInterval / 1e6,
            late: late[pace]!,
            share: late[pace]! / step,
          },
        },
        file: 'trace_view.json',
        rank: pace,
        step: facts.steps[stepAt]?.id ?? null,
        ...(at === undefined ? {} : { start: at, duration: own.end[worst]! - at }),
      },
    ];
    const removal = new Map<number, Removal>([...stretches].map(([r, host]) => [r, { host }] as const));
    const half = new Map<number, Removal>(
      [...stretches].map(
        ([r, set]) => [r, { host: { start: set.start, end: set.end.map((e, i) => set.start[i]! + (e - set.start[i]!) / 2) } }] as const,
      ),
    );
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: {
              en: 'The card waits for launches for {late:ms} of each step',
              zh: '每个迭代 NPU 有 {late:ms} 在等待下发',
            },
            params: { late: late[pace]! },
          },
          ranks,
          steps: job.steps.used,
          groups: [],
          confidence: dataConfidence(job, true),
          evidence,
          caveats: biasCaveat(facts),
          removal: { likely: removal, floor: half },
          boundMs: late[pace]!,
          boundMethod: {
            text: {
              en: 'idle time of the card with nothing launched, outside small loops and the start of the step, median of the steps',
              zh: '未下发任务造成的 NPU 空闲，不含小算子循环与迭代开头，各迭代的中位数',
            },
          },
          information: false,
          symptomOf: null,
          frames: [],
          remedies: [
            {
              id: 'launch-settings',
              params: {
                taskQueue: facts.settings.env.TASK_QUEUE_ENABLE ?? null,
                affinity: facts.settings.env.CPU_AFFINITY_CONF ?? null,
                kernels,
              },
            },
          ],
          hotspot: 'launch',
        },
      ],
    };
  },
});
