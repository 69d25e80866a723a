import { union } from '../../base/intervals.ts';
import { sharers } from '../../facts/job/culprits.ts';
import { dataConfidence, hostBias, medianOfUsed, sumByStep } from '../../facts/job/per-step.ts';
import { defineRule } from '../../model/rule.ts';
import type { Removal } from '../../replay/replay.ts';

/** A call that finds the operator compiled took 0.06–3.2 ms in real captures; the rest of a longer call is compiling. ns. */
const CACHED_CALL = 100_000;

export default defineRule({
  id: 'op-recompile',
  title: { en: 'Operators are compiled inside the training loop', zh: '算子在训练循环内重复编译' },
  category: 'host',
  maturity: 'stable',
  needs: ['steps', 'host-ops', 'cann-calls'],
  options: {
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest compile time reported, as a share of the step', zh: '可报告的最小编译耗时，占迭代耗时的比例' },
      why: {
        en: 'below 2 % of a step a change cannot be told from noise',
        zh: '低于迭代的 2% 时，变化与噪声无法区分',
      },
    },
    minCalls: {
      default: 20,
      unit: 'count',
      min: 1,
      max: 100_000,
      description: { en: 'compile calls per step that are reported whatever their length', zh: '每迭代编译次数达到该值时，不论时长都报告' },
      why: {
        en: 'real captures with everything cached show up to 19 calls per step',
        zh: '实际采集中，全部命中缓存时每迭代最多 19 次调用',
      },
    },
    longCallMs: {
      default: 5,
      unit: 'ms',
      min: 0.5,
      max: 10_000,
      description: { en: 'length from which a single call counts as compiling', zh: '单次调用视为编译的最短耗时' },
      why: {
        en: 'cached calls took at most 3.2 ms in real captures; compiling one operator takes tens of ms',
        zh: '实际采集中，命中缓存的调用最长 3.2 ms；编译一个算子需几十 ms',
      },
    },
  },
  remedies: ['jit-compile-off'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    if (step === null) return { outcome: 'notApplicable', reason: { text: { en: 'the step time is unknown', zh: '迭代耗时未知' } } };
    const long = job.ranks.map((r) => (r.compile?.calls ?? []).filter((c) => (c.end - c.start) / 1e6 >= options.longCallMs));
    const count = job.ranks.map(
      (r) =>
        medianOfUsed(
          job,
          sumByStep(r.steps.length, r.compile?.calls ?? [], () => 1),
        ) || 0,
    );
    const longCount = job.ranks.map(
      (r, i) =>
        medianOfUsed(
          job,
          sumByStep(r.steps.length, long[i]!, () => 1),
        ) || 0,
    );
    const host = job.ranks.map(
      (r) =>
        medianOfUsed(
          job,
          sumByStep(r.steps.length, r.compile?.calls ?? [], (c) => Math.max(0, c.end - c.start - CACHED_CALL) / 1e6),
        ) || 0,
    );
    const idle = job.ranks.map(
      (r) =>
        medianOfUsed(
          job,
          sumByStep(r.steps.length, r.compile?.calls ?? [], (c) => c.idle / 1e6),
        ) || 0,
    );
    const ranks = sharers(host, options.minShare * step).filter(
      (i) => count[i]! >= options.minCalls || (longCount[i]! >= 1 && job.steps.usedIndex.length > 1),
    );
    if (ranks.length === 0) {
      return {
        outcome: 'pass',
        reason: {
          text: {
            en: 'at most {n:int} calls per step went through operator compilation, {host:ms} in all',
            zh: '每迭代最多 {n:int} 次调用经过算子编译，共 {host:ms}',
          },
          params: { n: Math.max(0, ...count), host: Math.max(0, ...host) },
        },
      };
    }
    const pace = ranks.includes(job.steps.pace) ? job.steps.pace : ranks.reduce((a, b) => (host[b]! > host[a]! ? b : a));
    const facts = job.ranks[pace]!;
    const used = new Set(job.steps.usedIndex);
    const calls = facts.compile!.calls.filter((c) => used.has(c.step));
    const worst = calls.reduce((a, b) => (b.end - b.start > a.end - a.start ? b : a), calls[0]!);
    const removal = new Map<number, Removal>(
      ranks.map(
        (r) =>
          [
            r,
            { host: union(job.ranks[r]!.compile!.calls.map((c) => [c.start + Math.min(CACHED_CALL, c.end - c.start), c.end] as const)) },
          ] as const,
      ),
    );
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text: { en: '{n:int} operators are compiled in every step', zh: '每个迭代都在编译 {n:int} 个算子' },
            params: { n: Math.max(1, count[pace]!) },
          },
          ranks,
          steps: job.steps.used,
          groups: [],
          confidence: dataConfidence(job, hostBias(facts).length > 0),
          evidence: [
            {
              message: {
                text: {
                  en: 'rank {rank:text}: {n:int} calls of {name:code} per step, {host:ms} on the host, {idle:ms} of it with the device idle; the longest took {longest:ms}',
                  zh: '卡 {rank:text}：每迭代 {n:int} 次 {name:code}，占用 Host {host:ms}，其中 NPU 空闲 {idle:ms}；最长一次 {longest:ms}',
                },
                params: {
                  rank: facts.rank ?? '?',
                  n: count[pace]!,
                  name: 'AscendCL@aclopCompileAndExecute',
                  host: host[pace]!,
                  idle: idle[pace]!,
                  longest: (worst.end - worst.start) / 1e6,
                },
              },
              file: 'trace_view.json',
              rank: pace,
              step: facts.steps[worst.step]?.id ?? null,
              start: worst.start,
              duration: worst.end - worst.start,
            },
          ],
          caveats: [],
          removal: { likely: removal },
          boundMs: Math.max(idle[pace]!, 0),
          boundMethod: {
            text: { en: 'device idle during the compile calls, median of the steps', zh: '编译调用期间 NPU 的空闲，各迭代的中位数' },
          },
          information: false,
          symptomOf: null,
          frames: facts.compile!.frame === null ? [] : [facts.compile!.frame],
          // Compiled operators are kept: compiling anew in most steps means shapes that were not seen before.
          remedies: [
            {
              id: 'jit-compile-off',
              params: {
                calls: count[pace]!,
                hostMs: host[pace]!,
                shapes: longCount[pace]! >= 1 && job.steps.usedIndex.length > 1 ? 'dynamic' : null,
              },
            },
          ],
          hotspot: 'compile',
        },
      ],
    };
  },
});
