import type { Random } from './random.ts';

const STRUCTURE = new Set(Buffer.from('{}[],:"\n\\'));
const ODD = [
  '\0',
  '\xff\xfe',
  '\xef\xbb\xbf',
  '"',
  '\\',
  '{',
  '}',
  '[',
  ']',
  ',',
  '\n',
  '\r\n',
  '\t',
  '""',
  '}, {',
  ',]',
  '-',
  '.',
  'e',
  '1e9',
];

/** Offset just before or after a byte that means something, near a random place. */
function structuralPoint(data: Buffer, random: Random): number {
  let at = random.int(data.length);
  for (let i = 0; i < 4096 && at < data.length && !STRUCTURE.has(data[at]!); i++) at++;
  return Math.min(data.length, at + random.int(2));
}

function range(data: Buffer, random: Random): [number, number] {
  const from = random.int(data.length);
  const longest = random.pick([4, 64, 1024, data.length]);
  return [from, Math.min(data.length, from + 1 + random.int(longest))];
}

function insert(data: Buffer, at: number, what: Buffer): Buffer {
  return Buffer.concat([data.subarray(0, at), what, data.subarray(at)]);
}

type Mutation = (data: Buffer, random: Random, others: readonly Buffer[]) => Buffer;

/** Mutations that know nothing of the format but where its structure shows. */
const MUTATIONS: Readonly<Record<string, Mutation>> = {
  flip(data, random) {
    const out = Buffer.from(data);
    for (let n = 1 + random.int(8); n > 0; n--) {
      const at = random.int(out.length);
      out[at] = out[at]! ^ (1 << random.int(8));
    }
    return out;
  },
  overwrite(data, random) {
    const out = Buffer.from(data);
    const at = random.int(out.length);
    random.bytes(1 + random.int(16)).copy(out, at);
    return out;
  },
  truncate: (data, random) => data.subarray(0, structuralPoint(data, random)),
  truncateAnywhere: (data, random) => data.subarray(0, random.int(data.length)),
  behead: (data, random) => data.subarray(structuralPoint(data, random)),
  remove(data, random) {
    const [from, to] = range(data, random);
    return Buffer.concat([data.subarray(0, from), data.subarray(to)]);
  },
  duplicate(data, random) {
    const [from, to] = range(data, random);
    return insert(data, to, data.subarray(from, to));
  },
  move(data, random) {
    const [from, to] = range(data, random);
    const rest = Buffer.concat([data.subarray(0, from), data.subarray(to)]);
    return insert(rest, random.int(rest.length + 1), data.subarray(from, to));
  },
  repeat(data, random) {
    const from = random.int(data.length);
    const piece = data.subarray(from, Math.min(data.length, from + 1 + random.int(200)));
    const times = Math.min(random.pick([10, 300, 5_000]), Math.floor((1 << 20) / piece.length));
    return insert(data, from, Buffer.concat(Array.from({ length: times }, () => piece)));
  },
  odd: (data, random) => insert(data, structuralPoint(data, random), Buffer.from(random.pick(ODD), 'latin1')),
  dropPoint(data, random) {
    const at = Math.max(0, structuralPoint(data, random) - 1);
    return Buffer.concat([data.subarray(0, at), data.subarray(at + 1)]);
  },
  splice(data, random, others) {
    const other = random.pick(others);
    if (other.length === 0) return data;
    const [from, to] = range(other, random);
    return insert(data, structuralPoint(data, random), other.subarray(from, Math.min(to, from + (1 << 18))));
  },
  zeros(data, random) {
    const [from, to] = range(data, random);
    const out = Buffer.from(data);
    out.fill(random.pick([0, 0xff, 0x20]), from, to);
    return out;
  },
  swapFile: (_, random, others) => random.pick(others),
  empty: () => Buffer.alloc(0),
};

const NAMES = Object.keys(MUTATIONS);
/** The rare ones replace everything: too many of them and little else is tested. */
const RARE = new Set(['swapFile', 'empty', 'behead']);

export function mutateBytes(data: Buffer, random: Random, others: readonly Buffer[]): { data: Buffer; what: string } {
  let what = random.pick(NAMES);
  if (RARE.has(what) && random.chance(0.7)) what = 'flip';
  return data.length === 0 ? { data, what: 'none' } : { data: MUTATIONS[what]!(data, random, others), what };
}
