/* Traces of torch.profiler on a GPU. The figures expected are worked out by hand from the events below. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AdviseError } from '../../src/base/errors.ts';
import { analyse } from '../../src/engine/analyse.ts';
import { readGpuTrace } from '../../src/importers/gpu-trace/index.ts';
import { classOfKernel, classOfOperator, shortKernelName } from '../../src/importers/gpu-trace/names.ts';
import type { GpuFacts } from '../../src/model/gpu-facts.ts';
import { openSource } from '../../src/sources/index.ts';
import { entryOf, trace } from '../support/profile-text.ts';

const BASE = 1_712_195_495_000_000;
const HOST = 1_102;
const MAIN = 1_102;
const BACKWARD = 1_262;
const SGEMM = 'ampere_sgemm_128x128_tn';
const ADD =
  'void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)';
const NCCL = 'ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)';

interface Event {
  readonly ph: string;
  readonly [key: string]: unknown;
}

const x = (cat: string, name: string, tid: number, at: number, dur: number, args: object = {}): Event => ({
  ph: 'X',
  cat,
  name,
  pid: HOST,
  tid,
  ts: BASE + at,
  dur,
  args,
});
let correlation = 0;
/** A launch on the host and what it started on the device, µs. */
const launched = (cat: string, name: string, tid: number, launchAt: number, stream: number, at: number, dur: number): Event[] => {
  const id = ++correlation;
  const args = { device: 0, stream, correlation: id, 'External id': id };
  return [
    x('cuda_runtime', 'cudaLaunchKernel', tid, launchAt, 5, { cbid: 211, correlation: id }),
    { ph: 'X', cat, name, pid: 0, tid: stream, ts: BASE + at, dur, args },
  ];
};

/**
 * One step of 1000 µs: a matmul 100–300 launched by aten::linear in a Linear, an add 300–350 launched by the autograd thread while the main
 * thread is in "## backward ##", an all-reduce 320–520 on its own stream, an update 600–650 in the optimizer, a copy 640–700.
 */
function stepOf(at: number, id: number): Event[] {
  const shift = (e: Event): Event => ({ ...e, ts: (e.ts as number) + at });
  return [
    x('user_annotation', `ProfilerStep#${id}`, MAIN, 0, 1_000),
    x('python_function', 'nn.Module: Net_0', MAIN, 10, 90),
    x('python_function', 'nn.Module: Linear_3', MAIN, 15, 80),
    x('python_function', 'train.py(10): step', MAIN, 5, 900),
    x('cpu_op', 'aten::linear', MAIN, 20, 60),
    x('cpu_op', 'aten::addmm', MAIN, 30, 40),
    ...launched('kernel', SGEMM, MAIN, 40, 7, 100, 200),
    x('user_annotation', '## backward ##', MAIN, 110, 300),
    x('cpu_op', 'autograd::engine::evaluate_function: AddBackward0', BACKWARD, 120, 100),
    x('cpu_op', 'AddBackward0', BACKWARD, 125, 80),
    x('cpu_op', 'aten::add_', BACKWARD, 130, 50),
    ...launched('kernel', ADD, BACKWARD, 140, 7, 300, 50),
    x('cpu_op', 'c10d::allreduce_', BACKWARD, 230, 40),
    x('user_annotation', 'nccl:all_reduce', BACKWARD, 235, 30),
    ...launched('kernel', NCCL, BACKWARD, 240, 20, 320, 200),
    x('user_annotation', 'Optimizer.step#SGD.step', MAIN, 450, 100),
    x('cpu_op', 'aten::_foreach_add_', MAIN, 460, 60),
    ...launched('kernel', ADD, MAIN, 470, 7, 600, 50),
    x('cpu_op', 'aten::to', MAIN, 560, 40),
    ...launched('gpu_memcpy', 'Memcpy HtoD (Pinned -> Device)', MAIN, 570, 7, 640, 60),
  ].map(shift);
}

const GPU_ANNOTATION: Event = { ...x('gpu_user_annotation', 'ProfilerStep#101', 7, 100, 600), pid: 0 };

function traceOf(events: readonly Event[], header: object = {}): string {
  return JSON.stringify({
    schemaVersion: 1,
    deviceProperties: [
      { id: 0, name: 'NVIDIA A100-SXM4-80GB', numSms: 108 },
      { id: 1, name: 'other' },
    ],
    distributedInfo: { backend: 'nccl', rank: 3, world_size: 8, pg_config: [{ pg_name: '0', ranks: [0, 1] }] },
    ...header,
    traceEvents: [{ ph: 'M', name: 'process_name', pid: HOST, tid: 0, ts: BASE, args: { name: 'python' } }, ...events],
    traceName: '/tmp/trace.json',
  });
}

const TWO = traceOf([...stepOf(0, 101), ...stepOf(1_040, 102), GPU_ANNOTATION]);
const read = (text: string | Buffer, name = 'rank3.pt.trace.json', maxRows?: number): Promise<GpuFacts> =>
  readGpuTrace(entryOf(name, text, 1_000), maxRows);

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'npu-advisor-gpu-'));
});
afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

describe('a trace with steps', () => {
  test('header, steps and what the device did in each', async () => {
    const facts = await read(TWO);
    expect(facts).toMatchObject({ device: 'NVIDIA A100-SXM4-80GB', deviceId: 0, rank: 3, worldSize: 8, backend: 'nccl', originUs: BASE });
    expect(facts.steps.map((s) => [s.id, s.end - s.start, s.hostNs, s.whole])).toEqual([
      [101, 1_040_000, 1_000_000, true],
      [102, 1_000_000, 1_000_000, true],
    ]);
    // Computing 100–350 and 600–650; the all-reduce 320–520 is covered for 30 µs; the copy 640–700 adds 50 µs.
    expect(facts.steps[0]).toMatchObject({
      kernels: 4,
      computing: 300_000,
      communication: 200_000,
      exposed: 170_000,
      overlapped: 30_000,
      copying: 50_000,
      busy: 520_000,
      idle: 520_000,
    });
    expect(facts.steps[0]!.classes).toMatchObject({
      matmul: { count: 1, ns: 200_000 },
      elementwise: { count: 1, ns: 50_000 },
      communication: { count: 1, ns: 200_000 },
      optimizer: { count: 1, ns: 50_000 },
      copy: { count: 1, ns: 60_000 },
      other: { count: 0, ns: 0 },
    });
    expect(facts.span).toMatchObject({ kernels: 8, start: 100_000, end: 1_740_000 });
    expect(facts.drain).toBe(0);
    expect(facts.truncated).toBeNull();
    expect(facts.limited).toBeNull();
  });

  test('kernels belong to the outermost operator, backward ones to what the node calls', async () => {
    const facts = await read(TWO);
    expect(facts.attributed).toBe(1);
    expect(facts.ops).toEqual([
      { name: 'aten::linear', class: 'matmul', calls: 2, kernels: 2, ns: 400_000 },
      { name: 'c10d::allreduce_', class: 'communication', calls: 2, kernels: 2, ns: 400_000 },
      { name: 'aten::to', class: 'copy', calls: 2, kernels: 0, ns: 120_000 },
      { name: 'aten::_foreach_add_', class: 'optimizer', calls: 2, kernels: 2, ns: 100_000 },
      { name: 'aten::add_', class: 'elementwise', calls: 2, kernels: 2, ns: 100_000 },
    ]);
    expect(facts.kernels.map((k) => [k.name, k.class, k.count])).toEqual([
      ['ampere_sgemm_128x128_tn', 'matmul', 2],
      ['ncclDevKernel_AllReduce_Sum_f32_RING_LL', 'communication', 2],
      ['vectorized_elementwise_kernel<CUDAFunctor_add>', 'elementwise', 2],
      ['vectorized_elementwise_kernel<CUDAFunctor_add>', 'optimizer', 2],
    ]);
  });

  test('modules and ranges hold what was launched inside, on the threads of autograd, too', async () => {
    const { ranges } = await read(TWO);
    expect(ranges).toEqual([
      { name: 'Linear', kind: 'module', calls: 2, hostNs: 160_000, kernels: 2, ns: 400_000 },
      { name: 'Net', kind: 'module', calls: 2, hostNs: 180_000, kernels: 2, ns: 400_000 },
      { name: '## backward ##', kind: 'annotation', calls: 2, hostNs: 600_000, kernels: 4, ns: 500_000 },
      { name: 'Optimizer.step#SGD.step', kind: 'annotation', calls: 2, hostNs: 200_000, kernels: 2, ns: 100_000 },
    ]);
  });

  test('the host ran ahead: the device works on after the last step', async () => {
    const late = traceOf([...stepOf(0, 5), ...launched('kernel', SGEMM, MAIN, 990, 7, 1_500, 250)]);
    const facts = await read(late);
    expect(facts.drain).toBe(750_000);
    expect(facts.span!.kernels).toBe(5);
    expect(facts.steps[0]!.kernels).toBe(4);
  });

  test('work after the last step counts in no total', async () => {
    const late = traceOf([...stepOf(0, 5), ...launched('kernel', 'fmha_fwd_kernel', MAIN, 990, 7, 1_500, 250)]);
    expect((await read(late)).kernels.map((k) => k.class)).not.toContain('attention');
  });
});

describe('traces of other ages and in other states', () => {
  test('gzip, one byte at a time, header at the end, times with fractions: the same figures', async () => {
    const wanted = await read(TWO);
    await writeFile(join(dir, 'a.pt.trace.json.gz'), gzipSync(TWO));
    const source = await openSource(join(dir, 'a.pt.trace.json.gz'));
    const packed = await readGpuTrace(source.entries[0]!);
    expect({ ...packed, path: '', bytes: 0 }).toEqual({ ...wanted, path: '', bytes: 0 });
    const bytewise = await readGpuTrace(entryOf(wanted.path, TWO, 1));
    expect(bytewise).toEqual(wanted);
    const parsed = JSON.parse(TWO) as Record<string, unknown>;
    const { traceEvents, ...header } = parsed;
    const turned = await read(JSON.stringify({ traceEvents, ...header }));
    expect({ ...turned, bytes: 0 }).toEqual({ ...wanted, bytes: 0 });
    const fractions = await read(TWO.replace(/"ts":(\d+)/g, '"ts":$1.250'));
    expect({ ...fractions, bytes: 0, span: null }).toEqual({
      ...wanted,
      bytes: 0,
      span: null,
      steps: fractions.steps,
    });
    expect(fractions.steps.map((s) => [s.busy, s.idle])).toEqual(wanted.steps.map((s) => [s.busy, s.idle]));
  });

  test('categories of 2021: Operator, Kernel, Memcpy, Runtime', async () => {
    const old = { cpu_op: 'Operator', kernel: 'Kernel', gpu_memcpy: 'Memcpy', cuda_runtime: 'Runtime', user_annotation: 'Operator' };
    const facts = await read(TWO.replace(/"cat":"(\w+)"/g, (all, cat: string) => (cat in old ? `"cat":"${old[cat as 'kernel']}"` : all)));
    const wanted = await read(TWO);
    expect(facts.steps).toEqual(wanted.steps);
    expect(facts.ops).toEqual(wanted.ops);
  });

  test('without step marks the whole span counts; without a header nothing is made up', async () => {
    const events = stepOf(0, 1).filter((e) => e.name !== 'ProfilerStep#1');
    const facts = await read(JSON.stringify(events), 'trace.json');
    expect(facts).toMatchObject({ device: null, deviceId: 0, rank: null, worldSize: null, backend: null, steps: [], drain: null });
    expect(facts.span).toMatchObject({ start: 90_000, end: 690_000, kernels: 4, busy: 520_000 });
    expect(facts.kernels).toHaveLength(4);
  });

  test('host only: no kernel, no device, no figure', async () => {
    const facts = await read(traceOf([x('cpu_op', 'aten::mm', MAIN, 0, 10)]));
    expect(facts).toMatchObject({ span: null, attributed: null, deviceId: null, device: null });
  });

  test('a trace that breaks off is used up to there; steps behind the last kernel are not whole', async () => {
    const cut = TWO.slice(0, TWO.lastIndexOf('cudaLaunchKernel') - 80);
    const facts = await read(cut);
    expect(facts.truncated!.events).toBeGreaterThan(30);
    expect(facts.truncated!.byte).toBeLessThanOrEqual(cut.length);
    expect(facts.steps.map((s) => s.whole)).toEqual([true, false]);
  });

  test('two devices in one process: one counts, the other is named', async () => {
    const other = stepOf(0, 101).map((e) => (e.pid === 0 ? { ...e, pid: 1 } : e));
    const facts = await read(traceOf([...stepOf(0, 101), ...other.filter((e) => e.name === NCCL)]));
    expect(facts.deviceId).toBe(0);
    expect(facts.otherDevices).toEqual([1]);
    expect(facts.steps[0]!.communication).toBe(200_000);
  });

  test('more rows than fit: the first steps whole, and how many', async () => {
    const many = traceOf(Array.from({ length: 40 }, (_, i) => stepOf(i * 1_040, i)).flat());
    const wanted = await read(many);
    const facts = await read(many, 'rank3.pt.trace.json', 300);
    expect(facts.limited!.all).toBe(40);
    expect(facts.limited!.kept).toBeGreaterThan(5);
    expect(facts.steps).toEqual(wanted.steps.slice(0, facts.limited!.kept - 1).concat(facts.steps.at(-1)!));
    expect(facts.steps.at(-1)!.kernels).toBe(4);
  });

  test('hostile: no event, wild times, half a header', async () => {
    await expect(read('[]')).rejects.toBeInstanceOf(AdviseError);
    const wild = traceOf([
      { ph: 'X', cat: 'kernel', name: 'k', pid: 0, tid: 7, ts: '1e400', dur: 1 },
      { ph: 'X', cat: 'kernel', name: 'k', pid: 'Spans', tid: {}, ts: BASE, dur: -5 },
      { ph: 'X', cat: 'kernel', name: 'k', pid: 0, tid: 7, ts: BASE, dur: 1e300 },
    ]);
    expect((await read(wild)).span).toBeNull();
    const half = await read(TWO.replace('"pg_config":[', '"pg_config":{['));
    expect(half).toMatchObject({ rank: 3, worldSize: 8, backend: 'nccl' });
  });
});

describe('names', () => {
  test.each([
    ['void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128>>(Flash_fwd_params)', 'attention'],
    ['fmha_cutlassF_bf16_aligned_64x128_rf_sm80', 'attention'],
    ['sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32', 'convolution'],
    ['void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float>(int)', 'norm'],
    ['void (anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)', 'norm'],
    ['Cijk_Ailk_Bljk_BBS_BH_MT128x128x32', 'matmul'],
    ['nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT', 'matmul'],
    ['void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*)', 'copy'],
    ['void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(int)', 'reduction'],
    ['void (anonymous namespace)::softmax_warp_forward<float, float, float, 8>(int)', 'reduction'],
    ['triton_poi_fused_add_mul_3', 'elementwise'],
    ['triton_red_fused_native_layer_norm_1', 'norm'],
    ['void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>(int)', 'optimizer'],
    ['void fbgemm_gpu::bounds_check_indices_kernel<long>(int)', 'other'],
    ['ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)', 'communication'],
  ])('%s is %s', (name, expected) => {
    expect(classOfKernel(name)).toBe(expected);
  });

  test('operators, and names for people', () => {
    expect(classOfOperator('aten::scaled_dot_product_attention')).toBe('attention');
    expect(classOfOperator('fbgemm::bounds_check_indices')).toBe('other');
    expect(classOfOperator('aten::native_layer_norm')).toBe('norm');
    expect(shortKernelName(ADD)).toBe('vectorized_elementwise_kernel<CUDAFunctor_add>');
    expect(shortKernelName('void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>(int)')).toBe(
      'Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>',
    );
  });
});

describe('given to analyze by itself', () => {
  const refuse = async (name: string, content: string | Buffer): Promise<AdviseError> => {
    await writeFile(join(dir, name), content);
    const source = await openSource(join(dir, name));
    const options = { lang: 'en', thresholds: {}, disabledRules: [], gate: null } as const;
    const error = await analyse({ sources: [source], options, source: null }).then(
      () => null,
      (e: unknown) => e,
    );
    expect(error).toBeInstanceOf(AdviseError);
    return error as AdviseError;
  };

  test.each([
    ['as the profiler names it', 'host_1102.1712195495.pt.trace.json', TWO],
    ['packed', 'host_1102.1712195495.pt.trace.json.gz', gzipSync(TWO)],
    [
      'as a list of host events first',
      'mine.pt.trace.json',
      JSON.stringify([...Array(900).fill(x('cpu_op', 'aten::mm', 1, 0, 1)), ...stepOf(0, 1)]),
    ],
    ['under the name of an NPU trace', 'trace_view.json', TWO],
  ])('%s: refused, and what it is good for', async (_, name, content) => {
    const error = await refuse(name, content);
    expect(`${error.message} ${error.hint}`).toMatch(/trace of a GPU/);
    expect(error.hint).toMatch(/--baseline/);
  });

  test('a trace of an NPU is none of a GPU', async () => {
    await writeFile(join(dir, 'trace.json'), trace({ steps: 2 }));
    const source = await openSource(join(dir, 'trace.json'));
    const options = { lang: 'en', thresholds: {}, disabledRules: [], gate: null } as const;
    expect((await analyse({ sources: [source], options, source: null })).job.steps).toEqual([5, 6]);
  });
});
