import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdviseError } from '../../src/base/errors.ts';
import { jobSteps } from '../../src/facts/job/steps.ts';
import { rankFacts } from '../../src/facts/rank/index.ts';
import { cellNumber, cellText, scanCsv } from '../../src/importers/scan-csv.ts';
import { scanTrace } from '../../src/importers/scan-trace.ts';
import { factsFromJson, factsToJson } from '../../src/model/facts-json.ts';
import { openSource } from '../../src/sources/index.ts';
import { readWhole } from '../../src/sources/source.ts';
import { tarOf, zipOf } from '../support/archives.ts';
import { withWrittenJob } from '../support/grid.ts';
import { readOnly, STEP_HEADER } from '../support/profile-text.ts';
import { factsOf } from '../support/simulated.ts';

/* What the fuzz harness found, each as small as it could be made. */
let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'npu-advisor-regressions-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, data: Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, data);
  return path;
}

async function* inChunks(text: string, size: number): AsyncGenerator<Buffer> {
  const all = Buffer.from(text);
  // One buffer for all chunks, as the sources do it: nobody may rely on an earlier one.
  const buffer = Buffer.alloc(size);
  for (let at = 0; at < all.length; at += size) {
    const length = all.copy(buffer, 0, at, Math.min(all.length, at + size));
    yield buffer.subarray(0, length);
    buffer.fill(0);
  }
}

test('a zip whose local header lies about an entry is refused, not a crash', async () => {
  const zip = zipOf([{ name: 'a.json', data: '{}' }]);
  // Length of the file name in the local header: the data would begin behind the end of the file.
  zip.writeUInt16LE(0x7fff, 26);
  const source = await openSource(file('lying.zip', zip));
  await expect(readWhole(source.entries[0]!, 100)).rejects.toBeInstanceOf(AdviseError);
  await source.close();
});

test('a zip entry that begins behind the end of the file is refused', async () => {
  const zip = zipOf([{ name: 'a.json', data: '{}' }]);
  const directory = zip.indexOf('PK\x01\x02', 0, 'latin1');
  zip.writeUInt32LE(zip.length - 4, directory + 42);
  await expect(openSource(file('offset.zip', zip))).rejects.toBeInstanceOf(AdviseError);
});

test('a tar whose header is damaged behind files is refused, and does not wait for ever', async () => {
  const files = Array.from({ length: 17 }, (_, i) => ({ name: `a/${i}.csv`, data: 'x'.repeat(i === 7 ? 160_000 : 3_000) }));
  const tar = tarOf(files);
  // The size of the last entry begins with a byte that stands for no size.
  const last = tar.lastIndexOf('a/16.csv');
  tar[last + 124] = 0xb0;
  let sum = 0;
  for (let i = 0; i < 512; i++) sum += i >= 148 && i < 156 ? 32 : tar[last + i]!;
  tar.write(`${sum.toString(8).padStart(6, '0')}\0 `, last + 148, 'latin1');
  await expect(openSource(file('damaged.tar', tar))).rejects.toBeInstanceOf(AdviseError);
});

test('a tar that breaks off while a file is written leaves nothing behind', async () => {
  const tar = tarOf([
    { name: 'a.json', data: 'x'.repeat(5_000) },
    { name: 'b.json', data: 'x'.repeat(5_000) },
  ]);
  const own = mkdtempSync(join(folder, 'tmp-'));
  const before = process.env.TMPDIR;
  process.env.TMPDIR = own;
  try {
    await expect(openSource(file('cut.tar', tar.subarray(0, 7_000)))).rejects.toBeInstanceOf(AdviseError);
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
  expect(readdirSync(own)).toEqual([]);
});

test('events behind the end of the list are not read, wherever the chunks divide', async () => {
  const filler = `{"ph":"X","name":"${'x'.repeat(90_000)}"}`;
  const text = `[${filler},{"ph":"X","name":"a"}] {"ph":"X","name":"b"}${' '.repeat(200_000)}{"ph":"X","name":"c"}`;
  for (const size of [1_000, 80_000, 100_000, 400_000]) {
    const scan = await scanTrace(inChunks(text, size), () => {});
    expect(scan.events, `chunks of ${size}`).toBe(2);
    expect(scan.truncated).toBe(false);
  }
});

test('rows and events are the same, wherever the chunks divide', async () => {
  const event = (i: number): string => `{"ph":"X","name":"a\\\\\\"b${i}","args":{"Call stack":"${'/x.py(1): f;\\r\\n'.repeat(i % 40)}"}}`;
  const trace = `[${Array.from({ length: 3_000 }, (_, i) => event(i)).join(', ')}]`;
  const csv = `Name,Cell\n${Array.from({ length: 3_000 }, (_, i) => `n${i},"${'a,""\n'.repeat(i % 50)}"`).join('\r\n')}`;
  const read = async (size: number): Promise<string[]> => {
    const out: string[] = [];
    const scan = await scanTrace(inChunks(trace, size), (ev) => out.push(ev.buf.toString('utf8', ev.nameStart, ev.nameEnd)));
    out.push(`${scan.lastGoodByte} ${scan.truncated}`);
    const table = await scanCsv(inChunks(csv, size), () => (row) => {
      out.push(row.buf.toString('utf8', row.cells[0], row.cells[3]));
    });
    out.push(`${table.rows} ${table.truncated}`);
    return out;
  };
  const whole = await read(4 << 20);
  expect(whole.length).toBe(6_002);
  for (const size of [7, 999, 65_536, 70_001, 200_000]) expect(await read(size), `chunks of ${size}`).toEqual(whole);
});

test('a digest with numbers beyond any profile is refused: their sums would not be finite', () => {
  const rank = (ns: string): string =>
    `{"schema":"npu-advisor.facts/1","ranks":[{"operators":[{"type":"MatMul","core":"AI_CORE","count":1,"ns":${ns}}]}]}`;
  const why = (text: string): string => {
    try {
      factsFromJson(text);
      return '';
    } catch (error) {
      return String((error as AdviseError).cause);
    }
  };
  expect(why(rank('-1e999'))).toContain('"ns"');
  expect(why(rank('1e300'))).toContain('"ns"');
  expect(why(rank('5'))).not.toContain('"ns"');
});

test('settings of a digest that no capture has are refused', () => {
  const of = (settings: string): string => {
    try {
      factsFromJson(`{"schema":"npu-advisor.facts/1","ranks":[{"settings":${settings}}]}`);
      return '';
    } catch (error) {
      return String((error as AdviseError).cause);
    }
  };
  expect(of('{}')).not.toMatch(/schedule|framework/);
  expect(of('{"schedule":{"wait":0}}')).toContain('"repeat"');
  expect(of('{"framework":-1e999}')).toContain('"framework"');
});

test('columns of a digest that unpack to gigabytes are refused before they are unpacked', () => {
  const bomb = deflateSync(Buffer.alloc(64 << 20)).toString('base64');
  const columns = Array.from({ length: 40 }, (_, i) => `"c${i}":{"$u8":"${bomb}"}`).join(',');
  expect(() => factsFromJson(`{"schema":"npu-advisor.facts/1","ranks":[{${columns}}]}`)).toThrow(AdviseError);
});

test('an operator table whose numbers are beyond any profile gives missing numbers', async () => {
  const rows: (number | null)[] = [];
  await scanCsv(inChunks('OP Type,Total Time(us)\nA,1e308\nB,12.5\nC,-1e308\n', 1_000), () => (row) => {
    rows.push(cellNumber(row, 1));
  });
  expect(rows).toEqual([null, 12.5, null]);
});

test('a cell of megabytes is cut to what a digest accepts', async () => {
  const texts: (string | null)[] = [];
  await scanCsv(inChunks(`OP Type,Total Time(us)\n${'a'.repeat(200_000)},1\n`, 70_000), () => (row) => {
    texts.push(cellText(row, 0));
  });
  expect(texts.map((t) => t?.length)).toEqual([16_384]);
});

test('a capture without step marks whose host waits: its digest is read again', async () => {
  await withWrittenJob({ ranks: 1, steps: 2, layers: 2 }, async (dir) => {
    for (const name of readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((n) => n.endsWith('trace_view.json'))) {
      const path = join(dir, name);
      writeFileSync(path, readFileSync(path, 'utf8').replaceAll('ProfilerStep#', 'Step '));
    }
    const ranks = await factsOf(dir);
    expect(ranks[0]!.tape!.syncs.start.length).toBeGreaterThan(0);
    expect(factsFromJson(factsToJson(ranks))).toHaveLength(1);
  });
});

test.each([
  [0.0004, null],
  [4, 0.004],
])('a device span of %d µs: a step that no report can tell is none', async (us, ms) => {
  const csv = `Device_id,${STEP_HEADER}\n0,,1.0,0.0,0.0,0.0,0.0,${us},0.0,0.0,0.0\n`;
  const facts = rankFacts(await readOnly({ 'rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/step_trace_time.csv': csv }));
  expect(facts.steps).toHaveLength(1);
  expect(jobSteps([facts]).stepTimeMs).toBe(ms);
});
