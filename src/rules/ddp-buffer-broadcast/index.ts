import { covered, union } from '../../base/intervals.ts';
import { dataConfidence, medianOfUsed, sumByStep } from '../../facts/job/per-step.ts';
import { COMPUTE, type CollectiveFacts, type RankFacts, type Tape } from '../../model/facts.ts';
import { defineRule } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

/** A broadcast belongs to a forward when it is launched this long before it or inside it, ns. */
const BEFORE_FORWARD = 20_000_000;

interface PerRank {
  readonly calls: readonly { call: CollectiveFacts; step: number }[];
  readonly exposedMs: number;
  readonly perStep: number;
}

/** Broadcasts in the steps of one rank, by step index. */
function broadcasts(rank: RankFacts): { call: CollectiveFacts; step: number }[] {
  const list: { call: CollectiveFacts; step: number }[] = [];
  for (const call of rank.collectives) {
    if (call.op !== 'broadcast') continue;
    const known = Number.isNaN(call.issued) ? call.launch : call.issued;
    const at = Number.isNaN(known) ? call.start : known;
    const step = rank.steps.findIndex((s) => at >= s.start - 1 && at < s.end);
    if (step === -1) continue;
    const forwards = rank.phases.forwardStarts[step] ?? [];
    // With forward marks, only what comes right before or early in a forward is DDP's; the rest is the user's own broadcast.
    if (forwards.length > 0 && !forwards.some((f) => at >= f - BEFORE_FORWARD && at <= f + 2 * BEFORE_FORWARD)) continue;
    list.push({ call, step });
  }
  return list;
}

/** Kernels that pack the buffers before a broadcast and put them back after it: DDP flattens and copies, nothing else comes between. */
const PACKING = /^(Concat\w*|Pack|TensorMove\w*|ViewCopy|Slice\w*|Split\w*|AsStrided\w*)$/;

/** The broadcasts and the packing kernels launched right around them. */
function withCopies(tape: Tape | null, broadcasts: readonly number[]): Set<number> {
  const sent = new Set(broadcasts);
  const out = new Set(broadcasts);
  if (tape === null) return out;
  const byLaunch = [...tape.launch.keys()].filter((i) => !Number.isNaN(tape.launch[i]!)).sort((a, b) => tape.launch[a]! - tape.launch[b]!);
  const packing = (at: number): boolean => {
    const node = byLaunch[at];
    return node !== undefined && (out.has(node) || (tape.kind[node] === COMPUTE && PACKING.test(tape.types[tape.type[node]!]!)));
  };
  byLaunch.forEach((node, at) => {
    if (!sent.has(node)) return;
    for (let k = at - 1; packing(k); k--) out.add(byLaunch[k]!);
    for (let k = at + 1; packing(k); k++) out.add(byLaunch[k]!);
  });
  return out;
}

export default defineRule({
  id: 'ddp-buffer-broadcast',
  title: { en: 'DDP sends its buffers in every forward', zh: 'DDP 每次前向都广播 buffer' },
  category: 'communication',
  maturity: 'stable',
  needs: ['steps', 'host-ops', 'collectives'],
  options: {
    minShare: {
      default: 0.01,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest broadcast time reported, as a share of the step', zh: '可报告的最小广播耗时，占迭代耗时的比例' },
      why: {
        en: 'the change is one keyword, so half the usual floor is worth a line',
        zh: '改动只是一个参数，因此取通常下限的一半',
      },
    },
    minMs: {
      default: 0.5,
      unit: 'ms',
      min: 0,
      max: 10_000,
      description: { en: 'smallest broadcast time reported', zh: '可报告的最小广播耗时' },
      why: {
        en: 'below 0.5 ms per step there is nothing to gain',
        zh: '每迭代低于 0.5 ms 没有收益',
      },
    },
  },
  remedies: ['broadcast-buffers-off'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    if (!job.ranks.some((r) => r.phases.ddp)) {
      return {
        outcome: 'pass',
        reason: { text: { en: 'no DistributedDataParallel forward in the profile', zh: 'profile 中没有 DistributedDataParallel 前向' } },
      };
    }
    const perRank = job.ranks.map((r): PerRank => {
      const calls = broadcasts(r);
      return {
        calls,
        exposedMs:
          medianOfUsed(
            job,
            sumByStep(r.steps.length, calls, (c) => c.call.exposed / 1e6),
          ) || 0,
        perStep:
          medianOfUsed(
            job,
            sumByStep(r.steps.length, calls, () => 1),
          ) || 0,
      };
    });
    const floor = Math.max(options.minShare * step, options.minMs);
    const seen = perRank.map((_, i) => i).filter((i) => perRank[i]!.perStep >= 1);
    const loudest = Math.max(0, ...perRank.map((p) => p.exposedMs));
    if (seen.length === 0 || loudest < floor) {
      return {
        outcome: 'pass',
        reason: {
          text: { en: '{n:int} buffer broadcasts per step, {ms:ms} exposed', zh: '每迭代 {n:int} 次 buffer 广播，未掩盖 {ms:ms}' },
          params: { n: Math.max(0, ...perRank.map((p) => p.perStep)), ms: loudest },
        },
      };
    }
    const pace = seen.reduce((a, b) => (perRank[b]!.exposedMs > perRank[a]!.exposedMs ? b : a));
    const facts = job.ranks[pace]!;
    const used = new Set(job.steps.usedIndex);
    const calls = perRank[pace]!.calls.filter((c) => used.has(c.step));
    const longest = calls.reduce((a, b) => (b.call.exposed > a.call.exposed ? b : a), calls[0]!);
    const forwards = medianOfUsed(job, facts.phases.forwards) || 1;
    const bytes = calls.reduce((a, c) => a + (Number.isNaN(c.call.bytes) ? 0 : c.call.bytes), 0) / Math.max(1, used.size);
    const removal = new Map<number, Removal>(
      seen.map(
        (r) =>
          [
            r,
            {
              nodes: withCopies(
                job.ranks[r]!.tape,
                perRank[r]!.calls.map((c) => c.call.node).filter((n) => n >= 0),
              ),
              host: job.ranks[r]!.phases.broadcastHost,
            },
          ] as const,
      ),
    );
    const busy = covered(union(calls.map((c) => [c.call.start, c.call.end] as const)), Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY);
    return {
      outcome: 'findings',
      findings: [
        {
          title: { text: { en: 'DDP sends its buffers in every forward', zh: 'DDP 每次前向都广播 buffer' } },
          ranks: seen,
          steps: job.steps.used,
          groups: [...new Set(calls.map((c) => c.call.group))].filter((g) => g !== ''),
          confidence: dataConfidence(job, false),
          evidence: [
            {
              message: {
                text: {
                  en: 'rank {rank:text}: {n:int} broadcasts per step in {forwards:int} forwards ({bytes:bytes}), {exposed:ms} of it not covered by computing',
                  zh: '卡 {rank:text}：每迭代 {n:int} 次广播、{forwards:int} 次前向（{bytes:bytes}），其中 {exposed:ms} 未被计算掩盖',
                },
                params: { rank: facts.rank ?? '?', n: perRank[pace]!.perStep, forwards, bytes, exposed: perRank[pace]!.exposedMs },
              },
              file: facts.capabilities.has('collective-ids') ? 'communication.json' : 'trace_view.json',
              rank: pace,
              step: facts.steps[longest.step]?.id ?? null,
              start: longest.call.start,
              duration: longest.call.end - longest.call.start,
            },
          ],
          caveats: [],
          removal: { likely: removal },
          boundMs: Math.min(perRank[pace]!.exposedMs, busy / 1e6 / Math.max(1, used.size)),
          boundMethod: { text: { en: 'exposed time of the broadcasts, median of the steps', zh: '广播的未掩盖耗时，各迭代的中位数' } },
          information: false,
          symptomOf: null,
          frames: facts.phases.ddpFrame === null ? [] : [facts.phases.ddpFrame],
          remedies: [{ id: 'broadcast-buffers-off', params: { broadcasts: perRank[pace]!.perStep, exposedMs: perRank[pace]!.exposedMs } }],
          hotspot: 'broadcast',
        },
      ],
    };
  },
});
