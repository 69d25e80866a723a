import { median } from '../../base/statistics.ts';
import type { JobFacts } from '../../facts/job/index.ts';
import { missingRanksCaveat } from '../../facts/job/missing-ranks.ts';
import { dataConfidence } from '../../facts/job/per-step.ts';
import { kindOf, stepCount, type Transfer, transfers } from '../../facts/job/transfers.ts';
import { type Detection, defineRule } from '../../model/rule.ts';
import type { Removals } from '../../replay/replay.ts';

/** A call that runs beside computing for so much of its time, and one that runs so much by itself. */
const BESIDE = 0.8;
const ALONE = 0.2;
/** Sizes that differ less are the same size. */
const SAME_SIZE = 0.02;
/** Twins of each sort that must be there. */
const LEAST_TWINS = 3;

/** Calls of one size, beside computing and alone. */
interface Twins {
  readonly beside: readonly Transfer[];
  readonly alone: readonly Transfer[];
  readonly aloneMs: number;
  readonly slowdown: number;
}

function twinsOf(job: JobFacts): Twins[] {
  const out: Twins[] = [];
  const counted = transfers(job).filter((t) => t.whole && !t.p2p && !t.first && t.bytes > 0 && t.bodyMs > 0 && !Number.isNaN(t.overlap));
  for (const calls of Map.groupBy(counted, (t) => `${kindOf(t)}/${t.group}`).values()) {
    const sorted = [...calls].sort((a, b) => a.bytes - b.bytes);
    for (let i = 0; i < sorted.length; ) {
      let j = i;
      while (j < sorted.length && sorted[j]!.bytes <= (1 + SAME_SIZE) * sorted[i]!.bytes) j++;
      const own = sorted.slice(i, j);
      i = j;
      const beside = own.filter((t) => t.overlap >= BESIDE);
      const alone = own.filter((t) => t.overlap <= ALONE);
      if (beside.length < LEAST_TWINS || alone.length < LEAST_TWINS) continue;
      const aloneMs = median(alone.map((t) => t.bodyMs));
      out.push({ beside, alone, aloneMs, slowdown: median(beside.map((t) => t.bodyMs)) / aloneMs });
    }
  }
  return out;
}

function removalOf(job: JobFacts, slow: readonly Twins[]): Removals {
  const bodies = new Map<number, Map<number, number>>();
  for (const { beside, aloneMs } of slow) {
    for (const t of beside) {
      if (t.bodyMs <= aloneMs) continue;
      const match = job.matches[t.match]!;
      match.ranks.forEach((r, k) => {
        const { node } = job.ranks[r]!.collectives[match.calls[k]!]!;
        if (node !== -1) bodies.set(r, (bodies.get(r) ?? new Map<number, number>()).set(node, aloneMs * 1e6));
      });
    }
  }
  return new Map([...bodies].map(([r, own]) => [r, { bodies: own }] as const));
}

export default defineRule({
  id: 'bandwidth-contention',
  title: { en: 'Collectives beside computing are slowed down', zh: '与计算重叠的通信被拖慢' },
  category: 'communication',
  maturity: 'preview',
  needs: ['collectives', 'kernels'],
  options: {
    minSlowdown: {
      default: 1.5,
      unit: 'count',
      min: 1,
      max: 1_000,
      description: { en: 'times as long as calls of the same size by themselves', zh: '耗时是独自进行的相同大小通信的多少倍' },
      why: {
        en: 'sharing memory bandwidth with kernels costs up to 1.3 times anywhere; half as much again is more than that',
        zh: '与 kernel 共用显存带宽，通常最多变为 1.3 倍；1.5 倍已超出这一范围',
      },
    },
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest extra time reported, as a share of the step', zh: '可报告的最小多出耗时，占迭代耗时的比例' },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
  },
  remedies: ['ease-contention'],
  detect(job, options): Detection {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const twins = twinsOf(job);
    if (twins.length === 0) {
      return {
        outcome: 'notApplicable',
        reason: {
          text: {
            en: 'no collectives of one size ran both beside computing and by themselves, with all members here',
            zh: '没有大小相同、且与计算重叠和独自进行两种情形都有的通信（通信域成员齐全）',
          },
        },
      };
    }
    const steps = stepCount(job);
    const slow = twins.filter((t) => t.slowdown >= options.minSlowdown);
    const extraOf = (t: Twins): number => t.beside.reduce((sum, c) => sum + Math.max(0, c.bodyMs - t.aloneMs), 0) / steps;
    const extra = slow.reduce((sum, t) => sum + extraOf(t), 0);
    if (slow.length === 0 || extra < options.minShare * step) {
      const most = twins.reduce((a, b) => (b.slowdown > a.slowdown ? b : a));
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'beside computing collectives take {ratio:num} × as long as by themselves',
            zh: '与计算重叠的通信耗时是独自进行时的 {ratio:num} 倍',
          },
          params: { ratio: most.slowdown },
        },
      };
    }
    const top = slow.reduce((a, b) => (extraOf(b) > extraOf(a) ? b : a));
    const example = top.beside.reduce((a, b) => (b.bodyMs > a.bodyMs ? b : a));
    const match = job.matches[example.match]!;
    const call = job.ranks[match.ranks[0]!]!.collectives[match.calls[0]!]!;
    const missing = missingRanksCaveat(job);
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: {
              en: 'Beside computing {op:code} takes {ratio:num} × as long as by itself',
              zh: '与计算重叠时 {op:code} 的耗时是独自进行时的 {ratio:num} 倍',
            },
            params: { op: call.op, ratio: top.slowdown },
          },
          ranks: [...new Set(slow.flatMap((t) => t.beside.flatMap((c) => job.matches[c.match]!.ranks)))].sort((a, b) => a - b),
          steps: job.steps.used,
          groups: [...new Set(slow.map((t) => t.beside[0]!.group))].filter((g) => g !== '').slice(0, 8),
          confidence: dataConfidence(job, false) === 'low' ? 'low' : 'medium',
          evidence: [
            {
              message: {
                text: {
                  en: '{op:code} of {bytes:bytes}: {slow:ms} beside computing ({beside:int} calls), {alone:ms} by itself ({other:int} calls)',
                  zh: '{bytes:bytes} 的 {op:code}：与计算重叠 {slow:ms}（{beside:int} 次），独自进行 {alone:ms}（{other:int} 次）',
                },
                params: {
                  op: call.op,
                  bytes: example.bytes,
                  slow: top.slowdown * top.aloneMs,
                  beside: top.beside.length,
                  alone: top.aloneMs,
                  other: top.alone.length,
                },
              },
              file: 'trace_view.json',
              rank: match.ranks[0]!,
              step: example.step,
              start: call.start,
              duration: call.end - call.start,
            },
          ],
          caveats: [
            ...(missing === null ? [] : [missing]),
            {
              text: {
                en: 'overlap is usually worth it all the same: compare the step with and without it before changing anything',
                zh: '即便如此，重叠通常仍然划算：修改前先对比开启与关闭重叠的迭代耗时',
              },
            },
          ],
          removal: job.replay === null ? null : { likely: removalOf(job, slow) },
          ceilingOnly: true,
          boundMs: extra,
          boundMethod: {
            text: {
              en: 'time beyond that of the same collectives by themselves',
              zh: '比相同通信独自进行时多出的耗时',
            },
          },
          information: false,
          symptomOf: null,
          frames: [],
          remedies: [{ id: 'ease-contention', params: { op: call.op, slowdown: Math.round(top.slowdown * 10) / 10 } }],
          hotspot: `contention/${call.op}`,
        },
      ],
    };
  },
});
