import type { L10n } from '../../model/lang.ts';
import type { RemedyContext } from '../../model/remedy.ts';
import { isPython } from '../../source/readable-paths.ts';
import { both } from './bilingual.ts';

/** Half the bytes on the wire: A2 and A3, gradients in fp32, and DDP without a hook of its own. */
export function compressGradients({ soc, source }: RemedyContext): L10n | null {
  if (soc !== 'A2' && soc !== 'A3') return null;
  const isOther = source?.paths.some(
    (path) => isPython(path) && /register_comm_hook|fully_shard|FullyShardedDataParallel|deepspeed|megatron/.test(source.read(path) ?? ''),
  );
  if (isOther === true) return null;
  return both(
    'With DistributedDataParallel and fp32 gradients, `bf16_compress_hook` passed to `register_comm_hook` halves the bytes; it changes numerics.',
    '使用 DistributedDataParallel 且梯度为 fp32 时，向 `register_comm_hook` 传入 `bf16_compress_hook` 可使数据量减半；会改变数值。',
  );
}

export const COMPRESSION_HOLDS: L10n = both(
  'A compression hook is registered once, after wrapping and before the first backward.',
  '压缩 hook 只注册一次，在封装之后、首次反向之前。',
);
