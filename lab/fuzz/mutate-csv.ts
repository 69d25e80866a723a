import type { Random } from './random.ts';

const CELLS = [
  '', ' ', '"', '""', '"""', 'N/A', 'nan', 'null', '-1', '0', '-0', '1e308', '1e999', '-1e308', 'NaN', 'Infinity', '99999999999999999999999', '1736408883704643.212\t',
  '1736408883704643.2129999\t', '"a,b"', '"a\nb"', '"a""b"', '=cmd()', '`@x` <b>', '\0', '\ufeff', '1,5', '1 000', '0x10', '.', '-', '1e15', '1e14', 'HCCL', 'COMMUNICATION', 'AI_CORE',
  'hcom_allReduce__1_0_1', 'Transpose', 'TransData', 'stage', '"""1,2;3,4"""', ';;;', '/a.py(1): f;\r\n', '2147483648', '-2147483649', '4294967295',
]; // biome-ignore format: a table of values
const HEADERS = [
  'Name', 'Type', 'Duration(us)', 'Start Time(us)', 'Step Id', 'Step', 'Computing', 'Free', 'Stage', 'Communication', '__proto__', '', 'Accelerator Core', 'Task Duration(us)',
]; // biome-ignore format: a table of names

interface Table {
  lines: string[];
  eol: string;
}

function split(text: string): Table {
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  return { lines: text.split(eol), eol };
}

type Mutation = (table: Table, random: Random) => void;

const line = (table: Table, random: Random): number => random.int(table.lines.length);

function editCell(table: Table, at: number, column: number, edit: (cell: string) => string): void {
  const cells = table.lines[at]!.split(',');
  const c = column % cells.length;
  cells[c] = edit(cells[c]!);
  table.lines[at] = cells.join(',');
}

const MUTATIONS: Readonly<Record<string, Mutation>> = {
  cell(table, random) {
    const value = random.pick(CELLS);
    editCell(table, line(table, random), random.int(50), () => value);
  },
  cells(table, random) {
    for (let n = 2 + random.int(20); n > 0; n--) MUTATIONS.cell!(table, random);
  },
  column(table, random) {
    const c = random.int(table.lines[0]!.split(',').length);
    const value = random.pick(CELLS);
    for (let i = 1; i < table.lines.length; i++) if (table.lines[i] !== '') editCell(table, i, c, () => value);
  },
  dropColumn(table, random) {
    const c = random.int(table.lines[0]!.split(',').length);
    table.lines = table.lines.map((l) =>
      l
        .split(',')
        .filter((_, i) => i !== c)
        .join(','),
    );
  },
  header(table, random) {
    const name = random.pick(HEADERS);
    editCell(table, 0, random.int(50), () => name);
  },
  noHeader(table) {
    table.lines.shift();
  },
  wide(table, random) {
    const extra = random.pick([600, 10_000]);
    table.lines[random.chance(0.5) ? 0 : line(table, random)] += ',x'.repeat(extra);
  },
  huge(table, random) {
    const size = random.chance(0.1) ? 5 << 20 : 50_000;
    editCell(table, line(table, random), random.int(50), () => random.pick(['a', '1', '"', '9', ' ', '\t', '""']).repeat(size / 2));
  },
  openQuote(table, random) {
    editCell(table, line(table, random), random.int(50), (c) => `"${c}`);
  },
  removeLine(table, random) {
    table.lines.splice(line(table, random), random.pick([1, 1, 5, 200]));
    if (table.lines.length === 0) table.lines.push('');
  },
  copyLine(table, random) {
    const from = table.lines[line(table, random)]!;
    table.lines.splice(line(table, random), 0, ...Array.from({ length: random.pick([1, 3, 200]) }, () => from));
  },
  swapLines(table, random) {
    const a = line(table, random);
    const b = line(table, random);
    [table.lines[a], table.lines[b]] = [table.lines[b]!, table.lines[a]!];
  },
  eol(table, random) {
    table.eol = random.pick(['\n', '\r\n', '\r', '\n\n', '\0\n']);
  },
  blanks(table, random) {
    table.lines.splice(
      line(table, random),
      0,
      ...Array.from({ length: 1 + random.int(5) }, () => random.pick(['', ' ', ',,,,', '\t', '"'])),
    );
  },
  bom(table) {
    table.lines[0] = `\ufeff${table.lines[0]}`;
  },
};

const NAMES = Object.keys(MUTATIONS);

export function mutateCsv(data: Buffer, random: Random): { data: Buffer; what: string } {
  const table = split(data.toString('utf8'));
  const what = random.pick(NAMES);
  MUTATIONS[what]!(table, random);
  return { data: Buffer.from(table.lines.join(table.eol)), what };
}
