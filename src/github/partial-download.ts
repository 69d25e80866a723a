import type { FileHandle } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { AdviseError, messageOf } from '../base/errors.ts';
import { type DownloadLimits, strongEtag } from './download.ts';
import { openStorage, pause, type Storage, type StorageOptions, StorageRefusal } from './storage.ts';

/** Bytes `start` to `end` of an artifact, `end` not included. */
export interface BytePart {
  readonly start: number;
  readonly end: number;
}

/** The storage host does not answer with the parts that are asked for, or no longer of the same file. */
export class NoParts extends Error {
  constructor(why: string) {
    super(why);
    this.name = 'NoParts';
  }
}

/** Parts fetched at the same time: hides the time until the first byte, and is far from any host's limit. */
const PARALLEL = 4;
/** Failures of one download all together, those that brought something new included. */
const MAX_FAILURES = 30;
const HEAD_BYTES = 512;

export interface PartialDownload {
  /** Bytes of the whole artifact. */
  readonly size: number;
  readonly head: Buffer;
  read(part: BytePart): Promise<Buffer>;
  /** Writes the parts to their places in a file. `onBytes` is told how many have arrived since it was last called. */
  write(parts: readonly BytePart[], file: FileHandle, onBytes: (count: number) => void): Promise<void>;
  close(): void;
}

export interface PartialOptions extends StorageOptions {
  readonly limits: Pick<DownloadLimits, 'timeoutMs' | 'attempts' | 'retryDelayMs'>;
  readonly signal: AbortSignal;
}

interface Answer {
  readonly size: number;
  readonly etag: string;
}

/** Checks that the answer is the part asked for, of the file known so far. */
function checkPart(response: IncomingMessage, { start, end }: BytePart, known: Answer | null): Answer {
  const { statusCode, headers } = response;
  const fail = (error: Error): never => {
    response.destroy();
    throw error;
  };
  if (statusCode === 200) return fail(new NoParts('the storage host sends everything instead of a part'));
  if (statusCode === 412 || statusCode === 416) return fail(new NoParts('the artifact is another than before'));
  if (statusCode !== 206) return fail(new StorageRefusal(response));
  const range = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers['content-range'] ?? '');
  const etag = strongEtag(headers.etag);
  if (range === null || headers['content-encoding'] !== undefined)
    return fail(new NoParts('the storage host sends a part without its place'));
  if (etag === null) return fail(new NoParts('the storage host names no version of the file'));
  const size = Number(range[3]);
  if (known !== null && (known.size !== size || known.etag !== etag)) return fail(new NoParts('the artifact is another than before'));
  if (Number(range[1]) !== start || Number(range[2]) !== Math.min(end, size) - 1) {
    return fail(new NoParts('the storage host sends another part than was asked for'));
  }
  return { size, etag };
}

/**
 * Opens an artifact of which parts are to be fetched. Every part must be of the same file (If-Match, ETag, size). Throws NoParts when
 * the host cannot do that; the caller then downloads everything.
 */
export async function openPartial(given: PartialOptions): Promise<PartialDownload> {
  const { limits } = given;
  const storage: Storage = openStorage(given, PARALLEL);
  let known: Answer | null = null;
  let failures = 0;

  /** Hands out the bytes of a part in order; goes on where it stopped when the connection breaks or the address has expired. */
  async function take(part: BytePart, signal: AbortSignal, use: (chunk: Buffer, at: number) => Promise<void> | void): Promise<void> {
    let at = part.start;
    let end = part.end;
    for (let inVain = 0; at < end; ) {
      const before = at;
      try {
        const headers = { range: `bytes=${at}-${end - 1}`, ...(known === null ? {} : { 'if-match': known.etag }) };
        const response = await storage.get(headers, signal);
        known = checkPart(response, { start: at, end }, known);
        end = Math.min(end, known.size);
        try {
          for await (const chunk of response as AsyncIterable<Buffer>) {
            if (at + chunk.length > end) throw new NoParts('the storage host sends more than was asked for');
            await use(chunk, at);
            at += chunk.length;
          }
        } finally {
          if (at < end) response.destroy();
        }
        if (at < end) throw new Error('the download ended early');
      } catch (error) {
        if (error instanceof NoParts || error instanceof AdviseError) throw error;
        storage.forgetAddress();
        failures++;
        inVain = at > before ? 1 : inVain + 1;
        if (signal.aborted || failures >= MAX_FAILURES || inVain >= limits.attempts) {
          throw new Error(`the artifact could not be downloaded: ${messageOf(error)}`, { cause: error });
        }
        await pause(inVain, limits.retryDelayMs, error, signal);
      }
    }
  }

  const withinTime = (): AbortSignal => AbortSignal.any([given.signal, AbortSignal.timeout(limits.timeoutMs)]);

  async function read(part: BytePart): Promise<Buffer> {
    const chunks: Buffer[] = [];
    await take(part, withinTime(), (chunk) => void chunks.push(chunk));
    return Buffer.concat(chunks);
  }

  try {
    const head = await read({ start: 0, end: HEAD_BYTES });
    if (known === null) throw new NoParts('the artifact is empty');
    return {
      size: (known as Answer).size,
      head,
      read,
      async write(parts, file, onBytes) {
        const queue = [...parts];
        const stop = new AbortController();
        const signal = AbortSignal.any([withinTime(), stop.signal]);
        const worker = async (): Promise<void> => {
          for (let part = queue.shift(); part !== undefined; part = queue.shift()) {
            await take(part, signal, async (chunk, at) => {
              await file.write(chunk, 0, chunk.length, at);
              onBytes(chunk.length);
            });
          }
        };
        const workers = Array.from({ length: Math.min(PARALLEL, parts.length) }, worker);
        try {
          await Promise.all(workers);
        } catch (error) {
          // One that failed stops the others; when this ends nobody writes to the file any more.
          queue.length = 0;
          stop.abort(new Error('another part could not be fetched'));
          await Promise.allSettled(workers);
          throw error;
        }
      },
      close: storage.close,
    };
  } catch (error) {
    storage.close();
    throw error;
  }
}
