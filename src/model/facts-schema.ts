import { z } from 'zod';

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
const Frame = z.object({ file: Text, line: Int, func: Text });
const Param = z.union([z.string(), Num, z.boolean(), z.null(), z.array(z.union([z.string(), Num]))]);
const Message = z.object({ text: z.object({ en: Text, zh: Text }), params: z.record(z.string(), Param).optional() });
const Input = z.object({
  path: Text,
  kind: Text,
  bytes: z.number().nonnegative(),
  status: z.enum(['used', 'partial', 'ignored', 'refused']),
  note: Message.nullable(),
});

const Settings = z.looseObject({
  level: z.enum(['Level0', 'Level1', 'Level2', 'Level_none']).nullable(),
  cann: Text.nullable(),
  torch: Text.nullable(),
  torchNpu: Text.nullable(),
  soc: Text.nullable(),
  deviceMemory: Num.nullable().default(null),
  env: z.record(z.string(), Text),
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
    syncs: z.object({ start: F64, end: F64 }).refine((s) => s.start.length === s.end.length),
    optimizer: Spans,
    launchInterval: Num,
  })
  .refine((t) =>
    [t.kind, t.stream, t.duration, t.launch, t.type, t.shape, t.collective, t.step, t.frame].every((c) => c.length === t.start.length),
  )
  .refine((t) => inside(t.frame, t.frames.length) && inside(t.shape, t.shapes.length) && t.type.every((i) => i >= 0 && i < t.types.length));

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
    links: z.object({ ids: z.map(Text, z.array(Int)) }).nullable(),
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
        exposed: Num,
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
    phases: z.looseObject({
      forwards: z.array(Int),
      optimizerSteps: z.array(Int),
      ddp: z.boolean(),
      ddpFrame: Frame.nullable(),
      backwardFrame: Frame.nullable(),
      broadcastHost: Spans,
      forwardStarts: z.array(z.array(Num)),
    }),
    idle: z
      .object({
        steps: z.array(
          z.object({ step: Int, total: Num, loader: Num, compile: Num, sync: Num, launch: Num, preparing: Num, unexplained: Num }),
        ),
      })
      .nullable(),
    operators: z.array(z.object({ type: Text, core: Text, count: Int, ns: Num })),
    opStatistic: z.array(z.object({ type: Text, core: Text, count: Num, totalUs: Num })),
    apis: z.array(z.object({ level: Text, name: Text, totalUs: Num, count: Num })),
    hostOps: z.array(z.object({ name: Text, count: Num, hostTotalUs: Num, frame: Frame.nullable() })),
    memory: Memory,
    inputs: z.array(Input),
    notes: z.array(Message),
  })
  .refine((r) => {
    const nodes = r.tape?.start.length ?? 0;
    const known = (n: number): boolean => n < nodes;
    return (
      r.collectives.every((c) => c.node >= -1 && known(c.node)) &&
      r.fragments.every((f) => f.nodes.length > 0 && f.nodes.every(known)) &&
      (r.layout?.steps.every((s) => s.removable.every(known)) ?? true) &&
      (r.tape === null || (inside(r.tape.collective, r.collectives.length) && inside(r.tape.step, r.steps.length)))
    );
  }, 'an index points outside its table');
