import { deflateSync, inflateSync } from 'node:zlib';
import type { Random } from './random.ts';

/** Numbers as they are written, legal and not. */
const NUMBERS = [
  '0', '-0', '-1', '1', '0.5', '1e308', '-1e308', '1e999', '-1e999', '1e-999', '9007199254740993', '18446744073709551616', '-9223372036854775808',
  '4294967296', '2147483648', '1736408883704643.212', '999999999999999999999999999999', 'NaN', 'Infinity', '-Infinity', '.5', '1.', '01', '+1', '0x10',
  '1e', '-', '1,5', '50', '11', '12', '1e15', '1e17', '123456789012',
]; // biome-ignore format: a table of values
const OTHERS = ['null', 'true', 'false', '[]', '{}', '""', '[[]]', '[{}]', '{"a":1}', '[null]', '{"__proto__":1}', 'undefined', ''];
const KEYS = [
  '__proto__', 'constructor', 'toString', 'hasOwnProperty', '', 'name', 'ph', 'ts', 'dur', 'pid', 'tid', 'id', 'cat', 'args', 'step', 'step50', 'p2p',
  'collective', 'Total Op Info', 'Task Type', 'Call stack', 'correlation_id', 'rank_id', 'world_size', 'global_ranks', 'a@1', 'length',
]; // biome-ignore format: a table of names
const TEXTS = [
  '', ' ', 'ProfilerStep#1', 'ProfilerStep#-1', 'ProfilerStep#99999999999999999999', 'Ascend Hardware', 'CANN', 'Python', 'Overlap Analysis', 'HCCL', 'Communication',
  'Computing', 'Free', 'cpu_op', 'enqueue', 'dequeue', 'HostToDevice', 'async_npu', 'hcom_allReduce__586_0_1', 'hcom_send__586_0_1@1', 'X', 'M', 's', 'f', 'N/A', 'nan',
  'undefined', 'null', '`@everyone` <img src=x onerror=alert(1)>', '](https://x.invalid)', '../../etc/passwd', '/a/b.py(1): f', '\u0000', '\u202e', '\ud800', '𝕏'.repeat(50),
  'enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__', 'Optimizer.step#Adam.step', 'AscendCL@aclopCompileAndExecute', '{x:ms}', '$&', '%s',
]; // biome-ignore format: a table of names

function deep(random: Random): string {
  const depth = random.pick([8, 33, 200, 2_000, 100_000]);
  const [open, close] = random.pick([
    ['[', ']'],
    ['{"a":', '}'],
  ] as const);
  return open.repeat(depth) + (random.chance(0.5) ? `0${close.repeat(depth)}` : '');
}

function longText(random: Random): string {
  const size = random.pick([300, 5_000, 70_000, random.chance(0.1) ? 1 << 20 : 10_000]);
  return random.pick(['a', 'é', '\\n', '\\\\', '\\u0041', ';\\r\\n', '/x/y.py(1): f;\\r\\n', '(', '[{,']).repeat(size / 4);
}

/** A JSON value as text. */
function oddValue(random: Random): string {
  switch (random.int(8)) {
    case 0:
    case 1:
      return random.pick(NUMBERS);
    case 2:
      return `"${random.pick(NUMBERS)}"`;
    case 3:
    case 4:
      return JSON.stringify(random.pick(TEXTS));
    case 5:
      return random.pick(OTHERS);
    case 6:
      return random.chance(0.3) ? deep(random) : random.pick(NUMBERS);
    default:
      return random.chance(0.3) ? `"${longText(random)}"` : JSON.stringify(random.pick(TEXTS));
  }
}

const VALUE = /:\s*("(?:[^"\\]|\\.){0,2000}"|[-\d.eE+]+|true|false|null)/g;
const KEY = /"([^"\\]{0,60})"\s*:/g;

/** Match of the pattern at or after a random place. */
function near(text: string, pattern: RegExp, random: Random): RegExpExecArray | null {
  pattern.lastIndex = random.int(text.length);
  return pattern.exec(text);
}

/** The bounds of one element of an array of objects. */
function element(text: string, random: Random): [number, number] | null {
  const at = random.int(text.length);
  const from = text.lastIndexOf('}, {', at);
  const to = text.indexOf('}, {', at);
  return from === -1 || to === -1 ? null : [from + 3, to + 1];
}

const splice = (text: string, from: number, to: number, what: string): string => text.slice(0, from) + what + text.slice(to);

type Mutation = (text: string, random: Random) => string;

const MUTATIONS: Readonly<Record<string, Mutation>> = {
  value(text, random) {
    const found = near(text, VALUE, random);
    if (found === null) return text;
    return splice(text, found.index + found[0].length - found[1]!.length, found.index + found[0].length, oddValue(random));
  },
  values(text, random) {
    let out = text;
    for (let n = 2 + random.int(12); n > 0; n--) out = MUTATIONS.value!(out, random);
    return out;
  },
  /** One key's value everywhere. */
  column(text, random) {
    const found = near(text, KEY, random);
    if (found === null) return text;
    const value = random.pick([random.pick(NUMBERS), `"${random.pick(NUMBERS)}"`, JSON.stringify(random.pick(TEXTS))]);
    const key = found[1]!.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    return text.replace(new RegExp(`"${key}"(\\s*):\\s*("(?:[^"\\\\]|\\\\.){0,2000}"|[-\\d.eE+]+)`, 'g'), () => `"${found[1]}":${value}`);
  },
  key(text, random) {
    const found = near(text, KEY, random);
    if (found === null) return text;
    return splice(text, found.index + 1, found.index + 1 + found[1]!.length, random.pick(KEYS));
  },
  duplicateKey(text, random) {
    const found = near(text, KEY, random);
    return found === null ? text : splice(text, found.index, found.index, `"${found[1]}": ${oddValue(random)}, `);
  },
  manyKeys(text, random) {
    const found = near(text, KEY, random);
    if (found === null) return text;
    const count = random.chance(0.05) ? 100_000 : random.pick([70, 600]);
    return splice(text, found.index, found.index, Array.from({ length: count }, (_, i) => `"k${i}":${i},`).join(''));
  },
  removeElement(text, random) {
    const at = element(text, random);
    return at === null ? text : splice(text, at[0], Math.min(text.length, at[1] + 2), '');
  },
  copyElement(text, random) {
    const from = element(text, random);
    const to = element(text, random);
    if (from === null || to === null) return text;
    const copies = random.pick([1, 1, 2, 50]);
    return splice(text, to[0], to[0], `${text.slice(from[0], from[1])}, `.repeat(copies));
  },
  cutElement(text, random) {
    const at = element(text, random);
    return at === null ? text : text.slice(0, at[1] + random.pick([0, 1]));
  },
  dropAll(text, random) {
    const what = random.pick([
      '"process_name"',
      '"thread_name"',
      'ProfilerStep#',
      '"cat": "cpu_op"',
      'Ascend Hardware',
      '"HostToDevice"',
      'async_npu',
      '"ts"',
      '"dur"',
    ]);
    return text.replaceAll(what, random.pick(['"x"', '', JSON.stringify(random.pick(TEXTS))]));
  },
  bracket(text, random) {
    const at = random.pick([
      text.lastIndexOf(']'),
      text.indexOf('['),
      text.indexOf('}', random.int(text.length)),
      text.indexOf('{', random.int(text.length)),
    ]);
    return at === -1 ? text : splice(text, at, at + 1, random.pick(['', ',]', ']]', '}', '{', ',']));
  },
  wrap: (text, random) =>
    random.pick(['{"traceEvents": ', '{"x": [', '[', ',', '﻿', ' \n', '{"traceEvents": {"a": ']) + text + random.pick(['', '}', ']', '\n']),
};

/** Anything inside a parsed value, replaced, doubled, dropped or moved. */
function mutateTree(text: string, random: Random): string {
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch {
    return MUTATIONS.value!(text, random);
  }
  const places: { holder: Record<string, unknown> | unknown[]; key: string | number }[] = [];
  // Not by recursion: an earlier mutation may have nested thousands of arrays.
  const stack: unknown[] = [root];
  while (stack.length > 0 && places.length <= 20_000) {
    const value = stack.pop();
    if (value === null || typeof value !== 'object') continue;
    for (const key of Object.keys(value)) {
      places.push({ holder: value as Record<string, unknown>, key });
      stack.push((value as Record<string, unknown>)[key]);
    }
  }
  if (places.length === 0) return oddValue(random);
  for (let n = 1 + random.int(4); n > 0; n--) {
    const { holder, key } = random.pick(places);
    const record = holder as Record<string, unknown>;
    switch (random.int(5)) {
      case 0:
        if (Array.isArray(holder)) holder.splice(Number(key), 1);
        else delete record[key];
        break;
      case 1:
        record[key] = (random.pick(places).holder as Record<string, unknown>)[random.pick(places).key];
        break;
      case 2:
        if (Array.isArray(holder)) holder.push(...Array.from({ length: random.pick([1, 40]) }, () => record[key]));
        else record[random.pick(KEYS.filter((k) => k !== '__proto__'))] = record[key];
        break;
      default:
        record[key] = random.pick([-1, 0, 1, 0.5, 1e308, 2 ** 53, 2 ** 31, -(2 ** 31), null, true, '', [], {}, ...TEXTS, ...NUMBERS]);
    }
  }
  try {
    return JSON.stringify(root) ?? 'null';
  } catch {
    // A value was put into itself.
    return text;
  }
}

const ODD_FLOATS = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1, 0, 1e300, -1e300, 5e-324, 2 ** 53, -(2 ** 53), 0.5];
const COLUMN = /"\$(f64|i32|u8|list)":"([A-Za-z0-9+/=]+)"/g;

/** The packed columns of a facts.json: other numbers, another length, much more than was packed. */
function mutateColumn(text: string, random: Random): string {
  const found = near(text, COLUMN, random);
  if (found === null) return mutateTree(text, random);
  const [all, kind, packed] = found;
  let bytes: Buffer;
  try {
    bytes = inflateSync(Buffer.from(packed!, 'base64'));
  } catch {
    return mutateTree(text, random);
  }
  const wide = kind === 'f64' || kind === 'list';
  const size = wide ? 8 : kind === 'i32' ? 4 : 1;
  switch (random.int(8)) {
    case 0:
      bytes = bytes.subarray(0, random.int(bytes.length + 1));
      break;
    case 1:
      bytes = Buffer.concat([bytes, bytes]);
      break;
    case 2:
      if (random.chance(0.05)) bytes = Buffer.alloc(random.pick([1 << 20, 48 << 20]));
      break;
    default:
      for (let n = 1 + random.int(6); n > 0 && bytes.length >= size; n--) {
        const at = random.int(Math.floor(bytes.length / size)) * size;
        if (wide) bytes.writeDoubleLE(random.pick(ODD_FLOATS), at);
        else if (size === 4) bytes.writeInt32LE(random.pick([-1, -2, 0, 1, 2 ** 31 - 1, -(2 ** 31), 7, 300]), at);
        else bytes[at] = random.int(256);
      }
  }
  const written = `"$${kind}":"${deflateSync(bytes, { level: 1 }).toString('base64')}"`;
  return splice(text, found.index, found.index + all.length, written);
}

const NAMES = Object.keys(MUTATIONS);
/** Larger texts are not parsed for a mutation: their events are reached by place. */
const TREE_BYTES = 24_000;

export function mutateJson(data: Buffer, random: Random): { data: Buffer; what: string } {
  const text = data.toString('utf8');
  if (text.length === 0) return { data, what: 'none' };
  const facts = text.startsWith('{"schema":"npu-advisor.facts');
  let what = random.pick(NAMES);
  let out: string;
  if (facts && random.chance(0.7)) {
    what = random.chance(0.6) ? 'facts-column' : 'facts-tree';
    out = what === 'facts-column' ? mutateColumn(text, random) : mutateTree(text, random);
  } else if (text.length < TREE_BYTES && random.chance(0.6)) {
    what = 'tree';
    out = mutateTree(text, random);
  } else out = MUTATIONS[what]!(text, random);
  // A lone surrogate becomes bytes no decoder accepts.
  return { data: Buffer.from(out, random.chance(0.03) ? 'latin1' : 'utf8'), what };
}
