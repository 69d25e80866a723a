import type { Soc } from '../model/remedy.ts';

/** A name that advice may use. A keyword of a call is written `callable(keyword)`. */
export interface AllowedName {
  readonly name: string;
  /** First torch_npu release that has it at this path, or `torch x.y`; null when it is not versioned with either. */
  readonly since: string | null;
  /** beta: exists and is documented, may still change. */
  readonly status: 'supported' | 'beta';
  /** Training products its page lists; null without a page. A product that is absent is not listed, which is not "fails". */
  readonly hardware: readonly NonNullable<Soc>[] | null;
}

type Row = readonly [name: string, since: string | null, status: AllowedName['status'], hardware: AllowedName['hardware']];

/**
 * Read from the public schema, documentation and release branches of Ascend/pytorch (master of 2026-08-21, releases up to
 * 26.1.0), Ascend/op-plugin and hicann/hccl; core torch from its documentation. Nothing here was run on an NPU.
 */
const ROWS: readonly Row[] = [
  ['ACLNN_CACHE_LIMIT', null, 'supported', ['gen-1', 'A2', 'A3', '950']],
  ['ACL_OP_COMPILER_CACHE_DIR', '3.0.rc1', 'supported', ['gen-1', 'A2', 'A3']],
  ['ASCEND_GLOBAL_LOG_LEVEL', '3.0.rc1', 'supported', null],
  ['ASCEND_LAUNCH_BLOCKING', '5.0.rc3', 'supported', ['gen-1', 'A2', 'A3', '950']],
  ['ASCEND_SLOG_PRINT_TO_STDOUT', '3.0.rc1', 'supported', null],
  ['CPU_AFFINITY_CONF', '6.0.rc2', 'supported', ['gen-1', 'A2', 'A3', '950']],
  ['HCCL_ALGO', null, 'supported', ['gen-1', 'A2', 'A3', '950']],
  ['HCCL_BLOCKING_WAIT', '3.0.rc1', 'supported', null],
  ['HCCL_BUFFSIZE', null, 'supported', ['gen-1', 'A2', 'A3', '950']],
  ['HCCL_DETERMINISTIC', null, 'supported', ['A2', 'A3', '950']],
  ['HCCL_INTRA_PCIE_ENABLE', null, 'supported', ['gen-1', 'A2']],
  ['HCCL_INTRA_ROCE_ENABLE', null, 'supported', ['gen-1', 'A2', 'A3']],
  ['HCCL_OP_EXPANSION_MODE', null, 'supported', ['A2', 'A3', '950']],
  ['HCCL_RDMA_SL', null, 'supported', ['gen-1', 'A2', 'A3', '950']],
  ['HCCL_RDMA_TC', null, 'supported', ['gen-1', 'A2', 'A3', '950']],
  ['MULTI_STREAM_MEMORY_REUSE', '5.0.rc2', 'supported', ['gen-1', 'A2', 'A3', '950']],
  ['NPU_JIT_COMPILE', null, 'supported', null],
  ['OMP_NUM_THREADS', null, 'supported', null],
  ['PYTORCH_NO_NPU_MEMORY_CACHING', '6.0.rc2', 'supported', ['gen-1', 'A2', 'A3', '950']],
  ['PYTORCH_NPU_ALLOC_CONF', '5.0.rc1', 'supported', ['gen-1', 'A2', 'A3', '950']],
  ['PYTORCH_NPU_ALLOC_CONF(expandable_segments)', '5.0.0', 'supported', ['gen-1', 'A2', 'A3', '950']],
  ['TASK_QUEUE_ENABLE', '3.0.rc1', 'supported', ['gen-1', 'A2', 'A3', '950']],
  ['TORCH_HCCL_BLOCKING_WAIT', '26.1.0', 'supported', ['gen-1', 'A2', 'A3', '950']],
  ['TORCH_NPU_LAZY_FUSION', '26.1.0', 'supported', ['A2', 'A3']],
  ['contextlib.nullcontext', 'Python 3.7', 'supported', null],
  ['gc.collect', 'Python 3.0', 'supported', null],
  ['gc.disable', 'Python 3.0', 'supported', null],
  ['gc.freeze', 'Python 3.7', 'supported', null],
  ['gradient_accumulation_steps', null, 'supported', null],
  ['torch.Tensor.backward', 'torch <=1.5', 'supported', null],
  ['torch.Tensor.contiguous', 'torch <=1.5', 'supported', null],
  ['torch.Tensor.detach', 'torch <=1.5', 'supported', null],
  ['torch.Tensor.index_select', 'torch <=1.5', 'supported', null],
  ['torch.Tensor.item', 'torch <=1.5', 'supported', null],
  ['torch.Tensor.masked_fill', 'torch <=1.5', 'supported', null],
  ['torch.Tensor.permute', 'torch <=1.5', 'supported', null],
  ['torch.Tensor.reshape', 'torch <=1.5', 'supported', null],
  ['torch.Tensor.sum', 'torch <=1.5', 'supported', null],
  ['torch.Tensor.to', 'torch <=1.5', 'supported', null],
  ['torch.Tensor.to(non_blocking)', 'torch <=1.5', 'supported', null],
  ['torch.Tensor.transpose', 'torch <=1.5', 'supported', null],
  ['torch.Tensor.view', 'torch <=1.5', 'supported', null],
  ['torch.autocast', 'torch 1.10', 'supported', ['A2', 'A3', '950']],
  ['torch.autocast(dtype)', 'torch 1.10', 'supported', ['A2', 'A3', '950']],
  ['torch.autocast(enabled)', 'torch 1.10', 'supported', ['A2', 'A3', '950']],
  ['torch.bfloat16', 'torch <=1.5', 'supported', null],
  ['torch.compile', 'torch 2.0', 'supported', ['A2', 'A3', '950']],
  ['torch.distributed.fsdp.FSDPModule.set_requires_gradient_sync', 'torch 2.6', 'supported', null],
  ['torch.distributed.fsdp.FullyShardedDataParallel.no_sync', 'torch 1.11', 'supported', ['A2', 'A3', '950']],
  ['torch.distributed.fsdp.fully_shard', 'torch 2.6', 'supported', ['A2', 'A3']],
  ['torch.distributed.pipelining.ScheduleInterleaved1F1B', 'torch 2.4', 'supported', ['A2', 'A3', '950']],
  ['torch.float32', 'torch <=1.5', 'supported', null],
  ['torch.int32', 'torch <=1.5', 'supported', null],
  ['torch.matmul', 'torch <=1.5', 'supported', ['A2', 'A3']],
  ['torch.nn.Linear', 'torch <=1.5', 'supported', ['A2', 'A3', '950']],
  ['torch.nn.Linear(bias)', 'torch <=1.5', 'supported', ['A2', 'A3', '950']],
  ['torch.nn.SyncBatchNorm', 'torch <=1.5', 'supported', ['A2', 'A3', '950']],
  ['torch.nn.functional.scaled_dot_product_attention', 'torch 2.0', 'supported', ['A2', 'A3']],
  ['torch.nn.parallel.DistributedDataParallel', 'torch <=1.5', 'supported', ['A2', 'A3', '950']],
  ['torch.nn.parallel.DistributedDataParallel(broadcast_buffers)', 'torch <=1.5', 'supported', ['A2', 'A3', '950']],
  ['torch.nn.parallel.DistributedDataParallel(device_ids)', 'torch <=1.5', 'supported', ['A2', 'A3', '950']],
  ['torch.nn.parallel.DistributedDataParallel.no_sync', 'torch <=1.5', 'supported', ['A2', 'A3']],
  ['torch.nonzero', 'torch <=1.5', 'supported', ['A2', 'A3']],
  ['torch.npu.empty_cache', '3.0.rc1', 'supported', ['A2', 'A3', '950']],
  ['torch.npu.synchronize', '3.0.rc1', 'supported', ['A2', 'A3', '950']],
  ['torch.optim.AdamW', 'torch <=1.5', 'supported', ['A2', 'A3', '950']],
  ['torch.optim.AdamW(foreach)', 'torch 1.12', 'supported', ['A2', 'A3', '950']],
  ['torch.optim.Optimizer.step', 'torch <=1.5', 'supported', null],
  ['torch.optim.Optimizer.zero_grad', 'torch <=1.5', 'supported', null],
  ['torch.optim.Optimizer.zero_grad(set_to_none)', 'torch <=1.5', 'supported', null],
  ['torch.unique', 'torch <=1.5', 'supported', ['A2', 'A3']],
  ['torch.utils.data.DataLoader', 'torch <=1.5', 'supported', ['A2', 'A3', '950']],
  ['torch.utils.data.DataLoader(collate_fn)', 'torch <=1.5', 'supported', ['A2', 'A3', '950']],
  ['torch.utils.data.DataLoader(num_workers)', 'torch <=1.5', 'supported', ['A2', 'A3', '950']],
  ['torch.utils.data.DataLoader(persistent_workers)', 'torch 1.7', 'supported', ['A2', 'A3', '950']],
  ['torch.utils.data.DataLoader(pin_memory)', 'torch <=1.5', 'supported', ['A2', 'A3', '950']],
  ['torch.utils.data.DataLoader(pin_memory_device)', 'torch 1.12', 'supported', ['A2', 'A3', '950']],
  ['torch.utils.data.DataLoader(prefetch_factor)', 'torch 1.7', 'supported', ['A2', 'A3', '950']],
  ['torch.where', 'torch <=1.5', 'supported', ['A2', 'A3', '950']],
  ['torch_npu.npu.config.allow_internal_format', '5.0.rc1', 'beta', ['gen-1', 'A2', 'A3']],
  ['torch_npu.npu.mstx.range_end', '6.0.rc3', 'supported', ['gen-1', 'A2', 'A3']],
  ['torch_npu.npu.mstx.range_start', '6.0.rc3', 'supported', ['gen-1', 'A2', 'A3']],
  ['torch_npu.npu.set_compile_mode', '3.0.rc2', 'beta', ['gen-1', 'A2', 'A3']],
  ['torch_npu.npu.set_compile_mode(jit_compile)', '3.0.rc2', 'beta', ['gen-1', 'A2', 'A3']],
  ['torch_npu.npu_format_cast', '3.0.rc1', 'beta', ['gen-1', 'A2', 'A3', '950']],
  ['torch_npu.npu_fusion_attention', '5.0.rc3', 'supported', ['A2', '950']],
  ['torch_npu.npu_fusion_attention(input_layout)', '5.0.rc3', 'supported', ['A2', '950']],
  ['torch_npu.npu_rms_norm', '5.0.0', 'beta', ['gen-1', 'A2', 'A3']],
  ['torch_npu.npu_rotary_mul', '5.0.rc3', 'supported', ['gen-1', 'A2', 'A3']],
  ['torch_npu.npu_swiglu', '6.0.rc1', 'beta', ['A2']],
  ['torch_npu.optim.NpuFusedAdamW', '5.0.rc1', 'supported', ['gen-1', 'A2', 'A3']],
  ['torch_npu.profiler.AiCMetrics.PipeUtilization', '5.0.rc2', 'supported', ['gen-1', 'A2', 'A3']],
  ['torch_npu.profiler.ExportType.Text', '6.0.rc1', 'supported', ['gen-1', 'A2', 'A3']],
  ['torch_npu.profiler.ProfilerActivity.CPU', '5.0.rc2', 'supported', ['gen-1', 'A2', 'A3']],
  ['torch_npu.profiler.ProfilerActivity.NPU', '5.0.rc2', 'supported', ['gen-1', 'A2', 'A3']],
  ['torch_npu.profiler.ProfilerLevel.Level1', '5.0.rc2', 'supported', ['gen-1', 'A2', 'A3']],
  ['torch_npu.profiler._ExperimentalConfig', '5.0.rc2', 'supported', ['gen-1', 'A2', 'A3']],
  ['torch_npu.profiler._ExperimentalConfig(aic_metrics)', '5.0.rc2', 'supported', null],
  ['torch_npu.profiler._ExperimentalConfig(export_type)', '6.0.rc1', 'supported', null],
  ['torch_npu.profiler._ExperimentalConfig(gc_detect_threshold)', '6.0.rc3', 'supported', null],
  ['torch_npu.profiler._ExperimentalConfig(l2_cache)', '5.0.rc2', 'supported', null],
  ['torch_npu.profiler._ExperimentalConfig(msprof_tx)', '6.0.rc2', 'supported', null],
  ['torch_npu.profiler._ExperimentalConfig(mstx)', '7.2.0', 'supported', null],
  ['torch_npu.profiler._ExperimentalConfig(profiler_level)', '5.0.rc2', 'supported', null],
  ['torch_npu.profiler.profile', '5.0.rc2', 'supported', ['gen-1', 'A2', 'A3']],
  ['torch_npu.profiler.profile(activities)', '5.0.rc2', 'supported', null],
  ['torch_npu.profiler.profile(experimental_config)', '5.0.rc2', 'supported', null],
  ['torch_npu.profiler.profile(on_trace_ready)', '5.0.rc2', 'supported', null],
  ['torch_npu.profiler.profile(profile_memory)', '5.0.rc2', 'supported', null],
  ['torch_npu.profiler.profile(record_shapes)', '5.0.rc2', 'supported', null],
  ['torch_npu.profiler.profile(schedule)', '5.0.rc2', 'supported', null],
  ['torch_npu.profiler.profile(with_modules)', '5.0.rc2', 'supported', null],
  ['torch_npu.profiler.profile(with_stack)', '5.0.rc2', 'supported', null],
  ['torch_npu.profiler.profile.step', '5.0.rc2', 'supported', ['gen-1', 'A2', 'A3']],
  ['torch_npu.profiler.profiler.analyse', '5.0.rc3', 'supported', ['gen-1', 'A2', 'A3']],
  ['torch_npu.profiler.schedule', '5.0.rc2', 'supported', ['gen-1', 'A2', 'A3']],
  ['torch_npu.profiler.schedule(active)', '5.0.rc2', 'supported', null],
  ['torch_npu.profiler.schedule(repeat)', '5.0.rc2', 'supported', null],
  ['torch_npu.profiler.schedule(skip_first)', '5.0.rc2', 'supported', null],
  ['torch_npu.profiler.schedule(wait)', '5.0.rc2', 'supported', null],
  ['torch_npu.profiler.schedule(warmup)', '5.0.rc2', 'supported', null],
  ['torch_npu.profiler.tensorboard_trace_handler', '5.0.rc2', 'supported', ['gen-1', 'A2', 'A3']],
  ['torch_npu.profiler.tensorboard_trace_handler(worker_name)', '5.0.rc2', 'supported', null],
];

/** Every API, keyword and environment variable that the remedies may mention, sorted by name. */
export const ALLOWED: ReadonlyMap<string, AllowedName> = new Map(
  ROWS.map(([name, since, status, hardware]) => [name, { name, since, status, hardware }]),
);

/** A name that was never there, although documents name it. */
export interface NonExistentName {
  readonly name: string;
  /** What does the job instead; null when nothing does. */
  readonly replacement: string | null;
}

/** Never to be advised. Established by searching every release branch of torch_npu since v1.5.0. */
export const NON_EXISTENT: readonly NonExistentName[] = [
  { name: 'torch_npu.amp', replacement: 'torch_npu.npu.amp' },
  { name: 'torch_npu.amp.autocast', replacement: 'torch_npu.npu.amp.autocast' },
  { name: 'torch_npu.amp.GradScaler', replacement: 'torch_npu.npu.amp.GradScaler' },
  { name: 'torch_npu.utils.data', replacement: null },
  { name: 'torch_npu.utils.data.NpuImageDecoder', replacement: null },
  { name: 'NpuImageDecoder', replacement: null },
  {
    name: 'torch_npu.contrib.gradient_compress',
    replacement: 'torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook',
  },
  { name: 'torch_npu.contrib.pipeline', replacement: 'torch.distributed.pipelining' },
  { name: 'torch_npu.contrib.pipeline.PipelineModel', replacement: 'torch.distributed.pipelining.PipelineStage' },
  { name: 'torch_npu.npu.set_mode', replacement: 'torch.compile' },
  { name: 'torch.npu.set_mode', replacement: 'torch.compile' },
  { name: 'torch_npu.npu_matmul', replacement: 'torch.matmul' },
  { name: 'torch_npu==1.12', replacement: null },
  { name: 'torch_npu-1.12.0', replacement: null },
  { name: 'torch.utils.data.Dataset.prefetch', replacement: 'torch.utils.data.DataLoader(prefetch_factor)' },
  { name: 'torch.profiler.ProfilerActivity.NPU', replacement: 'torch_npu.profiler.ProfilerActivity.NPU' },
  { name: 'torch_npu.optim.NpuFusedAdamW(momentum)', replacement: null },
  { name: 'torch_npu.optim.NpuFusedAdamW(fused)', replacement: null },
  { name: 'HCCL_RDAM_TC', replacement: 'HCCL_RDMA_TC' },
  { name: 'torch_npu.contrib.ModulationDeformConv', replacement: 'torch_npu.contrib.ModulatedDeformConv' },
  { name: 'torch.slice', replacement: null },
  { name: '_fused_adam_ on npu', replacement: 'torch.optim.AdamW' },
];
