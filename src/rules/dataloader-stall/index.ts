import { union } from '../../base/intervals.ts';
import { dataConfidence, hostBias, medianOfUsed, sumByStep } from '../../facts/job/per-step.ts';
import { defineRule, type RawEvidence } from '../../model/rule.ts';
import { READY_FETCH, type Removal } from '../../replay/replay.ts';

export default defineRule({
  id: 'dataloader-stall',
  title: { en: 'Data loader starves the cards', zh: '数据加载跟不上' },
  category: 'data',
  maturity: 'stable',
  needs: ['steps', 'host-ops', 'kernels'],
  options: {
    minShare: {
      default: 0.02,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'smallest stall reported, as a share of the step', zh: '可报告的最小等待，占迭代耗时的比例' },
      why: {
        en: 'unchanged jobs vary by up to a few percent between runs; 2 % is advice, not a gate',
        zh: '未改动的作业，各次运行之间也会相差百分之几；2% 用于建议，不是门禁',
      },
    },
    minMs: {
      default: 0.5,
      unit: 'ms',
      min: 0,
      max: 10_000,
      description: { en: 'smallest stall reported', zh: '可报告的最小等待' },
      why: {
        en: 'a fetch that finds its batch ready takes 0.2 ms; below 0.5 ms there is nothing to gain',
        zh: 'batch 已就绪时取数需 0.2 ms；低于 0.5 ms 没有收益',
      },
    },
    intermittentShare: {
      default: 0.05,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'stall of a single step that counts as intermittent', zh: '单个迭代的间歇等待，占迭代耗时的比例' },
      why: {
        en: 'one slow file or a worker restart shows in some steps only; 5 % keeps ordinary variance out',
        zh: '个别慢文件或 worker 重启只影响部分迭代；5% 可排除正常波动',
      },
    },
  },
  remedies: ['dataloader-workers', 'mindspore-dataset-workers'],
  detect(job, options) {
    const step = job.steps.stepTimeMs;
    const seen = job.ranks.filter((r) => r.loader !== null);
    if (step === null || seen.length === 0) {
      return {
        outcome: 'notApplicable',
        reason: { text: { en: 'no DataLoader event was recorded on the training thread', zh: '训练线程上没有记录到 DataLoader 事件' } },
      };
    }
    const perRank = job.ranks.map((r) => sumByStep(r.steps.length, r.loader?.fetches ?? [], (f) => f.stall / 1e6));
    const medians = perRank.map((values) => medianOfUsed(job, values) || 0);
    const floor = Math.max(options.minShare * step, options.minMs);
    const worstSteps = perRank.map((values) => Math.max(0, ...job.steps.usedIndex.map((s) => values[s] ?? 0)));
    const stalledSteps = perRank.map(
      (values) => job.steps.usedIndex.filter((s) => (values[s] ?? 0) > options.intermittentShare * step).length,
    );
    const steady = medians.map((m) => m >= floor);
    const intermittent = stalledSteps.map(
      (n, r) => !steady[r] && job.steps.usedIndex.length >= 3 && n >= 2 && n >= 0.3 * job.steps.usedIndex.length && worstSteps[r]! >= floor,
    );
    let ranks = job.ranks.map((_, i) => i).filter((i) => steady[i] || intermittent[i]);
    if (ranks.length === 0) {
      const most = Math.max(0, ...medians);
      return {
        outcome: 'pass',
        reason: {
          text: { en: 'the device waited at most {stall:ms} per step for the loader', zh: '每迭代等待数据加载最多 {stall:ms}' },
          params: { stall: most },
        },
      };
    }
    // When few ranks stall far longer than the rest, they are the culprits and the others merely show the same code.
    const worst = Math.max(...ranks.map((r) => medians[r]!));
    const culprits = ranks.filter((r) => medians[r]! >= 0.5 * worst || intermittent[r]);
    if (culprits.length > 0) ranks = culprits;
    // A rank that waits for its batch as long is in the same place, even if its card still works off what a later rank holds up.
    const fetches = job.ranks.map(
      (r) =>
        medianOfUsed(
          job,
          sumByStep(r.steps.length, r.loader?.fetches ?? [], (f) => (f.end - f.start) / 1e6),
        ) || 0,
    );
    const longest = Math.min(...ranks.map((r) => fetches[r]!));
    ranks = job.ranks.map((_, i) => i).filter((i) => ranks.includes(i) || (steady.some(Boolean) && fetches[i]! >= 0.5 * longest));
    const all = ranks.length === job.ranks.length;
    const loader = job.ranks[ranks[0]!]!.loader!;
    const pace = ranks.includes(job.steps.pace) ? job.steps.pace : ranks.reduce((a, b) => (medians[b]! > medians[a]! ? b : a));
    const stallMs = Math.max(medians[pace]!, intermittent[pace] ? worstSteps[pace]! / Math.max(1, job.steps.usedIndex.length) : 0);
    const evidence: RawEvidence[] = [];
    for (const r of [...ranks].sort((a, b) => medians[b]! - medians[a]!).slice(0, 3)) {
      const facts = job.ranks[r]!;
      const used = new Set(job.steps.usedIndex);
      const worstFetch = facts
        .loader!.fetches.filter((f) => used.has(f.step))
        .reduce((a, b) => (b.stall > a.stall ? b : a), facts.loader!.fetches[0]!);
      const fetchMs = medianOfUsed(
        job,
        sumByStep(facts.steps.length, facts.loader!.fetches, (f) => (f.end - f.start) / 1e6),
      );
      evidence.push({
        message: {
          text: {
            en: 'rank {rank:text}: the device had nothing queued for {stall:ms} per step while the training thread was in {name:code} for {fetch:ms}',
            zh: '卡 {rank:text}：训练线程在 {name:code} 中 {fetch:ms}，其间 NPU 有 {stall:ms} 无任务可执行（每迭代）',
          },
          params: {
            rank: facts.rank ?? '?',
            stall: medians[r]!,
            fetch: fetchMs,
            name: facts.loader!.iterator === 'single' ? '_SingleProcessDataLoaderIter.__next__' : '_MultiProcessingDataLoaderIter.__next__',
          },
        },
        file: 'trace_view.json',
        rank: r,
        step: facts.steps[worstFetch.step]?.id ?? null,
        start: worstFetch.start,
        duration: worstFetch.end - worstFetch.start,
      });
    }
    const removal = new Map<number, Removal>();
    for (const r of ranks) {
      removal.set(r, {
        host: union(job.ranks[r]!.loader!.fetches.map((f) => [f.start + Math.min(READY_FETCH, f.end - f.start), f.end] as const)),
      });
    }
    const bias = hostBias(job.ranks[pace]!);
    return {
      outcome: 'findings',
      findings: [
        {
          title:
            all && ranks.length === 1
              ? { text: { en: 'Data loader starves the card', zh: '数据加载跟不上，NPU 在等数据' } }
              : all && ranks.length === 2
                ? { text: { en: 'Data loader starves both ranks', zh: '数据加载跟不上，两张卡都在等数据' } }
                : all
                  ? {
                      text: { en: 'Data loader starves all {n:int} ranks', zh: '数据加载跟不上，{n:int} 张卡都在等数据' },
                      params: { n: ranks.length },
                    }
                  : {
                      text: { en: 'Data loader starves rank {ranks:ranks}', zh: '卡 {ranks:ranks} 的数据加载跟不上' },
                      params: { ranks: ranks.map((r) => job.ranks[r]!.rank ?? -1) },
                    },
          ranks,
          steps: job.steps.used,
          groups: [],
          confidence: dataConfidence(job, true),
          evidence,
          caveats:
            bias.length > 0
              ? [
                  {
                    text: {
                      en: 'the capture options {options:code} slow the host and may lengthen the fetch',
                      zh: '采集选项 {options:code} 会拖慢 Host，可能放大取数耗时',
                    },
                    params: { options: bias },
                  },
                ]
              : [],
          removal: { likely: removal },
          boundMs: stallMs,
          boundMethod: {
            text: { en: 'idle time of the device inside the fetches, median of the steps', zh: '取数期间 NPU 的空闲时间，各迭代的中位数' },
          },
          information: false,
          symptomOf: null,
          frames: loader.frame === null ? [] : [loader.frame],
          remedies: [
            {
              id: 'dataloader-workers',
              params: { iterator: loader.iterator, allRanks: all, intermittent: intermittent.some(Boolean), stallMs },
            },
            { id: 'mindspore-dataset-workers', params: { allRanks: all } },
          ],
          hotspot: `${loader.iterator}:${all ? 'all' : 'some'}`,
        },
      ],
    };
  },
});
