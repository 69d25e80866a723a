import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import { LOADER, trainingLoaders } from './reading/loaders.ts';
import { choice } from './reading/params.ts';
import { bySupport, placesOf, provenFiles } from './reading/places.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { torchPage } from './wording/documents.ts';

const TITLE = both('Prepare batches in the loader workers', '在数据加载进程中准备 batch');

const CODE = `def collate(samples):
    # what the training loop did to each batch
    return prepare(samples)


loader = DataLoader(
    dataset,             # other arguments stay as they are
    num_workers=4,       # above 0: the workers run collate
    collate_fn=collate,
)`;

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const single = choice(context.params, 'iterator', ['single', 'multi']) === 'single';
  const sites = bySupport(trainingLoaders(context.source, provenFiles(finding)), finding);
  return {
    title: TITLE,
    text: prose(
      both(
        'Move what the loop does to a fetched batch into `collate_fn`: tokenising, padding, stacking, augmenting.',
        '把循环中对 batch 的处理移入 `collate_fn`：分词、填充、堆叠、增强。',
      ),
      single
        ? both(
            'This loader has no workers yet: with `num_workers=4` they prepare batches while the card computes.',
            '该加载器还没有 worker：设置 `num_workers=4` 后，可在 NPU 计算时准备 batch。',
          )
        : both('Workers then do it while the card computes.', '随后由 worker 在 NPU 计算时完成。'),
      both('What does not change between epochs is cheaper done once, before training.', '各 epoch 之间不变的处理，训练前做一次开销更小。'),
      both(
        'Check: the first copy to the card follows the fetch at once in the next profile.',
        '验证：下一次 profile 中，取数之后立即拷贝到 NPU。',
      ),
    ),
    code: CODE,
    preconditions: listed(
      both(
        'The work needs nothing that only the training process has, and returns CPU tensors.',
        '该处理不依赖仅训练进程拥有的对象，并返回 CPU 张量。',
      ),
      both('The host has idle CPU cores for the workers.', '主机有空闲 CPU 核供 worker 使用。'),
    ),
    references: [torchPage('data.html#working-with-collate-fn')],
    edits: [],
    locations: placesOf(sites),
  };
}

/** Work on the batch that the training thread does while the card waits. */
export default {
  id: 'prepare-batch-in-workers',
  title: TITLE,
  apis: [LOADER, `${LOADER}(num_workers)`, `${LOADER}(collate_fn)`],
  advise,
} satisfies Remedy;
