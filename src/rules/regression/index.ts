import { formatTime } from '../../base/figures.ts';
import type { JobComparison } from '../../model/comparison.ts';
import type { L10n, Message } from '../../model/lang.ts';
import { defineRule, type RawEvidence, type RawFinding } from '../../model/rule.ts';

/** Steps a side from which the data say enough for high confidence; the interval of fewer is widened already. */
const MANY_STEPS = 5;
const MAX_EVIDENCE = 4;

const NO_BASELINE: L10n = {
  en: 'no baseline: `npu-advise analyze PATH --baseline PATH` compares with an earlier profile, the App with the nearest one of the base branch',
  zh: '没有基线：`npu-advise analyze PATH --baseline PATH` 可与之前的 profile 对比，App 与基线分支上最近的 profile 对比',
};

/** Decided where both jobs are known (`src/compare`); this puts it into the report as a cause. */
export default defineRule({
  id: 'regression',
  title: { en: 'The step is slower than in the baseline', zh: '迭代比基线慢' },
  category: 'comparison',
  maturity: 'stable',
  needs: [],
  options: {
    minShare: {
      default: 0.03,
      unit: 'share',
      min: 0,
      max: 1,
      description: {
        en: 'smallest change called one, as a share of the step of the baseline',
        zh: '可判定的最小变化，占基线迭代耗时的比例',
      },
      why: {
        en: 'twice the 1.5 % by which repeated runs of one unchanged release differ (vllm-project/vllm-ascend#4110); steps of one run cannot show what differs from run to run',
        zh: '同一版本未改动时，重复运行相差 1.5%（vllm-project/vllm-ascend#4110），取其两倍；单次运行的各个迭代体现不出运行之间的差异',
      },
    },
    minMs: {
      default: 0.5,
      unit: 'ms',
      min: 0,
      max: 10_000,
      description: { en: 'smallest change called one', zh: '可判定的最小变化' },
      why: {
        en: 'the reporting floor of every cause; below it the clock of the host and one more launch decide',
        zh: '即所有原因的报告下限；低于它时，结果取决于 Host 时钟与多一次下发',
      },
    },
  },
  remedies: [],
  detect(job) {
    const { comparison } = job;
    if (comparison === null) return { outcome: 'notApplicable', reason: { text: NO_BASELINE } };
    const { verdict, step } = comparison;
    if (verdict === 'incomparable') {
      const [first] = comparison.refusals;
      return { outcome: 'notApplicable', reason: first?.text ?? { text: NO_BASELINE } };
    }
    const params = { delta: formatTime(Math.abs(step.delta!)), share: Math.abs(step.delta!) / step.base!, limit: step.limit! };
    if (verdict === 'noise') return { outcome: 'pass', reason: { text: NOISE, params } };
    if (verdict === 'improvement') return { outcome: 'pass', reason: { text: FASTER, params } };
    return { outcome: 'findings', findings: [finding(comparison, job.world.complete !== false)] };
  },
});

function finding(comparison: JobComparison, complete: boolean): RawFinding {
  const { step, contributors, warnings, baseline } = comparison;
  const delta = step.delta!;
  const [low, high] = step.interval!;
  const sure = Math.min(step.samples.base, step.samples.head) >= MANY_STEPS && warnings.every((w) => w.what === 'unknown') && complete;
  const evidence: RawEvidence[] = [
    {
      message: {
        text: MEASURED,
        params: {
          head: step.head!,
          base: step.base!,
          now: step.samples.head,
          before: step.samples.base,
          low,
          high,
        },
      },
      file: null,
      rank: null,
    },
    ...contributors
      .filter((c) => c.part !== 'other' && c.delta > 0)
      .slice(0, MAX_EVIDENCE)
      .map((c): RawEvidence => ({ message: part(c.what, c.base, c.head), file: null, rank: null })),
  ];
  return {
    title: { text: SLOWER, params: { delta: formatTime(delta), share: delta / step.base! } },
    ranks: [],
    steps: [],
    groups: [],
    confidence: sure ? 'high' : 'medium',
    evidence,
    caveats: warnings.map((w) => w.text),
    removal: null,
    boundMs: delta,
    measured: { floor: Math.max(0, low), likely: delta, ceiling: Math.max(delta, high) },
    boundMethod: {
      text: { en: 'step time less that of the baseline {label:code}', zh: '迭代耗时与基线 {label:code} 之差' },
      params: { label: baseline.label },
    },
    information: false,
    symptomOf: null,
    frames: [],
    remedies: [],
    hotspot: 'step',
  };
}

function part(what: Message, base: number, head: number): Message {
  const figures = { from: base, to: head };
  return {
    text: { en: `${what.text.en}: {from:ms} in the baseline, {to:ms} now`, zh: `${what.text.zh}：基线 {from:ms}，现为 {to:ms}` },
    params: { ...what.params, ...figures },
  };
}

const SLOWER: L10n = {
  en: 'Each step is {delta:text} slower than in the baseline (+{share:pct})',
  zh: '每个迭代比基线慢 {delta:text}（+{share:pct}）',
};
const MEASURED: L10n = {
  en: 'median step {head:ms} ({now:int} steps), baseline {base:ms} ({before:int} steps); 95\u00a0% interval of the difference {low:ms} to {high:ms}',
  zh: '迭代中位数 {head:ms}（{now:int} 个迭代），基线 {base:ms}（{before:int} 个迭代）；差值的 95% 区间为 {low:ms} 至 {high:ms}',
};
const NOISE: L10n = {
  en: 'differs from the baseline by {delta:text} ({share:pct}), within noise; less than {limit:ms} is not called a change',
  zh: '与基线相差 {delta:text}（{share:pct}），在噪声之内；小于 {limit:ms} 不判定为变化',
};
const FASTER: L10n = {
  en: '{delta:text} ({share:pct}) faster than the baseline; less than {limit:ms} is not called a change',
  zh: '比基线快 {delta:text}（{share:pct}）；小于 {limit:ms} 不判定为变化',
};
