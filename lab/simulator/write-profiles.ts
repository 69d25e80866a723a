import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Capture, captureRank } from './capture.ts';
import { type Clock, createClock } from './clock.ts';
import { nodeOf } from './groups.ts';
import { memoryOf } from './memory.ts';
import type { SimulatedJob } from './simulate.ts';
import type { ResolvedSpec } from './spec.ts';
import { writeText } from './text.ts';
import { communicationMatrixText, communicationText } from './write-communication.ts';
import { writeAnalysis, writeDatabase } from './write-db.ts';
import { memoryRecord, moduleMemory, operatorMemory } from './write-memory.ts';
import { apiStatistic, kernelDetails, operatorDetails, opStatistic, stepTraceTime, type TableInput } from './write-tables.ts';
import { traceText } from './write-trace.ts';

/** Which export a profile folder holds. */
export type Export = 'text' | 'db' | 'both';

/** Writes one profile folder per uploaded rank below `dir` and returns their paths. */
export async function writeProfiles(job: SimulatedJob, dir: string, options: { export?: Export } = {}): Promise<string[]> {
  const kind = options.export ?? 'text';
  const paths: string[] = [];
  for (const result of job.perRank) {
    if (!job.resolved.uploadedRanks.includes(result.rank)) continue;
    const spec = job.resolved;
    const clock = createClock(spec.clockSkewUs[result.rank] ?? 0);
    const capture = captureRank(job, result);
    const pid = 310_000 + (nodeOf(result.rank) + 1) * 4_096 + (result.rank % 8) * 137;
    const folder = join(dir, `npu-node-${nodeOf(result.rank)}_${pid}_${clock.folderTime(capture.begin)}_ascend_pt`);
    const output = join(folder, 'ASCEND_PROFILER_OUTPUT');
    await mkdir(output, { recursive: true });
    await writeFile(join(folder, `profiler_info_${result.rank}.json`), profilerInfo(spec, capture, kind));
    const metadata = profilerMetadata(job, result.rank);
    const input: TableInput = { spec, capture, record: result.record, clock };
    const trace = { ...input, groups: job.plan.groups, pid };
    if (kind !== 'db') {
      await writeFile(join(folder, 'profiler_metadata.json'), JSON.stringify(metadata, null, 4));
      writeTables(input, output);
      writeMemoryTables(input, output);
      if (spec.level > 0) await writeCommunication(capture, clock, output);
      writeText(join(output, 'trace_view.json'), traceText(trace));
    }
    if (kind !== 'text') {
      writeDatabase({ ...trace, metadata }, join(output, `ascend_pytorch_profiler_${result.rank}.db`));
      writeAnalysis(spec, capture, clock, join(output, 'analysis.db'));
    }
    paths.push(folder);
  }
  return paths;
}

function writeTables(input: TableInput, output: string): void {
  writeText(join(output, 'kernel_details.csv'), kernelDetails(input));
  writeText(join(output, 'step_trace_time.csv'), stepTraceTime(input));
  writeText(join(output, 'operator_details.csv'), operatorDetails(input));
  if (input.spec.level === 0) return;
  writeText(join(output, 'op_statistic.csv'), opStatistic(input));
  writeText(join(output, 'api_statistic.csv'), apiStatistic(input));
}

/** The tables of `profile_memory`. */
function writeMemoryTables({ spec, capture, clock }: TableInput, output: string): void {
  if (spec.memory === null) return;
  const memory = memoryOf(capture, spec.memory);
  writeText(join(output, 'memory_record.csv'), memoryRecord(memory, clock));
  writeText(join(output, 'operator_memory.csv'), operatorMemory(memory, clock));
  writeText(join(output, 'npu_module_mem.csv'), moduleMemory(memory, clock));
}

async function writeCommunication(capture: Capture, clock: Clock, output: string): Promise<void> {
  if (!capture.tasks.some((task) => task.kind === 'collective')) return;
  await writeFile(join(output, 'communication.json'), communicationText(capture, clock));
  await writeFile(join(output, 'communication_matrix.json'), communicationMatrixText(capture));
}

function profilerInfo(spec: ResolvedSpec, capture: Capture, kind: Export): string {
  const newer = spec.era === '2025-11';
  const info = {
    config: {
      common_config: {
        activities: ['ProfilerActivity.CPU', 'ProfilerActivity.NPU'],
        schedule: scheduleOf(spec),
        record_shapes: true,
        profile_memory: spec.profiler.profileMemory ?? spec.memory !== null,
        with_stack: spec.withStack,
        with_flops: false,
        with_modules: spec.profiler.withModules ?? false,
      },
      experimental_config: {
        _profiler_level: `Level${spec.level}`,
        _aic_metrics: spec.level === 0 ? 'ACL_AICORE_NONE' : 'ACL_AICORE_PIPE_UTILIZATION',
        _l2_cache: spec.profiler.l2Cache ?? false,
        _msprof_tx: false,
        _data_simplification: true,
        record_op_args: false,
        _export_type: newer ? (kind === 'both' ? ['text', 'db'] : [kind]) : kind === 'both' ? 'text' : kind,
        _op_attr: false,
        _gc_detect_threshold: gcThreshold(spec),
      },
    },
    start_info: { syscnt_enable: true, freq: 100, start_cnt: 17238197612056, start_monotonic: 172163581670080 },
    end_info: { collectionTimeEnd: 'END', MonotonicTimeEnd: 172163581670080 + capture.end },
    ...versionsOf(spec, capture.rank),
    rank_id: newer ? String(capture.rank) : capture.rank,
  };
  return JSON.stringify(info, null, 4).replace('"END"', String(createClock(0).id(capture.end)));
}

/** ms; null when the profiler does not look for garbage collections */
function gcThreshold(spec: ResolvedSpec): number | null {
  return spec.faults.some((fault) => fault.kind === 'gc-pause' && fault.lane !== false) ? 1 : null;
}

function scheduleOf(spec: ResolvedSpec): { [key: string]: number } | null {
  const { schedule } = spec.profiler;
  if (schedule === null) return null;
  const skip = Math.max(0, spec.firstStep - 1);
  const { wait = 0, warmup = 1, active = spec.steps, repeat = 1, skipFirst = skip } = schedule ?? {};
  return { wait, active, warmup, repeat, skip_first: skipFirst };
}

function versionsOf(spec: ResolvedSpec, rank: number): { [key: string]: string } {
  const newer = spec.era === '2025-11';
  const { torchNpu, cann } = { ...spec.versions, ...spec.versionsOfRank[rank] };
  const npu = torchNpu === undefined ? (newer ? '2.7.1' : '2.1.0.post10') : torchNpu;
  const own = cann === undefined ? (newer ? '8.3.RC1' : '8.0.0') : cann;
  return { ...(npu === null ? {} : { torch_npu_version: npu }), ...(own === null ? {} : { cann_version: own }) };
}

function profilerMetadata(job: SimulatedJob, rank: number): { [key: string]: unknown } {
  const spec = job.resolved;
  const metadata: { [key: string]: unknown } = {};
  if (spec.pp > 1 && spec.parallelGroupInfo) {
    metadata.distributed_args = {
      tensor_model_parallel_size: 1,
      pipeline_model_parallel_size: spec.pp,
      data_parallel_size: spec.ranks / spec.pp,
      context_parallel_size: 1,
      expert_model_parallel_size: 1,
      sequence_parallel: false,
      rank,
      world_size: spec.ranks,
    };
  }
  const torch = { ...spec.versions, ...spec.versionsOfRank[rank] }.torch ?? null;
  const memory = spec.memory?.deviceGb === undefined ? {} : { memory: Math.round(spec.memory.deviceGb * 2 ** 30) };
  const run = { ...(spec.soc ? { soc: spec.soc } : {}), ...(torch === null ? {} : { torch }), ...memory };
  if (Object.keys(run).length > 0) metadata.ci_run = JSON.stringify(run);
  const names = [
    'ASCEND_GLOBAL_LOG_LEVEL',
    'HCCL_RDMA_TC',
    'HCCL_RDMA_SL',
    'ACLNN_CACHE_LIMIT',
    'HOST_CACHE_CAPACITY',
    'ASCEND_ENHANCE_ENABLE',
    'PYTORCH_NPU_ALLOC_CONF',
    'ASCEND_LAUNCH_BLOCKING',
  ];
  const variables = Object.fromEntries(names.map((name) => [name, '']));
  variables.ASCEND_GLOBAL_LOG_LEVEL = '3';
  variables.PYTORCH_NPU_ALLOC_CONF = 'expandable_segments:True';
  if (spec.faults.some((fault) => fault.kind === 'launch-blocking' && fault.off !== true)) variables.ASCEND_LAUNCH_BLOCKING = '1';
  if (spec.era === '2025-11') variables.HCCL_ALGO = '';
  const unrecorded: { [name: string]: string } = {};
  for (const [name, value] of Object.entries({ ...spec.env, ...spec.envOfRank[rank] })) {
    if (name in variables) variables[name] = value;
    else unrecorded[name] = value;
  }
  if (Object.keys(unrecorded).length > 0) metadata.ci_env = JSON.stringify(unrecorded);
  metadata.ENV_VARIABLES = variables;
  if (spec.parallelGroupInfo) {
    const own = job.plan.groups.filter((group) => group.ranks.includes(rank));
    metadata.parallel_group_info = Object.fromEntries(
      own.map((group) => [group.comm, { group_name: group.role, group_rank: group.ranks.indexOf(rank), global_ranks: group.ranks }]),
    );
  }
  return metadata;
}
