import type { CodeFacts, CodeSetting, CodeSite, MigrationKind, Occurrence } from '../../model/code.ts';
import { DEBUG_VALUES, wrongValues } from '../../model/environment-values.ts';
import type { L10n, Message } from '../../model/lang.ts';
import { isReleaseAtLeast, releaseOf } from '../../model/releases.ts';
import { defineRule, type RawEvidence, type RawFinding } from '../../model/rule.ts';

/** Findings shown of one repository, and places shown of one finding. */
const MAX_FINDINGS = 30;
const MAX_PLACES = 8;

interface Kind {
  readonly severity: 'high' | 'medium' | 'info';
  readonly title: L10n;
  /** Why it is so, as evidence beside the lines. */
  readonly why: L10n;
}

/** Will crash or changes numbers: high. Works, but not as meant: medium. Works today: info. */
const KINDS: Readonly<Record<MigrationKind, Kind>> = {
  'unknown-name': {
    severity: 'high',
    title: { en: '{name:code} does not exist', zh: '{name:code} 不存在' },
    why: { en: 'no release of torch or torch_npu has it', zh: 'torch 与 torch_npu 的任何版本都没有它' },
  },
  'unknown-keyword': {
    severity: 'high',
    title: { en: '{name:code}: there is no such keyword', zh: '{name:code}：没有这个参数' },
    why: { en: 'the call raises a TypeError', zh: '调用会抛出 TypeError' },
  },
  'removed-name': {
    severity: 'high',
    title: { en: '{name:code} is gone since torch_npu {last:code}', zh: '{name:code} 在 torch_npu {last:code} 之后已移除' },
    why: {
      en: '{last:code} is the last release that has it; here it is {version:code}',
      zh: '{last:code} 是最后一个包含它的版本，此处为 {version:code}',
    },
  },
  'deprecated-name': {
    severity: 'info',
    title: { en: '{name:code} is to be removed', zh: '{name:code} 将被移除' },
    why: { en: 'the documentation lists it as to be removed; it still works', zh: '文档将其列为待移除接口；目前仍可用' },
  },
  'nccl-backend': {
    severity: 'high',
    title: { en: 'The backend is {name:code}, which needs other cards', zh: '通信后端为 {name:code}，不适用于 NPU' },
    why: {
      en: 'the file runs on NPUs only; their backend is {replacement:code}',
      zh: '该文件只在 NPU 上运行，对应后端为 {replacement:code}',
    },
  },
  'data-parallel': {
    severity: 'medium',
    title: { en: '{name:code} is not supported on NPUs', zh: 'NPU 不支持 {name:code}' },
    why: { en: 'one process for all cards is listed as not supported', zh: '单进程多卡被列为不支持' },
  },
  'global-rank': {
    severity: 'medium',
    title: { en: 'The card is chosen by {name:code}, the rank in the whole job', zh: '按全局 rank {name:code} 选卡' },
    why: { en: 'on a second node this number is larger than the number of cards', zh: '在第二个节点上该值会超过本机卡数' },
  },
  'profiler-without-step': {
    severity: 'medium',
    title: { en: 'The profiler records nothing: nobody calls its step', zh: 'profiler 不会采集：没有调用 step' },
    why: {
      en: 'the schedule begins with steps that are not recorded, and only {step:code} moves it on',
      zh: 'schedule 从不采集的迭代开始，只有 {step:code} 会推进它',
    },
  },
  'foreign-profiler': {
    severity: 'info',
    title: { en: '{name:code} writes no Ascend profile', zh: '{name:code} 不产生 Ascend profile' },
    why: {
      en: 'kernels and collectives of the NPU are recorded by torch_npu’s own profiler',
      zh: 'NPU 的 kernel 与集合通信由 torch_npu 自带的 profiler 采集',
    },
  },
  'unequal-rewrite': {
    severity: 'high',
    title: { en: '{from:code} became {to:code}, which changes the result', zh: '{from:code} 改为 {to:code}，结果会改变' },
    why: {
      en: '{from:code} changes the order of the elements, {to:code} keeps it; equal only where one of the dimensions has size 1',
      zh: '{from:code} 改变元素顺序，{to:code} 不改变；只有其中一个维度为 1 时才相等',
    },
  },
  'inverted-argument': {
    severity: 'high',
    title: { en: '{name:code} means the opposite of what it is given', zh: '{name:code} 的含义与传入值相反' },
    why: { en: 'it is given {value:code}', zh: '传入 {value:code}' },
  },
  'tuple-result': {
    severity: 'high',
    title: { en: '{name:code} returns a tuple, not a tensor', zh: '{name:code} 返回元组而非张量' },
    why: { en: 'a tuple has no {member:code}', zh: '元组没有 {member:code}' },
  },
  'fp16-without-scaler': {
    severity: 'high',
    title: { en: '{name:code} trains in float16 without a gradient scaler', zh: '{name:code} 以 float16 训练但没有梯度缩放' },
    why: {
      en: 'small gradients become zero in float16, and nothing in this file scales the loss',
      zh: 'float16 下小梯度会变为零，而该文件中没有对 loss 缩放',
    },
  },
  'fused-optimizer-with-scaler': {
    severity: 'high',
    title: { en: '{name:code} ignores the gradient scaler', zh: '{name:code} 忽略梯度缩放' },
    why: {
      en: 'by the source of the NPU kernel, it neither unscales gradients nor skips a step that overflowed',
      zh: '据 NPU 算子源码，它既不对梯度反缩放（unscale），也不会跳过溢出的迭代',
    },
  },
  'gradients-set-to-none': {
    severity: 'high',
    title: { en: '{name:code} refuses gradients set to None', zh: '{name:code} 不允许把梯度置为 None' },
    why: { en: 'it keeps all gradients in one buffer and raises a ValueError', zh: '它把所有梯度放在同一块内存中，会抛出 ValueError' },
  },
  'private-format': {
    severity: 'info',
    title: { en: '{name:code}: a private memory format in training', zh: '{name:code}：训练中使用私有格式' },
    why: { en: 'private formats are off by default on A2, A3 and 950', zh: 'A2、A3 与 950 默认关闭私有格式' },
  },
  'script-disabled': {
    severity: 'info',
    title: { en: '{name:code} does nothing here', zh: '{name:code} 在此不起作用' },
    why: { en: 'transfer_to_npu replaces it by a function that returns its argument', zh: 'transfer_to_npu 将其替换为直接返回参数的函数' },
  },
  'no-such-method': {
    severity: 'high',
    title: { en: '{name:code} does not exist', zh: '{name:code} 不存在' },
    why: { en: 'it is a method of tf.data', zh: '它是 tf.data 的方法' },
  },
  'unknown-package': {
    severity: 'high',
    title: { en: '{name:code} was never released', zh: '{name:code} 从未发布' },
    why: { en: 'there is no torch_npu for this torch version', zh: '没有与该 torch 版本对应的 torch_npu' },
  },
  'torch-pair': {
    severity: 'high',
    title: { en: '{name:code} is made for torch {wanted:code}', zh: '{name:code} 对应 torch {wanted:code}' },
    why: { en: 'the same file asks for {torch:code}', zh: '同一文件要求 {torch:code}' },
  },
  'cann-pair': {
    severity: 'medium',
    title: { en: 'CANN {cann:code} is older than {name:code} expects', zh: 'CANN {cann:code} 低于 {name:code} 的配套版本' },
    why: { en: 'it came out with CANN {expected:code}', zh: '其配套的 CANN 为 {expected:code}' },
  },
  'debug-setting': {
    severity: 'info',
    title: { en: '{name:code} is a setting for debugging', zh: '{name:code} 是用于调试的设置' },
    why: { en: 'a run that is measured or trained in earnest goes without it', zh: '正式训练或测量性能的作业不应带有它' },
  },
  'unknown-variable': {
    severity: 'medium',
    title: { en: 'Nothing reads {name:code}', zh: '没有程序读取 {name:code}' },
    why: { en: 'the variable is called {replacement:code}', zh: '该变量名为 {replacement:code}' },
  },
};

const MISTAKEN_FORMAT: L10n = { en: 'Format {number:code} is not ND', zh: '格式 {number:code} 不是 ND' };
const MISTAKEN_WHY: L10n = { en: '29 is FRACTAL_NZ, a private format; ND is 2', zh: '29 是私有格式 FRACTAL_NZ；ND 为 2' };

const ALWAYS_OTHER: RawEvidence = {
  message: {
    text: {
      en: 'the import always fails, so on an NPU the names of the other card are taken',
      zh: '该导入总会失败，因此在 NPU 上用到的总是另一种卡的名称',
    },
  },
  file: null,
  rank: null,
};

const COMMON = {
  ranks: [],
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

const LOOKED_AT_DIFF: L10n = {
  en: '{npu:int} of {files:int} changed Python files speak to NPUs; nothing wrong in the changed lines',
  zh: '修改的 {files:int} 个 Python 文件中有 {npu:int} 个涉及 NPU；修改的行中未发现问题',
};
const LOOKED_AT_ALL: L10n = {
  en: '{npu:int} of {files:int} Python files speak to NPUs; nothing wrong found',
  zh: '{files:int} 个 Python 文件中有 {npu:int} 个涉及 NPU；未发现问题',
};
const UNREAD: L10n = { en: '; {unread:int} could not be read', zh: '；{unread:int} 个无法解析' };

const joined = (first: L10n, second: L10n | null): L10n => ({ en: first.en + (second?.en ?? ''), zh: first.zh + (second?.zh ?? '') });

export default defineRule({
  id: 'migration-review',
  title: { en: 'Code that does not exist or is wrong on NPU', zh: 'NPU 上不存在或错误的写法' },
  category: 'code',
  maturity: 'stable',
  needs: [],
  options: {},
  remedies: ['fix-for-npu', 'set-environment'],
  detect(job, _, code) {
    if (code == null) {
      return {
        outcome: 'notApplicable',
        reason: {
          text: {
            en: 'no source: a pull request has one, the command line takes `--source`',
            zh: '没有源码：PR 自带，命令行使用 `--source`',
          },
        },
      };
    }
    const { migration } = code;
    const version = job.ranks.map((rank) => rank.settings.torchNpu).find((v) => v !== null) ?? code.versions.torchNpu;
    const occurrences = [...migration.occurrences, ...(migration.isDiff ? leftovers(code) : [])].filter(
      (o) => o.kind !== 'removed-name' || isGone(o, version),
    );
    const findings = [
      ...[...Map.groupBy(occurrences, keyOf)].map(([key, list]) => findingOf(key, list, version)),
      ...wrongSettings(code),
    ].slice(0, MAX_FINDINGS);
    if (findings.length > 0) return { outcome: 'findings', findings };
    return {
      outcome: 'pass',
      reason: {
        text: joined(migration.isDiff ? LOOKED_AT_DIFF : LOOKED_AT_ALL, migration.unread > 0 ? UNREAD : null),
        params: { npu: migration.npuFiles, files: migration.files, unread: migration.unread },
      },
    };
  },
});

/** A later release than the last that has the name is known to be in use. */
function isGone({ params }: Occurrence, version: string | null): boolean {
  const last = params?.last ?? '';
  return isReleaseAtLeast(version, last) === true && releaseOf(version) !== last;
}

function keyOf({ kind, name, params, severity }: Occurrence): string {
  const apart = kind === 'unequal-rewrite' || kind === 'inverted-argument' || kind === 'torch-pair' || kind === 'cann-pair';
  return [kind, name, severity ?? '', apart ? JSON.stringify(params ?? {}) : ''].join('|');
}

function findingOf(key: string, list: readonly Occurrence[], version: string | null): RawFinding {
  const first = list[0]!;
  const kind = KINDS[first.kind];
  const isMistaken = first.params?.mistaken === 'yes';
  const params = {
    ...first.params,
    name: first.name,
    replacement: first.replacement ?? '',
    version: version ?? '',
    expected: (first.params?.expected ?? '').split(','),
    step: 'prof.step()',
  };
  const because: RawEvidence = { message: { text: isMistaken ? MISTAKEN_WHY : kind.why, params }, file: null, rank: null };
  return {
    ...COMMON,
    title: { text: isMistaken ? MISTAKEN_FORMAT : kind.title, params },
    confidence: first.confidence,
    severity: first.severity ?? kind.severity,
    evidence: [because, ...(first.params?.tried === 'yes' ? [ALWAYS_OTHER] : []), ...linesOf(list.map(({ site }) => site))],
    sites: list.map(({ site }) => site),
    remedies: [{ id: 'fix-for-npu', params: { kind: first.kind, name: first.name, replacement: first.replacement, ...first.params } }],
    hotspot: key,
  };
}

function linesOf(all: readonly CodeSite[]): RawEvidence[] {
  const sites = [...new Map(all.map((site) => [`${site.file}:${site.startLine}`, site])).values()];
  const evidence = sites.slice(0, MAX_PLACES).map(
    ({ file, startLine, text }): RawEvidence => ({
      message: {
        text: { en: '{place:code}: {text:code}', zh: '{place:code}：{text:code}' },
        params: { place: `${file}:${startLine}`, text },
      },
      file: null,
      rank: null,
    }),
  );
  const more: Message = {
    text: { en: '{n:int} more places', zh: '另有 {n:int} 处' },
    params: { n: sites.length - MAX_PLACES },
  };
  return sites.length > MAX_PLACES ? [...evidence, { message: more, file: null, rank: null }] : evidence;
}

/** What only debugging asks for, where a pull request brings it in. What it costs is for a profile to show. */
function leftovers(code: CodeFacts): Occurrence[] {
  return code.changedSettings.flat().flatMap((setting): Occurrence[] => {
    const { name, value, file, line } = setting;
    if (!setting.isChanged || setting.isDefault || DEBUG_VALUES.get(name)?.test(value) !== true) return [];
    const text = `${name}=${value}`;
    const site = { file, startLine: line, endLine: line, symbol: null, text, edit: null };
    return [{ kind: 'debug-setting', name: text, replacement: null, confidence: 'high', site }];
  });
}

/** Values that the runtime refuses or ignores, in scripts, images and workflows. Each file stands for itself. */
function wrongSettings(code: CodeFacts): RawFinding[] {
  const found = new Map<string, { why: Message; names: readonly string[]; at: CodeSetting[] }>();
  for (const settings of code.changedSettings) {
    const last = new Map(settings.map((setting) => [setting.name, setting]));
    for (const { names, why } of wrongValues(Object.fromEntries([...last].map(([name, { value }]) => [name, value])))) {
      const at = names.flatMap((name) => last.get(name) ?? []);
      const key = names.join('+');
      const known = found.get(key);
      if (known) known.at.push(...at);
      else found.set(key, { why, names, at });
    }
  }
  return [...found].map(([key, { why, names, at }]): RawFinding => {
    const sites = at.map(
      ({ file, line, name, value }): CodeSite => ({
        file,
        startLine: line,
        endLine: line,
        symbol: null,
        text: `${name}=${value}`,
        edit: null,
      }),
    );
    return {
      ...COMMON,
      title: { text: { en: 'A value of {names:code} is not supported', zh: '{names:code} 的取值不受支持' }, params: { names: [...names] } },
      confidence: 'high',
      severity: 'medium',
      evidence: [{ message: why, file: null, rank: null }, ...linesOf(sites)],
      sites,
      remedies: [{ id: 'set-environment', params: { kind: 'wrong', name: names[0]! } }],
      hotspot: `setting|${key}`,
    };
  });
}
