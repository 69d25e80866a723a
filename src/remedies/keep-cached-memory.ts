import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { chosen, offer, placesOfNodes } from './reading/offers.ts';
import { provenFiles } from './reading/places.ts';
import { cacheReleases } from './reading/syncs.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { variablePage } from './wording/documents.ts';

const TITLE = both('Keep the memory cache between steps', '在迭代之间保留显存缓存');

const RELEASES = ['torch.npu.empty_cache', 'torch_npu.npu.empty_cache', 'torch.cuda.empty_cache'];

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const { source } = context;
  const { sites, isSure } = chosen(source === null ? [] : cacheReleases(source, RELEASES, provenFiles(finding)), finding);
  return {
    title: TITLE,
    text: prose(
      sites.length > 0
        ? both(
            'Delete `torch.npu.empty_cache()` from the loop at the lines named here.',
            '删除所列位置循环中的 `torch.npu.empty_cache()`。',
          )
        : both('Take `torch.npu.empty_cache()` out of the loop, if it is there.', '若循环中有 `torch.npu.empty_cache()`，将其移出。'),
      both(
        'It waits for the card and gives memory back that the next step takes again.',
        '它会等待 NPU 完成，并归还下一迭代又要占用的显存。',
      ),
      both(
        'Without such a call the allocator does the same when memory runs out: lower the peak, e.g. with a smaller micro batch.',
        '没有这类调用时，显存不足也会触发同样的行为：降低峰值，例如减小 micro batch。',
      ),
      both('Check: no such calls between the kernels of the next profile.', '验证：下一次 profile 的 kernel 之间没有这类调用。'),
    ),
    code: null,
    preconditions: listed(
      both('Reserved memory stays at its peak; nothing else on the card needs it.', '保留的显存停留在峰值；卡上没有其他程序需要它。'),
      both(
        'The call does not hand memory to another engine or phase, e.g. between training and rollout.',
        '该调用不是为了把显存交给其他引擎或阶段，例如训练与推理采样之间。',
      ),
    ),
    references: [variablePage('memory_management/PYTORCH_NPU_ALLOC_CONF')],
    edits:
      source === null
        ? []
        : offer(
            sites.map((site) => ({ ...site, isSafe: site.isSafe && isSure })),
            finding,
            source,
          ),
    locations: placesOfNodes(sites),
  };
}

/** A loop that empties the allocator's cache. */
export default { id: 'keep-cached-memory', title: TITLE, apis: ['torch.npu.empty_cache'], advise } satisfies Remedy;
