import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commHash } from '../../lab/simulator/groups.ts';
import { type Fault, type JobSpec, simulate, trueSavingMs, withoutFault, writeProfiles } from '../../lab/simulator/index.ts';

/** A CSV reader of its own: quoted cells may hold commas, doubled quotes and newlines. */
function parseCsv(text: string): Record<string, string>[] {
  const rows: string[][] = [[]];
  let cell = '';
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') cell += text[i++];
      else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === ',' || c === '\n') {
      rows.at(-1)!.push(cell.trim());
      cell = '';
      if (c === '\n') rows.push([]);
    } else cell += c;
  }
  const [header = [], ...body] = rows.filter((row) => row.length > 0);
  return body.map((row) => {
    expect(row).toHaveLength(header.length);
    return Object.fromEntries(header.map((name, i) => [name, row[i]!]));
  });
}

interface TraceEvent {
  ph: string;
  name: string;
  cat?: string;
  pid: number;
  tid: number;
  ts: string;
  dur: number;
  id?: number | string;
  args?: Record<string, unknown>;
}

interface Profile {
  folder: string;
  rank: number;
  files: string[];
  text: (name: string) => Promise<string>;
  csv: (name: string) => Promise<Record<string, string>[]>;
  trace: () => Promise<TraceEvent[]>;
}

let root = '';
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'simulator-'));
});
afterAll(async () => {
  await rm(root, { recursive: true, force: true });
});

let runs = 0;
async function write(spec: JobSpec): Promise<Profile[]> {
  const folders = await writeProfiles(simulate(spec), join(root, String(runs++)));
  return Promise.all(
    folders.map(async (folder) => {
      const info = (await readdir(folder)).find((name) => name.startsWith('profiler_info_'))!;
      const output = join(folder, 'ASCEND_PROFILER_OUTPUT');
      const text = (name: string) => readFile(join(output, name), 'utf8');
      return {
        folder,
        rank: Number(/\d+/.exec(info)![0]),
        files: (await readdir(output)).sort(),
        text,
        csv: async (name: string) => parseCsv(await text(name)),
        trace: async () => JSON.parse(await text('trace_view.json')) as TraceEvent[],
      };
    }),
  );
}

/** Nanoseconds after the first second of the trace's day, exact. */
const ns = (stamp: string): number => Number(BigInt(stamp.replace('.', '')) - 1_763_625_600_000_000_000n);

function lane(trace: TraceEvent[], processName: string, threadName?: string): TraceEvent[] {
  const process = trace.find((event) => event.name === 'process_name' && event.args?.name === processName)!;
  const tids = new Set(
    trace
      .filter((event) => event.name === 'thread_name' && event.pid === process.pid && event.args?.name === threadName)
      .map((event) => event.tid),
  );
  return trace.filter((event) => event.ph === 'X' && event.pid === process.pid && (threadName === undefined || tids.has(event.tid)));
}

function union(spans: [number, number][]): [number, number][] {
  const merged: [number, number][] = [];
  for (const [start, end] of spans.sort((a, b) => a[0] - b[0])) {
    const open = merged.at(-1);
    if (open && start <= open[1]) open[1] = Math.max(open[1], end);
    else merged.push([start, end]);
  }
  return merged;
}

const span = (event: TraceEvent): [number, number] => [ns(event.ts), ns(event.ts) + Math.round(event.dur * 1000)];

const DDP_FAULTS: Fault[] = [
  { kind: 'slow-loader' },
  { kind: 'slow-loader', single: true },
  { kind: 'small-ops' },
  { kind: 'small-ops', where: 'forward' },
  { kind: 'slow-rank', rank: 1 },
  { kind: 'slow-host', rank: 1 },
  { kind: 'layout' },
  { kind: 'recompile' },
  { kind: 'buffer-broadcast' },
  { kind: 'sync-per-microstep' },
  { kind: 'rotating-jitter' },
  { kind: 'slow-link', ranks: [0, 1] },
  { kind: 'small-messages' },
  { kind: 'small-messages', where: 'gradients', count: 16 },
  { kind: 'no-overlap' },
  { kind: 'expert-imbalance' },
  { kind: 'contention' },
];
const PIPELINE_FAULTS: Fault[] = [
  { kind: 'stage-imbalance' },
  { kind: 'few-micro-batches' },
  { kind: 'slow-loader' },
  { kind: 'small-ops' },
  { kind: 'slow-rank', rank: 1 },
  { kind: 'recompile' },
];

function shareOfStep(spec: JobSpec, fault: Fault): number {
  const full = { ...spec, uploadedRanks: [] };
  const slow = simulate(full).medianStepMs;
  return (slow - simulate(withoutFault(full, fault)).medianStepMs) / slow;
}

describe('model', () => {
  test('is deterministic and depends on the seed', () => {
    const spec: JobSpec = { ranks: 2, faults: [{ kind: 'rotating-jitter' }] };
    expect(simulate(spec).stepTimesMs).toEqual(simulate(spec).stepTimesMs);
    expect(simulate({ ...spec, seed: 2 }).stepTimesMs).not.toEqual(simulate(spec).stepTimesMs);
  });

  test.each([2, 8])('every fault of a data-parallel job of %i ranks costs between 3 and 30 percent of the step', (ranks) => {
    for (const fault of DDP_FAULTS) {
      const spec: JobSpec = { ranks, faults: [fault] };
      const share = shareOfStep(spec, fault);
      expect(share, JSON.stringify(fault)).toBeGreaterThan(0.03);
      expect(share, JSON.stringify(fault)).toBeLessThan(0.3);
    }
  });

  test.each([2, 8])('every fault of a pipeline job of %i ranks costs at least 3 percent of the step', (ranks) => {
    for (const fault of PIPELINE_FAULTS) {
      const spec: JobSpec = { ranks, pp: 2, faults: [fault] };
      const share = shareOfStep(spec, fault);
      expect(share, JSON.stringify(fault)).toBeGreaterThan(0.03);
    }
  });

  test.each([2, 8])('a hidden loader costs %i ranks nothing although the fetch is long', (ranks) => {
    const fault: Fault = { kind: 'hidden-loader' };
    const spec: JobSpec = { ranks, faults: [fault] };
    const job = simulate(spec);
    const fetches = job.perRank[0]!.record.ops.filter((op) => op.name.startsWith('enumerate(DataLoader)'));
    for (const op of fetches) expect((op.end - op.start) / 1e6).toBeGreaterThan(0.5 * job.medianStepMs);
    expect(trueSavingMs(spec, fault)).toBeLessThan(0.005 * job.medianStepMs);
  });

  test('removing a fault leaves the rest of the job as it was', () => {
    const spec: JobSpec = { ranks: 2, faults: [{ kind: 'small-ops' }, { kind: 'slow-rank', rank: 1 }] };
    const both = simulate(spec).medianStepMs;
    const savings = spec.faults!.map((fault) => trueSavingMs(spec, fault));
    for (const saving of savings) expect(saving).toBeGreaterThan(0.06 * both);
    const healthy = simulate(spec.faults!.reduce(withoutFault, spec)).medianStepMs;
    expect(both - healthy).toBeGreaterThan(Math.max(...savings));
    expect(healthy).toBeCloseTo(simulate({ ranks: 2 }).medianStepMs, 6);
  });

  test('the arranged-right job of an accumulation fault keeps its micro-steps', () => {
    const fault: Fault = { kind: 'sync-per-microstep', microSteps: 3 };
    const spec: JobSpec = { ranks: 2, steps: 1, faults: [fault] };
    const count = (job: JobSpec, name: string) => simulate(job).perRank[0]!.record.ops.filter((op) => op.name === name).length;
    expect(count(spec, 'DistributedDataParallel.forward')).toBe(3);
    expect(count(withoutFault(spec, fault), 'DistributedDataParallel.forward')).toBe(3);
    expect(count(spec, 'c10d::allreduce_')).toBe(3 * count(withoutFault(spec, fault), 'c10d::allreduce_'));
  });

  test('hashes communicator names as the profiler does', () => {
    expect(commHash('group_name_19')).toBe('3985310405473756128');
    expect(commHash('10.174.216.241%enp189s0f1_55000_0_1738895506630464')).toBe('6960437680420871035');
  });

  test('refuses jobs that cannot exist', () => {
    expect(() => simulate({ ranks: 3, pp: 2 })).toThrow('cannot be split');
    expect(() => simulate({ ranks: 2, faults: [{ kind: 'stage-imbalance' }] })).toThrow('needs pp: 2');
    expect(() => simulate({ ranks: 2, faults: [{ kind: 'few-micro-batches' }] })).toThrow('needs pp: 2');
    expect(() => simulate({ ranks: 4, pp: 2, faults: [{ kind: 'contention' }] })).toThrow('DDP job');
    expect(() => simulate({ ranks: 16, faults: [{ kind: 'slow-link', ranks: [1, 10] }] })).toThrow('no link between ranks 1 and 10');
    expect(() => trueSavingMs({ ranks: 2 }, { kind: 'layout' })).toThrow('no fault');
  });
});

describe('healthy job', () => {
  let profiles: Profile[] = [];
  beforeAll(async () => {
    profiles = await write({ ranks: 8, uploadedRanks: [0, 5] });
  });

  test('writes the files of a level 1 profile', async () => {
    expect(profiles.map(({ rank }) => rank)).toEqual([0, 5]);
    for (const profile of profiles) {
      expect(basename(profile.folder)).toMatch(/^[\w-]+_\d+_\d{17}_ascend_pt$/);
      expect(profile.files).toEqual([
        'api_statistic.csv',
        'communication.json',
        'communication_matrix.json',
        'kernel_details.csv',
        'op_statistic.csv',
        'operator_details.csv',
        'step_trace_time.csv',
        'trace_view.json',
      ]);
      const info = JSON.parse(await readFile(join(profile.folder, `profiler_info_${profile.rank}.json`), 'utf8'));
      expect(info.rank_id).toBe(profile.rank);
      const metadata = JSON.parse(await readFile(join(profile.folder, 'profiler_metadata.json'), 'utf8'));
      expect(Object.values(metadata.parallel_group_info)).toEqual([
        { group_name: 'default_group', group_rank: profile.rank, global_ranks: [0, 1, 2, 3, 4, 5, 6, 7] },
      ]);
    }
  });

  test('keeps the device busy, hides communication and has no stall', async () => {
    for (const profile of profiles) {
      const trace = await profile.trace();
      const steps = trace.filter((event) => event.name.startsWith('ProfilerStep#'));
      expect(steps.map((event) => event.name)).toEqual(['ProfilerStep#10', 'ProfilerStep#11', 'ProfilerStep#12', 'ProfilerStep#13']);
      const wall = steps.reduce((sum, event) => sum + event.dur, 0);
      const rows = await profile.csv('step_trace_time.csv');
      const sum = (column: string) => rows.reduce((total, row) => total + Number(row[column]), 0);
      expect(wall / 4000).toBeGreaterThan(60);
      expect(wall / 4000).toBeLessThan(300);
      expect((sum('Computing') + sum('Communication(Not Overlapped)')) / wall).toBeGreaterThan(0.95);
      expect(sum('Communication(Not Overlapped)') / wall).toBeLessThan(0.03);
      const gaps = lane(trace, 'Overlap Analysis', 'Free').map((event) => event.dur);
      expect(Math.max(...gaps)).toBeLessThan((0.015 * wall) / 4);
      for (const fetch of trace.filter((event) => event.name.startsWith('enumerate(DataLoader)#'))) expect(fetch.dur).toBeLessThan(400);
      expect(trace.filter((event) => event.name.includes('opCompile') || event.name.includes('aclopCompile'))).toEqual([]);
      const kernels = await profile.csv('kernel_details.csv');
      expect(kernels.filter((row) => /Trans|Cast/.test(row.Type!))).toEqual([]);
      expect(kernels.length / 4).toBeGreaterThan(200);
      expect(kernels.length / 4).toBeLessThan(1500);
    }
  });

  test('timestamps, line ends and flows are written as the profiler does', async () => {
    const profile = profiles[0]!;
    const kernels = await profile.text('kernel_details.csv');
    expect(kernels.split('\r\n')[0]!.split(',').slice(0, 10).join(',')).toBe(
      'Step Id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us)',
    );
    expect(kernels).toMatch(
      /\r\n10,4294967295,\d+,2,aclnn\w+,\w+,dynamic,AI_VECTOR_CORE,\d{16}\.\d{3}\t,[\d.]+,[\d.]+,48,0,NO,"""16000,1024;16,512;1""",/,
    );
    expect(await profile.text('step_trace_time.csv')).toContain('\r\n');
    expect(await profile.text('op_statistic.csv')).not.toContain('\r');
    const raw = await profile.text('trace_view.json');
    expect(raw.startsWith('[{"ph": "X", "name": "ProfilerStep#10", "pid": ')).toBe(true);
    expect(raw).toMatch(/"name": "torch_to_npu", "id": \d{19}, "pid"/);
    expect(raw).toContain('"Call stack": "');
    const trace = await profile.trace();
    const starts = new Set(trace.filter((event) => event.ph === 'X').map((event) => `${event.pid} ${event.tid} ${event.ts}`));
    for (const cat of ['async_npu', 'async_task_queue', 'fwdbwd', 'HostToDevice']) {
      const flows = trace.filter((event) => event.cat === cat);
      expect(flows.filter((event) => event.ph === 's').length).toBeGreaterThan(100);
      expect(flows.filter((event) => event.ph === 's').length).toBe(flows.filter((event) => event.ph === 'f').length);
      for (const flow of flows) expect(starts.has(`${flow.pid} ${flow.tid} ${flow.ts}`), `${cat} ${flow.ph} ${flow.ts}`).toBe(true);
    }
  });
});

describe.each([
  ['two faults at once', { ranks: 2, steps: 3, faults: [{ kind: 'small-ops' }, { kind: 'slow-rank', rank: 1 }] }],
  ['a pipeline with uneven stages', { ranks: 4, pp: 2, steps: 2, microBatches: 4, faults: [{ kind: 'stage-imbalance' }] }],
  ['a broadcast of buffers, newer column names', { ranks: 2, steps: 2, era: '2025-11', faults: [{ kind: 'buffer-broadcast' }] }],
] satisfies [string, JobSpec][])('files of %s', (_name, spec) => {
  let profiles: Profile[] = [];
  beforeAll(async () => {
    profiles = await write(spec);
  });

  test('step_trace_time keeps its identity and equals the lanes', async () => {
    for (const profile of profiles) {
      const rows = await profile.csv('step_trace_time.csv');
      expect(rows).toHaveLength(spec.steps);
      for (const row of rows) {
        const value = (column: string) => Number(row[column]);
        const parts = value('Computing') + value('Communication(Not Overlapped)') + value('Free');
        expect(Math.abs(parts - value('Stage') - value('Bubble'))).toBeLessThan(1);
        expect(value('Overlapped') + value('Communication(Not Overlapped)')).toBeCloseTo(value('Communication'), 3);
      }
      const trace = await profile.trace();
      const total = (name: string) => lane(trace, 'Overlap Analysis', name).reduce((sum, event) => sum + event.dur, 0);
      const column = (name: string) => rows.reduce((sum, row) => sum + Number(row[name]), 0);
      // only work launched before the capture belongs to no step
      for (const name of ['Computing', 'Communication']) {
        expect(total(name)).toBeGreaterThanOrEqual(column(name) - 0.01);
        expect(total(name) - column(name)).toBeLessThan(0.06 * column(name));
      }
    }
  });

  test('lanes are the merged intervals of kernels and collectives', async () => {
    for (const profile of profiles) {
      const trace = await profile.trace();
      const kernels = (await profile.csv('kernel_details.csv')).map((row) => {
        const start = ns(row['Start Time(us)']!);
        return {
          communication: row.Name!.startsWith('hcom_'),
          span: [start, start + Math.round(Number(row['Duration(us)']) * 1000)] as [number, number],
        };
      });
      const computing = union(kernels.filter((row) => !row.communication).map((row) => row.span));
      expect(lane(trace, 'Overlap Analysis', 'Computing').map(span)).toEqual(computing);
      expect(lane(trace, 'Overlap Analysis', 'Communication').map(span)).toEqual(
        union(kernels.filter((row) => row.communication).map((row) => row.span)),
      );
      const busy = union(kernels.map((row) => row.span));
      const free = busy.slice(1).map((next, i) => [busy[i]![1], next[0]]);
      expect(lane(trace, 'Overlap Analysis', 'Free').map(span)).toEqual(free);
    }
  });

  test('a collective ends on all ranks within 50 us and its times add up', async () => {
    const ends = new Map<string, number[]>();
    for (const profile of profiles) {
      const steps = JSON.parse(await profile.text('communication.json')) as Record<
        string,
        Record<string, Record<string, Record<string, Record<string, number>>>>
      >;
      for (const classes of Object.values(steps)) {
        for (const [op, entry] of Object.values(classes).flatMap((ops) => Object.entries(ops))) {
          const time = entry['Communication Time Info']!;
          const parts = time['Transit Time(ms)']! + time['Wait Time(ms)']! + time['Idle Time(ms)']!;
          expect(parts).toBeCloseTo(time['Elapse Time(ms)']!, 5);
          if (op === 'Total Op Info') continue;
          ends.set(op, [...(ends.get(op) ?? []), time['Start Timestamp(us)']! + 1000 * time['Elapse Time(ms)']!]);
        }
      }
    }
    expect(ends.size).toBeGreaterThan(5);
    for (const [op, times] of ends) {
      expect(times.length, op).toBeGreaterThan(1);
      expect(Math.max(...times) - Math.min(...times), op).toBeLessThan(50);
    }
  });
});

describe('levels and options', () => {
  test('level 0 has the short table, no communication files and a pruned CANN lane', async () => {
    const [profile] = await write({ ranks: 2, steps: 1, level: 0, uploadedRanks: [0] });
    expect(profile!.files).toEqual(['kernel_details.csv', 'operator_details.csv', 'step_trace_time.csv', 'trace_view.json']);
    const rows = await profile!.csv('kernel_details.csv');
    expect(Object.keys(rows[0]!)).toEqual([
      'Step Id',
      'Name',
      'Type',
      'Accelerator Core',
      'Start Time(us)',
      'Duration(us)',
      'Wait Time(us)',
      'Block Dim',
    ]);
    expect(new Set(rows.map((row) => row.Type))).toEqual(new Set(['N/A']));
    expect(new Set(rows.map((row) => row['Accelerator Core']))).toEqual(new Set(['N/A', 'HCCL']));
    const trace = await profile!.trace();
    expect(trace.some((event) => event.args?.name === 'CANN')).toBe(false);
    expect(trace.some((event) => event.name.startsWith('AscendCL@'))).toBe(false);
    expect(trace.filter((event) => event.cat === 'HostToDevice' && event.ph === 's').length).toBeGreaterThan(100);
  });

  test('level 2 adds runtime calls', async () => {
    const [profile] = await write({ ranks: 2, steps: 1, level: 2, uploadedRanks: [1] });
    const names = new Set((await profile!.trace()).map((event) => event.name));
    expect(names).toContain('Runtime@KernelLaunchWithHandle');
    expect(names).toContain('Runtime@StreamSynchronize');
  });

  test('a clock offset moves every timestamp of a rank and nothing else', async () => {
    const [plain, skewed] = await Promise.all([write({ ranks: 2, steps: 1 }), write({ ranks: 2, steps: 1, clockSkewUs: [0, 1500] })]);
    const starts = async (profiles: Profile[], i: number) =>
      (await profiles[i]!.csv('kernel_details.csv')).map((row) => ns(row['Start Time(us)']!));
    expect(await starts(skewed!, 0)).toEqual(await starts(plain!, 0));
    expect(await starts(skewed!, 1)).toEqual((await starts(plain!, 1)).map((at) => at + 1_500_000));
  });

  test('stacks name the call sites of the spec and can be switched off', async () => {
    const loader = { file: '/repo/run.py', line: 7, func: 'epoch' };
    const [withStack] = await write({ ranks: 2, steps: 1, uploadedRanks: [0], code: { loader } });
    const fetch = (await withStack!.trace()).find((event) => event.name.startsWith('enumerate(DataLoader)#'))!;
    expect(String(fetch.args!['Call stack']).split(';\r\n')).toContain('/repo/run.py(7): epoch');
    expect(String(fetch.args!['Call stack'])).toMatch(/: <module>$/);
    const [without] = await write({ ranks: 2, steps: 1, uploadedRanks: [0], withStack: false, parallelGroupInfo: false });
    expect((await without!.trace()).some((event) => event.args?.['Call stack'])).toBe(false);
    expect(await readFile(join(without!.folder, 'profiler_metadata.json'), 'utf8')).not.toContain('parallel_group_info');
  });

  test('compile and layout faults show the events that cause them', async () => {
    const [profile] = await write({ ranks: 2, steps: 1, uploadedRanks: [0], faults: [{ kind: 'recompile' }, { kind: 'layout' }] });
    const compiles = (await profile!.trace()).filter((event) => event.name === 'AscendCL@aclopCompileAndExecute');
    expect(compiles).toHaveLength(2);
    for (const event of compiles) expect(event.dur).toBeGreaterThan(5000);
    const casts = (await profile!.csv('kernel_details.csv')).filter((row) => row.Type === 'TransData');
    expect(casts).toHaveLength(48);
    expect(casts[0]!['Input Formats']).toBe(casts[1]!['Output Formats']);
    expect(casts[0]!['Output Formats']).toBe(casts[1]!['Input Formats']);
    expect(casts[0]!['Input Shapes']).toBe(casts[1]!['Output Shapes']);
  });

  test('python frames inflate the trace without holding it in memory', async () => {
    const [small] = await write({ ranks: 2, steps: 1, uploadedRanks: [0] });
    const [large] = await write({ ranks: 2, steps: 1, uploadedRanks: [0], pythonFrames: 8 });
    const size = async (profile: Profile) => (await stat(join(profile.folder, 'ASCEND_PROFILER_OUTPUT', 'trace_view.json'))).size;
    expect(await size(large!)).toBeGreaterThan(1.3 * (await size(small!)));
    expect((await large!.trace()).filter((event) => event.cat === 'python_function').length).toBeGreaterThan(3000);
  });
});

describe('command line', () => {
  const main = join(import.meta.dirname, '../../lab/simulator/main.ts');
  const exec = (...args: string[]) => promisify(execFile)(process.execPath, [main, ...args]);

  test('prints the step and the true saving of each fault and writes profiles', async () => {
    const out = join(root, 'cli');
    const { stdout } = await exec(
      '--ranks',
      '2',
      '--steps',
      '1',
      '--fault',
      'slow-rank:rank=0,factor=1.3',
      '--fault',
      'layout',
      '--upload',
      '0',
      '--out',
      out,
    );
    expect(stdout).toMatch(/^step \d+\.\d{3} ms/);
    expect(stdout.match(/true saving [\d.]+ ms/g)).toHaveLength(2);
    expect(await readdir(out)).toHaveLength(1);
  });

  test('exits 2 with one line for a fault it does not know', async () => {
    await expect(exec('--fault', 'gremlins')).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^unknown fault gremlins.*\n$/),
    });
  });
});
