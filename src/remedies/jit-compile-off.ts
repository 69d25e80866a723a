import { quoteLiteral } from '../base/phrase.ts';
import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import type { Edit } from '../model/report.ts';
import { argumentOf } from '../source/calls.ts';
import { insertAfter } from '../source/edit-statement.ts';
import { type CallSite, findCallSites } from '../source/find-in-tree.ts';
import { pythonFilesWith } from '../source/python-files.ts';
import { isAside, isPython } from '../source/readable-paths.ts';
import { replaceLiteral } from '../source/replace-literal.ts';
import { type PyModule, type PyNode, partsOf, textOf } from '../source/syntax-tree.ts';
import { settingsOf } from './reading/launch-settings.ts';
import { offer } from './reading/offers.ts';
import { choice, count } from './reading/params.ts';
import { bySupport, placesOf, provenFiles, toEdit } from './reading/places.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { apiPage, variablePage } from './wording/documents.ts';

const MODE = 'torch_npu.npu.set_compile_mode';

const TITLE = both('Stop compiling operators during training', '训练中不再编译算子');
/** Where the source passes the literal that is to be changed. */
const TITLE_LITERAL = both('Set `jit_compile=False`', '设置 `jit_compile=False`');

type Setting = 'on' | 'off' | 'expression';

/** What one call asks for; `jit_compile` is the first positional argument and False by default. */
function settingOf({ call }: CallSite): Setting {
  if (call.hasKeywordArgs || call.hasStarArgs) return 'expression';
  const kind = argumentOf(call, 'jit_compile', 0)?.valueKind ?? 'false';
  return kind === 'true' ? 'on' : kind === 'false' ? 'off' : 'expression';
}

interface Calls {
  readonly on: readonly CallSite[];
  readonly off: readonly CallSite[];
  readonly other: readonly CallSite[];
}

function callsIn(context: RemedyContext, finding: Parameters<Remedy['advise']>[0]): Calls {
  if (context.source === null) return { on: [], off: [], other: [] };
  const sites = bySupport(findCallSites(context.source, [MODE], provenFiles(finding)).sites, finding);
  const of = (setting: Setting): CallSite[] => sites.filter((site) => settingOf(site) === setting);
  return { on: of('on'), off: of('off'), other: of('expression') };
}

/**
 * One click only where the direction is certain: nothing else sets the mode, the call is not one branch of a choice or
 * behind an option of that name, and the hardware is known to gain: A2 and A3, or the first generation with shapes that change. 950
 * ignores the setting.
 */
function editsFor(calls: Calls, finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Edit[] {
  const shapes = choice(context.params, 'shapes', ['static', 'dynamic']);
  const { soc } = context;
  const isTuned = perOperator(context) !== null;
  const isSlower = soc === 'A2' || soc === 'A3' ? shapes !== 'static' : soc === 'gen-1' && shapes === 'dynamic';
  return calls.on.flatMap((site): Edit[] => {
    const { module, call } = site;
    const { edit } = replaceLiteral(module, call, 'jit_compile', 'True', 'False');
    if (edit === null) return [];
    const isChoice =
      calls.off.length + calls.other.length > 0 ||
      call.enclosing.some(({ kind, text }) => kind === 'else' || /jit|compile/i.test(text ?? ''));
    const isSafe =
      isSlower &&
      !isChoice &&
      !isTuned &&
      call.name === MODE &&
      finding.confidence !== 'low' &&
      !isAside(module.path) &&
      context.source!.inDiff(module.path, call.span.startLine, call.span.endLine);
    return [toEdit(edit, isSafe ? 'suggestion' : 'comment-only')];
  });
}

/** Lists of operators that are taken out of online compilation: whoever keeps one chose the mode with it in mind. */
const OPERATOR_LISTS = /\b(FORCE_ACLNN_OP_LIST|NPU_FUZZY_COMPILE_BLACKLIST)\b/;

/** The first file that names such a list. */
function perOperator({ source }: RemedyContext): string | null {
  return source?.paths.find((path) => isPython(path) && !isAside(path) && OPERATOR_LISTS.test(source.read(path) ?? '')) ?? null;
}

/** Compile events per step from which the switch is worth a line in the entry script. */
const MANY = 20;

/**
 * No call sets the mode: two lines behind the import of torch_npu in the entry script. Only where the hardware compiles by default; on the
 * others somebody turned it on, out of sight.
 */
function topEdits(calls: Calls, finding: Parameters<Remedy['advise']>[0], context: RemedyContext, isElsewhere: boolean): Edit[] {
  const { source, soc, params } = context;
  if (source === null || soc !== 'gen-1' || isElsewhere || calls.on.length + calls.off.length + calls.other.length > 0) return [];
  if ((count(params, 'calls') ?? 0) < MANY) return [];
  const proven = provenFiles(finding);
  const { modules, failures } = pythonFilesWith(source, ['import torch_npu'], (path) => !isAside(path) || proven.includes(path));
  const entries = modules.flatMap((module) => {
    const statement = importAtTop(module);
    const isEntry = proven.includes(module.path) || /^if __name__\s*==/m.test(module.text);
    return statement !== null && isEntry && !module.text.includes('allow_internal_format') ? [{ module, node: statement }] : [];
  });
  const [entry, ...others] = entries;
  if (entry === undefined || others.length > 0) return [];
  const { steps } = insertAfter(entry.module, entry.node, TOP_LINES);
  // Private formats speed convolutions up on this hardware: whether to give them up is to be measured.
  const convolves = source.paths.some((path) => /\bConv[123]d\b|\bconv[123]d\(|torchvision|\btimm\b/.test(source.read(path) ?? ''));
  const isSafe = choice(params, 'shapes', ['dynamic']) !== null && !convolves && failures.length === 0;
  return steps === null ? [] : offer([{ ...entry, steps, isSafe }], finding, source);
}

const TOP_LINES = ['torch_npu.npu.set_compile_mode(jit_compile=False)', 'torch_npu.npu.config.allow_internal_format = False'];

/** `import torch_npu` on a line of its own, at the top level. */
function importAtTop(module: PyModule): PyNode | null {
  return partsOf(module.root).find((node) => node.kind === 'import_statement' && textOf(module, node) === 'import torch_npu') ?? null;
}

const COMPILES = both('Operators are compiled online during the measured steps.', '所测迭代中仍在在线编译算子。');
const TURN_OFF = both(
  'Set `jit_compile=False` where the source passes `True`: prebuilt operators are used instead.',
  '把源码中的 `jit_compile=True` 改为 `False`：改用预编译算子。',
);
const SHAPES = both(
  'If compiling goes on, some operators are always compiled per shape: pad or bucket the shapes so that fewer occur.',
  '若仍有编译，说明部分算子总按 shape 编译：对 shape 做填充或分桶，减少种类。',
);
const IN_LOOP = both('The call synchronises the card: move it out of the loop.', '该调用会同步 NPU：移到循环之外。');
const FACTORY = both(
  'LLaMA-Factory sets this mode itself from `NPU_JIT_COMPILE`: change it there.',
  'LLaMA-Factory 通过 `NPU_JIT_COMPILE` 自行设置该模式：在那里修改。',
);

/** Without a literal True in the source: where the mode comes from depends on the hardware's default. */
function direction(context: RemedyContext, calls: Calls): L10n {
  if (calls.on.length > 0) return TURN_OFF;
  if (calls.other.length > 0) {
    return both(
      'The mode comes from an expression at the line named here: find out what it is in this run.',
      '该模式由所列位置的表达式决定：确认本次运行的取值。',
    );
  }
  if (calls.off.length > 0) return both('The source sets `jit_compile=False` already.', '源码已设置 `jit_compile=False`。');
  switch (context.soc) {
    case 'gen-1':
      return both(
        'This hardware compiles online by default: set `jit_compile=False` and `allow_internal_format = False` at the top of the entry script.',
        '该硬件默认在线编译：在入口脚本开头设置 `jit_compile=False` 和 `allow_internal_format = False`。',
      );
    case 'A2':
    case 'A3':
      return both(
        '`jit_compile=False` is the default on this hardware: look for code or a framework that turns it on.',
        '该硬件默认 `jit_compile=False`：查找启用它的代码或框架。',
      );
    case '950':
      return both(
        'This hardware accepts only `jit_compile=False`, so the mode is not the reason.',
        '该硬件只接受 `jit_compile=False`，原因不在该模式。',
      );
    default:
      return both(
        'Atlas A2 and A3 have `jit_compile=False` by default: look for code that turns it on. On the first Atlas training series set it at the top of the entry script.',
        'Atlas A2、A3 默认 `jit_compile=False`：查找启用它的代码。初代 Atlas 训练系列需在入口脚本开头设置。',
      );
  }
}

const CACHE = both(
  'In CI keep `ACL_OP_COMPILER_CACHE_DIR` on a persistent volume, or every run measures compiling.',
  'CI 中把 `ACL_OP_COMPILER_CACHE_DIR` 放在持久卷上，否则每次运行都会测到编译。',
);
const CHECK = both(
  'Check: no compile events in the measured steps of the next profile.',
  '验证：下一次 profile 的所测迭代中没有编译事件。',
);

const TOP_CODE = `import torch
import torch_npu

torch_npu.npu.set_compile_mode(jit_compile=False)   # top of the entry script, never in a loop
torch_npu.npu.config.allow_internal_format = False  # before any tensor is created`;

const CACHE_CODE = `# launch script
export ACL_OP_COMPILER_CACHE_DIR=/cache/acl`;

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const calls = callsIn(context, finding);
  const tuned = perOperator(context);
  const factory = context.source === null ? [] : settingsOf(context.source, 'NPU_JIT_COMPILE');
  const isInLoop = [...calls.on, ...calls.off].some(({ call }) => call.enclosing.some(({ kind }) => kind === 'for' || kind === 'while'));
  const canCompileByMode = context.soc !== '950';
  const setsAtTop = calls.on.length + calls.off.length + calls.other.length === 0 && (context.soc === 'gen-1' || context.soc === null);
  const files = [...new Set(calls.on.map(({ module }) => module.path))].slice(0, 3).map((file) => quoteLiteral(file));
  return {
    title: calls.on.length > 0 ? TITLE_LITERAL : TITLE,
    text: prose(
      COMPILES,
      direction(context, calls),
      files.length > 0 ? both(`It is set in ${files.join(', ')}.`, `设置位于 ${files.join('、')}。`) : null,
      isInLoop ? IN_LOOP : null,
      factory.length > 0 ? FACTORY : null,
      calls.on.length > 0 && tuned !== null
        ? both(
            `The source also lists operators that are not to be compiled online (${quoteLiteral(tuned)}): decide on both together.`,
            `源码还列出了不在线编译的算子（${quoteLiteral(tuned)}）：两处需一并考虑。`,
          )
        : null,
      SHAPES,
      canCompileByMode ? CACHE : null,
      CHECK,
    ),
    code: setsAtTop ? TOP_CODE : canCompileByMode ? CACHE_CODE : null,
    preconditions: listed(
      canCompileByMode
        ? both(
            'One run is compared before and after: prebuilt operators can differ in rounding and speed.',
            '前后各跑一次对比：预编译算子的舍入和速度可能不同。',
          )
        : null,
      context.soc === 'gen-1' || context.soc === null
        ? both(
            'On the first Atlas training series with fixed shapes, compiling once can be faster: measure both.',
            '初代 Atlas 训练系列且 shape 固定时，一次性编译可能更快：两种都要测。',
          )
        : null,
      both(
        'Padding keeps the masks right, and dropping the last batch changes the data seen.',
        '填充后掩码仍正确；丢弃最后一个 batch 会改变训练数据。',
      ),
    ),
    references: [
      apiPage('torch_npu-npu/（beta）torch_npu-npu-set_compile_mode'),
      ...(canCompileByMode ? [variablePage('op_compilation/ACL_OP_COMPILER_CACHE_DIR')] : []),
    ],
    edits: [...editsFor(calls, finding, context), ...topEdits(calls, finding, context, factory.length > 0)],
    locations: [
      ...placesOf([...calls.on, ...calls.other, ...calls.off]),
      ...factory.map(({ file, line }) => ({ file, line, symbol: null })),
    ],
  };
}

/** Online compilation off, in the direction that the hardware and the source support. */
export default {
  id: 'jit-compile-off',
  title: TITLE,
  apis: [MODE, `${MODE}(jit_compile)`, 'torch_npu.npu.config.allow_internal_format', 'ACL_OP_COMPILER_CACHE_DIR', 'NPU_JIT_COMPILE'],
  advise,
} satisfies Remedy;
