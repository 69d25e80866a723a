import type { Said } from '../base/errors.ts';

/**
 * Where an entry's bytes lie, so that another thread can open it again: a file on disk, or a member of a zip file. `gzip`: packed once
 * more; `absent`: listed, its bytes were not fetched.
 */
export type EntryPlace = ({ readonly file: string } | { readonly zip: string; readonly member: string }) & {
  readonly gzip?: true;
  readonly absent?: true;
};

/** One file of an upload. `path` is relative to the upload's root, with forward slashes; it is data, never a place to write to. */
export interface ProfileEntry {
  readonly path: string;
  readonly bytes: number;
  readonly place: EntryPlace;
  /** Content in order; chunks may be reused by the producer after the next one is asked for. Throws AdviseError on damage. */
  open(): AsyncIterable<Buffer>;
}

/** Something a person uploaded: a folder, an archive, a single file. */
export interface ProfileSource {
  /** Name shown to people: the last part of the path. */
  readonly label: string;
  readonly kind: 'folder' | 'zip' | 'tar' | 'file';
  readonly entries: readonly ProfileEntry[];
  /** Archives inside that could not be opened. */
  readonly refused: readonly RefusedArchive[];
  close(): Promise<void>;
}

/** An archive inside the upload that was left closed; the rest of the upload is read all the same. */
export interface RefusedArchive {
  readonly path: string;
  readonly bytes: number;
  readonly why: Said;
}

/** Reads an entry into memory; at most `max` bytes, else null. */
export async function readWhole(entry: ProfileEntry, max: number): Promise<Buffer | null> {
  if (entry.bytes > max) return null;
  const parts: Buffer[] = [];
  let total = 0;
  for await (const chunk of entry.open()) {
    total += chunk.length;
    if (total > max) return null;
    parts.push(Buffer.from(chunk));
  }
  return Buffer.concat(parts);
}

/** Chunks that stay as they are, for whoever keeps them: a producer may reuse its own. */
export async function* copies(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) yield Buffer.from(chunk);
}
