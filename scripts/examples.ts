/*
 * npm run examples [-- RULE ...]   records the example of a rule's page: a job with one known fault, and what the report says about it.
 *
 * The record lies beside the rule (example.generated.json); `npm run gen` puts it on the page, and refuses a record whose sentences the
 * rule no longer says. So only the figures are kept, and they are those of a job anybody can make again.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Fault, type JobSpec, simulate, writeProfiles } from '../lab/simulator/index.ts';
import { digest } from '../src/cli/digest.ts';
import { analyse } from '../src/engine/analyse.ts';
import type { L10n, Lang } from '../src/model/lang.ts';
import type { Finding, Report } from '../src/model/report.ts';
import { sourceTreeFrom } from '../src/source/source-tree-from.ts';
import { openSource } from '../src/sources/index.ts';
import { communication, hashOf, type Link, matrix, metadata, stepTimes } from '../test/support/communication-files.ts';
import { DEFAULT_OPTIONS } from '../test/support/grid.ts';
import { filler, type KernelRow, kernelTable, vector } from '../test/support/kernel-table.ts';
import { traceEvents, ts } from '../test/support/profile-text.ts';
import type { RuleExample, Told } from './rule-example.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** A job and the words that introduce it. */
interface Case {
  readonly job: L10n;
  readonly spec?: JobSpec;
  readonly before?: JobSpec;
  readonly files?: Readonly<Record<string, string>>;
  readonly source?: Readonly<Record<string, string>>;
}

const RANKS = 4;

/** A data-parallel job of four ranks with one fault. */
const ddp = (en: string, zh: string, fault: Fault, more: Partial<JobSpec> = {}): Case => ({
  job: { en: `simulated, ${more.ranks ?? RANKS} ranks: ${en}`, zh: `仿真，${more.ranks ?? RANKS} 卡：${zh}` },
  spec: { ranks: RANKS, soc: 'Ascend910B2', ...more, faults: [fault] },
});

const set = (en: string, zh: string, more: Partial<JobSpec>): Case => {
  const spec = { ranks: RANKS, soc: 'Ascend910B2', ...more };
  return { job: { en: `simulated, ${spec.ranks} ranks: ${en}`, zh: `仿真，${spec.ranks} 卡：${zh}` }, spec };
};

const handMade = (en: string, zh: string, files: Readonly<Record<string, string>>): Case => ({
  job: { en: `tables written by hand: ${en}`, zh: `手工编写的表：${zh}` },
  files,
});

/** Tables of one rank of a group. */
function rankFiles(
  rank: number,
  world: number,
  groups: Parameters<typeof metadata>[0],
  tables: Readonly<Record<string, string>>,
): Record<string, string> {
  const own = `rank_${rank}_ascend_pt`;
  return {
    [`${own}/profiler_info_${rank}.json`]: JSON.stringify({ rank_id: rank }),
    [`${own}/profiler_metadata.json`]: metadata(groups, rank, world),
    ...Object.fromEntries(Object.entries(tables).map(([name, text]) => [`${own}/ASCEND_PROFILER_OUTPUT/${name}`, text])),
  };
}

/** A copy in the middle of two products, whose data is not in the cache. */
function missedCache(): Record<string, string> {
  const gather: KernelRow = {
    type: 'GatherV2',
    us: 2_000,
    blocks: 48,
    inShapes: '65536,4096',
    inTypes: 'DT_BF16',
    outShapes: '65536,4096',
    outTypes: 'DT_BF16',
    more: vector(0.05, 0.95, 0.3),
  };
  const rows = [filler(6_000), gather, filler(6_000)];
  const hits = rows.map((row, i) => `2,${i + 1},${[0.8, 0.1, 0.8][i]},0.2,${row.type}`);
  return rankFiles(
    0,
    1,
    {},
    {
      'kernel_details.csv': kernelTable(rows),
      'l2_cache.csv': `Stream Id,Task Id,Hit Rate,Victim Rate,Op Name\n${hits.join('\n')}\n`,
    },
  );
}

/** 400 of 500 packets of an all-reduce end beside a multiple of 512 bytes. */
function oddPackets(): Record<string, string> {
  const packets: [bytes: number, count: number, ms: number][] = [
    [524_288, 100, 3],
    [524_388, 400, 24],
  ];
  const moved = {
    mb: packets.reduce((sum, [bytes, count]) => sum + (bytes * count) / 1e6, 0),
    ms: 27,
    packets: Object.fromEntries(packets.map(([bytes, count, ms]) => [String(bytes / 1e6), [count, ms] as const])),
  };
  const groups = { group_name_5: { role: 'dp', ranks: [0, 1] } };
  return Object.assign(
    {},
    ...[0, 1].map((rank) =>
      rankFiles(rank, 2, groups, {
        'step_trace_time.csv': stepTimes(60, 30, 10),
        'communication.json': communication([
          { name: 'hcom_allReduce__097_3_1', group: hashOf('group_name_5'), at: 1_000, ms: 30, moved: { HCCS: moved } },
        ]),
      }),
    ),
  );
}

/** One of five transfers between two servers takes 4.3 s. */
function sentAgain(): Record<string, string> {
  const groups = { group_name_5: { role: 'dp', ranks: [0, 8] } };
  const tables = {
    'step_trace_time.csv': stepTimes(6_000, 4_400, 1_000),
    'communication.json': communication(
      [0.8, 0.9, 4_300, 0.8, 0.9].map((ms, i) => ({
        name: `hcom_allReduce__097_${i + 1}_1`,
        group: hashOf('group_name_5'),
        at: 1_000 + 10_000_000 * i,
        ms,
        moved: { RDMA: { mb: 20, ms } },
      })),
    ),
  };
  return { ...rankFiles(0, 16, groups, tables), ...rankFiles(8, 16, groups, tables) };
}

/** Two servers of four cards: the busy groups of tensor parallelism span them, the quiet ones of data parallelism do not. */
function acrossServers(): Record<string, string> {
  const groups: Record<string, { role: string; ranks: readonly number[] }> = {};
  for (let r = 0; r < 4; r++) groups[`group_name_${10 + r}`] = { role: 'tp', ranks: [r, r + 4] };
  groups.group_name_30 = { role: 'dp', ranks: [0, 1, 2, 3] };
  groups.group_name_31 = { role: 'dp', ranks: [4, 5, 6, 7] };
  const files: Record<string, string> = {};
  for (let rank = 0; rank < 8; rank++) {
    const calls = [];
    const links: Link[] = [];
    for (const [name, { role, ranks }] of Object.entries(groups)) {
      const at = ranks.indexOf(rank);
      if (at < 0) continue;
      const type = role === 'tp' ? ('RDMA' as const) : ('HCCS' as const);
      const mb = role === 'tp' ? 4 : 20;
      const ms = mb / (role === 'tp' ? 5 : 18);
      for (let i = 0; i < (role === 'tp' ? 40 : 1); i++) {
        const call = `hcom_allReduce__${hashOf(name).slice(-3)}_${i + 1}_1`;
        calls.push({
          name: call,
          group: hashOf(name),
          at: (role === 'tp' ? 1_000 : 300_000) + i * 5_000,
          ms,
          moved: { [type]: { mb, ms } },
        });
        links.push({ group: hashOf(name), call, ends: `${at}-${(at + 1) % ranks.length}`, type, mb, ms });
      }
    }
    Object.assign(
      files,
      rankFiles(rank, 8, groups, {
        'step_trace_time.csv': stepTimes(300, 60, 20),
        'communication.json': communication(calls),
        'communication_matrix.json': matrix(links),
      }),
    );
  }
  return files;
}

/** In every step of 10 ms the first kernel starts after 5 ms, and nothing recorded says why. */
function lateFirstKernel(): Record<string, string> {
  const steps = 3;
  const events = traceEvents({ steps, kernels: 8, collectives: false }).filter((e) => !('name' in e && String(e.name).startsWith('aclnn')));
  for (let s = 0; s < steps; s++) {
    for (let k = 0; k < 20; k++) {
      const start = s * 10_000 + 5_000 + k * 110;
      const flow = { name: 'HostToDevice', cat: 'HostToDevice', id: `9${s}${k}` };
      events.push({ ph: 's', ...flow, pid: 2, tid: 12, ts: ts(start - 20) }, { ph: 'f', ...flow, pid: 3, tid: 7, ts: ts(start) });
      events.push({ ph: 'X', name: 'aclnnMul_Mul', pid: 3, tid: 7, ts: ts(start), dur: 100, args: { 'Task Type': 'AI_CORE' } });
    }
  }
  return rankFiles(0, 1, {}, { 'trace_view.json': JSON.stringify(events) });
}

const CASES: Readonly<Record<string, Case>> = {
  'affinity-api': ddp('the norm of each layer is written out', '每层的归一化由多个算子写成', { kind: 'unfused', of: 'rms-norm' }),
  'aicpu-op': ddp('four products of 16-bit integers in each step', '每迭代四次 16 位整数乘法', { kind: 'aicpu-op' }),
  'bandwidth-contention': ddp('gradients are reduced while the card computes', '计算的同时归约梯度', { kind: 'contention' }),
  'batch-preparation': ddp('the training thread turns each batch into tensors', '训练线程把每个 batch 转为张量', {
    kind: 'batch-preparation',
  }),
  'block-dim': ddp('a kernel uses 12 of 48 cores', '一个 kernel 只用 48 个核中的 12 个', { kind: 'few-blocks' }),
  'byte-alignment': handMade('400 of 500 packets have an odd size', '500 个数据包中 400 个大小不对齐', oddPackets()),
  'cast-churn': ddp('two casts in each layer undo each other', '每层有两次相互抵消的 Cast', { kind: 'cast-pair' }),
  'cube-utilisation': ddp('a vocabulary whose size does not fit the cube', '词表大小与 Cube 不匹配', { kind: 'loose-matmul' }),
  'dataloader-stall': ddp('one process loads the data', '只有主进程取数', { kind: 'slow-loader', single: true }),
  'ddp-buffer-broadcast': ddp('DDP with 16 buffers of 20 MB', 'DDP，16 个 20 MB 的 buffer', { kind: 'buffer-broadcast' }),
  environment: set('one rank with another HCCL_RDMA_TC', '一张卡的 HCCL_RDMA_TC 不同', {
    ranks: 4,
    envOfRank: { 3: { HCCL_RDMA_TC: '136' } },
  }),
  'expert-imbalance': ddp('experts of unequal load', '各专家负载不均', { kind: 'expert-imbalance', rank: RANKS - 1 }),
  'frequency-drop': ddp('one card runs at 1440 instead of 1800 MHz', '一张卡以 1440 而非 1800 MHz 运行', {
    kind: 'frequency-drop',
    ranks: [3],
  }),
  'fusible-sequence': ddp('four element-wise operators in a row in each layer', '每层四个连续的逐元素算子', { kind: 'elementwise-chain' }),
  'gc-pause': ddp('Python collects garbage once a step', 'Python 每迭代回收一次垃圾', { kind: 'gc-pause' }),
  'gradient-sync-per-microstep': ddp('four micro batches, each reduces the gradients', '四个 micro batch，每个都归约梯度', {
    kind: 'sync-per-microstep',
  }),
  'group-placement': handMade(
    'two servers of four cards, tensor parallelism across them',
    '两台各四卡的服务器，张量并行跨机',
    acrossServers(),
  ),
  'h2d-copy': ddp('the batch is not pinned', 'batch 未锁页', { kind: 'pageable-copy' }),
  'hccl-small-packet': ddp('parameters are gathered shard by shard', '参数逐片收集', { kind: 'small-messages' }),
  'hccl-sync-wait': ddp('in each step another rank is late', '每迭代由不同的卡迟到', { kind: 'rotating-jitter' }),
  'host-bound-launch': ddp('the host takes five times as long for each operator', 'Host 下发每个算子慢到五倍', { kind: 'host-bound' }),
  'l2-miss': handMade('a gather between two products', '两次矩阵乘之间的 Gather', missedCache()),
  'memory-alloc-stall': ddp('the loop empties the cache', '循环中清空缓存', { kind: 'alloc-stall', emptyCache: true }),
  'memory-fragmentation': set('blocks that fit, but not in one piece', '空闲总量够、但无连续空间', {
    ranks: 2,
    steps: 6,
    memory: { deviceGb: 32, splinterMb: 512, unusedGb: 2 },
  }),
  'memory-growth': set('48 MB of each step are never released', '每迭代 48 MB 从不释放', {
    ranks: 2,
    steps: 6,
    memory: { deviceGb: 32, growMb: 48 },
  }),
  'memory-peak': set('cards of 32 GB that are nearly full', '32 GB 的卡几近用满', {
    ranks: 2,
    steps: 6,
    memory: { deviceGb: 32, baseGb: 23, unusedGb: 0.1 },
  }),
  'migration-review': {
    job: { en: 'two lines of a script, no profile', zh: '脚本中的两行，没有 profile' },
    source: {
      'train.py':
        'import torch\nimport torch_npu\nfrom torch_npu.amp import autocast\n\nmodel = torch.nn.Linear(8, 8).npu()\nwith autocast():\n    model(torch.ones(8, 8).npu())\n',
    },
  },
  'no-overlap': ddp('gradients are reduced after the backward', '反向结束后才归约梯度', { kind: 'no-overlap' }),
  'op-recompile': ddp('two operators are compiled in each step', '每迭代编译两个算子', { kind: 'recompile' }),
  'pipe-utilisation': ddp('a kernel that no pipe is busy with', '一个各流水线都不忙的 kernel', { kind: 'idle-pipes' }),
  'pipeline-bubble': ddp('two stages, two micro batches', '两个 Stage，两个 micro batch', { kind: 'few-micro-batches' }, { pp: 2 }),
  'profile-quality': set('two of four ranks, one step, Level0', '四卡中的两卡，一个迭代，Level0', {
    ranks: 4,
    uploadedRanks: [0, 2],
    steps: 1,
    level: 0,
  }),
  'profiler-config': {
    ...ddp(
      'small operators, recorded with call stacks and modules',
      '小算子，采集了调用栈与模块',
      { kind: 'small-ops' },
      { ranks: 2, profiler: { withModules: true } },
    ),
  },
  regression: {
    ...ddp(
      'compared with the same job without the compilations',
      '与没有编译的同一任务对比',
      { kind: 'recompile' },
      { ranks: 4, steps: 8 },
    ),
    before: { ranks: 4, steps: 8, soc: 'Ascend910B2', seed: 77 },
  },
  retransmission: handMade('one of five transfers between two servers takes 4.3 s', '两机间五次传输之一耗时 4.3 s', sentAgain()),
  'slow-link': ddp('one link moves a fifth of the others', '一条链路的带宽是其他的五分之一', { kind: 'slow-link', ranks: [1, 2] }),
  'slow-rank': ddp('the kernels of rank 3 take 15 % longer', '卡 3 的 kernel 慢 15%', { kind: 'slow-rank', rank: 3 }),
  'small-op-fragmentation': ddp('the optimizer loops over its parameters', '优化器逐参数循环', { kind: 'small-ops' }),
  'stage-imbalance': ddp('two stages, the second has a layer more', '两个 Stage，后者多一层', { kind: 'stage-imbalance' }, { pp: 2 }),
  'step-jitter': ddp(
    'one step takes 60 ms longer',
    '一个迭代多 60 ms',
    { kind: 'slow-steps', steps: [3], rank: 1, ms: 60 },
    { ranks: 2, steps: 6 },
  ),
  'step-start-gap': handMade('every step of 10 ms begins with 5 ms of nothing', '每个 10 ms 的迭代先有 5 ms 空闲', lateFirstKernel()),
  'stream-sync': ddp('values are read in each layer', '每层都读取张量的值', { kind: 'stream-sync' }),
  'transpose-hotspot': ddp('layers convert their tensors to and fro', '各层来回转换张量格式', { kind: 'layout' }),
  'unfused-optimizer': ddp('AdamW, one kernel for each operation', 'AdamW，每个操作一个 kernel', { kind: 'unfused-optimizer' }),
  'vector-bound': ddp('a formula over the logits, one kernel for each operation', 'logits 上的公式，每个操作一个 kernel', {
    kind: 'vector-chain',
  }),
  'version-mismatch': set('torch 2.6.0 beside torch_npu 2.7.1', 'torch 2.6.0 搭配 torch_npu 2.7.1', {
    ranks: 2,
    versions: { torch: '2.6.0', torchNpu: '2.7.1', cann: '8.3.RC1' },
  }),
};

async function written<T>(
  spec: JobSpec | undefined,
  files: Readonly<Record<string, string>> | undefined,
  use: (dir: string) => Promise<T>,
) {
  const dir = mkdtempSync(join(tmpdir(), 'npu-advisor-example-'));
  try {
    if (spec !== undefined) await writeProfiles(simulate(spec), dir);
    for (const [path, text] of Object.entries(files ?? {})) {
      mkdirSync(dirname(join(dir, path)), { recursive: true });
      writeFileSync(join(dir, path), text);
    }
    // Read once: the digest gives the same report in either language.
    const facts = join(dir, 'facts.json');
    await digest([dir], facts, 'en');
    return await use(facts);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function reportOn(dir: string | null, before: string | null, source: Case['source'], lang: Lang): Promise<Report> {
  const sources = dir === null ? [] : [await openSource(dir)];
  const baseline = before === null ? [] : [{ label: 'main', sources: [await openSource(before)] }];
  try {
    return await analyse({
      sources,
      baseline,
      options: { ...DEFAULT_OPTIONS, lang },
      source: source === undefined ? null : sourceTreeFrom({ files: Object.entries(source) }),
    });
  } finally {
    for (const opened of [...sources, ...baseline.flatMap((b) => b.sources)]) await opened.close();
  }
}

function told(finding: Finding): Told {
  const first = finding.recommendations[0];
  const edit = first?.edits[0];
  return {
    title: finding.title,
    evidence: finding.evidence.slice(0, 3).map((e) => e.text),
    caveats: finding.caveats.slice(0, 2),
    change: first === undefined ? null : { title: first.title, text: first.text },
    code: first?.code ?? null,
    edit: edit === undefined ? null : { before: edit.before, after: edit.after },
  };
}

async function record(id: string, found: Case): Promise<void> {
  const inBoth = async (before: string | null): Promise<Report[]> => {
    const dir = found.spec === undefined && found.files === undefined;
    if (dir) return [await reportOn(null, null, found.source, 'en'), await reportOn(null, null, found.source, 'zh')];
    return written(found.spec, found.files, async (path) => [
      await reportOn(path, before, found.source, 'en'),
      await reportOn(path, before, found.source, 'zh'),
    ]);
  };
  const reports = found.before === undefined ? await inBoth(null) : await written(found.before, undefined, inBoth);
  const [en, zh] = reports.map(
    (report) => report.findings.find((f) => f.rule === id && f.symptomOf === null) ?? report.findings.find((f) => f.rule === id),
  );
  if (en === undefined || zh === undefined) {
    console.error(`${id}: ${reports[0]!.checked.find((c) => c.rule === id)?.reason}`);
    process.exitCode = 1;
    return;
  }
  const at = en.locations[0];
  const example: RuleExample = {
    job: found.job,
    stepTimeMs: reports[0]!.job.stepTimeMs,
    severity: en.severity,
    confidence: en.confidence,
    ranks: en.ranks,
    saving: en.saving === null ? null : { perStepMs: en.saving.perStepMs, shareOfStep: en.saving.shareOfStep },
    under: reports[0]!.findings.find((f) => f.id === en.symptomOf)?.rule ?? null,
    location: at === undefined ? null : { file: at.file, line: at.line },
    en: told(en),
    zh: told(zh),
  };
  writeFileSync(join(root, 'src/rules', id, 'example.generated.json'), `${JSON.stringify(example, null, 2)}\n`);
  console.log(`${id}: ${en.title}`);
}

const wanted = process.argv.slice(2);
for (const id of wanted) if (CASES[id] === undefined) throw new Error(`there is no example of ${id}`);
for (const [id, found] of Object.entries(CASES)) if (wanted.length === 0 || wanted.includes(id)) await record(id, found);
