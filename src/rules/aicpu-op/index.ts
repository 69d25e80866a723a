import { sharers } from '../../facts/job/culprits.ts';
import {
  changedDurations,
  coreTime,
  msByRank,
  nodesOf,
  type RankGroup,
  rankGroups,
  spokesman,
  vectorPace,
} from '../../facts/job/kernels.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import type { KernelGroup } from '../../model/facts.ts';
import { defineRule, type RawEvidence } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

const AI_CPU = /^(KERNEL_)?AI_?CPU$/i;
/** The body of a collective that HCCL runs on the AI CPU, the default of Atlas A3: its time is the collective's. */
const COLLECTIVE = /aicpu_?kernel|aicpukfc|aicpurpc|hcom|hccl/i;
/** Kernels that wait for data or for the host: no core would make them shorter. */
const WAITING = /^(GetNext|DeviceQueueDataset|QueueDequeue|StreamActive|Recv|Send)/i;
/** Operators that read and write each element once: their time on an AI core follows from the bytes. */
const STREAMING =
  /^(Cast|Mul|Muls|Add|Adds|Sub|Div|RealDiv|DivNoNan|FloorDiv|FloorMod|Mod|Neg|Abs|Sign|Pow|Sqrt|Rsqrt|Exp|Log|Square|Equal|NotEqual|Greater|GreaterEqual|Less|LessEqual|Logical(And|Or|Not|Xor)|Bitwise(And|Or|Not|Xor)|(Right|Left)Shift|Maximum|Minimum|Select|SelectV2|Where|Fill|ZerosLike|OnesLike|Identity|TensorMove|MaskedFill|Clip\w*|Range|Ceil|Floor|Round|Trunc|IsNan|IsFinite|IsInf)(V\d|AiCore)?$/;
const REPLACEABLE_TYPES = /(INT16|UINT16|DOUBLE|FLOAT64|COMPLEX128|COMPLEX64|UINT32|UINT64)/i;

const isCpuOp = (group: KernelGroup): boolean => AI_CPU.test(group.core) && !COLLECTIVE.test(group.type) && !WAITING.test(group.type);

/** The data type that may be why: those that AI core kernels often lack, else the first input's. */
function typeOf(group: KernelGroup): string {
  const types = `${group.inputTypes};${group.outputTypes}`.split(';').filter((t) => t !== '');
  return types.find((t) => REPLACEABLE_TYPES.test(t)) ?? types[0] ?? '';
}

export default defineRule({
  id: 'aicpu-op',
  title: { en: 'Operators run on the AI CPU', zh: '算子在 AI CPU 上执行' },
  category: 'compute',
  maturity: 'stable',
  needs: ['kernels', 'kernel-types', 'kernel-cores'],
  options: {
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest AI CPU time reported, as a share of the step', zh: '可报告的最小 AI CPU 耗时，占迭代耗时的比例' },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
    minMs: {
      default: 0.3,
      unit: 'ms',
      min: 0,
      max: 10_000,
      description: { en: 'smallest AI CPU time reported', zh: '可报告的最小 AI CPU 耗时' },
      why: {
        en: 'a few kernels of about 100 µs each, which real captures of healthy jobs show for scalars',
        zh: '相当于几个约 100 µs 的 kernel，实际采集的健康作业中对标量操作也会出现',
      },
    },
  },
  remedies: ['avoid-aicpu'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const all = rankGroups(job, isCpuOp);
    const ms = msByRank(job, all);
    const floor = Math.max(options.minShare * step, options.minMs);
    const ranks = sharers(ms, floor);
    const most = Math.max(0, ...ms);
    if (ranks.length === 0) {
      const bodies = msByRank(
        job,
        rankGroups(job, (g) => AI_CPU.test(g.core) && !isCpuOp(g)),
      );
      const collectives = Math.max(0, ...bodies);
      return {
        outcome: 'pass',
        reason:
          collectives > 0
            ? {
                text: {
                  en: 'operators on the AI CPU take {ms:ms} per step; {body:ms} more are the bodies of collectives there, which are communication',
                  zh: 'AI CPU 上的算子每迭代 {ms:ms}；另有 {body:ms} 是在其上执行的集合通信，属于通信',
                },
                params: { ms: most, body: collectives },
              }
            : {
                text: { en: 'operators on the AI CPU take {ms:ms} per step', zh: 'AI CPU 上的算子每迭代 {ms:ms}' },
                params: { ms: most },
              },
      };
    }
    const top = spokesman(job, ms, ranks);
    const own = all.filter((g) => g.rank === top);
    const pace = vectorPace(job);
    const timeOnCore = ({ group }: RankGroup): number =>
      STREAMING.test(group.type) ? Math.min(group.ns / group.count, coreTime(pace, group.bytesIn + group.bytesOut)) : Number.NaN;
    const known = own.filter((g) => !Number.isNaN(timeOnCore(g))).reduce((sum, g) => sum + g.ms, 0);
    // Where an AI core kernel's time is only known for a part, the rest would be a guess.
    const isDefended = known >= 0.9 * ms[top]!;
    const likely = new Map<number, Removal>();
    const ceiling = new Map<number, Removal>();
    for (const rank of ranks) {
      const groups = all.filter((g) => g.rank === rank);
      ceiling.set(rank, { nodes: nodesOf(job, rank, new Set(groups.map((g) => g.index))) });
      const left = new Map<number, (ns: number) => number>();
      for (const of of groups) {
        const time = timeOnCore(of);
        if (!Number.isNaN(time)) left.set(of.index, (ns) => Math.min(ns, time));
      }
      likely.set(rank, { durations: changedDurations(job, rank, left) });
    }
    const shown = own.slice(0, 4);
    const worst = shown[0]!.group;
    const evidence: RawEvidence[] = [
      {
        message: {
          text: {
            en: 'rank {rank:text}: {n:int} kernels per step on the AI CPU, {ms:ms} = {share:pct} of the step; the longest, {type:code}, takes {longest:ms}',
            zh: '卡 {rank:text}：每迭代 {n:int} 个 kernel 在 AI CPU 上，共 {ms:ms}，占迭代 {share:pct}；最长的 {type:code} 为 {longest:ms}',
          },
          params: {
            rank: job.ranks[top]!.rank ?? '?',
            n: own.reduce((sum, g) => sum + g.group.count, 0) / Math.max(1, job.ranks[top]!.steps.length),
            ms: ms[top]!,
            share: ms[top]! / step,
            type: worst.type,
            longest: worst.maxNs / 1e6,
          },
        },
        file: 'kernel_details.csv',
        rank: top,
        step: job.ranks[top]!.steps[worst.longest.step]?.id ?? null,
        start: worst.longest.start,
        duration: worst.longest.duration,
      },
      ...shown.map(
        ({ group, ms: each }): RawEvidence => ({
          message: {
            text: {
              en: '{type:code}, types {types:code}, shapes {shapes:code}: {n:int} kernels, {ms:ms} per step (first at row {line:int})',
              zh: '{type:code}，数据类型 {types:code}，shape {shapes:code}：{n:int} 个 kernel，每迭代 {ms:ms}（首次在第 {line:int} 行）',
            },
            params: {
              type: group.type,
              types: group.inputTypes || '?',
              shapes: group.inputShapes || '?',
              n: group.count,
              ms: each,
              line: group.line,
            },
          },
          file: 'kernel_details.csv',
          rank: top,
        }),
      ),
    ];
    const types = [...new Set(own.map((g) => g.group.type))];
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: {
              en: 'Operators on the AI CPU take {share:pct} of the step: {types:code}',
              zh: 'AI CPU 上的算子占迭代 {share:pct}：{types:code}',
            },
            params: { types: types.slice(0, 3), share: ms[top]! / step },
          },
          ranks,
          steps: job.steps.used,
          groups: [],
          confidence: dataConfidence(job, false),
          evidence,
          caveats: isDefended
            ? []
            : [
                {
                  text: {
                    en: 'how long these operators take on an AI core is not in this profile: the saving is an upper bound',
                    zh: 'profile 中没有这些算子在 AI Core 上的耗时：收益为上限',
                  },
                },
              ],
          removal: isDefended ? { likely, ceiling } : { likely: ceiling },
          ceilingOnly: !isDefended,
          boundMs: ms[top]!,
          boundMethod: { text: { en: 'kernel time on the AI CPU, median of the steps', zh: 'AI CPU 上的 kernel 耗时，各迭代的中位数' } },
          information: false,
          symptomOf: null,
          frames: shown.flatMap((g) => (g.group.frame === null ? [] : [g.group.frame])).slice(0, 2),
          remedies: [
            {
              id: 'avoid-aicpu',
              params: {
                ops: types.slice(0, 6).join(', '),
                dtypes: [...new Set(own.map((g) => typeOf(g.group)))].slice(0, 6).join(', '),
                cann: job.ranks.find((r) => r.settings.cann !== null)?.settings.cann ?? null,
              },
            },
          ],
          hotspot: `aicpu:${types[0] ?? ''}`,
        },
      ],
    };
  },
});
