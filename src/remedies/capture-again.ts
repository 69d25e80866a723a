import type { L10n } from '../model/lang.ts';
import type { Advice, Remedy, RemedyContext } from '../model/remedy.ts';
import type { Edit } from '../model/report.ts';
import type { SourceTree } from '../model/source-tree.ts';
import { argumentOf } from '../source/calls.ts';
import { keywordSteps } from '../source/edit-call.ts';
import { findCallSites } from '../source/find-in-tree.ts';
import { offer, type Proposal } from './reading/offers.ts';
import { words } from './reading/params.ts';
import { placesOf, provenFiles } from './reading/places.ts';
import { isReleaseAtLeast } from './reading/versions.ts';
import { both, listed, prose } from './wording/bilingual.ts';
import { apiPage } from './wording/documents.ts';

const TITLE = both('Capture again with what is missing', '补充缺失项后重新采集');

const SCHEDULE = 'torch_npu.profiler.schedule';
const PROFILE = 'torch_npu.profiler.profile';

/** What each word of `missing` asks for. */
const ASKS: Readonly<Record<string, L10n>> = {
  ranks: both(
    'Capture the same step on every rank and upload all folders: one artifact per node.',
    '每张卡采集同一个迭代并上传所有目录：每个节点一个 artifact。',
  ),
  steps: both('Capture at least 3 steps: `active=3` or more.', '至少采集 3 个迭代：`active=3` 或更多。'),
  level: both('Use Level1: Level0 has no operator types and no communication details.', '使用 Level1：Level0 没有算子类型与通信明细。'),
  trace: both(
    'Upload `trace_view.json` too: host, loader and launches are seen only there.',
    '同时上传 `trace_view.json`：Host、数据加载与下发只在其中可见。',
  ),
  cpu: both(
    'Record CPU activity too (`torch_npu.profiler.ProfilerActivity.CPU`): host and launches are seen only there.',
    '同时采集 CPU 活动（`torch_npu.profiler.ProfilerActivity.CPU`）：Host 与下发只在其中可见。',
  ),
  stacks: both(
    'For code lines take a second, short capture with `with_stack=True`: it slows the host, so its times do not count.',
    '需要代码行时，另做一次 `with_stack=True` 的短采集：它会拖慢 Host，耗时不作数。',
  ),
  bias: both(
    'Take the figures without `with_stack` and `profile_memory`: both slow the host.',
    '测耗时的采集不开 `with_stack` 与 `profile_memory`：两者都会拖慢 Host。',
  ),
  inconsistent: both(
    'The tables contradict each other: parse the raw data again with the CANN of the capture.',
    '各表互相矛盾：用采集时的 CANN 重新解析原始数据。',
  ),
  'prof-step': both(
    'Call `prof.step()` at the end of every step: without it nothing is recorded.',
    '每个迭代结束时调用 `prof.step()`：否则不会采集。',
  ),
  repeat: both('Set `repeat=1`: the default 0 repeats the capture for ever.', '设置 `repeat=1`：默认 0 会一直重复采集。'),
  warmup: both(
    'Skip the first 10 steps (`skip_first=10`): they hold compiling and initialisation.',
    '跳过前 10 个迭代（`skip_first=10`）：其中含编译与初始化。',
  ),
  shapes: both('Set `record_shapes=True`: shapes tell padding and layout apart.', '设置 `record_shapes=True`：用 shape 区分填充与布局。'),
  modules: both(
    'Leave `with_modules` off where `with_stack` is on: both record where the code is.',
    '已开 `with_stack` 时不开 `with_modules`：两者都记录代码位置。',
  ),
  size: both(
    'Keep the capture small: 1 or 2 steps with stacks, timelines of two ranks, tables of all.',
    '控制采集规模：带调用栈只采 1～2 个迭代，时间线取两张卡，表格取所有卡。',
  ),
  cut: both(
    'Let the run go on until the schedule has ended: a stop while recording cuts the last step.',
    '让运行持续到 schedule 结束：采集中停止会截断最后一个迭代。',
  ),
  export: both(
    'Parse the raw data again: `torch_npu.profiler.profiler.analyse(path)`.',
    '重新解析原始数据：`torch_npu.profiler.profiler.analyse(path)`。',
  ),
  l2: both('Leave `l2_cache` off unless the L2 cache is the question.', '除非分析 L2 Cache，否则不开 `l2_cache`。'),
  level2: both('Use Level1: Level2 adds AI CPU details and slows the host.', '使用 Level1：Level2 增加 AI CPU 明细，并拖慢 Host。'),
  activities: both('Record both activities, CPU and NPU.', 'CPU 与 NPU 两种 activity 都要采集。'),
};

const RANKED = Object.keys(ASKS);

/** `gc_detect_threshold` starts with 6.0.rc3 and `export_type` with 6.0.rc1; an older package refuses unknown options. */
function snippet(torchNpu: string | null): string {
  const gc = isReleaseAtLeast(torchNpu, '6.0.rc3') === false ? '' : '\n        gc_detect_threshold=1.0,  # ms; torch_npu 6.0.rc3 or newer';
  const text = isReleaseAtLeast(torchNpu, '6.0.rc1') === false ? '' : '\n        export_type=[P.ExportType.Text],';
  const memory = isReleaseAtLeast(torchNpu, '6.0.rc1') === false ? '' : ', "memory": torch.npu.mem_get_info()[1]';
  return `import json, os
import torch, torch_npu

P = torch_npu.profiler
ENV = ["TASK_QUEUE_ENABLE", "CPU_AFFINITY_CONF", "OMP_NUM_THREADS", "HCCL_BUFFSIZE"]  # not recorded by the profiler itself
profiler = P.profile(
    activities=[P.ProfilerActivity.CPU, P.ProfilerActivity.NPU],
    schedule=P.schedule(skip_first=10, wait=0, warmup=1, active=3, repeat=1),
    on_trace_ready=P.tensorboard_trace_handler("prof", worker_name=f"rank{os.environ.get('RANK', '0')}"),
    record_shapes=True,
    experimental_config=P._ExperimentalConfig(
        profiler_level=P.ProfilerLevel.Level1,
        aic_metrics=P.AiCMetrics.PipeUtilization,${gc}${text}
    ),
)
with profiler as prof:
    prof.add_metadata_json("ci_env", json.dumps({k: os.environ.get(k, "") for k in ENV}))
    prof.add_metadata_json("ci_run", json.dumps({"torch": torch.__version__, "soc": torch.npu.get_device_name(0)${memory}}))
    for i, batch in enumerate(loader):
        train_step(batch)
        prof.step()  # without this nothing is recorded
        if i >= 20:
            break`;
}

/** The one edit that is only an addition: a schedule that would capture for ever. */
function repeatEdits(finding: Parameters<Remedy['advise']>[0], source: SourceTree): Edit[] {
  const proposals = findCallSites(source, [SCHEDULE], provenFiles(finding)).sites.flatMap(({ module, call }): Proposal[] => {
    // `repeat` is the fourth positional argument.
    if (call.name === null || argumentOf(call, 'repeat', 3) !== null) return [];
    const { steps } = keywordSteps(module, call, [{ keyword: 'repeat', value: '1' }]);
    return steps === null ? [] : [{ module, node: call.node, steps, isSafe: true }];
  });
  return offer(proposals, finding, source);
}

function advise(finding: Parameters<Remedy['advise']>[0], context: RemedyContext): Advice {
  const missing = words(context.params, 'missing', 12);
  const proven = provenFiles(finding);
  const edits = missing.includes('repeat') && context.source !== null ? repeatEdits(finding, context.source) : [];
  const asks = RANKED.filter((word) => missing.includes(word)).map((word) => ASKS[word]!);
  const sites = context.source === null ? [] : findCallSites(context.source, [PROFILE], proven).sites;
  return {
    title: TITLE,
    text: prose(
      ...(asks.length > 0 ? asks : [ASKS.level!, ASKS.steps!, ASKS.ranks!]),
      both('The snippet below is the capture for the figures; run it on every rank.', '下面的片段是测耗时的采集，在每张卡上运行。'),
    ),
    code: snippet(context.torchNpu),
    preconditions: listed(
      both(
        'The run has at least 15 steps, and the disk has room for 20 times the raw capture.',
        '运行至少 15 个迭代，磁盘可容纳原始采集数据的 20 倍。',
      ),
      both('The data is parsed on a machine that has CANN, before the upload.', '上传之前，在装有 CANN 的机器上完成解析。'),
    ),
    references: [
      apiPage('torch_npu-profiler/torch_npu-profiler-profile'),
      apiPage('torch_npu-profiler/torch_npu-profiler-_ExperimentalConfig'),
    ],
    edits,
    locations: placesOf(sites),
  };
}

/** The capture to make next time, so that the open questions can be answered. */
export default {
  id: 'capture-again',
  title: TITLE,
  apis: [
    PROFILE,
    `${PROFILE}(activities)`,
    `${PROFILE}(schedule)`,
    `${PROFILE}(on_trace_ready)`,
    `${PROFILE}(record_shapes)`,
    `${PROFILE}(with_stack)`,
    `${PROFILE}(with_modules)`,
    `${PROFILE}(profile_memory)`,
    `${PROFILE}(experimental_config)`,
    `${PROFILE}.step`,
    `${PROFILE}.add_metadata_json`,
    'torch.__version__',
    'torch.npu.get_device_name',
    'torch.npu.mem_get_info',
    'torch_npu.profiler.ProfilerActivity.CPU',
    'torch_npu.profiler.ProfilerActivity.NPU',
    SCHEDULE,
    `${SCHEDULE}(skip_first)`,
    `${SCHEDULE}(wait)`,
    `${SCHEDULE}(warmup)`,
    `${SCHEDULE}(active)`,
    `${SCHEDULE}(repeat)`,
    'torch_npu.profiler.tensorboard_trace_handler',
    'torch_npu.profiler.tensorboard_trace_handler(worker_name)',
    'torch_npu.profiler._ExperimentalConfig',
    'torch_npu.profiler._ExperimentalConfig(profiler_level)',
    'torch_npu.profiler._ExperimentalConfig(aic_metrics)',
    'torch_npu.profiler._ExperimentalConfig(gc_detect_threshold)',
    'torch_npu.profiler._ExperimentalConfig(export_type)',
    'torch_npu.profiler._ExperimentalConfig(l2_cache)',
    'torch_npu.profiler.profiler.analyse',
    'torch_npu.profiler.ProfilerLevel.Level1',
    'torch_npu.profiler.AiCMetrics.PipeUtilization',
    'torch_npu.profiler.ExportType.Text',
  ],
  advise,
} satisfies Remedy;
