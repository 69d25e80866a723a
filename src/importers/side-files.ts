import { z } from 'zod';
import type { CaptureSettings, GroupInfo, Hardware } from '../model/capture.ts';
import { groupHash } from './group-hash.ts';

/** Foreign JSON: only as strict as needed, every field may be missing or of another type. */
const Loose = z.record(z.string(), z.unknown());

function object(value: unknown): Record<string, unknown> {
  const parsed = Loose.safeParse(value);
  return parsed.success ? parsed.data : {};
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value.slice(0, 500) : null;
}

function bool(value: unknown): boolean | null {
  return typeof value === 'boolean' ? value : null;
}

function integer(value: unknown): number | null {
  const n = typeof value === 'number' ? value : typeof value === 'string' && /^\d{1,9}$/.test(value.trim()) ? Number(value) : Number.NaN;
  return Number.isInteger(n) && n >= 0 && n < 1e9 ? n : null;
}

function bytes(value: unknown): number | null {
  const n = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof n === 'number' && n > 0 && n <= MAX_DEVICE_MEMORY ? n : null;
}

export interface ProfilerInfo {
  rank: number | null;
  settings: Pick<
    CaptureSettings,
    | 'level'
    | 'aicMetrics'
    | 'withStack'
    | 'withModules'
    | 'recordShapes'
    | 'profileMemory'
    | 'l2Cache'
    | 'gcThreshold'
    | 'cpuActivity'
    | 'npuActivity'
    | 'schedule'
    | 'cann'
    | 'torchNpu'
  >;
}

const LEVELS = ['Level0', 'Level1', 'Level2', 'Level_none'] as const;

/** profiler_info[_R].json. */
export function readProfilerInfo(json: unknown): ProfilerInfo {
  const root = object(json);
  const config = object(root.config);
  const common = object(config.common_config);
  const experimental = object(config.experimental_config);
  const activities = Array.isArray(common.activities) ? common.activities.map(String) : null;
  const schedule = object(common.schedule);
  const field = (name: string): number => integer(schedule[name] ?? schedule[`_${name}`]) ?? 0;
  const level = text(experimental._profiler_level);
  return {
    rank: integer(root.rank_id),
    settings: {
      level: LEVELS.find((l) => l === level) ?? null,
      aicMetrics: text(experimental._aic_metrics),
      withStack: bool(common.with_stack),
      withModules: bool(common.with_modules),
      recordShapes: bool(common.record_shapes),
      profileMemory: bool(common.profile_memory),
      l2Cache: bool(experimental._l2_cache),
      gcThreshold: typeof experimental._gc_detect_threshold === 'number' ? experimental._gc_detect_threshold : null,
      cpuActivity: activities === null ? null : activities.some((a) => a.endsWith('.CPU')),
      npuActivity: activities === null ? null : activities.some((a) => a.endsWith('.NPU')),
      schedule:
        Object.keys(schedule).length === 0
          ? null
          : {
              wait: field('wait'),
              warmup: field('warmup'),
              active: field('active'),
              repeat: field('repeat'),
              skipFirst: field('skip_first'),
            },
      cann: text(root.cann_version),
      torchNpu: text(root.torch_npu_version),
    },
  };
}

/** `info.json.{device}` of a raw capture; rank −1 means that none was set. */
export function readDeviceRank(json: unknown): { rank: number | null; device: number | null; hardware: Hardware } {
  const root = object(json);
  const first = Array.isArray(root.DeviceInfo) ? object(root.DeviceInfo[0]) : {};
  return {
    rank: integer(root.rank_id),
    device: integer(first.id) ?? integer(root.devices),
    hardware: {
      cubeCores: integer(first.ai_core_num) || null,
      vectorCores: integer(first.aiv_num) || null,
      ratedMhz: integer(first.aic_frequency) || null,
    },
  };
}

export interface ProfilerMetadata {
  env: Record<string, string>;
  groups: GroupInfo[];
  worldSize: number | null;
  parallel: Record<string, number>;
  soc: string | null;
  deviceMemory: number | null;
  torch: string | null;
  torchNpu: string | null;
}

/** No card has more, bytes. */
const MAX_DEVICE_MEMORY = 2 ** 42;
const MAX_GROUPS = 4096;
const MAX_GROUP_RANKS = 100_000;

/** profiler_metadata.json: environment, communicator groups, trainer arguments, and `ci_run` / `ci_env` of our capture snippet. */
export function readProfilerMetadata(json: unknown): ProfilerMetadata {
  const root = object(json);
  const env: Record<string, string> = {};
  for (const source of [root.ENV_VARIABLES, root.ci_env]) {
    for (const [key, value] of Object.entries(object(typeof source === 'string' ? parse(source) : source)).slice(0, 200)) {
      if (typeof value === 'string' && /^[A-Z][A-Z0-9_]*$/.test(key)) env[key] = value.slice(0, 500);
    }
  }
  const groups: GroupInfo[] = [];
  for (const [communicator, value] of Object.entries(object(root.parallel_group_info)).slice(0, MAX_GROUPS)) {
    const info = object(value);
    const ranks = Array.isArray(info.global_ranks) ? info.global_ranks.slice(0, MAX_GROUP_RANKS).map(integer) : [];
    groups.push({
      hash: groupHash(communicator),
      communicator,
      role: text(info.group_name),
      groupRank: integer(info.group_rank),
      ranks: ranks.filter((r): r is number => r !== null),
    });
  }
  const args = object(root.distributed_args);
  const parallel: Record<string, number> = {};
  for (const [key, value] of Object.entries(args).slice(0, 100)) {
    const n = integer(value);
    if (n !== null) parallel[key] = n;
  }
  const run = object(typeof root.ci_run === 'string' ? parse(root.ci_run) : root.ci_run);
  return {
    env,
    groups,
    worldSize: integer(args.world_size) || null,
    parallel,
    soc: text(run.soc) ?? text(root.soc),
    deviceMemory: bytes(run.memory),
    torch: text(run.torch) ?? text(root.torch_version),
    torchNpu: text(run.torch_npu),
  };
}

function parse(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return null;
  }
}
