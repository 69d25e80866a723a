import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import type { SourceTree } from '../model/source-tree.ts';
import { readsBeside } from './reading/blocking-reads.ts';
import { chosen, offer, type Proposal, placesOfNodes } from './reading/offers.ts';
import { choice, flag } from './reading/params.ts';
import { provenFiles } from './reading/places.ts';
import { deviceWaits, readsEachStep } from './reading/syncs.ts';
import { maskedAssignments } from './reading/tensors.ts';
import { isReleaseAtLeast } from './reading/versions.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { apiPage } from './wording/documents.ts';
import { READ_NOW_AND_THEN } from './wording/launching.ts';

const KINDS = ['item', 'shape', 'to-host', 'copy', 'stream', 'device', 'event', 'drain'] as const;
type Kind = (typeof KINDS)[number];

const TITLE = both('Let the host run ahead of the card', '让 Host 下发领先于 NPU');

const MAIN: Record<Kind, L10n> = {
  item: both(
    'Keep the value on the card and read it only every so many steps: sum it up there and call `.item()` when it is logged.',
    '把值留在 NPU 上，每隔若干迭代才读取：先在 NPU 上累加，记录日志时再调用 `.item()`。',
  ),
  shape: both(
    'A result whose size depends on values makes the host wait: `torch.where` and `masked_fill` keep the shape.',
    '输出大小取决于数值时 Host 只能等待：`torch.where` 与 `masked_fill` 可保持 shape。',
  ),
  'to-host': both('Copy results to the host only every so many steps, several at once.', '每隔若干迭代再把结果拷回主机，并合并多次拷贝。'),
  copy: both(
    'Build small tensors on the CPU and send them in one piece with `non_blocking=True`; read results only when they are logged.',
    '小张量先在 CPU 上组装，再用 `non_blocking=True` 一次发送；结果只在记录日志时读取。',
  ),
  stream: both(
    'Order the streams by an event: record it on one, let the other wait for it; the host then goes on.',
    '用事件保证流之间的先后：一条流记录事件，另一条流等待，Host 继续下发。',
  ),
  device: both(
    'Wait for the stream that needs it, not for the whole card: `torch.npu.current_stream().synchronize()`; an event is better still.',
    '只等待需要的流而不是整个设备：`torch.npu.current_stream().synchronize()`；用事件更好。',
  ),
  event: both('Let the stream wait for the event instead of the host.', '让流等待该事件，而不是让 Host 等待。'),
  drain: both(
    'Give the collectives a stream of their own and order it by events; keep one wait at the end, where the host reads the result.',
    '让集合通信使用独立的流并用事件保证先后；仅在 Host 读取结果处保留一次等待。',
  ),
};

/** Where the edit deletes the wait, the text and what has to hold are those of a deletion. */
const DELETED = both(
  'Delete this wait: in the code that could be read no other stream, no copy in flight and no timer needs it.',
  '删除该等待：在已读取的代码中，没有其他流、未完成的拷贝或计时需要它。',
);
const DELETED_IF = both(
  'Nothing out of sight relies on the wait: no library or C++ code uses another stream, reads results without waiting, or overwrites memory that is still being copied.',
  '仓库之外没有代码依赖该等待：没有库或 C++ 代码使用其他流、不等待就读取结果，或覆盖仍在拷贝中的内存。',
);

const READS = both(
  'Printing a tensor, turning it into a Python number and testing it in a condition read a value as well.',
  '打印张量、转换为 Python 数值、在条件中判断张量，同样会读取数值。',
);
/** Then the reads are the cause, and the wait is not. */
const BESIDE = both(
  'Each pass of this loop reads values from the card as well, at the lines named here. These reads wait like the call does: without them nothing is gained. Read the values only when they are logged, then delete the wait.',
  '该循环每次迭代还会从 NPU 读取数值（见所列位置），这些读取同样会等待：只删除该调用没有收益。先改为仅在记录日志时读取，再删除该等待。',
);

const GRAPH = both(
  'Before a graph the wait keeps inputs in use from being overwritten: use two sets of inputs and an event between them.',
  '图执行前的等待防止正在使用的输入被覆盖：使用两组输入，并以事件分隔。',
);
const CHECK = both(
  'Check: fewer waits per step, and the card stays busy around those that are left.',
  '验证：每迭代的等待次数减少，剩余等待前后 NPU 保持忙碌。',
);

const ORDER = `done = torch.npu.Event()
done.record()                              # on the stream that produces
torch.npu.current_stream().wait_event(done)  # on the stream that reads`;
const SHAPE = `x = torch.where(mask, y, x)     # in place of x[mask] = y
x = x.masked_fill(mask, 0)      # in place of x[mask] = 0`;

const SYNCS = ['torch.npu.synchronize', 'torch_npu.npu.synchronize', 'torch.cuda.synchronize'];

function codeOf(kind: Kind | null): string | null {
  if (kind === 'item' || kind === 'to-host' || kind === null) return READ_NOW_AND_THEN;
  if (kind === 'shape') return SHAPE;
  return kind === 'copy' ? null : ORDER;
}

/** Places in the source that wait in this way. Waits for a stream or an event are there on purpose, and are found by their stacks only. */
function sitesOf(kind: Kind | null, source: SourceTree, proven: readonly string[]): readonly Proposal[] {
  if (kind === 'device') return deviceWaits(source, SYNCS, proven);
  // These waits are needed until events order the streams: named, and left to a person.
  if (kind === 'drain') return deviceWaits(source, SYNCS, proven).map((site) => ({ ...site, steps: [], isSafe: false }));
  if (kind === 'shape') return maskedAssignments(source, proven);
  return kind === 'item' || kind === 'to-host' ? readsEachStep(source, proven) : [];
}

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const { params, source, torchNpu, soc } = context;
  const kind = choice(params, 'kind', KINDS);
  const beforeGraph = flag(params, 'beforeGraph') === true;
  const explicit = kind === 'device' || kind === 'stream' || kind === 'event' || kind === 'drain';
  const { sites, isSure } = chosen(source === null ? [] : sitesOf(kind, source, provenFiles(finding)), finding);
  const reads = kind === 'device' ? readsBeside(sites) : [];
  const edits =
    source === null
      ? []
      : offer(
          sites.map((site) => ({ ...site, isSafe: site.isSafe && isSure && reads.length === 0 })),
          finding,
          source,
        );
  const isDeleted = kind === 'device' && edits.length > 0;
  // Listed for A2 and A3; it warns at each wait, and not every wait is caught.
  const finds =
    (soc === null || soc === 'A2' || soc === 'A3') && isReleaseAtLeast(torchNpu, '5.0.rc3') !== false && finding.locations.length === 0;
  return {
    title: TITLE,
    text: prose(
      reads.length > 0 ? BESIDE : isDeleted ? DELETED : MAIN[kind ?? 'item'],
      kind === 'item' || kind === null ? READS : null,
      beforeGraph ? GRAPH : null,
      finds
        ? both(
            '`torch_npu.npu.set_sync_debug_mode("warn")` prints where most of the waits come from.',
            '`torch_npu.npu.set_sync_debug_mode("warn")` 可打印大部分等待的来源。',
          )
        : null,
      CHECK,
    ),
    code: reads.length > 0 ? READ_NOW_AND_THEN : isDeleted ? null : codeOf(kind),
    preconditions: listed(
      both(
        'A wait stays where it brackets a timer, or where its value decides what runs next.',
        '计时前后的等待，以及取值决定后续流程的等待，予以保留。',
      ),
      kind === 'shape'
        ? both(
            '`torch.where` gives a new tensor: nothing else relies on the old one being changed in place.',
            '`torch.where` 返回新张量：没有其他代码依赖原张量被原地修改。',
          )
        : null,
      isDeleted ? DELETED_IF : null,
      explicit && !isDeleted
        ? both(
            'What another stream or the host reads is ready before it is read: an event replaces the wait, nothing is left out.',
            '其他流或 Host 读取的数据在读取前已就绪：用事件代替等待，不要直接省略。',
          )
        : null,
    ),
    references: finds ? [apiPage('torch_npu-npu/torch_npu-npu-set_sync_debug_mode')] : [],
    edits,
    locations: placesOfNodes([...sites, ...reads]),
  };
}

/** Host waits that drain the launch queue. */
export default {
  id: 'remove-sync',
  title: TITLE,
  apis: [
    'torch.Tensor.item',
    'torch.Tensor.detach',
    'torch.Tensor.masked_fill',
    'torch.Tensor.masked_fill_',
    'torch.Tensor.to(non_blocking)',
    'torch.where',
    'torch.npu.Event',
    'torch.npu.Event.record',
    'torch.npu.current_stream',
    'torch.npu.Stream.synchronize',
    'torch.npu.Stream.wait_event',
    'torch_npu.npu.set_sync_debug_mode',
  ],
  advise,
} satisfies Remedy;
