import type { L10n } from '../../model/lang.ts';
import type { RemedyContext } from '../../model/remedy.ts';
import { isReleaseAtLeast, sinceNote } from '../reading/versions.ts';
import { both } from './bilingual.ts';

/** Fusing element-wise formulas by compiling them; not for the first training series. */
export function compileFormulas(context: RemedyContext): L10n | null {
  const since = sinceNote(context.torchNpu, '7.3.0');
  if (since === null || context.soc === 'gen-1') return null;
  return both(
    `With static shapes, \`torch.compile\` fuses element-wise formulas${since.en}.`,
    `shape 固定时，\`torch.compile\` 可融合逐元素公式${since.zh}。`,
  );
}

/** Fusing without a change of code: A2 and A3 from 26.1.0. */
export function lazyFusion(context: RemedyContext): L10n | null {
  const isThere = context.soc === 'A2' || context.soc === 'A3';
  if (!isThere || isReleaseAtLeast(context.torchNpu, '26.1.0') !== true) return null;
  return both(
    '`TORCH_NPU_LAZY_FUSION=True` fuses element-wise operators without a change of code: measure it.',
    '`TORCH_NPU_LAZY_FUSION=True` 无需改代码即可融合逐元素算子：需实测。',
  );
}
