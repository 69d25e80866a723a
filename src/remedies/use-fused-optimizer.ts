import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { argumentOf } from '../source/calls.ts';
import { findCallSites } from '../source/find-in-tree.ts';
import { choice, count } from './reading/params.ts';
import { ofTraining, placesOf, provenFiles, supported } from './reading/places.ts';
import { isReleaseAtLeast, isTorchAtLeast, sinceNote } from './reading/versions.ts';
import { both, filled, listed, prose } from './wording/bilingual.ts';
import { apiPage, torchPage } from './wording/documents.ts';

const TITLE = both('Update the parameters in fewer passes', '减少更新参数的访存遍数');
const ZERO_TITLE = both('Drop the gradients instead of filling them', '丢弃梯度而不是清零');

const OPTIMIZERS = ['Adam', 'AdamW', 'SGD', 'RMSprop', 'Adadelta'].map((name) => `torch.optim.${name}`);
const SCALERS = ['torch.amp.GradScaler', 'torch.cuda.amp.GradScaler', 'torch.npu.amp.GradScaler', 'torch_npu.npu.amp.GradScaler'];

/** The kernel steps once per parameter and does not look at the scaler's flag. Registered from 6.0.rc1; Adam has none. */
function fusedKeyword({ soc, torch, torchNpu }: RemedyContext, optimizer: string, isScaled: boolean): L10n | null {
  const since = sinceNote(torchNpu, '6.0.rc1');
  if (since === null || soc === 'gen-1' || isTorchAtLeast(torch, 2, 0) === false) return null;
  if (optimizer !== 'AdamW' && optimizer !== 'Adam') return null;
  if (isScaled)
    return both(
      'The code scales gradients: `fused=True` would step on scaled gradients and never skip an overflow. Leave it off.',
      '代码使用了梯度缩放：`fused=True` 会用未还原的梯度更新，且不会跳过溢出。不要开启。',
    );
  return prose(
    optimizer === 'AdamW'
      ? both(
          `Try \`torch.optim.AdamW\` with \`fused=True\`${since.en}: parameters, gradients and moments go through memory once.`,
          `试用 \`torch.optim.AdamW\` 的 \`fused=True\`${since.zh}：参数、梯度与动量只过一遍内存。`,
        )
      : both(
          `\`torch.optim.Adam\` has no fused kernel here. Without weight decay \`torch.optim.AdamW\` with \`weight_decay=0\` is the same update: try it with \`fused=True\`${since.en}.`,
          `\`torch.optim.Adam\` 在此没有融合 kernel。无权重衰减时，\`torch.optim.AdamW\` 取 \`weight_decay=0\` 是同一更新：可试用其 \`fused=True\`${since.zh}。`,
        ),
    both('Measure it: it can be slower where the host is late.', '需实测：Host 下发不及时反而会变慢。'),
  );
}

const TENSORS = both('It launches one kernel per parameter, {tensors:int} here.', '它逐个参数下发 kernel，此处为 {tensors:int} 个。');

/** Classes of torch_npu.optim by the torch class they stand for. */
const OWN: Readonly<Record<string, string>> = {
  Adadelta: 'torch_npu.optim.NpuFusedAdadelta',
  Adam: 'torch_npu.optim.NpuFusedAdam',
  AdamW: 'torch_npu.optim.NpuFusedAdamW',
  RMSprop: 'torch_npu.optim.NpuFusedRMSprop',
  SGD: 'torch_npu.optim.NpuFusedSGD',
};

/** One kernel per operation over one long tensor: fewer launches, as many passes. */
function ownClass({ soc }: RemedyContext, optimizer: string): L10n | null {
  const name = OWN[optimizer];
  if (name === undefined || soc === '950') return null;
  return both(
    `\`${name}\` launches each operation once for all parameters, but passes over memory as often: for fp32 or fp16 parameters only, not for FSDP or ZeRO.`,
    `\`${name}\` 每种运算只为全部参数下发一次，但访存遍数不变：仅支持 fp32 或 fp16 参数，不适用于 FSDP 与 ZeRO。`,
  );
}

function foreach({ soc, torchNpu }: RemedyContext): L10n | null {
  if (soc === 'gen-1') return null;
  const isDefault = (soc === 'A2' || soc === 'A3') && isReleaseAtLeast(torchNpu, '6.0.rc3') !== false;
  return isDefault
    ? both(
        'The optimizers of torch take the foreach path by default on this hardware: check that the code does not pass `foreach=False`.',
        'torch 的优化器在该硬件上默认走 foreach 路径：检查代码是否传了 `foreach=False`。',
      )
    : both('Check that the optimizer is not created with `foreach=False`.', '检查优化器是否以 `foreach=False` 创建。');
}

const CHECK = both(
  'Check: the update is shorter in the next profile, the step is faster, and the loss is the same.',
  '验证：下一次 profile 中更新变短、迭代更快，且 loss 一致。',
);

const ZERO = both(
  'Call `zero_grad(set_to_none=True)`, the default since torch 2.0: the gradients are dropped, and the next backward writes them instead of adding to them.',
  '调用 `zero_grad(set_to_none=True)`（torch 2.0 起为默认）：梯度被丢弃，下一次反向直接写入而不再累加。',
);
const ZERO_CHECK = both('Check: no kernels inside zero_grad in the next profile.', '验证：下一次 profile 中 zero_grad 内没有 kernel。');

function zeroGrad({ soc }: RemedyContext): Advice {
  return {
    title: ZERO_TITLE,
    text: prose(ZERO, ZERO_CHECK),
    code: 'optimizer.zero_grad(set_to_none=True)',
    preconditions: listed(
      both('No code reads a gradient before the backward has written it.', '反向写入之前没有代码读取梯度。'),
      soc === '950'
        ? null
        : both(
            'The optimizers of `torch_npu.optim` whose names begin with NpuFused raise an error on it: they keep the fills.',
            '`torch_npu.optim` 中以 NpuFused 开头的优化器会因此报错：保留清零。',
          ),
    ),
    references: [torchPage('generated/torch.optim.Optimizer.zero_grad.html')],
    edits: [],
    locations: [],
  };
}

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice | null {
  const { params, source, soc } = context;
  const what = choice(params, 'what', ['update', 'zero-grad']);
  if (what === 'zero-grad') return zeroGrad(context);
  if (what === null) return null;
  const optimizer = typeof params.optimizer === 'string' ? params.optimizer : '';
  const kind = choice(params, 'kind', ['foreach', 'combined', 'loop']);
  const tensors = count(params, 'tensors');
  const proven = provenFiles(finding);
  const isScaled = source !== null && findCallSites(source, SCALERS, proven).sites.length > 0;
  const sites = source === null ? [] : ofTraining(supported(findCallSites(source, OPTIMIZERS, proven).sites, finding), finding);
  const off = sites.filter(({ call }) => argumentOf(call, 'foreach')?.valueKind === 'false');
  const keyword = fusedKeyword(context, optimizer, isScaled);
  const offered = keyword !== null && !isScaled;
  const own = kind === 'loop' || (soc === 'gen-1' && kind !== 'combined') ? ownClass(context, optimizer) : null;
  const loop = kind === 'loop' ? foreach(context) : null;
  if (keyword === null && own === null && loop === null) return null;
  return {
    title: TITLE,
    text: prose(loop, keyword, offered && tensors !== null ? filled(TENSORS, { tensors }) : null, own, CHECK),
    code: offered ? (optimizer === 'AdamW' ? ADAMW : ADAM) : null,
    preconditions: listed(
      offered
        ? both(
            'Parameters are bf16 or fp32, and no gradient scaler is used: the fused kernel ignores it.',
            '参数为 bf16 或 fp32，且未使用梯度缩放：融合 kernel 会忽略它。',
          )
        : null,
      offered ? both('Gradients are dense.', '梯度为稠密张量。') : null,
      own === null
        ? null
        : both(
            'With classes of `torch_npu.optim` call `zero_grad()` without `set_to_none=True`.',
            '使用 `torch_npu.optim` 的类时，`zero_grad()` 不传 `set_to_none=True`。',
          ),
      both('The results differ by rounding: compare the loss curve.', '结果有舍入差异：需对比 loss 曲线。'),
    ),
    references: [
      ...(offered ? [torchPage('generated/torch.optim.AdamW.html')] : []),
      ...(own === null ? [] : [apiPage(`torch_npu-optim/${OWN[optimizer]!.replace('torch_npu.optim.', 'torch_npu-optim-')}`)]),
    ],
    edits: [],
    locations: placesOf(off.length > 0 ? off : sites),
  };
}

const ADAMW = 'optimizer = torch.optim.AdamW(model.parameters(), lr, fused=True)';
const ADAM = 'optimizer = torch.optim.AdamW(model.parameters(), lr, weight_decay=0, fused=True)';

/** Optimizers that pass over the parameters many times, or launch for each of them; and gradients filled with zeros. */
export default {
  id: 'use-fused-optimizer',
  title: TITLE,
  apis: [
    'torch.optim.Adam',
    'torch.optim.AdamW',
    'torch.optim.AdamW(foreach)',
    'torch.optim.AdamW(fused)',
    'torch.optim.AdamW(weight_decay)',
    'torch.optim.Optimizer.zero_grad',
    'torch.optim.Optimizer.zero_grad(set_to_none)',
    'torch_npu.optim.NpuFusedAdadelta',
    'torch_npu.optim.NpuFusedAdam',
    'torch_npu.optim.NpuFusedAdamW',
    'torch_npu.optim.NpuFusedRMSprop',
    'torch_npu.optim.NpuFusedSGD',
  ],
  advise,
} satisfies Remedy;
