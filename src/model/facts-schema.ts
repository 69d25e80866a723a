import { z } from 'zod';
import { PIPES, TRANSPORTS } from './capture.ts';
import { FUSION_PATTERNS, GAP_CLASSES, IDLE_CAUSES, type IdleCause, OPTIMIZER_KINDS, SYNC_KINDS, UNGROUPED } from './facts.ts';

/** Shape of a rank's facts in facts.json. Foreign input: every array index a rule follows is checked to lie inside its table. */
export const FACTS_SCHEMA = 'npu-advisor.facts/1';

const Text = z.string().max(20_000);
/** Beyond any time, size or count of a profile; sums of such numbers stay finite. */
const LIMIT = 1e21;
const plain = (v: number): boolean => !(Math.abs(v) > LIMIT);
/** NaN stands for missing, so plain z.number() (which refuses NaN) does not do. */
const Num = z.custom<number>((v) => typeof v === 'number' && plain(v));
const Int = z.number().int();
const F64 = z.instanceof(Float64Array).refine((column) => column.every(plain));
const I32 = z.instanceof(Int32Array);
const U8 = z.instanceof(Uint8Array);
const Spans = z.object({ start: F64, end: F64 }).refine((s) => s.start.length === s.end.length);
const Call = z.object({ file: Text, line: Int, func: Text, calls: z.array(Text).max(8).optional() });
const Frame = Call.extend({
  isInstalled: z.boolean().optional(),
  installed: z.array(Call).max(8).optional(),
  outer: z.array(Call).max(8).optional(),
});
const Param = z.union([z.string(), Num, z.boolean(), z.null(), z.array(z.union([z.string(), Num]))]);
/** A placeholder of an unknown kind would stop the report: messages of a digest may only use those that exist. */
const Template = Text.refine((text) => [...text.matchAll(/\{\w+:(\w+)\}/g)].every(([, kind]) => PLACEHOLDERS.has(kind!)));
const PLACEHOLDERS = new Set(['ms', 'pct', 'bytes', 'int', 'num', 'ranks', 'code', 'text']);
const Message = z.object({ text: z.object({ en: Template, zh: Template }), params: z.record(z.string(), Param).optional() });
const Input = z.object({
  path: Text,
  kind: Text,
  bytes: z.number().nonnegative(),
  status: z.enum(['used', 'partial', 'ignored', 'refused']),
  note: Message.nullable(),
});

const Flag = z.boolean().nullable().default(null);
const Settings = z.looseObject({
  framework: z.enum(['PyTorch', 'MindSpore']).nullable().default(null),
  level: z.enum(['Level0', 'Level1', 'Level2', 'Level_none']).nullable(),
  aicMetrics: Text.nullable().default(null),
  withStack: Flag,
  withModules: Flag,
  recordShapes: Flag,
  profileMemory: Flag,
  l2Cache: Flag,
  gcThreshold: Num.nullable().default(null),
  cpuActivity: Flag,
  npuActivity: Flag,
  schedule: z.object({ wait: Num, warmup: Num, active: Num, repeat: Num, skipFirst: Num }).nullable().default(null),
  cann: Text.nullable(),
  torch: Text.nullable(),
  torchNpu: Text.nullable(),
  soc: Text.nullable(),
  deviceMemory: Num.nullable().default(null),
  env: z.record(z.string(), Text),
  stopped: z.enum(['WARMUP', 'RECORD', 'RECORD_AND_SAVE']).nullable().default(null),
});

const Breakdown = z.object({
  stepMs: Num,
  stageMs: Num,
  computingMs: Num,
  communicationMs: Num,
  exposedMs: Num,
  overlappedMs: Num,
  freeMs: Num,
  bubbleMs: Num,
  preparingMs: Num,
  tailMs: Num,
  source: Text,
});

const Curve = z
  .object({ start: F64, allocatedMin: F64, allocatedMax: F64, reserved: F64, active: F64 })
  .refine(
    (c) => [c.allocatedMin, c.allocatedMax, c.reserved, c.active].every((v) => v.length === c.start.length) && c.start.length <= 4_096,
  );
const Block = z.object({ name: Text, bytes: Num, start: Num, end: Num, step: Int });
/** Facts of a digest made before memory was read hold none. */
const Memory = z
  .object({
    curve: Curve,
    steps: z
      .array(
        z.object({
          floor: Num,
          peak: Num,
          reservedFloor: Num,
          reservedPeak: Num,
          grows: Int,
          shrinks: Int,
          splintered: Int,
          allocatorNs: Num,
        }),
      )
      .max(10_000),
    components: z
      .array(
        z.object({
          component: Text,
          peakAllocated: Num,
          peakAllocatedAt: Num,
          peakReserved: Num,
          peakReservedAt: Num,
          peakActive: Num,
        }),
      )
      .max(200),
    growths: z.array(z.object({ at: Num, step: Int, needed: Num, unused: Num, taken: Num })).max(200),
    blocks: z.array(Block).max(1_000),
    peakBlock: Block.nullable(),
    held: z.array(z.object({ name: Text, bytes: z.array(Num), count: z.array(Num), frame: Frame.nullable() })).max(1_000),
    modules: z.array(z.object({ name: Text, peak: Num })).max(1_000),
  })
  .nullable()
  .default(null);

const Pipes = z.object(Object.fromEntries(PIPES.map((pipe) => [pipe, Num])));
const Nodes = z.array(Int.nonnegative());

const Kernels = z
  .object({
    groups: z
      .array(
        z.looseObject({
          type: Text,
          core: Text,
          inputShapes: Text,
          inputTypes: Text,
          inputFormats: Text,
          outputShapes: Text,
          outputTypes: Text,
          outputFormats: Text,
          count: Int,
          ns: Num,
          minNs: Num,
          maxNs: Num,
          stepNs: F64,
          pipes: Pipes,
          blocks: Num,
          bytesIn: Num,
          bytesOut: Num,
          l2Hit: Num,
          fast: z.object({ count: Int, ns: Num }),
          frame: Frame.nullable(),
          line: Int,
          longest: z.object({ start: Num, duration: Num, step: Int }),
        }),
      )
      .max(UNGROUPED),
    ofNode: U8,
    other: z.object({ count: Int, ns: Num }),
  })
  .refine((k) => k.ofNode.every((group) => group === UNGROUPED || group < k.groups.length));

const Casts = z.object({
  steps: z.array(
    z.object({
      step: Int,
      count: Int,
      ns: Num,
      removable: Nodes,
      certain: Nodes,
      removableNs: Num,
      repeated: Nodes,
      repeatedNs: Num,
    }),
  ),
  sites: z.array(
    z.object({
      kind: z.enum(['pair', 'weight']),
      from: Text,
      to: Text,
      shape: Text,
      count: Int,
      ns: Num,
      frame: Frame.nullable(),
      line: Int,
    }),
  ),
});

const Chains = z.object({
  steps: z
    .array(z.object({ step: Int, ns: Num, savedNs: Num, nodes: Nodes, left: z.array(Num) }))
    .refine((steps) => steps.every((s) => s.nodes.length === s.left.length)),
  chains: z.array(
    z.looseObject({
      types: z.array(Text),
      shape: Text,
      count: Int,
      ns: Num,
      savedNs: Num,
      bytes: Num,
      frame: Frame.nullable(),
      line: Int,
      start: Num,
      duration: Num,
    }),
  ),
});

const Fusion = z.object({
  sequences: z
    .array(
      z
        .object({
          pattern: z.enum(FUSION_PATTERNS).nullable(),
          phase: z.enum(['forward', 'backward']),
          types: z.array(Text),
          shape: Text,
          dataType: Text,
          count: Int.positive(),
          ns: Num,
          idleNs: Num,
          size: Int.positive(),
          nodes: I32,
          steps: I32,
          repeats: Int.positive(),
          bytes: Num,
          needed: Num,
          staysNs: Num,
          leastNs: Num,
          vectorNs: Num,
          frame: Frame.nullable(),
          line: Int,
          start: Num,
          duration: Num,
        })
        .refine((s) => s.steps.length === s.count && s.nodes.length === s.count * s.size),
    )
    .max(200),
});

const Optimizers = z.object({
  calls: z
    .array(
      z.object({
        step: Int,
        name: Text,
        kind: z.enum(OPTIMIZER_KINDS),
        start: Num,
        end: Num,
        nodes: I32,
        ns: Num,
        idle: Num,
        period: Int.nonnegative(),
        repeats: Int.nonnegative(),
        types: z.array(Text),
        passes: Num,
        tensors: Num,
        frame: Frame.nullable(),
      }),
    )
    .max(1_000),
  fills: z.array(z.object({ step: Int, nodes: I32, ns: Num, start: Num, end: Num, frame: Frame.nullable() })).max(1_000),
});

const Frequency = z.object({
  busy: z.array(z.object({ mhz: Num, ns: Num })).min(1),
  meanMhz: Num,
  sustainedMhz: Num,
  lowest: z.object({ mhz: Num, start: Num, duration: Num }),
});

const Hardware = z.object({ cubeCores: Int.nullable(), vectorCores: Int.nullable(), ratedMhz: Num.nullable() });

const inside = (index: Int32Array, length: number): boolean => index.every((i) => i >= -1 && i < length);

const Tape = z
  .object({
    kind: U8,
    stream: I32,
    start: F64,
    duration: F64,
    launch: F64,
    type: I32,
    types: z.array(Text),
    shape: I32,
    shapes: z.array(Text),
    collective: I32,
    step: I32,
    frame: I32,
    frames: z.array(Frame),
    busy: Spans,
    syncs: z.object({ start: F64, end: F64, site: I32 }).refine((s) => s.start.length === s.end.length && s.start.length === s.site.length),
    optimizer: Spans,
    launchInterval: Num,
  })
  .refine((t) =>
    [t.kind, t.stream, t.duration, t.launch, t.type, t.shape, t.collective, t.step, t.frame].every((c) => c.length === t.start.length),
  )
  .refine((t) => inside(t.frame, t.frames.length) && inside(t.shape, t.shapes.length) && t.type.every((i) => i >= 0 && i < t.types.length));

const Packet = z.object({ transport: z.enum(TRANSPORTS), bytes: Num, count: Num, ms: Num });

const Links = z
  .object({
    global: z.boolean(),
    group: z.array(Text),
    op: z.array(Text),
    source: I32,
    target: I32,
    transport: U8,
    bytes: F64,
    ms: F64,
    sampleLink: I32,
    sampleCall: z.array(Text),
    sampleBytes: F64,
    sampleMs: F64,
  })
  .refine((l) => [l.op, l.source, l.target, l.transport, l.bytes, l.ms].every((c) => c.length === l.group.length))
  .refine((l) => [l.sampleCall, l.sampleBytes, l.sampleMs].every((c) => c.length === l.sampleLink.length))
  .refine((l) => l.transport.every((t) => t < TRANSPORTS.length) && l.sampleLink.every((i) => i >= 0 && i < l.group.length));

const Cost = z.object({ step: Int, count: Num, host: Num, idle: Num });
const HostSpan = z.object({ step: Int, start: Num, end: Num, idle: Num });
const Host = z.object({
  syncs: z.array(
    z.object({
      kind: z.enum(SYNC_KINDS),
      call: Text,
      operator: Text,
      frame: Frame.nullable(),
      costs: z.array(Cost),
      worst: z.object({ step: Int, start: Num, end: Num }),
      besideCollective: Num,
      beforeGraph: Num,
    }),
  ),
  copies: z.object({
    costs: z.array(Cost),
    calls: z.array(
      HostSpan.extend({
        syncs: z.array(Int.nonnegative()),
        node: Int.min(-1),
        bytes: Num,
        pageable: z.literal(true).nullable(),
        frame: Frame.nullable(),
      }),
    ),
  }),
  gc: z.object({ costs: z.array(Cost), calls: z.array(HostSpan) }).nullable(),
  allocator: z
    .object({
      costs: z.array(Cost),
      calls: z.array(HostSpan),
      names: z.array(z.object({ name: Text, count: Num, ns: Num })),
      releases: z.array(Cost),
      releaseFrame: Frame.nullable(),
    })
    .nullable(),
  preparation: z.array(HostSpan.extend({ frame: Frame.nullable(), operators: z.array(Text) })),
  quiet: z.array(HostSpan.extend({ before: Text, after: Text, frame: Frame.nullable() })),
});

export const RankFactsSchema = z
  .looseObject({
    folder: Text,
    rank: Int.nonnegative().nullable(),
    originUs: z.number(),
    files: z.object({ trace: Text, kernels: Text, steps: Text, collectives: Text }),
    settings: Settings,
    groups: z.array(
      z.object({ hash: Text, communicator: Text, role: Text.nullable(), groupRank: Int.nullable(), ranks: z.array(Int.nonnegative()) }),
    ),
    worldSize: Int.positive().nullable(),
    parallel: z.record(z.string(), Int),
    links: z.object({ ids: z.map(Text, z.array(Int)), links: Links, packets: z.array(Packet) }).nullable(),
    capabilities: z.set(Text),
    steps: z.array(z.object({ id: Int.nullable(), start: Num, end: Num, breakdown: Breakdown })),
    collectives: z.array(
      z.looseObject({
        step: Int.nullable(),
        key: Text,
        name: Text,
        op: Text,
        group: Text,
        p2p: z.boolean(),
        start: Num,
        end: Num,
        transitMs: Num,
        waitMs: Num,
        bytes: Num,
        sdmaMs: Num,
        rdmaBytes: Num,
        rdmaMs: Num,
        payload: Num,
        exposed: Num,
        blocked: Num,
        launch: Num,
        node: Int,
      }),
    ),
    tape: Tape.nullable(),
    loader: z
      .object({
        iterator: z.enum(['single', 'multi', 'unknown']),
        frame: Frame.nullable(),
        fetches: z.array(z.object({ step: Int, start: Num, end: Num, stall: Num })).min(1),
      })
      .nullable(),
    compile: z
      .object({ frame: Frame.nullable(), calls: z.array(z.object({ step: Int, start: Num, end: Num, idle: Num })).min(1) })
      .nullable(),
    fragments: z.array(
      z.object({
        step: Int,
        nodes: z.array(Int.nonnegative()),
        starved: Num,
        busy: Num,
        start: Num,
        end: Num,
        period: Int,
        repeats: Int,
        pattern: z.array(Text),
        where: z.enum(['optimizer', 'forward', 'backward', 'other']),
        frame: Frame.nullable(),
      }),
    ),
    layout: z
      .looseObject({
        steps: z.array(
          z.object({ step: Int, count: Int, ns: Num, computeNs: Num, removable: z.array(Int.nonnegative()), removableNs: Num }),
        ),
        byType: z.array(z.object({ type: Text, count: Int, ns: Num })),
        sites: z.array(z.object({ description: Text, count: Int, ns: Num, frame: Frame.nullable(), line: Int })),
        typesFromNames: z.boolean(),
      })
      .nullable(),
    kernels: Kernels.nullable(),
    casts: Casts.nullable(),
    chains: Chains.nullable(),
    fusion: Fusion.nullable(),
    optimizers: Optimizers.nullable(),
    frequency: Frequency.nullable(),
    hardware: Hardware.nullable(),
    phases: z.looseObject({
      forwards: z.array(Int),
      optimizerSteps: z.array(Int),
      ddp: z.boolean(),
      ddpFrame: Frame.nullable(),
      backwardFrame: Frame.nullable(),
      broadcastHost: Spans,
      forwardStarts: z.array(z.array(Num)),
      backwards: z.array(z.array(z.tuple([Num, Num]))),
    }),
    host: Host.nullable(),
    waits: z
      .array(
        z.object({
          kind: z.enum(SYNC_KINDS),
          call: Text,
          operator: Text,
          frame: Frame.nullable(),
          count: Int,
          ns: Num,
          idle: Num,
          // Not in digests of earlier versions.
          beside: Num.default(0),
          beforeGraph: Int,
          worst: z.object({ start: Num, end: Num }),
        }),
      )
      .max(64),
    segments: z
      .array(
        z.object({
          unit: z.enum(['forward', 'phase']),
          kind: Text.nullable(),
          basis: z.enum(['annotation', 'graph-replay', 'layer-pattern', 'folder']),
          start: Num,
          end: Num,
          busy: Num,
        }),
      )
      .max(10_000),
    idle: z
      .object({
        steps: z.array(
          z.object({
            step: Int,
            total: Num,
            ...(Object.fromEntries(IDLE_CAUSES.map((cause) => [cause, Num])) as Record<IdleCause, typeof Num>),
            pieces: z.array(Num).length(IDLE_CAUSES.length),
            leadLaunch: Num,
            leadUnexplained: Num,
          }),
        ),
        lengths: z.array(z.array(Num).length(GAP_CLASSES.length + 1)).length(IDLE_CAUSES.length),
      })
      .nullable(),
    modules: z.array(z.object({ name: Text, calls: Int, kernels: Int, ns: Num })),
    operators: z.array(z.object({ type: Text, core: Text, count: Int, ns: Num })),
    opStatistic: z.array(z.object({ type: Text, core: Text, count: Num, totalUs: Num })),
    apis: z.array(z.object({ level: Text, name: Text, totalUs: Num, count: Num })),
    hostOps: z.array(z.object({ name: Text, count: Num, hostTotalUs: Num, frame: Frame.nullable() })),
    memory: Memory,
    inputs: z.array(Input),
    notes: z.array(Message),
    damage: z.array(Message),
  })
  .refine((r) => {
    const nodes = r.tape?.start.length ?? 0;
    const known = (n: number): boolean => n < nodes;
    return (
      r.collectives.every((c) => c.node >= -1 && known(c.node)) &&
      r.fragments.every((f) => f.nodes.length > 0 && f.nodes.every(known)) &&
      (r.layout?.steps.every((s) => s.removable.every(known)) ?? true) &&
      (r.casts?.steps.every((s) => [s.removable, s.certain, s.repeated].every((list) => list.every(known))) ?? true) &&
      (r.chains?.steps.every((s) => s.nodes.every(known)) ?? true) &&
      (r.fusion?.sequences.every((s) => s.nodes.every((n) => n >= 0 && known(n))) ?? true) &&
      [...(r.optimizers?.calls ?? []), ...(r.optimizers?.fills ?? [])].every((c) => c.nodes.every((n) => n >= 0 && known(n))) &&
      (r.kernels === null || r.kernels.ofNode.length === nodes) &&
      (r.host?.copies.calls.every((c) => known(c.node) && c.syncs.every((s) => s < (r.tape?.syncs.start.length ?? 0))) ?? true) &&
      (r.tape === null ||
        (inside(r.tape.collective, r.collectives.length) &&
          inside(r.tape.step, r.steps.length) &&
          inside(r.tape.syncs.site, r.host?.syncs.length ?? 0)))
    );
  }, 'an index points outside its table');

export const UploadFactsSchema = z.object({
  inputs: z.array(Input).max(400_000),
  notes: z.array(Message).max(10_000),
  otherRanks: z.array(Int.nonnegative()).max(200_000),
});
