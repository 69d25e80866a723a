import type { Lang } from '../../src/model/lang.ts';
import { type CheckedRule, type Comparison, type Finding, Report } from '../../src/model/report.ts';
import type { NoProfileComment, ReportComment, RepositoryLinks } from '../../src/render/views.ts';

/** The invented but self-consistent job of the wireframes: 8 ranks, 8 steps, figures that add up. */

const N = '\u00a0';

const RULES = [
  'dataloader-stall',
  'batch-preparation',
  'h2d-copy',
  'step-start-gap',
  'small-op-fragmentation',
  'host-bound-launch',
  'stream-sync',
  'op-recompile',
  'gc-pause',
  'memory-alloc-stall',
  'aicpu-op',
  'transpose-hotspot',
  'cast-churn',
  'unfused-optimizer',
  'fusible-sequence',
  'affinity-api',
  'cube-utilisation',
  'vector-bound',
  'block-dim',
  'frequency-drop',
  'l2-miss',
  'pipe-utilisation',
  'hccl-sync-wait',
  'slow-rank',
  'slow-link',
  'hccl-small-packet',
  'no-overlap',
  'ddp-buffer-broadcast',
  'gradient-sync-per-microstep',
  'byte-alignment',
  'bandwidth-contention',
  'retransmission',
  'pipeline-bubble',
  'stage-imbalance',
  'expert-imbalance',
  'group-placement',
  'memory-fragmentation',
  'memory-peak',
  'memory-growth',
  'environment',
  'profiler-config',
  'version-mismatch',
  'profile-quality',
  'step-jitter',
];

function checked(findings: readonly string[], notPossible: Readonly<Record<string, string>>): CheckedRule[] {
  return RULES.map((rule) => {
    if (findings.includes(rule)) return { rule, outcome: 'finding', reason: '' };
    const reason = notPossible[rule];
    return reason === undefined ? { rule, outcome: 'pass', reason: '' } : { rule, outcome: 'notApplicable', reason };
  });
}

/** A finding with every field filled; override what matters. */
export function finding(fields: Partial<Finding> = {}): Finding {
  return {
    id: 'dl-7f3a',
    rule: 'dataloader-stall',
    category: 'data',
    title: 'Data loader starves all 8 ranks',
    severity: 'high',
    confidence: 'high',
    ranks: [0, 1, 2, 3, 4, 5, 6, 7],
    steps: [46, 47, 48, 49, 50, 51, 52, 53],
    groups: [],
    saving: {
      basis: 'modelled',
      perStepMs: { floor: 71, likely: 94, ceiling: 118 },
      shareOfStep: 0.1158,
      method: 'Median over steps of the idle time inside `DataLoader.__next__`.',
    },
    symptomOf: null,
    evidence: [],
    caveats: [],
    locations: [{ file: 'train.py', line: 88, symbol: 'main', provenBy: 'call-stack' }],
    recommendations: [],
    ...fields,
  };
}

/** A report with every field filled; override what matters. */
export function report(fields: Partial<Report> = {}): Report {
  const steps = [46, 47, 48, 49, 50, 51, 52, 53];
  const ranks = [0, 1, 2, 3, 4, 5, 6, 7];
  return Report.parse({
    schema: 'npu-advisor.report/1',
    tool: { name: 'npu-advisor', version: '0.1.0' },
    lang: 'en',
    verdict: { outcome: 'causes', text: 'The cards waited for data.' },
    job: {
      ranks,
      unrankedFolders: 0,
      worldSize: 8,
      worldSizeBasis: 'environment of rank 0',
      missingRanks: [],
      steps,
      droppedSteps: [{ step: 45, why: 'first step' }],
      stepTimeMs: 812.4,
      stepBasis: 'distance between `ProfilerStep` starts',
      stepNoiseMs: 3.1,
      framework: 'pytorch',
      samplesPerStep: 256,
      samplesPerSecond: 315.1,
      tokensPerSecond: null,
      versions: { cann: '8.0.0', torchNpu: '2.1.0', torch: '2.1.0' },
      device: 'Ascend 910B',
      level: 'Level1',
    },
    breakdown: ranks.flatMap((rank) =>
      [49, 50].map((step) => breakdownRow(rank, step, rank === 5 ? [503.1, 141.2, 168.1] : [449.2, 195.1, 168.1])),
    ),
    findings: [],
    checked: checked([], {}),
    totals: { claimedMsPerStep: { likely: null, ceiling: 0 }, unexplainedIdleMs: 42.9 },
    comparison: null,
    gate: null,
    inputs: [{ path: 'rank0/trace_view.json', kind: 'ascend-trace', bytes: 48_200_000, status: 'used', note: '' }],
    notes: [],
    missing: [],
    views: {},
    ...fields,
  });
}

/** One row: computing, exposed communication, free. */
export function breakdownRow(
  rank: number | null,
  step: number | null,
  [computing, exposed, free]: readonly [number, number, number],
): Report['breakdown'][number] {
  return {
    rank,
    step,
    stepMs: computing + exposed + free,
    stageMs: computing + exposed + free,
    computingMs: computing,
    communicationMs: exposed + 60,
    exposedCommunicationMs: exposed,
    overlappedMs: 60,
    freeMs: free,
    bubbleMs: 0,
    preparingMs: 2.5,
    tailMs: 0,
    source: `rank${rank}/ASCEND_PROFILER_OUTPUT/step_trace_time.csv`,
  };
}

const DATA_LOADER_BEFORE = 'loader = DataLoader(train_set, batch_size=32)';
const DATA_LOADER_AFTER = 'loader = DataLoader(train_set, batch_size=32, num_workers=8, persistent_workers=True)';

/** The three causes of wireframe (a). */
export function threeCauses(lang: Lang): Finding[] {
  const say = (en: string, zh: string): string => (lang === 'en' ? en : zh);
  return [
    finding({
      title: say('Data loader starves all 8 ranks', '数据加载跟不上，8 张卡都在等数据'),
      evidence: [
        {
          text: say(
            `The card had nothing queued for 94${N}ms (median of 8 steps) while the main thread was in \`DataLoader.__next__\`.`,
            `主线程在 \`DataLoader.__next__\` 中时，NPU 有 94${N}ms 无任务可执行（8 个迭代的中位数）。`,
          ),
          source: null,
        },
        {
          text: say(
            `Worst: rank 2, step 53, 118${N}ms, \`rank2/trace_view.json\`.`,
            `最差：卡 2，迭代 53，118${N}ms，\`rank2/trace_view.json\`。`,
          ),
          source: 'rank2/trace_view.json',
          rank: 2,
          step: 53,
          startUs: 1_204_100,
          durationUs: 118_000,
        },
      ],
      recommendations: [
        {
          remedy: 'dataloader-workers',
          title: say('`num_workers=8`, `persistent_workers=True`', '`num_workers=8`、`persistent_workers=True`'),
          text: say(
            'Load batches in worker processes, so that the next batch is ready when the step ends.',
            '用多进程加载数据，使下一个 batch 在迭代结束时已就绪。',
          ),
          code: null,
          edits: [
            { file: 'train.py', startLine: 88, endLine: 88, before: DATA_LOADER_BEFORE, after: DATA_LOADER_AFTER, kind: 'suggestion' },
          ],
          preconditions: [
            say(
              'Workers must be able to open the dataset; set fewer if the host has under 64 cores.',
              '数据集需支持多进程读取；主机少于 64 核时请减小 `num_workers`。',
            ),
          ],
          references: ['https://pytorch.org/docs/stable/data.html'],
        },
      ],
    }),
    finding({
      id: 'sr-19c2',
      rule: 'slow-rank',
      category: 'communication',
      title: say(`Rank 5 computes 12${N}% slower, 7 ranks wait for it`, '卡 5 计算慢 12%，其余 7 张卡等它'),
      ranks: [5],
      saving: {
        basis: 'modelled',
        perStepMs: { floor: 31, likely: 38, ceiling: 52 },
        shareOfStep: 0.0468,
        method: 'Replay with rank 5 at the median of its peers.',
      },
      evidence: [
        {
          text: say(
            `Rank 5 arrives last in 208 of 216 all-reduces, by 38${N}ms per step; same 2,464 kernels, 12${N}% longer.`,
            `216 次 all-reduce 中卡 5 有 208 次最晚到达，每迭代晚 38${N}ms；kernel 数同为 2,464，总耗时长 12%。`,
          ),
          source: 'rank5/communication.json',
        },
      ],
      locations: [],
      recommendations: [
        {
          remedy: 'check-card',
          title: say(
            "AI Core at 1.58 GHz, other ranks 1.80: check that card's cooling and power",
            'AI Core 频率 1.58 GHz，其余卡 1.80 GHz：检查该卡散热与供电',
          ).replaceAll(' GHz', `${N}GHz`),
          text: say('The card runs below the frequency of its peers.', '该卡频率低于其余卡。'),
          code: null,
          edits: [],
          preconditions: [],
          references: [],
        },
      ],
    }),
    finding({
      id: 'bb-02de',
      rule: 'ddp-buffer-broadcast',
      category: 'communication',
      title: say('DDP sends its buffers in every forward', 'DDP 每次前向都广播 buffer'),
      severity: 'medium',
      confidence: 'medium',
      saving: {
        basis: 'bound',
        perStepMs: { floor: 0, likely: null, ceiling: 19 },
        shareOfStep: 0.0234,
        method: 'Time of the broadcasts that no computing covers.',
      },
      evidence: [
        {
          text: say(
            `1 broadcast of 48 buffers per forward, 19${N}ms not covered by computing.`,
            `每次前向广播 48 个 buffer，其中 19${N}ms 未被计算掩盖。`,
          ),
          source: 'rank0/communication.json',
        },
      ],
      caveats: [say('No reference run, so only the upper bound is known.', '没有对照运行，只知上限。')],
      locations: [{ file: 'train.py', line: 61, symbol: 'main', provenBy: 'syntax' }],
      recommendations: [
        {
          remedy: 'ddp-no-broadcast',
          title: say('`broadcast_buffers=False` if no buffer must stay equal', '确认各卡 buffer 无需一致后设 `broadcast_buffers=False`'),
          text: say('Buffers are sent from rank 0 before every forward.', '每次前向前从卡 0 广播 buffer。'),
          code: 'model = DDP(model, device_ids=[local_rank], broadcast_buffers=False)',
          edits: [],
          preconditions: [say('No BatchNorm statistics need to be equal on all ranks.', '各卡的 BatchNorm 统计量无需一致。')],
          references: [],
        },
      ],
    }),
  ];
}

export const LINKS: RepositoryLinks = { htmlBase: 'https://github.com/acme/bert', report: 'https://github.com/acme/bert/runs/77' };

export const SHA = '3f2a91c0d4b5e6f708192a3b4c5d6e7f80912a3b';

/** A comment with a report, as the App would ask for it. */
export function reportComment(of: Report, fields: Partial<ReportComment> = {}): ReportComment {
  return {
    state: 'report',
    lang: of.lang,
    appSlug: 'npu-advisor',
    pr: 42,
    sha: SHA,
    links: LINKS,
    report: of,
    reportHash: '9b1c',
    suggestions: {},
    previous: [],
    baselineMissing: false,
    fromFork: false,
    pendingSha: null,
    ...fields,
  };
}

const SUGGESTIONS = {
  'dl-7f3a': 'https://github.com/acme/bert/pull/42#discussion_r1',
  'bb-02de': 'https://github.com/acme/bert/pull/42#discussion_r3',
};

/** Wireframe (a): three findings. */
export function caseA(lang: Lang): ReportComment {
  const l2 = lang === 'en' ? 'no L2 counters' : '没有 L2 Cache 数据';
  return reportComment(
    report({
      lang,
      verdict: {
        outcome: 'causes',
        text: lang === 'en' ? 'The cards wait for the data loader and for rank 5.' : 'NPU 在等待数据加载与卡 5。',
      },
      findings: threeCauses(lang),
      checked: checked(['dataloader-stall', 'slow-rank', 'ddp-buffer-broadcast'], {
        'l2-miss': l2,
        'gc-pause': l2,
        'memory-peak': l2,
        'memory-growth': l2,
        'memory-fragmentation': l2,
      }),
      totals: { claimedMsPerStep: { likely: 132, ceiling: 171 }, unexplainedIdleMs: 42.9 },
    }),
    { suggestions: SUGGESTIONS, baselineMissing: true },
  );
}

/** The comparison of wireframe (b); override what matters. */
export function comparison(lang: Lang, fields: Partial<Comparison> = {}): Comparison {
  const say = (en: string, zh: string): string => (lang === 'en' ? en : zh);
  const part = (name: string, what: string, baseMs: number, headMs: number): Comparison['contributors'][number] => ({
    part: name,
    what,
    baseMs,
    headMs,
    deltaMs: Math.round((headMs - baseMs) * 1000) / 1000,
    details: [],
  });
  return {
    baseline: {
      kind: 'npu',
      label: 'main-81c0d2e',
      runs: [{ label: 'main-81c0d2e', steps: 8, stepTimeMs: 741.9, noiseMs: 3.4 }],
      ranks: [0, 1, 2, 3, 4, 5, 6, 7],
      worldSize: 8,
      stepTimeMs: 741.9,
      samplesPerStep: 256,
      device: 'Ascend910B3',
      level: 'Level1',
      versions: { cann: '8.0.0', torchNpu: '2.1.0', torch: null },
    },
    verdict: 'regression',
    text: say(
      `Each step is 70.5${N}ms slower than in the baseline (+9.5${N}%; 95${N}% interval +61${N}ms to +80${N}ms).`,
      `每个迭代比基线慢 70.5${N}ms（+9.5%；95% 区间 +61${N}ms 至 +80${N}ms）。`,
    ),
    stepTimeMs: 812.4,
    deltaMs: 70.5,
    deltaShare: 0.095,
    interval: [61, 80],
    limitMs: 22.3,
    spreadMs: null,
    samples: { base: 8, head: 8 },
    method: say('difference of the median steps, slowest rank', '迭代中位数之差，取最慢的卡'),
    refusals: [],
    warnings: [say('CANN `8.3.RC1`, baseline `8.0.0`: the change may come from there', 'CANN `8.3.RC1`，基线 `8.0.0`：变化可能来自版本')],
    metrics: [
      {
        metric: 'samples-per-second',
        name: say('samples per second', '每秒样本数'),
        unit: '1/s',
        better: 'higher',
        verdict: 'regression',
        base: 345.1,
        head: 315.1,
        delta: -30,
        interval: null,
      },
    ],
    pace: { ranks: [2], standsOut: true },
    contributors: [
      part('idle-loader', say('idle: waiting for the data loader', '空闲：等待数据加载'), 29.8, 94),
      {
        ...part('communication', say('exposed communication', '未掩盖通信'), 131.4, 141.2),
        details: [
          {
            by: 'collective',
            what: say(`\`allReduce\` of 117.0${N}MB in group \`dp\``, `\`allReduce\`，117.0${N}MB，通信域 \`dp\``),
            baseMs: 20,
            headMs: 29.8,
            deltaMs: 9.8,
            calls: { base: 4, head: 6 },
          },
        ],
      },
      part('other', say('everything else', '其余'), 580.7, 577.2),
    ],
    findings: [
      {
        id: 'dl-7f3a',
        rule: 'dataloader-stall',
        title: say('Data loader starves all 8 ranks', '数据加载跟不上，8 张卡都在等数据'),
        change: 'new',
        baseMs: null,
        headMs: 94,
        deltaMs: 94,
        bound: false,
      },
    ],
    ...fields,
  };
}

/** Wireframe (b): slower than the baseline, beyond the gate's limit. */
export function caseB(lang: Lang): ReportComment {
  const a = caseA(lang);
  const because =
    lang === 'en'
      ? [`+70.5${N}ms (+9.5${N}%) per step against the baseline; the limit is 5.0${N}%`]
      : [`每迭代与基线相比 +70.5${N}ms（+9.5%）；上限为 5.0%`];
  const findings = threeCauses(lang).slice(0, 1);
  return {
    ...a,
    baselineMissing: false,
    report: { ...a.report, findings, comparison: comparison(lang), gate: { outcome: 'fail', because, limits: ['regression'] } },
  };
}

/** Wireframe (c): quiet, gate passed. */
export function caseC(lang: Lang): ReportComment {
  const say = (en: string, zh: string): string => (lang === 'en' ? en : zh);
  const memory = say('no memory records; `profile_memory=True` makes them', '没有内存记录；可用 `profile_memory=True` 采集');
  const base = report({ lang });
  return reportComment(
    report({
      lang,
      verdict: { outcome: 'quiet', text: say('Nothing to change.', '无需修改。') },
      job: { ...base.job, stepTimeMs: 741, stepNoiseMs: 7.4 },
      breakdown: [breakdownRow(0, 50, [506.2, 130.8, 104])],
      checked: checked([], {
        'l2-miss': say('no L2 counters; `l2_cache=True` makes them', '没有 L2 Cache 数据；可用 `l2_cache=True` 采集'),
        'gc-pause': say('no GC records; `gc_detect_threshold=1` makes them', '没有 GC 记录；可用 `gc_detect_threshold=1` 采集'),
        'memory-peak': memory,
        'memory-growth': memory,
        'memory-fragmentation': memory,
      }),
      gate: { outcome: 'pass', because: [say('no cause with a known saving is over the limit', '没有可量化的原因超过上限')] },
    }),
  );
}

/** Wireframe (f): one open cause, one acknowledged by a person until a day, one muted by the settings, gate passed. */
export function caseF(lang: Lang): ReportComment {
  const a = caseA(lang);
  const say = (en: string, zh: string): string => (lang === 'en' ? en : zh);
  const [first, second, third] = threeCauses(lang) as [Finding, Finding, Finding];
  const saving = { likely: 37, ceiling: 44 };
  const until = '2027-01-31';
  const findings: Finding[] = [
    first,
    {
      ...second,
      acknowledged: { by: 'alice', at: '2026-11-20', until, reason: say('card replacement is booked', '已安排换卡'), saving },
    },
    {
      ...third,
      acknowledged: {
        by: null,
        at: null,
        until: null,
        reason: say('BatchNorm buffers must stay equal', 'BatchNorm buffer 必须一致'),
        saving: null,
      },
    },
  ];
  return {
    ...a,
    baselineMissing: false,
    report: {
      ...a.report,
      findings,
      totals: { ...a.report.totals, claimedMsPerStep: { likely: 94, ceiling: 118 } },
      gate: { outcome: 'pass', because: [say('no cause with a known saving is over the limit', '没有可量化的原因超过上限')] },
    },
  };
}

/** Wireframe (d): six of eight ranks, one cause. */
export function caseD(lang: Lang): ReportComment {
  const say = (en: string, zh: string): string => (lang === 'en' ? en : zh);
  const base = report({ lang });
  const why = say('only Level0 was captured', '采集等级只有 Level0');
  const unable = RULES.slice(1, 23);
  return reportComment(
    report({
      lang,
      verdict: { outcome: 'incomplete', text: say('The profile is incomplete.', 'profile 不完整。') },
      job: { ...base.job, ranks: [0, 1, 2, 4, 5, 6], missingRanks: [3, 7], steps: [50], stepNoiseMs: null, level: 'Level0' },
      findings: [
        finding({
          title: say('Data loader starves the 6 ranks seen', '数据加载跟不上，可见的 6 张卡都在等数据'),
          confidence: 'medium',
          ranks: [0, 1, 2, 4, 5, 6],
          steps: [50],
          saving: {
            basis: 'bound',
            perStepMs: { floor: 0, likely: null, ceiling: 118 },
            shareOfStep: 0.145,
            method: 'Idle time inside `DataLoader.__next__`.',
          },
          recommendations: [
            {
              remedy: 'dataloader-workers',
              title: '`num_workers=8`',
              text: say('Load batches in worker processes.', '用多进程加载数据。'),
              code: null,
              edits: [],
              preconditions: [],
              references: [],
            },
          ],
        }),
      ],
      checked: checked(['dataloader-stall'], Object.fromEntries(unable.map((rule) => [rule, why]))),
      totals: { claimedMsPerStep: { likely: null, ceiling: 118 }, unexplainedIdleMs: null },
      missing: [
        {
          what: say('ranks 3 and 7: no files', '卡 3、卡 7：没有文件'),
          consequence: say('whether one of them is the late rank', '慢卡是否在其中'),
          remedy: say('upload the `*_ascend_pt` folder of every rank', '上传每张卡的 `*_ascend_pt` 目录'),
        },
        {
          what: say(`rank 2: trace ends at 61${N}% of the step`, '卡 2：trace 只到迭代的 61%'),
          consequence: say('its idle time; left out of all medians', '该卡的空闲时间；已从中位数中剔除'),
          remedy: say('export again, see the log of `analyse()`', '重新导出，查看 `analyse()` 日志'),
        },
        {
          what: say('`communication.json`: Level0 capture', '`communication.json`：采集等级为 Level0'),
          consequence: say('waiting or transfer in collectives', '集合通信中的等待与传输'),
          remedy: '`profiler_level=Level1`',
        },
      ],
      gate: { outcome: 'neutral', because: [say('a comparison needs all ranks of the base', '对比需要与基线相同的全部卡')] },
    }),
    { suggestions: { 'dl-7f3a': SUGGESTIONS['dl-7f3a'] } },
  );
}

/** Wireframe (e): the workflow ended without a matching artifact. */
export function caseE(lang: Lang): NoProfileComment {
  return {
    state: 'no-profile',
    lang,
    appSlug: 'npu-advisor',
    pr: 42,
    sha: SHA,
    links: LINKS,
    reason: { kind: 'no-match', uploaded: ['logs', 'wheel'] },
    workflow: { name: 'perf', url: 'https://github.com/acme/bert/actions/runs/9' },
    patterns: ['npu-profile*'],
    onMissing: 'neutral',
  };
}
