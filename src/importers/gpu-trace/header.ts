import { z } from 'zod';

/** What a trace of torch.profiler says of itself beside its events. */
export interface TraceHeader {
  /** Names of the devices by id. */
  readonly devices: ReadonlyMap<number, string>;
  readonly rank: number | null;
  readonly worldSize: number | null;
  readonly backend: string | null;
}

/** Bytes at the start of the file that are looked at: the groups of a large job take some 100 kB. */
export const HEADER_BYTES = 512 << 10;
/** And at its end. */
export const TAIL_BYTES = 64 << 10;

const Devices = z.array(z.object({ id: z.number().int(), name: z.string() })).max(1_024);
const Distributed = z.object({
  rank: z.number().int().nonnegative().max(1e7).optional(),
  world_size: z.number().int().positive().max(1e7).optional(),
  backend: z.string().optional(),
});

/** `head` and `tail` are the file's first and last bytes as text: the profiler writes the header first, tools that rewrite a trace last. */
export function readHeader(head: string, tail: string): TraceHeader {
  const before = head.slice(0, indexOrEnd(head, '"traceEvents"'));
  const find = (key: string): unknown => valueAfter(before, key) ?? valueAfter(tail, key, true);
  const devices = Devices.safeParse(find('deviceProperties'));
  const distributed = Distributed.safeParse(find('distributedInfo'));
  const own = distributed.success ? distributed.data : fromCut(before);
  return {
    devices: new Map((devices.success ? devices.data : []).map((d) => [d.id, d.name.slice(0, 200)] as const)),
    rank: own.rank ?? null,
    worldSize: own.world_size ?? null,
    backend: own.backend?.slice(0, 100) ?? null,
  };
}

function indexOrEnd(text: string, part: string): number {
  const at = text.indexOf(part);
  return at === -1 ? text.length : at;
}

/** The JSON value of a key, wherever it stands; undefined when there is none or it is cut. */
function valueAfter(text: string, key: string, last = false): unknown {
  const at = last ? text.lastIndexOf(`"${key}"`) : text.indexOf(`"${key}"`);
  if (at === -1) return undefined;
  const from = at + key.length + 2 + (/^\s*:\s*/.exec(text.slice(at + key.length + 2, at + key.length + 40))?.[0].length ?? 0);
  const end = closing(text, from);
  if (end === -1) return undefined;
  try {
    return JSON.parse(text.slice(from, end));
  } catch {
    return undefined;
  }
}

/** Offset after the object or list that begins at `from`, or -1. */
function closing(text: string, from: number): number {
  let depth = 0;
  let quoted = false;
  for (let i = from; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c === '\\') i++;
      else if (c === '"') quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === '{' || c === '[') depth++;
    else if (c === '}' || c === ']') {
      if (--depth === 0) return i + 1;
    } else if (depth === 0) return -1;
  }
  return -1;
}

/** A header longer than what is looked at: its first fields all the same. */
function fromCut(before: string): z.infer<typeof Distributed> {
  const at = before.indexOf('"distributedInfo"');
  if (at === -1) return {};
  const start = before.slice(at, at + 2_000);
  const number = (key: string): number | undefined => {
    const found = new RegExp(`"${key}"\\s*:\\s*(\\d{1,7})\\b`).exec(start)?.[1];
    return found === undefined ? undefined : Number(found);
  };
  return { rank: number('rank'), world_size: number('world_size') || undefined, backend: /"backend"\s*:\s*"([^"\\]*)"/.exec(start)?.[1] };
}
