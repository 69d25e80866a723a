import { quoteLiteral } from '../base/phrase.ts';
import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext, Soc } from '../model/remedy.ts';
import type { Edit } from '../model/report.ts';
import type { SourceTree } from '../model/source-tree.ts';
import { argumentOf } from '../source/calls.ts';
import { isInsideComment } from '../source/comment-lines.ts';
import { findCallSites } from '../source/find-in-tree.ts';
import { isAside, isPython } from '../source/readable-paths.ts';
import { chosen, offer, placesOfNodes } from './reading/offers.ts';
import { words } from './reading/params.ts';
import { type Place, placesOf, provenFiles } from './reading/places.ts';
import { copiesBeforeProduct, copiesBeforeView } from './reading/tensors.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { apiPage, torchNpuPage } from './wording/documents.ts';

const TITLE = both('Keep one layout between operators', '在算子之间保持同一种布局');

/** Format numbers that stand for private layouts: 29 = FRACTAL_NZ, 3 = NC1HWC0. */
const PRIVATE_FORMATS = new Set(['29', '3']);

/** More lines than this help nobody. */
const MAX_LINES = 8;

interface FormatSigns {
  readonly places: readonly Place[];
  readonly edits: readonly Edit[];
  /** `allow_internal_format = True` is set somewhere. */
  readonly allows: boolean;
  /** `npu_format_cast` to a private format is called somewhere. */
  readonly casts: boolean;
}

const ALLOW = /^(\s*(?:import\s[\w., ]+;\s*)?(?:torch_npu|torch)\.npu\.config\.allow_internal_format\s*=\s*)True(?=\s*(?:#.*)?$)/;

/** Code that asks for private formats: switched on globally, or cast to by number. */
function formatSigns(tree: SourceTree | null, proven: readonly string[]): FormatSigns {
  if (tree === null) return { places: [], edits: [], allows: false, casts: false };
  const places: Place[] = [];
  const edits: Edit[] = [];
  for (const file of tree.paths) {
    if (!isPython(file) || (isAside(file) && !proven.includes(file))) continue;
    const text = tree.read(file);
    if (text === null || !text.includes('allow_internal_format')) continue;
    for (const [i, line] of text.split('\n').entries()) {
      const match = line.length > 500 || isInsideComment(line, 'allow_internal_format') ? null : ALLOW.exec(line.replace(/\r$/, ''));
      if (match === null) continue;
      places.push({ file, line: i + 1, symbol: null });
      const after = `${match[1]}False${line.slice(match[0].length)}`;
      edits.push({ file, startLine: i + 1, endLine: i + 1, before: line, after, kind: 'comment-only' });
    }
  }
  const casts = findCallSites(tree, ['torch_npu.npu_format_cast'], proven).sites.filter(({ call }) =>
    PRIVATE_FORMATS.has(argumentOf(call, 'acl_format', 1)?.text ?? ''),
  );
  return {
    places: [...places.slice(0, MAX_LINES), ...placesOf(casts)],
    edits: edits.slice(0, MAX_LINES),
    allows: places.length > 0,
    casts: casts.length > 0,
  };
}

/** TransData converts between private and plain formats; where those come from depends on the hardware. */
function transData(soc: Soc, signs: FormatSigns): L10n {
  if (signs.allows || signs.casts) {
    return both(
      'The source asks for private formats at the lines named here: without them `TransData` has nothing to convert.',
      '源码在所列位置启用了私有格式：去掉后 `TransData` 无需转换。',
    );
  }
  const off = both(
    'Set `torch_npu.npu.config.allow_internal_format = False` at the top of the entry script.',
    '在入口脚本开头设置 `torch_npu.npu.config.allow_internal_format = False`。',
  );
  const convolution = both(
    'Convolution networks can lose speed by it on this hardware: measure both.',
    '卷积网络在该硬件上可能因此变慢：两种都要测。',
  );
  if (soc === 'gen-1') return prose(off, convolution);
  const search = both(
    'Private formats are off by default on this hardware. Look for code that turns them on, or calls `torch_npu.npu_format_cast` with 29 or 3.',
    '该硬件默认关闭私有格式。查找启用它的代码，或以 29、3 调用 `torch_npu.npu_format_cast` 之处。',
  );
  if (soc !== null) return search;
  return prose(
    both('`TransData` comes from private formats.', '`TransData` 由私有格式引起。'),
    both(
      'Atlas A2, A3 and Ascend 950 leave them off by default: look for code that turns them on.',
      'Atlas A2、A3 与 Ascend 950 默认关闭：查找启用它的代码。',
    ),
    both(
      'On the first Atlas training series set `torch_npu.npu.config.allow_internal_format = False` at the top of the entry script, and measure convolution networks both ways.',
      '初代 Atlas 训练系列在入口脚本开头设置 `torch_npu.npu.config.allow_internal_format = False`；卷积网络两种都要测。',
    ),
  );
}

const ROUND_TRIP = both(
  'Two conversions with nothing but element-wise work between them undo each other: keep one axis order and drop both.',
  '中间只有逐元素计算的两次转换互相抵消：保持同一种轴顺序，去掉这两次。',
);
const MATMUL = both(
  'Pass a transposed view straight to the matmul, without `.contiguous()`.',
  '把转置后的视图直接传给矩阵乘，不加 `.contiguous()`。',
);
const COMBINED = both(
  '`COMBINED_ENABLE=1` in the launch script joins two such kernels that follow each other: measure it.',
  '启动脚本中设置 `COMBINED_ENABLE=1` 可合并相邻的两个此类 kernel：需实测。',
);
const NOT_THE_VALUES = both(
  'A `transpose` is never replaced by `view` or by a format cast: the values change.',
  '不能用 `view` 或格式转换代替 `transpose`：结果会改变。',
);
const CHECK = both(
  'Check: outputs equal the old ones, and the kernels are gone from the next profile.',
  '验证：输出与之前一致，且下一次 profile 中不再有这些 kernel。',
);

/** The layout argument exists on the fused attention, whose page lists A2 and 950. */
function attention(soc: Soc): L10n | null {
  if (soc === 'gen-1' || soc === 'A3')
    return both(
      'Choose the axis order the attention takes, so that no permute is needed.',
      '按注意力算子接受的轴顺序组织数据，省去 permute。',
    );
  return both(
    'Calls of `torch_npu.npu_fusion_attention` take `input_layout="BSND"`, so no permute is needed before them.',
    '`torch_npu.npu_fusion_attention` 支持 `input_layout="BSND"`，其前无需 permute。',
  );
}

const CODE = `scores = torch.matmul(q, k.transpose(-2, -1))  # not k.transpose(-2, -1).contiguous()
y = x.permute(0, 2, 1, 3).reshape(b, s, -1)    # not .contiguous().view(b, s, -1); same values`;

const FORMAT_CODE = `import torch
import torch_npu

torch_npu.npu.config.allow_internal_format = False  # before any tensor is created`;

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const types = words(context.params, 'types');
  const hasFormats = types.some((type) => /trans_?data|format/i.test(type));
  const onlyFormats = hasFormats && types.every((type) => /trans_?data|format/i.test(type));
  const removable = typeof context.params.removableMs === 'number' && context.params.removableMs > 0;
  const signs = hasFormats ? formatSigns(context.source, provenFiles(finding)) : formatSigns(null, []);
  const { source } = context;
  const proven = provenFiles(finding);
  const copies = source === null || onlyFormats ? [] : [...copiesBeforeProduct(source, proven), ...copiesBeforeView(source, proven)];
  const { sites, isSure } = chosen(copies, finding);
  const named = types.map((type) => quoteLiteral(type, 40));
  return {
    title: TITLE,
    text: prose(
      named.length > 0 ? both(`Layout kernels here: ${named.join(', ')}.`, `此处的布局类 kernel：${named.join('、')}。`) : null,
      removable ? ROUND_TRIP : null,
      hasFormats ? transData(context.soc, signs) : null,
      ...(onlyFormats ? [] : [MATMUL, attention(context.soc)]),
      NOT_THE_VALUES,
      context.soc === 'gen-1' && !onlyFormats ? COMBINED : null,
      CHECK,
    ),
    code: onlyFormats ? (context.soc === 'gen-1' || context.soc === null ? FORMAT_CODE : null) : CODE,
    preconditions: listed(
      both(
        '`.contiguous()` before a collective stays: HCCL needs contiguous tensors.',
        '集合通信之前的 `.contiguous()` 保留：HCCL 要求内存连续。',
      ),
      onlyFormats
        ? null
        : both(
            'A result of `.reshape()` may share memory: it is not changed in place afterwards.',
            '`.reshape()` 的结果可能共享内存：之后不做原地修改。',
          ),
    ),
    references: [
      apiPage('torch_npu-npu/（beta）torch_npu-npu-config-allow_internal_format'),
      torchNpuPage('user_guide/troubleshooting/troubleshooting_cases/nz_format_precision_issue.md'),
    ],
    edits: [
      ...signs.edits,
      ...(source === null
        ? []
        : offer(
            sites.map((site) => ({ ...site, isSafe: site.isSafe && isSure })),
            finding,
            source,
          )),
    ],
    locations: [...signs.places, ...placesOfNodes(sites)],
  };
}

/** Transposes and format conversions that can go without changing a value. */
export default {
  id: 'keep-layout',
  title: TITLE,
  apis: [
    'COMBINED_ENABLE',
    'torch_npu.npu.config.allow_internal_format',
    'torch_npu.npu_format_cast',
    'torch_npu.npu_fusion_attention',
    'torch_npu.npu_fusion_attention(input_layout)',
    'torch.matmul',
    'torch.Tensor.contiguous',
    'torch.Tensor.transpose',
    'torch.Tensor.permute',
    'torch.Tensor.reshape',
    'torch.Tensor.view',
  ],
  advise,
} satisfies Remedy;
