import { quoteLiteral } from '../base/phrase.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import type { SourceTree } from '../model/source-tree.ts';
import { argumentOf } from '../source/calls.ts';
import { keywordSteps } from '../source/edit-call.ts';
import type { Step } from '../source/edit-tree.ts';
import type { CallSite } from '../source/find-in-tree.ts';
import type { Keyword } from '../source/insert-keyword.ts';
import { isPython } from '../source/readable-paths.ts';
import type { PyModule } from '../source/syntax-tree.ts';
import { blockingCopies, isCopied } from './reading/copies.ts';
import { workerHazards } from './reading/datasets.ts';
import { frameworksOf } from './reading/frameworks.ts';
import { LOADER, PIN_POSITION, trainingLoaders, workersOf } from './reading/loaders.ts';
import { offer, type Proposal, placesOfNodes } from './reading/offers.ts';
import { flag } from './reading/params.ts';
import { bySupport, placesOf, provenFiles, supported } from './reading/places.ts';
import { isTorchAtLeast } from './reading/versions.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { torchPage } from './wording/documents.ts';

const TITLE = both('Copy batches from pinned memory without blocking', '用锁页内存异步拷贝 batch');

/**
 * torch 2.1 to 2.6 pins for CUDA only unless the device is named; `transfer_to_npu` has the same effect. Before 2.1 torch_npu replaces
 * the loader, and torch 1.11 does not know the keyword. null: the version is not known, or nothing in the source is about an NPU.
 */
function needsDevice(context: RemedyContext): boolean | null {
  const { source, torch } = context;
  if (source !== null && frameworksOf(source).has('transferToNpu')) return false;
  const isNew = isTorchAtLeast(torch, 2, 7);
  if (isNew !== false) return isNew === null ? null : false;
  if (isTorchAtLeast(torch, 2, 1) === false) return false;
  return source === null || speaksOfNpu(source) ? true : null;
}

function speaksOfNpu(source: SourceTree): boolean {
  return source.paths.some((path) => isPython(path) && /\btorch_npu\b|\bnpu\b/i.test(source.read(path) ?? ''));
}

/** A file that also runs on other hardware, or under torch releases that do not know `pin_memory_device`. */
const RUNS_ELSEWHERE = /^[^#\n]{0,2000}?(?:\bcuda\b|["']gpu["']|\btorch\.__version__)/im;

function namesCard(steps: readonly Step[], files: readonly PyModule[]): boolean {
  return (
    steps.some(({ edits }) => edits.some(({ text }) => text.includes('pin_memory_device'))) &&
    files.some(({ text }) => RUNS_ELSEWHERE.test(text))
  );
}

/** True when batches of the loader lie in memory pinned for the NPU; null when that depends on a version nobody knows. */
function pins(site: CallSite, device: boolean | null): boolean | null {
  if (argumentOf(site.call, 'pin_memory', PIN_POSITION)?.valueKind !== 'true') return false;
  if (device === false || /npu/.test(argumentOf(site.call, 'pin_memory_device')?.text ?? '')) return true;
  return device === null ? null : false;
}

/** What the loader lacks, as one change of its call; null where the source says something else on purpose or out of sight. */
function pinning(site: CallSite, device: boolean | null): readonly Step[] | null {
  if (argumentOf(site.call, 'pin_memory', PIN_POSITION)?.position != null) return null;
  const keywords: Keyword[] = [{ keyword: 'pin_memory', value: 'True' }];
  if (device === true && argumentOf(site.call, 'pin_memory_device') === null)
    keywords.push({ keyword: 'pin_memory_device', value: '"npu"' });
  return keywordSteps(site.module, site.call, keywords).steps;
}

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const device = needsDevice(context);
  const sites = supported(bySupport(trainingLoaders(context.source, provenFiles(finding)), finding), finding);
  const isPinned = sites.length > 0 && sites.every((site) => pins(site, device) !== false);
  const open = sites.filter((site) => pins(site, device) === false);
  const only = open.length === 1 && open[0]!.call.name !== null ? open[0]! : null;
  const { source } = context;
  const proven = provenFiles(finding);
  const all = trainingLoaders(source, proven);
  const copies = source === null ? [] : blockingCopies(source, all, proven);
  // A dataset that speaks of a card may give tensors that are there already: those cannot be pinned.
  const hazard = source === null || only === null ? undefined : workerHazards(source, only).find(({ kind }) => kind === 'device');
  const steps = only === null ? null : pinning(only, device);
  const isNamed = only !== null && steps !== null && namesCard(steps, [only.module, ...copies.map(({ module }) => module)]);
  // Without workers the main process would copy each batch into pinned memory itself.
  const hasWorkers = source === null || only === null || workersOf(source, only) !== 'none';
  const proposals: Proposal[] = [
    ...(only === null || steps === null
      ? []
      : [
          {
            module: only.module,
            node: only.call.node,
            steps,
            isSafe:
              all.length === 1 &&
              device !== null &&
              hasWorkers &&
              !isNamed &&
              isCopied(only, copies) &&
              copies.some(({ isSafe }) => isSafe) &&
              hazard === undefined,
          },
        ]),
    // Without pinned memory it changes nothing, so it is offered once the loader pins.
    ...copies.map((copy) => ({ ...copy, isSafe: copy.isSafe && isPinned && all.every((site) => pins(site, device) === true) })),
  ];
  return {
    title: TITLE,
    text: prose(
      isPinned
        ? both(
            'The loader pins its batches already; pass `non_blocking=True` to `.to()` as well.',
            '数据加载已使用锁页内存；再给 `.to()` 加上 `non_blocking=True`。',
          )
        : both(
            'A copy from pageable memory blocks the host until it ends. Set `pin_memory=True` on the loader and pass `non_blocking=True` to `.to()`.',
            '从普通内存拷贝会阻塞 Host 直到完成。在 DataLoader 上设置 `pin_memory=True`，并给 `.to()` 加上 `non_blocking=True`。',
          ),
      hazard === undefined
        ? null
        : both(
            `To look at first: the dataset or \`collate_fn\` speaks of a card (${quoteLiteral(`${hazard.file}:${hazard.line}`)}); only CPU tensors can be pinned.`,
            `需先确认：数据集或 \`collate_fn\` 中涉及 NPU（${quoteLiteral(`${hazard.file}:${hazard.line}`)}）；只有 CPU 张量可以锁页。`,
          ),
      hasWorkers || isPinned
        ? null
        : both(
            'Set `num_workers` first: without workers the main process pins each batch itself.',
            '先设置 `num_workers`：没有加载进程时由主进程逐个锁页。',
          ),
      isPinned ? null : both('Without pinned memory `non_blocking=True` has no effect.', '没有锁页内存时 `non_blocking=True` 不起作用。'),
      isPinned && context.soc !== '950'
        ? both(
            '`torch_npu.contrib.Prefetcher` copies the next batch meanwhile; it takes batches of exactly input and target.',
            '`torch_npu.contrib.Prefetcher` 可同时拷贝下一个 batch；batch 须恰为输入与目标两项。',
          )
        : null,
      flag(context.params, 'many') === true
        ? both(
            'Many small copies cost more than one: put the parts together on the CPU and send them in one piece.',
            '多次小拷贝比一次大拷贝更慢：先在 CPU 上合并，再一次发送。',
          )
        : null,
      device === null
        ? both('With torch 2.1 to 2.6 also set `pin_memory_device="npu"`.', 'torch 2.1 至 2.6 还要设置 `pin_memory_device="npu"`。')
        : null,
      device === true && !isPinned
        ? both(
            'This torch version pins for the NPU only with `pin_memory_device="npu"`.',
            '当前 torch 版本需同时设置 `pin_memory_device="npu"` 才对 NPU 生效。',
          )
        : null,
      both('Check: the copies in the next profile no longer hold up the first kernel.', '验证：下一次 profile 中拷贝不再推迟首个 kernel。'),
    ),
    code: `loader = DataLoader(
    dataset,               # other arguments stay as they are
    pin_memory=True,${device === true ? '\n    pin_memory_device="npu",' : device === null ? '       # torch 2.1 to 2.6: also pin_memory_device="npu"' : ''}
)
for x, y in loader:
    x = x.to(device, non_blocking=True)
    y = y.to(device, non_blocking=True)`,
    preconditions: listed(
      both('The CPU tensors of a batch are not changed after the copy has started.', '拷贝开始后不再修改该 batch 的 CPU 张量。'),
      both('The host has memory to spare for the pinned batches.', '主机有足够内存存放锁页的 batch。'),
      isNamed
        ? both(
            'Every machine that runs this file has an NPU and torch 1.12 or newer: `pin_memory_device` fails on others.',
            '运行该文件的机器都有 NPU，且 torch 不低于 1.12：否则 `pin_memory_device` 会报错。',
          )
        : null,
      both(
        'Only copies to the NPU change; a non-blocking copy back to the host is not read before it ends.',
        '只改拷往 NPU 的方向；从 NPU 异步拷回的数据在完成前不读取。',
      ),
    ),
    references: [torchPage('data.html#memory-pinning')],
    edits: source === null ? [] : offer(proposals, finding, source),
    locations: [...placesOf(open.length > 0 ? open : sites), ...placesOfNodes(copies)],
  };
}

/** Host-to-device copies that overlap with computing instead of blocking the host. */
export default {
  id: 'batch-transfer',
  title: TITLE,
  apis: [
    LOADER,
    `${LOADER}(pin_memory)`,
    `${LOADER}(pin_memory_device)`,
    `${LOADER}(num_workers)`,
    'torch.Tensor.to',
    'torch.Tensor.to(non_blocking)',
    'torch_npu.contrib.Prefetcher',
  ],
  advise,
} satisfies Remedy;
