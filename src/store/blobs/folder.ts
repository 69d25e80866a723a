import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Blobs, MAX_BLOB_BYTES } from './blobs.ts';
import type { FolderPlace } from './place.ts';

/** A share of the network that has gone answers never. */
const TIMEOUT_MS = 120_000;

async function inTime<T>(work: Promise<T>): Promise<T> {
  const over = new AbortController();
  const late = sleep(TIMEOUT_MS, undefined, { signal: over.signal, ref: false }).then(() => {
    throw new Error('the folder of blobs does not answer');
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    late.catch(() => undefined);
    over.abort();
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

/** Blobs as files in a folder that the machines share. */
export function openFolder({ path: root }: FolderPlace): Blobs {
  const fileOf = (key: string): string => join(root, key);

  async function write(file: string, bytes: Uint8Array): Promise<void> {
    const draft = `${file}.${randomUUID()}`;
    try {
      // Whoever cleans up may take the folder away meanwhile.
      for (let tries = 0; ; tries++) {
        await mkdir(dirname(file), { recursive: true, mode: 0o700 });
        try {
          await writeFile(draft, bytes, { mode: 0o600 });
          await rename(draft, file);
          return;
        } catch (error) {
          if (!isMissing(error) || tries === 3) throw error;
        }
      }
    } catch (error) {
      await rm(draft, { force: true }).catch(() => undefined);
      throw error;
    }
  }

  async function read(file: string): Promise<Uint8Array | null> {
    try {
      const { size } = await stat(file);
      if (size > MAX_BLOB_BYTES) throw new Error(`a blob of ${size} bytes is too large`);
      return await readFile(file);
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  async function remove(file: string): Promise<void> {
    const folder = dirname(file);
    const name = basename(file);
    let names: string[];
    try {
      names = await readdir(folder);
    } catch (error) {
      if (isMissing(error)) return;
      throw error;
    }
    // Drafts of a process that died go, too.
    for (const one of names) if (one === name || one.startsWith(`${name}.`)) await rm(join(folder, one), { force: true });
    for (const empty of [folder, dirname(folder)]) await rmdir(empty).catch(() => undefined);
  }

  return {
    write: (key, bytes) => inTime(write(fileOf(key), bytes)),
    read: (key) => inTime(read(fileOf(key))),
    remove: (key) => inTime(remove(fileOf(key))),
  };
}
