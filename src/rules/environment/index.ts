import type { JobFacts } from '../../facts/job/index.ts';
import { type Symptoms, symptoms } from '../../facts/job/symptoms.ts';
import type { CodeFacts } from '../../model/code.ts';
import { wrongValues } from '../../model/environment-values.ts';
import type { RankFacts } from '../../model/facts.ts';
import type { L10n, Message } from '../../model/lang.ts';
import { isReleaseAtLeast } from '../../model/releases.ts';
import type { Confidence } from '../../model/report.ts';
import { defineRule, type RawEvidence, type RawFinding } from '../../model/rule.ts';
import { differences } from './values.ts';

const FILE = 'profiler_metadata.json';
/** Differences named in one finding. */
const NAMED = 12;
/** Host waits per launch from which launches are taken one by one: with the variable set it is one. */
const BLOCKED = 0.5;

/** A setting that costs time when the profile shows what it does. */
interface Suspect {
  readonly name: string;
  /** First torch_npu release that reads it. */
  readonly since?: string;
  /** The value that matters on this rank; null when the setting is fine. '' means recorded as unset. */
  value(env: Readonly<Record<string, string>>, rank: RankFacts): string | null;
  /** Share of the step in which the profile shows what the setting causes, and the sentence that says so. */
  symptom(s: Symptoms, step: number): { readonly share: number; readonly message: Message };
  readonly title: L10n;
  readonly severity: 'high' | 'medium' | 'info';
  readonly confidence: Confidence;
  /** Rules that measure what it costs. */
  readonly measuredBy?: readonly string[];
}

const is =
  (name: string, ...values: readonly string[]) =>
  (env: Readonly<Record<string, string>>): string | null => {
    const value = env[name]?.trim();
    return value !== undefined && values.includes(value.toLowerCase()) ? value : null;
  };

const launchGaps = (s: Symptoms, step: number) => ({
  share: s.launchMs / step,
  message: {
    text: {
      en: 'the card had nothing to do for {ms:ms} of each step ({share:pct}) because nothing was launched',
      zh: '每迭代有 {ms:ms}（{share:pct}）NPU 因未下发任务而空闲',
    },
    params: { ms: s.launchMs, share: s.launchMs / step },
  },
});

const blockedHost = (s: Symptoms, step: number) => ({
  share: ((s.launchMs || 0) + (s.syncMs || 0)) / step,
  message: {
    text: {
      en: 'the card was idle for {ms:ms} of each step ({share:pct}) while the host waited or had launched nothing; {n:num} waits per launch',
      zh: '每迭代有 {ms:ms}（{share:pct}）NPU 空闲，Host 在等待或未下发；每次下发等待 {n:num} 次',
    },
    params: { ms: (s.launchMs || 0) + (s.syncMs || 0), share: ((s.launchMs || 0) + (s.syncMs || 0)) / step, n: s.syncsPerLaunch },
  },
});

const exposed = (s: Symptoms, step: number) => ({
  share: s.exposedMs / step,
  message: {
    text: {
      en: '{ms:ms} of each step ({share:pct}) are communication that computing does not cover',
      zh: '每迭代有 {ms:ms}（{share:pct}）通信未被计算掩盖',
    },
    params: { ms: s.exposedMs, share: s.exposedMs / step },
  },
});

const SLOWS_HOST: L10n = { en: '{name:code} = {value:code} slows every launch', zh: '{name:code} = {value:code} 会拖慢每次下发' };

const SUSPECTS: readonly Suspect[] = [
  {
    name: 'ASCEND_LAUNCH_BLOCKING',
    value: is('ASCEND_LAUNCH_BLOCKING', '1'),
    symptom: (s, step) => (s.syncsPerLaunch >= BLOCKED ? { ...blockedHost(s, step), share: 1 } : blockedHost(s, step)),
    title: { en: '{name:code} = {value:code}: every launch waits for the card', zh: '{name:code} = {value:code}：每次下发都等待 NPU 完成' },
    severity: 'high',
    confidence: 'high',
    measuredBy: ['stream-sync'],
  },
  {
    name: 'TASK_QUEUE_ENABLE',
    value: is('TASK_QUEUE_ENABLE', '0'),
    symptom: launchGaps,
    title: { en: '{name:code} = {value:code} turns the dispatch queue off', zh: '{name:code} = {value:code} 关闭了下发队列' },
    severity: 'medium',
    confidence: 'high',
  },
  {
    name: 'ASCEND_GLOBAL_LOG_LEVEL',
    value: is('ASCEND_GLOBAL_LOG_LEVEL', '0', '1'),
    symptom: launchGaps,
    title: SLOWS_HOST,
    severity: 'medium',
    confidence: 'medium',
  },
  {
    name: 'ASCEND_SLOG_PRINT_TO_STDOUT',
    value: is('ASCEND_SLOG_PRINT_TO_STDOUT', '1'),
    symptom: launchGaps,
    title: SLOWS_HOST,
    severity: 'medium',
    confidence: 'medium',
  },
  {
    name: 'PYTORCH_NO_NPU_MEMORY_CACHING',
    since: '6.0.rc2',
    value: is('PYTORCH_NO_NPU_MEMORY_CACHING', '1'),
    symptom: blockedHost,
    title: {
      en: '{name:code} = {value:code}: every tensor is allocated by the driver',
      zh: '{name:code} = {value:code}：每个张量都向驱动申请显存',
    },
    severity: 'medium',
    confidence: 'high',
  },
  ...(
    [
      ['TORCH_HCCL_BLOCKING_WAIT', '26.1.0'],
      ['HCCL_BLOCKING_WAIT', '3.0.rc1'],
    ] as const
  ).map(
    ([name, since]): Suspect => ({
      name,
      since,
      value: (env, rank) => (rank.collectives.length > 0 ? is(name, '1')(env) : null),
      symptom: blockedHost,
      title: {
        en: '{name:code} = {value:code}: the host waits for every collective',
        zh: '{name:code} = {value:code}：Host 等待每次集合通信',
      },
      severity: 'medium',
      confidence: 'high',
    }),
  ),
  {
    name: 'HCCL_OP_EXPANSION_MODE',
    // Symmetric topologies and inference only; a training step ends with an optimizer.
    value: (env, rank) => (rank.phases.optimizerSteps.some((n) => n > 0) ? is('HCCL_OP_EXPANSION_MODE', 'aiv')(env) : null),
    symptom: exposed,
    title: { en: '{name:code} = {value:code} is made for inference', zh: '{name:code} = {value:code} 面向推理场景' },
    severity: 'medium',
    confidence: 'medium',
  },
  {
    name: 'HCCL_ALGO',
    value: (env, rank) => (rank.collectives.length > 0 ? env.HCCL_ALGO?.trim() || null : null),
    symptom: exposed,
    title: {
      en: '{name:code} = {value:code} turns the choice of algorithms off',
      zh: '{name:code} = {value:code} 关闭了通信算法的自动选择',
    },
    severity: 'info',
    confidence: 'low',
  },
  {
    name: 'HCCL_DETERMINISTIC',
    value: (env, rank) => (rank.collectives.length > 0 ? is('HCCL_DETERMINISTIC', 'true', 'strict')(env) : null),
    symptom: exposed,
    title: { en: '{name:code} = {value:code} makes reductions slower', zh: '{name:code} = {value:code} 会降低归约速度' },
    severity: 'info',
    confidence: 'low',
  },
  ...(['HCCL_RDMA_TC', 'HCCL_RDMA_SL'] as const).map(
    (name): Suspect => ({
      name,
      value: (env, rank) => (rank.collectives.length > 0 ? env[name]?.trim() || null : null),
      symptom: exposed,
      title: {
        en: '{name:code} = {value:code} has to equal the plan of the switch',
        zh: '{name:code} = {value:code} 需与交换机规划一致',
      },
      severity: 'info',
      confidence: 'low',
    }),
  ),
  {
    name: 'ACLNN_CACHE_LIMIT',
    value: (env) => {
      const value = env.ACLNN_CACHE_LIMIT?.trim() ?? '';
      return /^\d{1,8}$/.test(value) && Number(value) < 10_000 ? value : null;
    },
    symptom: launchGaps,
    title: { en: '{name:code} = {value:code} is below the default of 10000', zh: '{name:code} = {value:code} 低于默认值 10000' },
    severity: 'medium',
    confidence: 'medium',
  },
  {
    name: 'CPU_AFFINITY_CONF',
    since: '6.0.rc2',
    value: (env) => {
      const value = env.CPU_AFFINITY_CONF?.trim();
      return value === '' || value === '0' ? value : null;
    },
    symptom: launchGaps,
    title: { en: '{name:code} is not set: host threads move between cores', zh: '{name:code} 未设置：Host 线程会在核间迁移' },
    severity: 'info',
    confidence: 'low',
  },
  {
    name: 'OMP_NUM_THREADS',
    value: (env, rank) => {
      const value = env.OMP_NUM_THREADS?.trim() ?? '';
      return rank.loader?.iterator === 'multi' && /^\d{1,4}$/.test(value) && Number(value) > 1 ? value : null;
    },
    symptom: (s, step) => ({
      share: s.loaderMs / step,
      message: {
        text: {
          en: 'the card waits {ms:ms} of each step ({share:pct}) for loader workers, each of which may start that many threads',
          zh: '每迭代有 {ms:ms}（{share:pct}）在等数据加载进程，每个进程可能启动这么多线程',
        },
        params: { ms: s.loaderMs, share: s.loaderMs / step },
      },
    }),
    title: { en: '{name:code} = {value:code} in loader workers', zh: '数据加载进程中 {name:code} = {value:code}' },
    severity: 'info',
    confidence: 'low',
  },
];

const COMMON = {
  steps: [],
  groups: [],
  caveats: [],
  removal: null,
  boundMs: null,
  boundMethod: { text: { en: '', zh: '' } },
  information: false,
  symptomOf: null,
  frames: [],
} as const;

const NOT_RECORDED = {
  outcome: 'notApplicable',
  reason: { text: { en: 'no environment variable is recorded', zh: '没有记录环境变量' } },
} as const;

export default defineRule({
  id: 'environment',
  title: { en: 'Environment variables that cost time or differ', zh: '环境变量影响性能或各卡不一致' },
  category: 'capture',
  maturity: 'stable',
  needs: [],
  options: {
    minShare: {
      default: 0.1,
      unit: 'share',
      min: 0,
      max: 1,
      description: { en: 'time that shows what a setting does, as a share of the step', zh: '体现该设置影响的耗时，占迭代耗时的比例' },
      why: {
        en: 'a setting is blamed only where the profile shows its effect; a tenth of the step is no chance',
        zh: '只有 profile 体现其影响时才归因于设置；迭代的十分之一不会是偶然',
      },
    },
  },
  remedies: ['set-environment'],
  detect(job, options, code) {
    const recorded = job.ranks.map((rank, i) => ({ rank, i, env: rank.settings.env })).filter((r) => Object.keys(r.env).length > 0);
    const written = writtenSettings(job, code ?? null);
    if (recorded.length === 0 && written.size === 0) return NOT_RECORDED;
    const findings: RawFinding[] = [];
    const unequal = differences(recorded.map((r) => r.env));
    if (unequal.length > 0) findings.push(differenceFinding(job, recorded, unequal));

    const wrong = new Map<string, { why: Message; names: readonly string[]; ranks: number[] }>();
    for (const { i, env } of recorded) {
      for (const { names, why } of wrongValues(env)) {
        const key = names.join('+');
        const known = wrong.get(key);
        if (known === undefined) wrong.set(key, { why, names, ranks: [i] });
        else known.ranks.push(i);
      }
    }
    for (const [key, { why, names, ranks }] of wrong) {
      findings.push({
        ...COMMON,
        title: {
          text: { en: 'A value of {names:code} is not supported', zh: '{names:code} 的取值不受支持' },
          params: { names: [...names] },
        },
        ranks,
        confidence: 'high',
        severity: 'medium',
        evidence: [{ message: why, file: FILE, rank: ranks[0]! }],
        remedies: [{ id: 'set-environment', params: { kind: 'wrong', name: names[0]! } }],
        hotspot: `wrong:${key}`,
      });
    }

    const step = job.steps.stepTimeMs;
    if (step !== null) {
      const symptomsOf = new Map<number, Symptoms>();
      const symptomsOn = (i: number): Symptoms => {
        if (!symptomsOf.has(i)) symptomsOf.set(i, symptoms(job, i));
        return symptomsOf.get(i)!;
      };
      for (const suspect of SUSPECTS) {
        if (findings.some((f) => f.hotspot === `wrong:${suspect.name}`)) continue;
        // What the profiler does not record may be written in the launch script, which then stands for all ranks.
        const script = written.get(suspect.name) ?? null;
        const judged =
          script === null
            ? recorded
            : job.ranks.map((rank, i) => ({ rank, i, env: { ...rank.settings.env, [suspect.name]: script.value } }));
        // What a rank shows can only be put down to its own settings.
        const hits = judged.flatMap((r) => {
          const isRead = suspect.since === undefined || isReleaseAtLeast(r.rank.settings.torchNpu, suspect.since) !== false;
          const value = isRead ? suspect.value(r.env, r.rank) : null;
          return value === null ? [] : [{ ...r, value, shown: suspect.symptom(symptomsOn(r.i), step) }];
        });
        if (hits.length === 0) continue;
        const { value, shown, i: at } = hits.reduce((a, b) => (b.shown.share > a.shown.share ? b : a));
        if (!(shown.share >= options.minShare)) continue;
        findings.push({
          ...COMMON,
          title: { text: suspect.title, params: { name: suspect.name, value } },
          ranks: hits.map((r) => r.i),
          steps: job.steps.used,
          confidence: script === null ? suspect.confidence : 'low',
          severity: suspect.severity,
          evidence: [
            script === null
              ? {
                  message: {
                    text: { en: '{name:code} is {value:code}', zh: '{name:code} 为 {value:code}' },
                    params: { name: suspect.name, value: value === '' ? 'unset' : value },
                  },
                  file: FILE,
                  rank: at,
                }
              : {
                  message: {
                    text: {
                      en: '{name:code} is set to {value:code} at {place:code}; the profile does not record it',
                      zh: '{place:code} 将 {name:code} 设为 {value:code}；profile 未记录该变量',
                    },
                    params: { name: suspect.name, value, place: `${script.file}:${script.line}` },
                  },
                  file: null,
                  rank: null,
                },
            { message: shown.message, file: 'trace_view.json', rank: at },
          ],
          remedies: [{ id: 'set-environment', params: { kind: 'symptom', name: suspect.name } }],
          hotspot: suspect.name,
          ...(suspect.measuredBy === undefined ? {} : { explainedBy: suspect.measuredBy }),
        });
      }
    }
    if (findings.length > 0) return { outcome: 'findings', findings };
    if (recorded.length === 0) return NOT_RECORDED;
    return {
      outcome: 'pass',
      reason: {
        text: {
          en: '{n:int} recorded variables: all ranks agree, and no value shows a cost',
          zh: '记录了 {n:int} 个变量：各卡一致，没有取值表现出影响',
        },
        params: { n: new Set(recorded.flatMap((r) => Object.keys(r.env))).size },
      },
    };
  },
});

/** Variables that no rank records and that every file of the repository which sets them sets to the same value. */
function writtenSettings(job: JobFacts, code: CodeFacts | null): Map<string, { value: string; file: string; line: number }> {
  const written = new Map<string, { value: string; file: string; line: number }>();
  if (code === null) return written;
  for (const { name } of SUSPECTS) {
    if (job.ranks.some((rank) => rank.settings.env[name] !== undefined)) continue;
    const settings = code.settings(name).filter(({ isDefault }) => !isDefault);
    if (settings.length > 0 && new Set(settings.map(({ value }) => value)).size === 1) written.set(name, settings[0]!);
  }
  return written;
}

function differenceFinding(
  job: JobFacts,
  recorded: readonly { i: number; rank: RankFacts }[],
  unequal: ReturnType<typeof differences>,
): RawFinding {
  const few = new Set<number>();
  for (const { values } of unequal)
    if (values[0]![1].length > values[1]![1].length) for (const [, at] of values.slice(1)) for (const k of at) few.add(recorded[k]!.i);
  const rankOf = (k: number): number => recorded[k]!.rank.rank ?? -1;
  return {
    ...COMMON,
    title: {
      text:
        unequal.length === 1
          ? { en: 'Ranks disagree on {name:code}', zh: '各卡的 {name:code} 不一致' }
          : { en: 'Ranks disagree on {n:int} environment variables', zh: '各卡有 {n:int} 个环境变量不一致' },
      params: { name: unequal[0]!.name, n: unequal.length },
    },
    ranks: [...few],
    confidence: 'high',
    severity: 'medium',
    evidence: unequal.slice(0, NAMED).flatMap(({ name, values }): RawEvidence[] =>
      values.slice(0, 4).map(([value, at]) => ({
        message: {
          text: { en: 'rank {ranks:ranks}: {name:code} is {value:code}', zh: '卡 {ranks:ranks}：{name:code} 为 {value:code}' },
          params: { ranks: at.map(rankOf), name, value: value === '' ? 'unset' : value },
        },
        file: FILE,
        rank: recorded[at[0]!]!.i,
      })),
    ),
    caveats: [],
    remedies: [{ id: 'set-environment', params: { kind: 'ranks', name: unequal[0]!.name, count: unequal.length, of: job.ranks.length } }],
    hotspot: 'ranks',
  };
}
