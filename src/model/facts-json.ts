import { deflateSync, inflateSync } from 'node:zlib';
import { AdviseError } from '../base/errors.ts';
import type { RankFacts, UploadFacts } from './facts.ts';
import { FACTS_SCHEMA, RankFactsSchema, UploadFactsSchema } from './facts-schema.ts';

/**
 * facts.json: the rank facts of a job, small and replayable. `analyze facts.json` gives the same report as the profile it came from.
 * Number columns are base64 of deflated little-endian arrays, so every figure survives to the bit; NaN (missing) survives, too.
 */

/** A column larger than this is not a digest, bytes after inflating. */
const MAX_COLUMN_BYTES = 256 << 20;
/** All columns of a file together, bytes after inflating: a thousand ranks need a third of it. */
const MAX_TOTAL_BYTES = 1 << 30;

/** What may still be inflated. */
interface Room {
  bytes: number;
}

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

function column(tag: string, array: Float64Array | Int32Array | Uint8Array): Json {
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  return { [tag]: deflateSync(bytes, { level: 6 }).toString('base64') };
}

function encode(value: unknown): Json {
  if (value === null || value === undefined) return null;
  if (typeof value === 'number') return Number.isFinite(value) ? value : { $number: String(value) };
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (value instanceof Float64Array) return column('$f64', value);
  if (value instanceof Int32Array) return column('$i32', value);
  if (value instanceof Uint8Array) return column('$u8', value);
  if (value instanceof Set) return { $set: [...value].map(encode) };
  if (value instanceof Map) return { $map: [...value].map(([k, v]) => [encode(k), encode(v)]) };
  if (Array.isArray(value)) {
    // Long lists of plain numbers (intervals) travel as columns.
    if (value.length > 32 && value.every((v) => typeof v === 'number'))
      return { $list: (column('$f64', Float64Array.from(value as number[])) as { $f64: string }).$f64 };
    return value.map(encode);
  }
  const out: Record<string, Json> = {};
  for (const [key, inner] of Object.entries(value as Record<string, unknown>)) if (inner !== undefined) out[key] = encode(inner);
  return out;
}

function bytesOf(text: unknown, room: Room): Buffer {
  if (typeof text !== 'string') throw new Error('a column is not text');
  const bytes = inflateSync(Buffer.from(text, 'base64'), { maxOutputLength: Math.max(1, Math.min(MAX_COLUMN_BYTES, room.bytes)) });
  room.bytes -= bytes.length;
  return bytes;
}

function array<T extends Float64Array | Int32Array>(
  type: { new (buffer: ArrayBuffer): T; readonly BYTES_PER_ELEMENT: number },
  text: unknown,
  room: Room,
): T {
  const bytes = bytesOf(text, room);
  if (bytes.length % type.BYTES_PER_ELEMENT !== 0) throw new Error('a column is cut off');
  return new type(Uint8Array.from(bytes).buffer);
}

const MAX_DEPTH = 24;

function decode(value: unknown, depth: number, room: Room): unknown {
  if (depth > MAX_DEPTH) throw new Error('nested too deeply');
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map((v) => decode(v, depth + 1, room));
  const record = value as Record<string, unknown>;
  const keys = Object.keys(record);
  if (keys.length === 1) {
    const inner = record[keys[0]!];
    switch (keys[0]) {
      case '$number':
        return inner === 'Infinity' ? Number.POSITIVE_INFINITY : inner === '-Infinity' ? Number.NEGATIVE_INFINITY : Number.NaN;
      case '$f64':
        return array(Float64Array, inner, room);
      case '$list':
        return [...array(Float64Array, inner, room)];
      case '$i32':
        return array(Int32Array, inner, room);
      case '$u8':
        return Uint8Array.from(bytesOf(inner, room));
      case '$set':
        return new Set(Array.isArray(inner) ? inner.map((v) => decode(v, depth + 1, room)) : []);
      case '$map':
        return new Map(
          Array.isArray(inner)
            ? inner.filter(Array.isArray).map((p) => [decode(p[0], depth + 1, room), decode(p[1], depth + 1, room)] as const)
            : [],
        );
    }
  }
  const out: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  for (const key of keys) if (key !== '__proto__') out[key] = decode(record[key], depth + 1, room);
  return { ...out };
}

/** `upload` is what the report says beside the ranks; without it the digest is of the ranks alone. */
export function factsToJson(ranks: readonly RankFacts[], upload: UploadFacts | null = null): string {
  return `${JSON.stringify({ schema: FACTS_SCHEMA, upload: encode(upload), ranks: ranks.map(encode) })}\n`;
}

/** True when the text begins like a facts.json. */
export function looksLikeFacts(head: string): boolean {
  return /^\s*\{\s*"schema"\s*:\s*"npu-advisor\.facts\//.test(head);
}

/** A digest as it was read. */
export interface Digest {
  readonly ranks: readonly RankFacts[];
  readonly upload: UploadFacts | null;
}

export function factsFromJson(text: string): readonly RankFacts[] {
  return digestFromJson(text).ranks;
}

/** Reads a facts.json; it is foreign input and checked in full. */
export function digestFromJson(text: string): Digest {
  const hint = { en: 'Make it again with `npu-advise digest`.', zh: '用 `npu-advise digest` 重新生成。' };
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch (error) {
    throw new AdviseError('bad-facts', { en: 'facts.json is not valid JSON', zh: 'facts.json 不是有效的 JSON' }, hint, { cause: error });
  }
  const { schema, ranks, upload } = (root ?? {}) as { schema?: unknown; ranks?: unknown; upload?: unknown };
  if (schema !== FACTS_SCHEMA)
    throw new AdviseError(
      'bad-facts',
      {
        en: `facts.json has another format (${String(schema).slice(0, 40)})`,
        zh: `facts.json 的格式不同（${String(schema).slice(0, 40)}）`,
      },
      { en: `${hint.en} Use the same version for digest and analyze.`, zh: `${hint.zh}digest 与 analyze 使用同一版本。` },
    );
  if (!Array.isArray(ranks))
    throw new AdviseError('bad-facts', { en: 'facts.json holds no ranks', zh: 'facts.json 中没有任何卡的数据' }, hint);
  try {
    const room: Room = { bytes: MAX_TOTAL_BYTES };
    return {
      ranks: ranks.map((rank) => RankFactsSchema.parse(decode(rank, 0, room)) as unknown as RankFacts),
      upload: upload == null ? null : (UploadFactsSchema.parse(decode(upload, 0, room)) as UploadFacts),
    };
  } catch (error) {
    throw new AdviseError('bad-facts', { en: 'facts.json is damaged', zh: 'facts.json 已损坏' }, hint, { cause: error });
  }
}
