/* An NPU job beside the trace of a GPU. The figures of the GPU are worked out by hand from the events below. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { simulate, writeProfiles } from '../../lab/simulator/index.ts';
import { analyse } from '../../src/engine/analyse.ts';
import { factsToJson } from '../../src/model/facts-json.ts';
import type { Lang } from '../../src/model/lang.ts';
import { Report } from '../../src/model/report.ts';
import { renderMarkdown } from '../../src/render/markdown.ts';
import { openSource } from '../../src/sources/index.ts';
import { DEFAULT_OPTIONS } from '../support/grid.ts';
import { factsOf } from '../support/simulated.ts';

const BASE = 1_712_195_495_000_000;
let id = 0;

function launched(cat: string, name: string, stream: number, launch: number, at: number, dur: number): object[] {
  const args = { device: 0, stream, correlation: ++id, 'External id': id };
  return [
    { ph: 'X', cat: 'cuda_runtime', name: 'cudaLaunchKernel', pid: 9, tid: 9, ts: BASE + launch, dur: 5, args: { correlation: id } },
    { ph: 'X', cat, name, pid: 0, tid: stream, ts: BASE + at, dur, args },
  ];
}

/** A step of 20 ms: 12 ms matmul, 2 ms attention, 1 ms add, an all-reduce of 3 ms of which 2 ms are exposed, a copy of 1 ms, 2 ms idle. */
function gpuStep(n: number): object[] {
  const at = n * 20_000;
  return [
    { ph: 'X', cat: 'user_annotation', name: `ProfilerStep#${n}`, pid: 9, tid: 9, ts: BASE + at, dur: 20_000 },
    { ph: 'X', cat: 'python_function', name: 'nn.Module: Linear_0', pid: 9, tid: 9, ts: BASE + at + 5, dur: 10 },
    ...launched('kernel', 'ampere_bf16_s16816gemm_bf16_128x128', 7, at + 10, at + 100, 12_000),
    ...launched('kernel', 'void flash_fwd_kernel<Flash>(params)', 7, at + 20, at + 12_100, 2_000),
    ...launched('kernel', 'void at::native::vectorized_elementwise_kernel<4>(int)', 7, at + 30, at + 14_100, 1_000),
    ...launched('kernel', 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(args)', 20, at + 40, at + 14_100, 3_000),
    ...launched('gpu_memcpy', 'Memcpy HtoD (Pinned -> Device)', 7, at + 50, at + 17_100, 1_000),
  ];
}

function gpuTrace(steps: number, marks = true): string {
  const events = Array.from({ length: steps }, (_, n) => gpuStep(n)).flat() as { name?: string }[];
  return JSON.stringify({
    schemaVersion: 1,
    deviceProperties: [{ id: 0, name: 'NVIDIA A100-SXM4-80GB' }],
    distributedInfo: { backend: 'nccl', rank: 0, world_size: 2 },
    traceEvents: marks ? events : events.filter((e) => !e.name?.startsWith('ProfilerStep')),
  });
}

let root = '';
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'npu-advisor-compare-gpu-'));
  await writeProfiles(simulate({ ranks: 2, layers: 2, steps: 5 }), join(root, 'npu'));
  await writeFile(join(root, 'rank0.pt.trace.json'), gpuTrace(5));
  await writeFile(join(root, 'plain.pt.trace.json'), gpuTrace(5, false));
});
afterAll(async () => {
  await rm(root, { recursive: true, force: true });
});

async function against(trace: string, lang: Lang = 'en', head = 'npu'): Promise<Report> {
  const [npu, gpu] = [await openSource(join(root, head)), await openSource(join(root, trace))];
  try {
    const baseline = [{ label: gpu.label, sources: [gpu] }];
    const options = { ...DEFAULT_OPTIONS, lang, gate: { regression: { share: 0.01 } } };
    return await analyse({ sources: [npu], options, source: null, baseline });
  } finally {
    await npu.close();
    await gpu.close();
  }
}

describe('a GPU trace as baseline', () => {
  test('step and parts side by side, never a verdict', async () => {
    const report = await against('rank0.pt.trace.json');
    expect(Report.safeParse(report).error?.issues).toBeUndefined();
    const c = report.comparison!;
    expect(c).toMatchObject({ verdict: 'incomparable', interval: null, metrics: [], findings: [] });
    expect(c.baseline).toMatchObject({ kind: 'gpu', device: 'NVIDIA A100-SXM4-80GB', worldSize: 2, stepTimeMs: 20 });
    expect(c.text).toMatch(/^No verdict against the baseline: the baseline ran on a GPU \(`NVIDIA A100-SXM4-80GB`\)/);
    expect(c.deltaMs).toBeCloseTo(report.job.stepTimeMs! - 20, 2);
    const of = (part: string) => c.contributors.find((x) => x.part === part)!;
    expect(of('computing').baseMs).toBeCloseTo(15, 3);
    expect(of('communication').baseMs).toBeCloseTo(2, 3);
    expect(of('copying').baseMs).toBeCloseTo(1, 3);
    expect(of('idle').baseMs).toBeCloseTo(2, 3);
    expect(c.contributors.reduce((sum, x) => sum + x.deltaMs, 0)).toBeCloseTo(c.deltaMs!, 2);
    expect(c.contributors.reduce((sum, x) => sum + x.headMs, 0)).toBeCloseTo(c.stepTimeMs!, 2);
  });

  test('computing by class of work', async () => {
    const { comparison } = await against('rank0.pt.trace.json');
    const computing = comparison!.contributors.find((x) => x.part === 'computing')!;
    const of = (what: string) => computing.details.find((d) => d.what === what)!;
    expect(of('matrix products')).toMatchObject({ by: 'class', baseMs: 12, calls: { base: 1 } });
    expect(of('attention')).toMatchObject({ baseMs: 2, calls: { base: 1 } });
    expect(of('elementwise').baseMs).toBe(1);
    // The simulated transformer has them all, too.
    for (const what of ['matrix products', 'attention', 'normalisation', 'optimizer']) expect(of(what).headMs, what).toBeGreaterThan(0);
    expect(of('other operators')?.headMs ?? 0).toBeLessThan(0.05 * computing.headMs);
  });

  test('modules that both call, by their forward', async () => {
    // The simulator writes no modules: the digest of its job is given some.
    const ranks = (await factsOf(join(root, 'npu'))).map((r) => ({
      ...r,
      modules: [
        { name: 'Linear', calls: 5 * 8, kernels: 5 * 8, ns: 5 * 30e6 },
        { name: 'NpuFusedRMSNorm', calls: 5, kernels: 5, ns: 5e6 },
      ],
    }));
    await writeFile(join(root, 'modules.json'), factsToJson(ranks));
    const { comparison } = await against('rank0.pt.trace.json', 'en', 'modules.json');
    const modules = comparison!.contributors.find((x) => x.part === 'computing')!.details.filter((d) => d.by === 'module');
    expect(modules).toEqual([
      { by: 'module', what: 'forward of module `Linear`', baseMs: 12, headMs: 30, deltaMs: 18, calls: { base: 1, head: 8 } },
    ]);
  });

  test('the gate has nothing to judge by, and rule and languages say why', async () => {
    const report = await against('rank0.pt.trace.json', 'zh');
    expect(report.gate?.outcome).toBe('neutral');
    expect(report.checked.find((r) => r.rule === 'regression')).toMatchObject({ outcome: 'notApplicable' });
    expect(report.comparison!.text).toMatch(/GPU/);
    expect(renderMarkdown(report)).toMatch(/矩阵乘/);
  });

  test('without step marks there is nothing to subtract', async () => {
    const c = (await against('plain.pt.trace.json')).comparison!;
    expect(c).toMatchObject({ verdict: 'incomparable', deltaMs: null, contributors: [] });
    expect(c.refusals.join(' ')).toMatch(/ProfilerStep/);
  });
});
