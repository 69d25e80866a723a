import { describe, expect, test } from 'vitest';
import { type Advised, patchOf, settleEdits } from '../../src/engine/settle-edits.ts';
import { codeFacts } from '../../src/facts/code/index.ts';
import type { RemedyContext } from '../../src/model/remedy.ts';
import type { Edit, Finding, Recommendation } from '../../src/model/report.ts';
import type { SourceTree } from '../../src/model/source-tree.ts';
import { REMEDIES } from '../../src/remedies/index.ts';
import { applied, repository } from '../remedies/repository.ts';
import { contextOf, findingOf } from '../remedies/situations.ts';

function advisedOf(id: string, params: RemedyContext['params'], source: SourceTree, sites: RemedyContext['sites'] = []): Advised {
  const remedy = REMEDIES.get(id)!;
  const context = contextOf({ params, source, ...(sites === undefined ? {} : { sites }) });
  const finding = findingOf() as Finding;
  const edits = [...remedy.advise(finding, context)!.edits];
  const recommendation = { remedy: id, edits, preconditions: [id] } as unknown as Recommendation;
  return { recommendation, finding: { ...finding, recommendations: [recommendation] }, remedy, context };
}

const TRAIN = `import torch
import torch_npu
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.zeros(80, 4), torch.zeros(80))
loader = DataLoader(
    dataset,
    batch_size=8,
    num_workers=4,
)
for epoch in range(3):
    for x, y in loader:
        x, y = x.npu(), y.npu()
        model(x, y).backward()
`;
const settled = (source: SourceTree, ...asked: [string, RemedyContext['params']][]): Advised[] => {
  const advised = asked.map(([id, params]) => advisedOf(id, params, source));
  settleEdits(advised);
  return advised;
};
const editsOf = (advised: readonly Advised[]): Edit[] => advised.flatMap(({ recommendation }) => recommendation.edits);
const offered = (advised: readonly Advised[]): Edit[] => editsOf(advised).filter(({ kind }) => kind === 'suggestion');

const WORKERS = ['dataloader-workers', { iterator: 'multi', allRanks: true }] as [string, RemedyContext['params']];
const PINNED = ['batch-transfer', { pageable: true, many: false }] as [string, RemedyContext['params']];

describe('changes of one call become one', () => {
  const BOTH = `loader = DataLoader(
    dataset,
    batch_size=8,
    num_workers=4,
    persistent_workers=True,
    pin_memory=True,
)`;

  test('workers and pinned memory are one suggestion', () => {
    const source = repository({ 'train.py': TRAIN });
    const [first, ...more] = offered(settled(source, WORKERS, PINNED));
    expect(more).toEqual([]);
    expect(applied(source, first!)).toContain(BOTH);
  });

  test('what has to hold for either has to hold for both', () => {
    const [first] = settled(repository({ 'train.py': TRAIN }), WORKERS, PINNED);
    expect(first!.recommendation.preconditions).toEqual(['dataloader-workers', 'batch-transfer']);
  });

  test('a correction that knows only the old text is joined as well', () => {
    const text =
      'import torch\nimport torch_npu\nfrom torch.nn.parallel import DistributedDataParallel as DDP\nrank = torch.distributed.get_rank()\nlocal_rank = int(os.environ["LOCAL_RANK"])\nm = DDP(m, device_ids=[rank])\n';
    const source = repository({ 'train.py': text });
    const [buffers] = settled(source, ['broadcast-buffers-off', { broadcasts: 8 }]);
    const { kind, name, site } = codeFacts(source).migration.occurrences.find((found) => found.kind === 'global-rank')!;
    const fix = advisedOf('fix-for-npu', { kind, name }, source, [site]);
    settleEdits([buffers!, fix]);
    expect(offered([buffers!, fix]).map(({ after }) => after)).toEqual(['m = DDP(m, device_ids=[local_rank], broadcast_buffers=False)']);
  });

  test('without a diff they are one change that is shown', () => {
    const source = repository({ 'train.py': TRAIN }, []);
    const advised = settled(source, WORKERS, PINNED);
    expect(offered(advised)).toEqual([]);
    const patch = patchOf(
      advised.map(({ finding }) => finding),
      source,
    )!;
    for (const line of ['num_workers=4', 'pin_memory=True', 'x.npu(non_blocking=True)']) expect(patch).toContain(line);
  });

  test('in one line, too', () => {
    const source = repository({ 'train.py': TRAIN.replace(/DataLoader\([\s\S]*?\n\)/, 'DataLoader(dataset, num_workers=4)') });
    const [first] = offered(settled(source, WORKERS, PINNED));
    expect(first!.after).toBe('loader = DataLoader(dataset, num_workers=4, persistent_workers=True, pin_memory=True)');
  });

  test('the same change of two findings is offered once', () => {
    const source = repository({ 'train.py': TRAIN });
    const advised = settled(source, WORKERS, WORKERS);
    expect(offered(advised)).toHaveLength(1);
    expect(editsOf(advised)).toHaveLength(2);
  });

  test('what is safe is not held back by what is not', () => {
    // Kept workers would go on with the samples that the data set has changed.
    const streams = TRAIN.replace(
      /dataset = .*\n/,
      'class D(torch.utils.data.Dataset):\n    def __len__(self):\n        return 8\n    def __getitem__(self, i):\n        self.rows[i] *= 2\n        return self.rows[i], 0\n\ndataset = D()\n',
    );
    const source = repository({ 'train.py': streams });
    const advised = settled(source, WORKERS, PINNED);
    expect(offered(advised).map(({ after }) => after)).toEqual(['    num_workers=4,\n    pin_memory=True,']);
  });

  test('suggestions never overlap, in either order', () => {
    for (const asked of [
      [WORKERS, PINNED],
      [PINNED, WORKERS],
      [PINNED, WORKERS, PINNED],
    ]) {
      const list = offered(settled(repository({ 'train.py': TRAIN }), ...asked));
      for (const [i, a] of list.entries())
        for (const b of list.slice(i + 1)) expect(a.file !== b.file || a.endLine < b.startLine || b.endLine < a.startLine).toBe(true);
    }
  });
});

test('without edits there is no patch', () => {
  expect(patchOf([], repository({ 'train.py': TRAIN }))).toBeNull();
});
