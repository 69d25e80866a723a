/* Waits of the host by what they are, from small traces: one event more or less decides. */
import { describe, expect, test } from 'vitest';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { MAX_FUNCTIONS } from '../../src/importers/cann-calls.ts';
import type { RankFacts, SyncKind } from '../../src/model/facts.ts';
import { ORIGIN, readOnly, ts } from '../support/profile-text.ts';
import { findingOf, reportOf } from '../support/simulated.ts';

const STACK = { 'Call stack': 'train.py(47): check;\r\ntrain.py(9): main' };
type Event = Record<string, unknown>;
const process = (pid: number, name: string): Event => ({ ph: 'M', name: 'process_name', pid, tid: 0, args: { name } });
const op = (name: string, at: number, dur: number, args: object = {}, tid = 11): Event => ({
  ph: 'X',
  name,
  pid: 1,
  tid,
  ts: ts(at),
  dur,
  cat: 'cpu_op',
  args,
});
const call = (name: string, at: number, dur: number, tid = 11): Event => ({
  ph: 'X',
  name: `AscendCL@${name}`,
  pid: 2,
  tid,
  ts: ts(at),
  dur,
  args: { Mode: 'ACL_RTS' },
});
const kernel = (n: number, launch: number, at: number, dur: number): Event[] => [
  { ph: 's', name: 'HostToDevice', cat: 'HostToDevice', id: String(n), pid: 2, tid: 11, ts: ts(launch) },
  { ph: 'f', name: 'HostToDevice', cat: 'HostToDevice', id: String(n), pid: 3, tid: 7, ts: ts(at) },
  { ph: 'X', name: 'aclnnMul_Mul', pid: 3, tid: 7, ts: ts(at), dur, args: { 'Task Type': 'AI_CORE' } },
];

/** A step of 10 ms with a kernel at 1 ms and one at 6 ms; `events` say what the host did between. */
async function rank(...events: Event[]): Promise<RankFacts> {
  const all = [
    process(1, 'Python'),
    process(2, 'CANN'),
    process(3, 'Ascend Hardware'),
    op('ProfilerStep#5', 0, 10_000),
    op('aten::mul', 900, 90),
    op('aten::mul', 5_900, 90),
    ...kernel(1, 950, 1_000, 1_000),
    ...kernel(2, 5_950, 6_000, 3_990),
    ...events,
  ];
  return rankFacts(await readOnly({ 'rank0/trace_view.json': JSON.stringify(all) }));
}

const ms = (facts: RankFacts, cause: 'sync' | 'copy' | 'gc' | 'allocator' | 'launch' | 'unexplained'): number =>
  facts.idle!.steps[0]![cause] / 1e6;

describe('kinds of waits', () => {
  test.each<[string, SyncKind, Event[]]>([
    [
      'reading a value',
      'item',
      [
        op('aten::item', 2_000, 3_850, STACK),
        op('aten::_local_scalar_dense', 2_010, 3_830),
        call('aclrtSynchronizeStreamWithTimeout', 2_050, 3_780),
      ],
    ],
    ['a size', 'shape', [op('aten::nonzero', 2_000, 3_850, STACK), call('aclrtSynchronizeStreamWithTimeout', 2_050, 3_780)]],
    [
      'a copy to the host',
      'to-host',
      [
        op('aten::copy_', 2_000, 3_850, STACK),
        op('acl_memcpy_device_to_host', 2_010, 20),
        call('aclrtSynchronizeStreamWithTimeout', 2_050, 3_780),
      ],
    ],
    [
      'a copy to the card',
      'to-device',
      [
        op('aten::copy_', 2_000, 3_850, STACK),
        op('acl_memcpy_host_to_device', 2_010, 20),
        call('aclrtSynchronizeStreamWithTimeout', 2_050, 3_780),
      ],
    ],
    ['a stream', 'stream', [call('aclrtSynchronizeStream', 2_050, 3_780)]],
    ['the card', 'device', [call('aclrtSynchronizeDevice', 2_050, 3_780)]],
    ['an event', 'event', [call('aclrtSynchronizeEventWithTimeout', 2_050, 3_780)]],
    ['giving the cache back', 'release', [call('aclrtSynchronizeDevice', 2_050, 3_700), call('aclrtFree', 5_760, 60)]],
  ])('%s is %s', async (_, kind, events) => {
    const facts = await rank(...events);
    expect(facts.host!.syncs.map((s) => s.kind)).toEqual([kind]);
    const [site] = facts.host!.syncs;
    expect(site!.costs).toMatchObject([{ step: 0, count: 1 }]);
    if (events[0]!.args !== undefined && 'Call stack' in (events[0]!.args as object))
      expect(site!.frame).toMatchObject({ file: 'train.py', line: 47 });
  });

  test('a wait costs the idle time in it and until the next launch, not its length', async () => {
    // The card works from 1 to 2 ms: of a wait from 1.2 to 5.85 ms it is idle in 3.85 ms, and until the launch at 5.95 ms.
    const facts = await rank(op('aten::item', 1_100, 4_760, STACK), call('aclrtSynchronizeStream', 1_200, 4_650));
    const [cost] = facts.host!.syncs[0]!.costs;
    expect(cost!.host / 1e6).toBeCloseTo(4.65, 3);
    expect(cost!.idle / 1e6).toBeCloseTo(3.85 + 0.14, 1);
    expect(ms(facts, 'sync')).toBeCloseTo(cost!.idle / 1e6, 6);
  });

  test('the same wait beside queued work costs nothing', async () => {
    const facts = await rank(
      ...kernel(3, 1_010, 2_000, 4_000),
      op('aten::item', 1_100, 4_760, STACK),
      call('aclrtSynchronizeStream', 1_200, 4_650),
    );
    expect(facts.host!.syncs[0]!.costs[0]!.idle).toBe(0);
    expect(ms(facts, 'sync')).toBe(0);
  });

  test('a wait before a graph runs again guards its inputs, and the rule says so', async () => {
    const graph = [call('aclrtSynchronizeStream', 2_050, 3_780), call('aclmdlRIExecuteAsync', 5_850, 90)];
    const facts = await rank(...graph);
    expect(facts.host!.syncs).toMatchObject([{ kind: 'stream', beforeGraph: 1 }]);
    const finding = findingOf(reportOf([facts]), 'stream-sync')!;
    expect(finding.caveats.join()).toMatch(/let a stream event order the two, do not just delete it/);
    const plain = await rank(graph[0]!);
    expect(plain.host!.syncs[0]!.beforeGraph).toBe(0);
  });

  test('without calls (Level0) reading from the card is known by its length, reading from the host is none', async () => {
    const fromCard = await rank(op('aten::_local_scalar_dense', 2_000, 3_850, STACK));
    expect(fromCard.host!.syncs.map((s) => s.kind)).toEqual(['item']);
    const fromHost = await rank(op('aten::_local_scalar_dense', 2_000, 70, STACK));
    expect(fromHost.host!.syncs).toEqual([]);
  });
});

describe('other causes', () => {
  test('a collection, the allocator and silence each own their part', async () => {
    const gc = { ph: 'X', name: 'GC', pid: 9, tid: 0, ts: ts(2_500), dur: 1_000, args: {} };
    const facts = await rank(process(9, 'Python GC'), gc, op('aten::empty', 4_000, 510), call('aclrtMallocPhysical', 4_000, 500));
    expect(ms(facts, 'gc')).toBeCloseTo(1, 6);
    expect(facts.host!.gc!.calls).toMatchObject([{ step: 0 }]);
    expect(ms(facts, 'allocator')).toBeCloseTo(0.5, 6);
    // From 4.51 to 5.9 ms no operator and no call of any thread was recorded.
    expect(ms(facts, 'unexplained')).toBeGreaterThan(1.3);
    const total = facts.idle!.steps[0]!.total / 1e6;
    expect(total).toBeCloseTo(1 + 4 + 0.01, 2);
  });

  test('a range around code is no work: a pause inside it stays silent', async () => {
    const facts = await rank(op('DistributedDataParallel.forward', 800, 8_000));
    expect(ms(facts, 'unexplained')).toBeGreaterThan(3.5);
    const working = await rank(op('aten::stack', 2_000, 3_850));
    expect(ms(working, 'unexplained')).toBeLessThan(1.1);
  });
});

describe('what the importer keeps', () => {
  test('long Python functions outside torch, the size and direction of copies, and not more than fits', async () => {
    const py = (name: string, at: number, dur: number): Event => ({
      ph: 'X',
      name,
      pid: 1,
      tid: 11,
      ts: ts(at),
      dur,
      cat: 'python_function',
      args: {},
    });
    const copy = {
      ph: 'X',
      name: 'MEMCPY_ASYNC',
      pid: 3,
      tid: 8,
      ts: ts(3_000),
      dur: 20,
      args: { 'Task Type': 'MEMCPY_ASYNC', 'data size(Byte)': 4096, 'memcpy direction': 'host to device' },
    };
    const events = [
      process(1, 'Python'),
      process(3, 'Ascend Hardware'),
      op('ProfilerStep#5', 0, 10_000),
      py('train.py(70): prepare', 100, 2_000),
      py('train.py(80): quick', 2_200, 900),
      py('train.py(90): endless', 2_300, 1e18),
      copy,
    ];
    const { trace } = await readOnly({ 'rank0/trace_view.json': JSON.stringify(events) });
    expect([...trace!.functions.duration]).toEqual([2_000_000]);
    expect(trace!.frames[trace!.functions.frame[0]!]).toMatchObject({ file: 'train.py', line: 70 });
    expect([...trace!.copies.bytes]).toEqual([4096]);
    expect(trace!.copies.start[0]).toBe(3_000_000);
    expect(ORIGIN).toBeGreaterThan(0);

    const many = Array.from({ length: MAX_FUNCTIONS + 50 }, (_, i) => py(`train.py(${i % 100}): f`, 10 + i, 1_500));
    const bounded = await readOnly({ 'rank0/trace_view.json': JSON.stringify([...events, ...many]) });
    expect(bounded.trace!.functions.start.length).toBe(MAX_FUNCTIONS);
  });
});
