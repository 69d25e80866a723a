import { median } from '../../base/statistics.ts';
import type { JobFacts } from '../../facts/job/index.ts';
import { hostBias } from '../../facts/job/per-step.ts';
import { symptoms } from '../../facts/job/symptoms.ts';
import type { RankFacts } from '../../model/facts.ts';
import type { Message } from '../../model/lang.ts';
import { defineRule, type RawEvidence } from '../../model/rule.ts';

const INFO = 'profiler_info.json';
/** Steps that a run needs until caches, queues and compiled operators are in place. */
const WARM = 3;
/** A first captured step that much slower than the others held warm-up. */
const SLOW_FIRST = 1.2;

/** First captured step against the others, of the slowest rank; NaN with fewer than three. */
function firstAgainstOthers(job: JobFacts): number {
  const count = Math.min(...job.ranks.map((r) => r.steps.length));
  if (!(count >= 3)) return Number.NaN;
  const times = Array.from({ length: count }, (_, s) => Math.max(...job.ranks.map((r) => r.steps[s]!.breakdown.stepMs || 0)));
  return times[0]! / median(times.slice(1));
}

/** What the settings say of the capture; nothing of a rank whose settings file is missing. */
function isRecorded(rank: RankFacts): boolean {
  const { level, withStack, profileMemory, schedule } = rank.settings;
  return level !== null || withStack !== null || profileMemory !== null || schedule !== null;
}

export default defineRule({
  id: 'profiler-config',
  title: { en: 'Capture settings that bias or bloat the profile', zh: '采集设置使数据失真或过大' },
  category: 'capture',
  maturity: 'stable',
  needs: [],
  options: {
    minHostShare: {
      default: 0.1,
      unit: 'share',
      min: 0,
      max: 1,
      description: {
        en: 'idle time of the host from which slow capture options matter',
        zh: 'Host 侧造成的空闲达到该比例时，拖慢 Host 的选项才有影响',
      },
      why: {
        en: 'options that slow the host change nothing while the card is busy',
        zh: '卡一直繁忙时，拖慢 Host 的选项没有影响',
      },
    },
    maxTraceMb: {
      default: 500,
      unit: 'count',
      min: 10,
      max: 100_000,
      description: { en: 'size of a trace per rank that is called large, MB', zh: '视为过大的单卡 trace，MB' },
      why: {
        en: 'viewers stop at about 500 MB, and an artifact of eight such ranks takes minutes to upload',
        zh: '超过约 500 MB 时查看工具难以打开；八张这样的卡，上传 artifact 要数分钟',
      },
    },
  },
  remedies: ['capture-again'],
  detect(job, options) {
    const at = job.ranks.findIndex(isRecorded);
    if (at === -1) {
      return {
        outcome: 'notApplicable',
        reason: {
          text: {
            en: 'the capture settings are not recorded: upload `profiler_info.json`',
            zh: '没有采集设置：上传 `profiler_info.json`',
          },
        },
      };
    }
    const rank = job.ranks[at]!;
    const { schedule, level, withStack, withModules, l2Cache, cpuActivity, npuActivity } = rank.settings;
    const evidence: RawEvidence[] = [];
    const missing: string[] = [];
    const add = (id: string, message: Message, file: string = INFO): void => {
      if (!missing.includes(id)) missing.push(id);
      evidence.push({ message, file, rank: at });
    };
    const captured = Math.max(0, ...job.ranks.map((r) => r.steps.filter((s) => s.id !== null).length));

    if (cpuActivity === false || npuActivity === false) {
      add('activities', {
        text: { en: 'only {activity:code} was recorded', zh: '只采集了 {activity:code}' },
        params: { activity: cpuActivity === false ? 'ProfilerActivity.NPU' : 'ProfilerActivity.CPU' },
      });
    }
    if (captured === 0 && job.ranks.some((r) => r.capabilities.has('host-ops'))) {
      add('prof-step', {
        text:
          schedule === null
            ? { en: 'no schedule was set and no step mark is in the trace', zh: '没有设置 schedule，trace 中也没有迭代标记' }
            : {
                en: 'a schedule is set, but no step mark is in the trace: {call:code} is not called',
                zh: '设置了 schedule，但 trace 中没有迭代标记：没有调用 {call:code}',
              },
        params: { call: 'prof.step()' },
      });
    }
    if (schedule !== null) {
      if (schedule.repeat === 0) {
        add('repeat', {
          text: { en: '{setting:code}: the capture starts again and again', zh: '{setting:code}：采集会反复启动' },
          params: { setting: 'repeat=0' },
        });
      }
      const before = schedule.skipFirst + schedule.wait + schedule.warmup;
      const first = firstAgainstOthers(job);
      const isCold = captured > 0 && before < WARM;
      if (isCold || (captured > 0 && schedule.warmup === 0 && first > SLOW_FIRST)) {
        add('warmup', {
          text: Number.isNaN(first)
            ? {
                en: 'steps of the run before the recording: {n:int}; compiling and initialisation are in the capture',
                zh: '采集前只跑了 {n:int} 个迭代：其中包含编译与初始化',
              }
            : {
                en: 'steps of the run before the recording: {n:int}, {setting:code}; the first captured step takes {x:num} times as long as the others',
                zh: '采集前只跑了 {n:int} 个迭代，{setting:code}；首个采集的迭代耗时为其余的 {x:num} 倍',
              },
          params: { n: before, setting: `warmup=${schedule.warmup}`, x: first },
        });
      }
      if (captured > 0 && schedule.active > captured) {
        add('cut', {
          text: {
            en: '{setting:code}, but {n:int} steps are here: the profiler was stopped while it recorded, so the last step may be cut',
            zh: '{setting:code}，但只有 {n:int} 个迭代：profiler 在采集中被停止，最后一个迭代可能不完整',
          },
          params: { setting: `active=${schedule.active}`, n: captured },
        });
      } else if (schedule.active === 1 && captured === 1) {
        add('steps', {
          text: { en: '{setting:code}: one step has no spread', zh: '{setting:code}：单个迭代无法看出波动' },
          params: { setting: 'active=1' },
        });
      }
    }

    const step = job.steps.stepTimeMs;
    const bias = [...new Set(job.ranks.flatMap(hostBias))];
    const s = symptoms(job);
    const hostMs = (s.launchMs || 0) + (s.syncMs || 0) + (s.loaderMs || 0);
    if (bias.length > 0 && step !== null && hostMs >= options.minHostShare * step) {
      add('bias', {
        text: {
          en: '{options:code} slow the host, and {share:pct} of the step are idle time of the host’s making: that share looks larger than it is',
          zh: '{options:code} 会拖慢 Host，而迭代中有 {share:pct} 的空闲由 Host 造成：该比例偏大',
        },
        params: { options: bias, share: hostMs / step },
      });
    }
    if (withStack === true && withModules === true) {
      add('modules', {
        text: { en: '{a:code} and {b:code} record the code twice', zh: '{a:code} 与 {b:code} 重复记录代码位置' },
        params: { a: 'with_stack', b: 'with_modules' },
      });
    }
    const largest = job.ranks.flatMap((r) => r.inputs.filter((i) => i.kind === 'trace')).reduce((a, b) => Math.max(a, b.bytes), 0);
    if (largest > options.maxTraceMb * 1e6) {
      add(
        'size',
        {
          text: {
            en: 'a trace of {size:bytes} for {n:int} steps',
            zh: '{n:int} 个迭代的 trace 达到 {size:bytes}',
          },
          params: { size: largest, n: Math.max(1, captured) },
        },
        'trace_view.json',
      );
    }
    const cut = job.ranks.flatMap((r) => r.inputs).find((i) => i.kind === 'trace' && i.status === 'partial');
    if (cut !== undefined) {
      add('export', { text: { en: 'the trace could be read in part only', zh: 'trace 只能部分读取' } }, 'trace_view.json');
    }
    if (missing.length === 0) {
      return {
        outcome: 'pass',
        reason: { text: { en: 'nothing in the settings biases or bloats this capture', zh: '采集设置没有造成失真或过大' } },
      };
    }
    // Costs that matter only beside another fault.
    if (l2Cache === true) {
      add('l2', {
        text: { en: '{setting:code} is needed for questions about the L2 cache only', zh: '{setting:code} 只在分析 L2 Cache 时需要' },
        params: { setting: 'l2_cache=True' },
      });
    }
    if (level === 'Level2') {
      add('level2', {
        text: { en: '{level:code} is needed for AI CPU details only', zh: '{level:code} 只在分析 AI CPU 明细时需要' },
        params: { level: 'Level2' },
      });
    }
    return {
      outcome: 'findings',
      findings: [
        {
          title: {
            text:
              missing.length === 1
                ? { en: 'One capture setting to change', zh: '有 1 项采集设置需要调整' }
                : { en: '{n:int} capture settings to change', zh: '有 {n:int} 项采集设置需要调整' },
            params: { n: missing.length },
          },
          ranks: [],
          steps: [],
          groups: [],
          confidence: 'high',
          evidence,
          caveats: [],
          removal: null,
          boundMs: null,
          boundMethod: { text: { en: '', zh: '' } },
          information: true,
          symptomOf: null,
          frames: [],
          remedies: [{ id: 'capture-again', params: { missing: missing.join(','), level, steps: captured, ranks: job.ranks.length } }],
          hotspot: 'settings',
        },
      ],
    };
  },
});
