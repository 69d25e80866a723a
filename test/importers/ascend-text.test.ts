import { describe, expect, test } from 'vitest';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { groupHash } from '../../src/importers/group-hash.ts';
import { findRankFolders } from '../../src/importers/index.ts';
import { opTypeFromName } from '../../src/importers/op-type.ts';
import { type CsvRow, cellInstant, cellNumber, cellText, findColumn, scanCsv } from '../../src/importers/scan-csv.ts';
import { findArg, type RawEvent, scanTrace } from '../../src/importers/scan-trace.ts';
import type { RankCapture } from '../../src/model/capture.ts';
import { chunksOf, entryOf, kernelDetails, ORIGIN, readOnly, STEP_HEADER, trace, traceEvents, ts } from '../support/profile-text.ts';

async function* once(...parts: Buffer[]): AsyncGenerator<Buffer> {
  for (const part of parts) yield part;
}

/** Everything the scanner tells of each event, as text. */
async function scanned(chunks: AsyncIterable<Buffer>): Promise<{ events: string[]; truncated: boolean }> {
  const events: string[] = [];
  const part = (ev: RawEvent, start: number, end: number): string => (start < 0 ? '-' : ev.buf.toString('utf8', start, end));
  const result = await scanTrace(chunks, (ev) => {
    const args: string[] = [];
    for (let i = 0; i < ev.argCount; i++)
      args.push(`${part(ev, ev.args[i * 4]!, ev.args[i * 4 + 1]!)}=${part(ev, ev.args[i * 4 + 2]!, ev.args[i * 4 + 3]!)}`);
    events.push(
      [
        String.fromCharCode(ev.ph),
        part(ev, ev.nameStart, ev.nameEnd),
        part(ev, ev.catStart, ev.catEnd),
        part(ev, ev.pidStart, ev.pidEnd),
        part(ev, ev.tidStart, ev.tidEnd),
        part(ev, ev.tsStart, ev.tsEnd),
        part(ev, ev.durStart, ev.durEnd),
        part(ev, ev.idStart, ev.idEnd),
        args.join('&'),
      ].join('|'),
    );
  });
  return { events, truncated: result.truncated };
}

const ODD_EVENTS = [
  '{"ph": "X", "name": "say \\"hi\\" \\\\", "pid": 1, "tid": 2, "ts": "1736413971558972.912", "dur": 2.2400625, "cat": "cpu_op", "args": {"Call stack": "C:\\\\a.py(3): f;\\r\\nb.py(4): g", "n": [1, {"x": "]}"}], "b": true}}',
  '{"ph":"s","id":"1736413971558972912","name":"torch_to_npu","pid":1,"tid":2,"ts":1736413971558972.5,"cat":"async_npu"}',
  '{"ph":"M","name":"process_name","pid":3,"tid":0,"args":{"name":"算子 [1]"}}',
  '{"name":"no args","ph":"X","ts":"1","dur":0,"args":null}',
  '{"name":"late","args":{},"ph":"X"}',
];
const EXPECTED = [
  'X|say \\"hi\\" \\\\|cpu_op|1|2|1736413971558972.912|2.2400625|-|Call stack=C:\\\\a.py(3): f;\\r\\nb.py(4): g&n=[1, {"x": "]}"}]&b=true',
  's|torch_to_npu|async_npu|1|2|1736413971558972.5|-|1736413971558972912|',
  'M|process_name|-|3|0|-|-|-|name=算子 [1]',
  'X|no args|-|-|-|1|0|-|',
  'X|late|-|-|-|-|-|-|',
];

describe('the trace scanner', () => {
  const whole = `[${ODD_EVENTS.join(',')}]`;
  const shapes: [string, string, boolean][] = [
    ['a plain array', whole, false],
    ['an object with traceEvents', `{"schemaVersion": 1, "traceEvents": ${whole}, "displayTimeUnit": "ns"}`, false],
    ['a byte order mark', `\ufeff${whole}`, false],
    ['a byte order mark before an object', `\ufeff{"traceEvents": ${whole}}`, false],
    ['line breaks and blanks', `\n [ \r\n${ODD_EVENTS.join(' ,\n\t')} \n] \n`, false],
    ['a comma before the bracket', `[${ODD_EVENTS.join(',')},]`, false],
    ['a leading comma', `[,${ODD_EVENTS.join(',')}]`, false],
    ['a doubled comma', `[${ODD_EVENTS.join(',,')}]`, false],
    ['a missing bracket', `[${ODD_EVENTS.join(',')}`, true],
    ['half an event at the end', `[${ODD_EVENTS.join(',')},{"ph":"X","name":"aten::co`, true],
    ['a missing opening bracket', `,${ODD_EVENTS.join(',')}]`, false],
  ];

  test.each(shapes)('%s gives every complete event, whatever the chunks', async (_, text, truncated) => {
    const bytes = Buffer.from(text);
    for (const size of [1, 2, 7, 64, bytes.length]) {
      expect(await scanned(chunksOf(bytes, size)), `chunks of ${size}`).toEqual({ events: EXPECTED, truncated });
    }
  });

  test('a chunk boundary at any byte changes nothing', async () => {
    const bytes = Buffer.from(`\ufeff{"traceEvents": ${whole}}`);
    for (let cut = 0; cut <= bytes.length; cut++) {
      expect((await scanned(once(bytes.subarray(0, cut), bytes.subarray(cut)))).events, `cut at ${cut}`).toEqual(EXPECTED);
    }
  });

  test('damage in the middle costs the damaged event, not the rest', async () => {
    const text = `[${ODD_EVENTS[3]},{"ph":"X","name" "broken","args":{"shape":[1,2]}},${ODD_EVENTS[4]}]`;
    const { events, truncated } = await scanned(once(Buffer.from(text)));
    expect(truncated).toBe(true);
    expect(events[0]).toBe(EXPECTED[3]);
    expect(events.at(-1)).toBe(EXPECTED[4]);
  });

  test('no JSON at all gives no event', async () => {
    for (const text of ['', '   ', '[', ']', '[]', 'hello', 'null', '{"traceEvents"', '\ufeff']) {
      expect((await scanned(once(Buffer.from(text)))).events, text).toEqual([]);
    }
  });

  test('an argument is found by its whole name', async () => {
    const found: string[] = [];
    const key = new TextEncoder().encode('Task Type');
    await scanTrace(once(Buffer.from('[{"ph":"X","args":{"Task Type2":"no","Task Type":"AI_CORE"}},{"ph":"X","args":{}}]')), (ev) => {
      const at = findArg(ev, key);
      found.push(at === -1 ? '' : ev.buf.toString('utf8', ev.args[at]!, ev.args[at + 1]!));
    });
    expect(found).toEqual(['AI_CORE', '']);
  });

  test.each([
    ['one endless string', Buffer.concat([Buffer.from('[{"name":"'), Buffer.alloc(24 << 20, 'a')])],
    ['one endless run of backslashes', Buffer.concat([Buffer.from('[{"name":"'), Buffer.alloc(24 << 20, '\\')])],
    ['braces only', Buffer.alloc(24 << 20, '{')],
    ['an object that never gets to its events', Buffer.concat([Buffer.from('{"a":"'), Buffer.alloc(24 << 20, 'x')])],
    ['events in events', Buffer.from('{"a":1,'.repeat(2 << 20))],
    ['deep brackets', Buffer.concat([Buffer.from('[{"a":'), Buffer.alloc(24 << 20, '[')])],
  ])('%s costs linear time in small chunks', async (_, bytes) => {
    const begin = performance.now();
    const result = await scanTrace(chunksOf(bytes, 64 << 10), () => {});
    expect(result.bytes).toBe(bytes.length);
    expect(performance.now() - begin).toBeLessThan(6_000);
  });
});

interface Table {
  header: string[];
  rows: (string | null)[][];
  truncated: boolean;
}

async function table(chunks: AsyncIterable<Buffer>): Promise<Table> {
  const rows: (string | null)[][] = [];
  let header: string[] = [];
  const result = await scanCsv(chunks, (names) => {
    header = names;
    return (row: CsvRow) => rows.push(names.map((_, i) => cellText(row, i)));
  });
  return { header, rows, truncated: result.truncated };
}

describe('the CSV scanner', () => {
  const lines = [
    'Name,Call Stack, Shapes ,Time(us)',
    '"a, ""b""","x.py(1): f;',
    'y.py(2): g","""1,2;3""",1736413971558972.912\t',
    '',
    'N/A,,nan,"5\t"',
    'last,,,',
  ];
  const rows = [
    ['a, "b"', 'x.py(1): f;\ny.py(2): g', '"1,2;3"', '1736413971558972.912'],
    [null, null, null, '5'],
    ['last', null, null, null],
  ];

  test.each([
    ['LF', lines.join('\n'), false],
    ['LF and a line break at the end', `${lines.join('\n')}\n`, false],
    ['CRLF', `${lines.join('\r\n')}\r\n`, true],
    ['a byte order mark', `\ufeff${lines.join('\n')}`, false],
  ])('%s: quotes, tabs, line breaks in cells and missing values', async (_, text, crlf) => {
    const bytes = Buffer.from(text);
    const expected = crlf ? rows.map((r) => r.map((c) => c?.replace('\n', '\r\n') ?? null)) : rows;
    for (const size of [1, 7, bytes.length]) {
      const got = await table(chunksOf(bytes, size));
      expect(got.header).toEqual(['Name', 'Call Stack', 'Shapes', 'Time(us)']);
      expect(got.rows, `chunks of ${size}`).toEqual(expected);
    }
  });

  test('a chunk boundary at any byte changes nothing', async () => {
    const bytes = Buffer.from(`\ufeff${lines.join('\r\n')}\r\n`);
    const all = await table(once(bytes));
    for (let cut = 0; cut <= bytes.length; cut++) {
      expect(await table(once(bytes.subarray(0, cut), bytes.subarray(cut))), `cut at ${cut}`).toEqual(all);
    }
  });

  test('columns are found by name: other case, micro sign, aliases in order of preference', () => {
    const header = ['Step ID', 'Task Start Time(µs)', 'START TIME(US)'];
    expect(findColumn(header, 'Step Id', 'Step ID')).toBe(0);
    expect(findColumn(header, 'Start Time(us)', 'Task Start Time(us)')).toBe(2);
    expect(findColumn(header, 'Task Start Time(us)')).toBe(1);
    expect(findColumn(header, 'Duration(us)')).toBe(-1);
  });

  test('a missing number is null, a zero is zero', async () => {
    const numbers: (number | null)[][] = [];
    await scanCsv(
      once(Buffer.from('a,b\n0,N/A\n-1.5,\n1e3,x\n.5,"2"\n')),
      () => (row) => numbers.push([cellNumber(row, 0), cellNumber(row, 1)]),
    );
    expect(numbers).toEqual([
      [0, null],
      [-1.5, null],
      [1000, null],
      [0.5, 2],
    ]);
  });

  test('rows with too few or too many cells do not shift others', async () => {
    const got = await table(once(Buffer.from('a,b,c\n1\n1,2,3,4,5\n')));
    expect(got.rows).toEqual([
      ['1', null, null],
      ['1', '2', '3'],
    ]);
  });

  test('a quote that never closes costs linear time and is called truncated', async () => {
    const bytes = Buffer.concat([Buffer.from('a,b\n"'), Buffer.alloc(24 << 20, 'x,\n')]);
    const begin = performance.now();
    const result = await scanCsv(chunksOf(bytes, 64 << 10), () => () => {});
    expect(result.truncated).toBe(true);
    expect(performance.now() - begin).toBeLessThan(6_000);
  });

  test('an instant keeps its nanoseconds through quotes and tabs', async () => {
    const out = { us: 0, ns: 0 };
    const seen: string[] = [];
    await scanCsv(once(Buffer.from('t\n"1736413971558972.912\t"\n1736413971793969.5\n')), () => (row) => {
      if (cellInstant(row, 0, out)) seen.push(`${out.us}+${out.ns}`);
    });
    expect(seen).toEqual(['1736413971558972+912', '1736413971793969+500']);
  });
});

const FULL = {
  'rank3_ascend_pt/profiler_info_3.json': JSON.stringify({ rank_id: 3 }),
  'rank3_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json': trace({ steps: 2 }),
  'rank3_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv': kernelDetails({ steps: 2 }),
  'rank3_ascend_pt/ASCEND_PROFILER_OUTPUT/step_trace_time.csv': `${STEP_HEADER}\n5,3015.0,1000.25,0,1000.25,4484.75,8500,0,1000.25,500\n6,3015.0,1000.25,0,1000.25,4484.75,8500,0,1000.25,500\n`,
};

/** What must not depend on how a profile is spelled. */
function essence(capture: RankCapture) {
  const { folder: _, inputs: __, originUs: ___, ...facts } = rankFacts(capture);
  return facts;
}

describe('spellings of a rank folder', () => {
  test('chunks of one byte give the same facts as whole files', async () => {
    expect(essence(await readOnly(FULL, 1))).toEqual(essence(await readOnly(FULL)));
  });

  test('numeric time stamps give the same kernels as strings, to a quarter of a µs', async () => {
    const strings = await readOnly({ 'rank0/trace_view.json': trace() });
    const numbers = await readOnly({ 'rank0/trace_view.json': trace({ numeric: true }) });
    expect(numbers.trace!.device.start).toHaveLength(30);
    expect([...numbers.trace!.device.start]).toEqual([...strings.trace!.device.start]);
    expect(numbers.trace!.launches.get(7)!.size).toBe(30);
  });

  const output = 'ASCEND_PROFILER_OUTPUT';
  const trees: [string, string][] = [
    ['the rank folder inside a wrapper', 'artifact/run-7/rank3_ascend_pt/'],
    ['the rank folder', 'rank3_ascend_pt/'],
    ['the rank folder itself as the root', ''],
  ];
  test.each(trees)('%s', async (_, prefix) => {
    const files = Object.fromEntries(Object.entries(FULL).map(([path, text]) => [path.replace('rank3_ascend_pt/', prefix), text]));
    const capture = await readOnly(files);
    expect(capture.rank).toBe(3);
    expect(essence(capture)).toEqual(essence(await readOnly(FULL)));
  });

  test('only the output folder, or only its files, are a rank of unknown number', async () => {
    for (const prefix of [`${output}/`, '', 'some/where/']) {
      const files = Object.fromEntries(
        Object.entries(FULL)
          .filter(([path]) => path.includes(output))
          .map(([path, text]) => [path.replace(`rank3_ascend_pt/${output}/`, prefix), text]),
      );
      const capture = await readOnly(files);
      expect(capture.rank).toBeNull();
      expect(capture.kernels!.start).toHaveLength(62);
    }
  });

  test('rank folders side by side are told apart, what belongs to none is left over', () => {
    const entries = [
      'a/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json',
      'a/rank0_ascend_pt/profiler_info_0.json',
      'a/rank1_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv',
      'a/readme.txt',
      'b/OPPROF_1/OpBasicInfo.csv',
    ].map((path) => entryOf(path, 'x'));
    const { folders, rest } = findRankFolders(entries);
    expect(folders.map((f) => [f.folder, f.entries.length])).toEqual([
      ['a/rank0_ascend_pt', 2],
      ['a/rank1_ascend_pt', 1],
    ]);
    expect(rest.map((e) => e.path)).toEqual(['a/readme.txt', 'b/OPPROF_1/OpBasicInfo.csv']);
  });
});

describe('kernel_details.csv', () => {
  const read = async (text: string) => (await readOnly({ 'rank0/kernel_details.csv': text })).kernels;
  const first = `${ts(0)}\t`;

  test.each([
    [
      'columns of 2025-01',
      `Step Id,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim\n5,aclnnMul_Mul,Mul,dynamic,AI_VECTOR_CORE,"${first}",185.504,1.087,16\n`,
    ],
    [
      'columns of 2026',
      `Device_id,Step ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num\n0,5,aclnnMul_Mul,Mul,AI_VECTOR_CORE,${ts(0)},185.504,1.087,16\n`,
    ],
    [
      'columns of op_summary',
      `Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Step Id\naclnnMul_Mul,Mul,AI_VECTOR_CORE,${ts(0)},185.504,5\n`,
    ],
    [
      'a byte order mark and micro signs',
      `\ufeffStep Id,Name,Type,Accelerator Core,Start Time(µs),Duration(µs)\n5,aclnnMul_Mul,Mul,AI_VECTOR_CORE,${ts(0)},185.504\n`,
    ],
  ])('%s', async (_, text) => {
    const { names, kernels } = await readOnly({ 'rank0/kernel_details.csv': text });
    expect(kernels!.duration[0]).toBeCloseTo(185_504, 6);
    expect(kernels!.step[0]).toBe(5);
    expect(names.get(kernels!.type[0]!)).toBe('Mul');
    expect(names.get(kernels!.core[0]!)).toBe('AI_VECTOR_CORE');
    expect(kernels!.isCommunication[0]).toBe(0);
  });

  test('communication is told by the core, old or new, or by the name', async () => {
    const kernels = await read(
      `Name,Type,Accelerator Core,Start Time(us),Duration(us)\nx,Mul,HCCL,${ts(0)},1\nx,Mul,COMMUNICATION,${ts(1)},1\nHcom_allReduce__1_2_3,N/A,N/A,${ts(2)},1\nhcclSomething,Mul,AI_CORE,${ts(3)},1\nx,Mul,NEW_CORE,${ts(4)},1\n`,
    );
    expect([...kernels!.isCommunication]).toEqual([1, 1, 1, 1, 0]);
  });

  test('N/A is missing, not zero: no type, no step, no duration', async () => {
    const kernels = await read(
      `Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)\nN/A,Conv2D1,N/A,N/A,${ts(0)},5\n5,Mul,Mul,AI_CORE,${ts(1)},N/A\n,Mul,Mul,AI_CORE,N/A,7\n`,
    );
    expect([...kernels!.step]).toEqual([-1, -1]);
    expect([...kernels!.duration]).toEqual([5_000, 7_000]);
    expect(kernels!.start[1]).toBeNaN();
    expect(kernels!.typesFromNames).toBe(true);
  });

  test('times that no capture can hold are no rows', async () => {
    const kernels = await read(`Name,Start Time(us),Duration(us)\na,${ts(0)},1e300\nb,${ts(0)},-4\nc,${ts(0)},Infinity\nd,${ts(0)},2\n`);
    expect([...kernels!.duration]).toEqual([2_000]);
  });

  test('a header alone, or one without names, is refused and never a zero', async () => {
    for (const text of ['Name,Type,Duration(us)\n', 'a,b,c\n1,2,3\n', '\n\n']) {
      const capture = await readOnly({ 'rank0/kernel_details.csv': text });
      expect(capture.kernels).toBeNull();
      expect(capture.inputs[0]!.status).toBe('refused');
    }
  });

  test('types come out of Level0 names', () => {
    const cases: [string, string][] = [
      ['aclnnForeachAddListV2_ForeachAddListV2_ForeachAddList', 'ForeachAddList'],
      ['trans_TransData_12', 'TransData'],
      ['Conv2D1', 'Conv2D'],
      ['Conv2D', 'Conv2D'],
      ['Cast3', 'Cast'],
      ['aclnnMatmul_MatMulCommon_MatMulV2', 'MatMulV2'],
      ['aclnnInplaceCopy_TensorMoveAiCore_TensorMove', 'TensorMove'],
      ['AdaptiveAvgPool2d', 'AdaptiveAvgPool2d'],
    ];
    expect(cases.map(([name]) => [name, opTypeFromName(name)])).toEqual(cases);
  });
});

describe('step_trace_time.csv', () => {
  const read = async (text: string) => (await readOnly({ 'rank0/step_trace_time.csv': text })).stepTrace;

  test('columns of 2023, 2025 and with a device', async () => {
    const old =
      'Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Communication(Not Overlapped and Exclude Receive)';
    const expected = { step: 5, computing: 812, exposed: 41, overlapped: 9, communication: 50, free: 12, stage: 807, bubble: 58 };
    const cells = '5,812000.0,41000.0,9000.0,50000.0,12000.0,807000.0,58000.0,-17000.0';
    expect((await read(`${old}\n${cells}\n`))[0]).toMatchObject({ ...expected, preparing: null });
    expect((await read(`${old},Preparing\r\n${cells},206.25\r\n`))[0]).toMatchObject({ ...expected, preparing: 0.20625 });
    expect((await read(`Device_id,${old},Preparing\n4,${cells},206.25\n`))[0]).toMatchObject(expected);
  });

  test('an empty step is a step without number, never step 0', async () => {
    const rows = await read(`Device_id,${STEP_HEADER}\n-1,,241.0,58.0,0.0,58.0,533.0,832.0,0.0,58.0,0.0\n`);
    expect(rows[0]).toMatchObject({ step: null, stage: 0.832 });
  });

  test('stage rows are column maxima of several ranks and no rank', async () => {
    const rows = await read(
      'Step,Type,Index,Computing,Communication(Not Overlapped),Free,Stage,Bubble\n2,rank,0,1000,2000,3000,6000,0\n2,stage,"(0, 1)",9000,9000,9000,9000,0\n',
    );
    expect(rows.map((r) => r.computing)).toEqual([1]);
  });

  test('a header alone is refused', async () => {
    const capture = await readOnly({ 'rank0/step_trace_time.csv': `${STEP_HEADER}\n` });
    expect(capture.stepTrace).toEqual([]);
    expect(capture.inputs[0]!.status).toBe('refused');
  });
});

describe('the rank', () => {
  const files = (folder: string, extra: Record<string, string>) => ({
    [`${folder}/ASCEND_PROFILER_OUTPUT/kernel_details.csv`]: kernelDetails(),
    ...Object.fromEntries(Object.entries(extra).map(([name, text]) => [`${folder}/${name}`, text])),
  });

  test.each<[string, string, Record<string, string>, number | null]>([
    ['from the file name, before anything else', 'rank7_x', { 'profiler_info_3.json': '{"rank_id": 5}' }, 3],
    ['from a number', 'x', { 'profiler_info.json': '{"rank_id": 5}' }, 5],
    ['from a string', 'x', { 'profiler_info.json': '{"rank_id": "12"}' }, 12],
    ['from rank0_ascend_pt', 'rank0_ascend_pt', {}, 0],
    ['from rank_11_ascend_pt', 'rank_11_ascend_pt', {}, 11],
    ['from prof_rank_2 higher up', 'prof_rank_2/inner', {}, 2],
    ['unknown without any of them', 'host_314096_20250109170931_ascend_pt', {}, null],
    ['unknown when it is -1', 'x', { 'profiler_info.json': '{"rank_id": -1}' }, null],
    ['unknown when it is no number', 'x', { 'profiler_info.json': '{"rank_id": "a"}' }, null],
    ['not from a word that ends in rank', 'frank3_x', {}, null],
  ])('is read %s', async (_, folder, extra, rank) => {
    expect((await readOnly(files(folder, extra))).rank).toBe(rank);
  });

  test('a broken profiler_info costs that file, not the rank', async () => {
    const capture = await readOnly(files('rank4_ascend_pt', { 'profiler_info_4.json': '{"rank_id": 4' }));
    expect(capture.kernels).not.toBeNull();
    expect(capture.inputs.find((i) => i.path.endsWith('profiler_info_4.json'))!.status).toBe('refused');
    expect(capture.rank).toBe(4);
  });
});

describe('damaged and foreign files', () => {
  test('a Git LFS pointer is named as such', async () => {
    const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 870601265\n';
    const capture = await readOnly({ 'rank0/trace_view.json': pointer, 'rank0/kernel_details.csv': kernelDetails() });
    const input = capture.inputs.find((i) => i.path.endsWith('trace_view.json'))!;
    expect(input.kind).toBe('git-lfs pointer');
    expect(input.note!.text.en).toMatch(/git lfs pull/);
    expect(capture.kernels!.start).toHaveLength(31);
  });

  test('an empty file is refused and the others are used', async () => {
    const capture = await readOnly({
      'rank0/trace_view.json': '',
      'rank0/kernel_details.csv': kernelDetails(),
      'rank0/communication.json': '',
    });
    expect(capture.trace).toBeNull();
    expect(capture.inputs.map((i) => [i.path, i.status])).toEqual([
      ['rank0/trace_view.json', 'refused'],
      ['rank0/kernel_details.csv', 'used'],
      ['rank0/communication.json', 'refused'],
    ]);
  });

  test('a truncated trace is used up to the last complete event, and the place is told', async () => {
    const text = trace();
    const capture = await readOnly({ 'rank0/trace_view.json': text.slice(0, text.length - 40) });
    const input = capture.inputs[0]!;
    expect(input.status).toBe('partial');
    expect(input.note!.params!.events).toBe(traceEvents().length - 1);
    expect(input.note!.params!.byte).toBeGreaterThan(text.length - 400);
    expect(capture.trace!.device.start).toHaveLength(30);
  });

  test('JSON of another shape than expected is no crash', async () => {
    for (const odd of ['null', '[]', '3', '"x"', '{"step1": null}', '{"step1": {"collective": {"a@1": 3}}}', '{"config": []}']) {
      const capture = await readOnly({
        'rank0/kernel_details.csv': kernelDetails(),
        'rank0/communication.json': odd,
        'rank0/communication_matrix.json': odd,
        'rank0/profiler_info_0.json': odd,
        'rank0/profiler_metadata.json': odd,
      });
      expect(rankFacts(capture).rank).toBe(0);
    }
  });

  test('durations that are not finite do not get into the trace', async () => {
    const events = traceEvents().map((e) => JSON.stringify(e));
    const odd = ['1e400', '-1', 'null', '"x"', '1e300'].map(
      (d) => `{"ph":"X","name":"k","pid":3,"tid":7,"ts":"${ts(9000)}","dur":${d},"args":{}}`,
    );
    const capture = await readOnly({ 'rank0/trace_view.json': `[${[...events, ...odd].join(',')}]` });
    expect(capture.trace!.device.start).toHaveLength(30);
  });
});

describe('names and numbers that join files', () => {
  test('the group hash of known communicators', () => {
    expect(groupHash('group_name_19')).toBe('3985310405473756128');
    expect(groupHash('10.174.216.241%enp189s0f1_55000_0_1738895506630464')).toBe('6960437680420871035');
    expect(groupHash('')).toBe('0');
  });

  test('flow ids beyond 2^53 are joined by their digits', async () => {
    const at = [500, 700].map((us) => `${(BigInt(ORIGIN) + BigInt(us)) * 1000n}`);
    const flow = (ph: string, id: string, pid: number, tid: number, us: number) =>
      `{"ph":"${ph}","id":${id},"name":"torch_to_npu","cat":"async_npu","pid":${pid},"tid":${tid},"ts":"${ts(us)}"}`;
    const events = [
      ...traceEvents().map((e) => JSON.stringify(e)),
      flow('s', at[0]!, 1, 11, 400),
      flow('s', at[1]!, 1, 11, 600),
      flow('f', at[1]!, 3, 7, 700),
      flow('f', at[0]!, 3, 7, 500),
    ];
    const capture = await readOnly({ 'rank0/trace_view.json': `[${events.join(',')}]` });
    expect(capture.trace!.issued.get(500_000)).toEqual({ at: 400_000, tid: 11 });
    expect(capture.trace!.issued.get(700_000)).toEqual({ at: 600_000, tid: 11 });
  });

  test('kernels of the trace take the type of the row that starts at the same ns', async () => {
    const facts = rankFacts(await readOnly(FULL));
    expect(new Set([...facts.tape!.kind.keys()].map((i) => facts.tape!.types[facts.tape!.type[i]!]))).toEqual(
      new Set(['MatMulV2', 'hcom_allReduce__586_0_1', 'hcom_allReduce__586_1_1']),
    );
    expect(facts.steps.map((s) => s.breakdown.stepMs)).toEqual([10, 10]);
  });

  test('first seen or not, the zero of the rank gives the same distances', async () => {
    const late = { ...FULL, 'rank3_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json': JSON.stringify(traceEvents({ steps: 2 }).reverse()) };
    const a = rankFacts(await readOnly(FULL));
    const b = rankFacts(await readOnly(late));
    const absolute = (f: typeof a): number[] => [...f.tape!.start].map((t) => t + (f.originUs - ORIGIN) * 1000);
    expect(absolute(b)).toEqual(absolute(a));
  });
});
