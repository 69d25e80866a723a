import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { findCallSites } from '../source/find-in-tree.ts';
import { chosen, offer, placesOfNodes } from './reading/offers.ts';
import { words } from './reading/params.ts';
import { bySupport, ofTraining, placesOf, provenFiles } from './reading/places.ts';
import { maskedAssignments } from './reading/tensors.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { torchPage } from './wording/documents.ts';

const TITLE = both('Move the operators off the AI CPU', '让算子离开 AI CPU');

const SEARCHING = /index|nonzero|masked|unique|scatter|gather|where|sort|topk/i;
const BY_TYPE: readonly (readonly [type: RegExp, advice: L10n])[] = [
  [
    /^U?INT16$/i,
    both(
      'Element-wise operators on 16-bit integers run on the AI CPU in many CANN releases: use `torch.int32`.',
      '许多 CANN 版本中，16 位整数的逐元素算子在 AI CPU 上执行：改用 `torch.int32`。',
    ),
  ],
  [
    /^(DOUBLE|FLOAT64)$/i,
    both(
      'Operators on float64 run on the AI CPU: use `torch.float32` where its precision suffices.',
      'float64 算子在 AI CPU 上执行：精度允许时改用 `torch.float32`。',
    ),
  ],
  [
    /^COMPLEX/i,
    both(
      'Few AI core kernels take complex numbers: keep real and imaginary parts in two tensors, or use 64-bit complex numbers.',
      'AI Core 支持复数的 kernel 很少：实部与虚部分为两个张量，或改用 64 位复数。',
    ),
  ],
  [
    /^INT64$/i,
    both(
      'Comparing whole tensors of 64-bit integers may run on the AI CPU: try `torch.int32`.',
      '64 位整数的整张量比较可能在 AI CPU 上执行：可尝试 `torch.int32`。',
    ),
  ],
];

const INDEXING = both(
  'Replace boolean indexing by `masked_fill`, `torch.where` or `index_select`: their result has a fixed size and an AI core kernel.',
  '以 `masked_fill`、`torch.where` 或 `index_select` 代替布尔索引：结果大小固定，且有 AI Core kernel。',
);
const SYNC = both(
  'Boolean indexing, `torch.nonzero` and `torch.unique` also make the host wait, since the size of their result depends on the data.',
  '布尔索引、`torch.nonzero`、`torch.unique` 的结果大小取决于数据，还会使 Host 等待。',
);
const SCALARS = both(
  'Casts of single numbers come from mixing integer scalars with tensors: create them in the type of the tensor.',
  '单个数的类型转换来自整数标量与张量混用：创建时即使用张量的类型。',
);
const LENGTH = both(
  'If no other type or operator fits, move the work to the data loader, where the CPU has it ready in time.',
  '若没有合适的类型或算子，把该计算移到数据加载中，由 CPU 提前完成。',
);
const ARG = both(
  'In CANN 6.3 the position of the smallest value is found on the AI CPU; from 7.0 on an AI core finds it.',
  'CANN 6.3 中求最小值位置在 AI CPU 上执行；7.0 起在 AI Core 上执行。',
);
const UNKNOWN_RELEASE = both(
  'This profile does not record the CANN release; newer ones move operators to AI cores, so an upgrade may be all it takes.',
  'profile 未记录 CANN 版本；新版本会把更多算子移到 AI Core，升级可能就够了。',
);
const RELEASE = both(
  'Newer CANN releases move operators to AI cores: compare before rewriting.',
  '新的 CANN 版本会把更多算子移到 AI Core：改写前先对比。',
);
const CHECK = both(
  'Check: the kernels run on AI cores in the next profile, and outputs equal the old ones.',
  '验证：下一次 profile 中这些 kernel 在 AI Core 上执行，且输出与之前一致。',
);

const CODE = `x = x.masked_fill(mask, 0)            # x[mask] = 0
x = torch.where(mask, y, x)            # x[mask] = y, y broadcasts to x
rows = x.index_select(0, idx)          # x[idx], idx 1-D
total = torch.where(mask, x, 0).sum()  # x[mask].sum()
count = mask.sum()                     # torch.nonzero(mask) only to count`;

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const ops = words(context.params, 'ops');
  const types = words(context.params, 'dtypes');
  const cann = typeof context.params.cann === 'string' ? context.params.cann : null;
  const isSearching = ops.length === 0 || ops.some((op) => SEARCHING.test(op));
  const isArg = ops.some((op) => /argm(in|ax)/i.test(op));
  const proven = provenFiles(finding);
  const calls =
    context.source === null || !isSearching
      ? []
      : findCallSites(context.source, ['torch.nonzero', 'torch.unique', 'torch.masked_select'], proven).sites;
  const masked = context.source === null || !isSearching ? [] : maskedAssignments(context.source, proven);
  const { sites, isSure } = chosen(masked, finding);
  return {
    title: TITLE,
    text: prose(
      ...BY_TYPE.filter(([type]) => types.some((t) => type.test(t))).map(([, advice]) => advice),
      ...(isSearching ? [INDEXING, SYNC] : []),
      ops.some((op) => /^cast/i.test(op)) ? SCALARS : null,
      isArg ? ARG : null,
      LENGTH,
      cann === null ? UNKNOWN_RELEASE : RELEASE,
      CHECK,
    ),
    code: isSearching ? CODE : null,
    preconditions: listed(
      isSearching
        ? both(
            'The mask has the shape of the tensor, and no other name refers to the old tensor: these forms return a new one.',
            '掩码与张量 shape 相同，且没有其他变量引用旧张量：这些写法返回新张量。',
          )
        : null,
      types.some((t) => /DOUBLE|FLOAT64|INT64|COMPLEX/i.test(t))
        ? both('The narrower type holds every value the model needs.', '较窄的类型能容纳模型所需的全部取值。')
        : null,
    ),
    references: [torchPage('generated/torch.where.html')],
    edits:
      context.source === null
        ? []
        : offer(
            sites.map((site) => ({ ...site, isSafe: site.isSafe && isSure })),
            finding,
            context.source,
          ),
    locations: [...placesOfNodes(sites), ...placesOf(bySupport(ofTraining(calls, finding), finding))],
  };
}

/** Operators without an AI core kernel for their type or shape. */
export default {
  id: 'avoid-aicpu',
  title: TITLE,
  apis: [
    'torch.Tensor.index_select',
    'torch.Tensor.masked_fill',
    'torch.Tensor.masked_fill_',
    'torch.Tensor.sum',
    'torch.float32',
    'torch.int32',
    'torch.nonzero',
    'torch.unique',
    'torch.where',
  ],
  advise,
} satisfies Remedy;
