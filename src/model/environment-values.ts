import type { Message } from './lang.ts';

type Env = Readonly<Record<string, string>>;

/** A value that is wrong whatever the profile shows: the runtime refuses or ignores it. */
export interface WrongValue {
  readonly names: readonly string[];
  readonly why: Message;
}

const integer = (value: string): number => (/^\d{1,9}$/.test(value) ? Number(value) : Number.NaN);
const within = (least: number, most: number) => (value: string) => integer(value) >= least && integer(value) <= most;
const oneOf =
  (...values: readonly string[]) =>
  (value: string) =>
    values.includes(value);

/** What each variable accepts; from the environment references of torch_npu, CANN and HCCL. */
const ACCEPTS: readonly (readonly [name: string, accepts: (value: string) => boolean, values: string])[] = [
  ['ASCEND_GLOBAL_LOG_LEVEL', within(0, 4), '0–4'],
  ['ASCEND_LAUNCH_BLOCKING', oneOf('0', '1'), '0, 1'],
  ['TASK_QUEUE_ENABLE', oneOf('0', '1', '2'), '0, 1, 2'],
  ['MULTI_STREAM_MEMORY_REUSE', oneOf('0', '1', '2', '3'), '0–3'],
  ['STREAMS_PER_DEVICE', oneOf('8', '32'), '8, 32'],
  ['ACLNN_CACHE_LIMIT', within(0, 10_000_000), '1–10000000'],
  ['HCCL_BUFFSIZE', within(1, 1_000_000), '1…'],
  ['HCCL_CONNECT_TIMEOUT', within(120, 7_200), '120–7200'],
  ['HCCL_DETERMINISTIC', (v) => /^(false|true|strict)$/i.test(v), 'false, true, strict'],
  ['HCCL_RDMA_QPS_PER_CONNECTION', within(1, 32), '1–32'],
  ['HCCL_RDMA_RETRY_CNT', within(1, 7), '1–7'],
  ['HCCL_RDMA_SL', within(0, 7), '0–7'],
  ['HCCL_RDMA_TC', (v) => within(0, 255)(v) && integer(v) % 4 === 0, '0–252, / 4'],
];

/** Values that only debugging asks for. They are never wrong, and always slow. */
export const DEBUG_VALUES: ReadonlyMap<string, RegExp> = new Map([
  ['ASCEND_LAUNCH_BLOCKING', /^1$/],
  ['ASCEND_GLOBAL_LOG_LEVEL', /^[01]$/],
  ['PYTORCH_NO_NPU_MEMORY_CACHING', /^1$/],
  ['TASK_QUEUE_ENABLE', /^0$/],
  ['TORCH_HCCL_BLOCKING_WAIT', /^1$/],
]);

/** Variables that `wrongValues` and `DEBUG_VALUES` look at. */
export const JUDGED_VARIABLES: readonly string[] = [...ACCEPTS.map(([name]) => name), 'PYTORCH_NPU_ALLOC_CONF', 'HCCL_INTRA_PCIE_ENABLE'];

/** null: not recorded; '' recorded as unset. */
const recorded = (env: Env, name: string): string | null => env[name]?.trim() ?? null;

export function wrongValues(env: Env): WrongValue[] {
  const wrong: WrongValue[] = [];
  for (const [name, accepts, values] of ACCEPTS) {
    const value = recorded(env, name);
    if (value === null || value === '' || accepts(value)) continue;
    wrong.push({
      names: [name],
      why: {
        text: { en: '{name:code} accepts {values:text}, not {value:code}', zh: '{name:code} 的取值为 {values:text}，而不是 {value:code}' },
        params: { name, values, value },
      },
    });
  }
  const conf = recorded(env, 'PYTORCH_NPU_ALLOC_CONF') ?? '';
  if (conf !== '' && (recorded(env, 'PYTORCH_ALLOC_CONF') ?? '') !== '') {
    wrong.push({
      names: ['PYTORCH_NPU_ALLOC_CONF', 'PYTORCH_ALLOC_CONF'],
      why: {
        text: {
          en: '{a:code} and {b:code} are both set: from torch_npu 26.2 the process exits',
          zh: '{a:code} 与 {b:code} 同时设置：torch_npu 26.2 起进程会退出',
        },
        params: { a: 'PYTORCH_NPU_ALLOC_CONF', b: 'PYTORCH_ALLOC_CONF' },
      },
    });
  }
  if (/expandable_segments\s*:\s*true/i.test(conf) && /(max_split_size_mb|garbage_collection_threshold)\s*:/.test(conf)) {
    wrong.push({
      names: ['PYTORCH_NPU_ALLOC_CONF'],
      why: {
        text: {
          en: '{value:code}: {a:code} excludes {b:code}',
          zh: '{value:code}：{a:code} 与 {b:code} 互斥',
        },
        params: { value: conf, a: 'expandable_segments:True', b: ['max_split_size_mb', 'garbage_collection_threshold'] },
      },
    });
  }
  const [pcie, roce] = [recorded(env, 'HCCL_INTRA_PCIE_ENABLE'), recorded(env, 'HCCL_INTRA_ROCE_ENABLE')];
  const pair = `${pcie},${roce}`;
  // Supported: (1, unset) (1, 0) (0, 1) (unset, 1) (0, 0) (unset, unset).
  if (['1,1', '0,', ',0'].includes(pair)) {
    wrong.push({
      names: ['HCCL_INTRA_PCIE_ENABLE', 'HCCL_INTRA_ROCE_ENABLE'],
      why: {
        text: {
          en: '{a:code} = {x:code} with {b:code} = {y:code} is no supported pair',
          zh: '{a:code} = {x:code} 与 {b:code} = {y:code} 不是支持的组合',
        },
        params: { a: 'HCCL_INTRA_PCIE_ENABLE', x: pcie || 'unset', b: 'HCCL_INTRA_ROCE_ENABLE', y: roce || 'unset' },
      },
    });
  }
  return wrong;
}
