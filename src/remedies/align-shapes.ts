import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { isPython } from '../source/readable-paths.ts';
import { count, flag } from './reading/params.ts';
import { both, filled, listed, prose } from './wording/bilingual.ts';
import { torchPage } from './wording/documents.ts';

const TITLE = both('Give the products a last axis of whole 512-byte lines', '让矩阵乘的尾轴按 512 字节对齐');

const PAD = both(
  'Pad the axis of {tail:int} to {padded:int}, the next length whose rows fill whole lines of 512 bytes.',
  '把长度为 {tail:int} 的轴补到 {padded:int}，即每行占满 512 字节整行的下一个长度。',
);
const PAD_ANY = both(
  'Pad the last axis to a length whose rows fill whole lines of 512 bytes: 256 elements of half precision.',
  '把尾轴补到每行占满 512 字节整行的长度：半精度为 256 个元素。',
);
const VOCABULARY = both(
  'For a vocabulary, enlarge the embedding and the output layer, and leave the added entries out of the loss.',
  '若为词表，扩大 embedding 与输出层，并让新增的词不参与 loss。',
);
const MERGE = both(
  'Narrow projections of the same input become one product: the merged width is easier to align.',
  '同一输入的多个窄投影可合并为一次矩阵乘：合并后的宽度更易对齐。',
);
const CONFLICT = both(
  'Row lengths that are multiples of 16 KB are slow, too: measure the next line up.',
  '行长为 16 KB 整数倍时也会变慢：可实测再加一行的长度。',
);
const CHECK = both(
  'Check: the cube is busy for more of these kernels, and the step is shorter.',
  '验证：这些 kernel 的 Cube 更忙，且迭代缩短。',
);

/** Half precision: not where the code has asked for it already. Always a change of numerics, so never an edit. */
function halfPrecision({ params, source, soc }: RemedyContext): L10n | null {
  const asked = source?.paths.some(
    (path) => isPython(path) && /\bautocast\b|\b(bf16|fp16|bfloat16|float16)\b/.test(source.read(path) ?? ''),
  );
  if (flag(params, 'fp32') !== true || soc === 'gen-1' || asked === true) return null;
  return prose(
    both(
      'These products run in fp32: `torch.autocast("npu", dtype=torch.bfloat16)` around forward and loss needs no scaler.',
      '这些矩阵乘以 fp32 计算：前向与 loss 使用 `torch.autocast("npu", dtype=torch.bfloat16)`，无需梯度缩放。',
    ),
    soc === 'A2' || soc === 'A3'
      ? both(
          '`torch_npu.npu.matmul.allow_hf32 = True` keeps fp32 tensors and multiplies with fewer bits.',
          '`torch_npu.npu.matmul.allow_hf32 = True` 保留 fp32 张量，以较少的位数相乘。',
        )
      : null,
  );
}

const CODE = `rows = -(-vocabulary // 256) * 256  # next multiple of 256 elements of half precision
head = torch.nn.Linear(hidden, rows, bias=False)
logits = torch.matmul(x, head.weight.transpose(0, 1))[..., :vocabulary]`;

function advise(_finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const tail = count(context.params, 'tail');
  const padded = count(context.params, 'padded');
  const half = halfPrecision(context);
  return {
    title: TITLE,
    text: prose(tail !== null && padded !== null ? filled(PAD, { tail, padded }) : PAD_ANY, VOCABULARY, MERGE, CONFLICT, half, CHECK),
    code: CODE,
    preconditions: listed(
      half === null
        ? null
        : both(
            'Both change numerics: the loss curve of a short run equals that of fp32.',
            '两者都会改变数值：短跑的 loss 曲线与 fp32 一致。',
          ),
      both('Checkpoints of the old shape are padded when they are loaded.', '加载旧 shape 的权重时需要补齐。'),
      both(
        'Slicing the result back is a view that nothing copies: otherwise the gain is lost again.',
        '切回原长度只是视图，没有算子复制它：否则收益会被抵消。',
      ),
    ),
    references: [torchPage('generated/torch.nn.Linear.html')],
    edits: [],
    locations: [],
  };
}

/** Products whose rows begin inside a line of the cache. */
export default {
  id: 'align-shapes',
  title: TITLE,
  apis: [
    'torch.Tensor.transpose',
    'torch.autocast',
    'torch.autocast(dtype)',
    'torch.bfloat16',
    'torch.matmul',
    'torch.nn.Linear',
    'torch.nn.Linear(bias)',
    'torch_npu.npu.matmul.allow_hf32',
  ],
  advise,
} satisfies Remedy;
