import { createHash } from 'node:crypto';
import { closeSync, fdatasync, fsync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { link, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Delivery, Inbox, InboxReader } from '../ports.ts';

/**
 * Deliveries as one small file each, so that answering a webhook costs a write and no database.
 * The name is a digest of the GUID, so the same delivery twice is one file; the time of the file keeps the order.
 */
const SUFFIX = '.delivery.json';
const RECENT = 20_000;
/**
 * How long an answer waits for the disk. A written file survives the death of the process anyway; the disk matters when the machine
 * loses power, and then the embedded store is no better. On a busy disk a sync was measured at 280 ms (p99).
 */
const SYNC_WAIT_MS = 40;
const syncData = promisify(fdatasync);
const syncAll = promisify(fsync);

function nameOf(guid: string): string {
  return createHash('sha256').update(guid).digest('hex').slice(0, 40);
}

/** The writing side, on the thread that answers webhooks. */
export function openSpool(folder: string): Inbox {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // Remembers what this process accepted, so that a repeated delivery costs nothing; the store is the final judge.
  const recent = new Map<string, Promise<void>>();

  const folderHandle = openSync(folder, 'r');
  let drafts = 0;
  const pending = new Set<Promise<unknown>>();

  /**
   * The calls that only touch memory are synchronous, since each trip to the thread pool waits its turn on a busy machine; the two
   * that wait for the disk go there side by side.
   */
  async function write(delivery: Delivery): Promise<void> {
    const path = join(folder, `${nameOf(delivery.guid)}${SUFFIX}`);
    const draft = `${path}.${process.pid}.${drafts++}.tmp`;
    const handle = openSync(draft, 'w', 0o600);
    try {
      const bytes = Buffer.from(JSON.stringify(delivery));
      for (let written = 0; written < bytes.length; ) written += writeSync(handle, bytes, written);
      renameSync(draft, path);
    } catch (error) {
      closeSync(handle);
      // On a full disk GitHub sends many that cannot be kept.
      rmSync(draft, { force: true });
      throw error;
    }
    const syncing = Promise.allSettled([syncData(handle), syncAll(folderHandle)]).then(() => {
      closeSync(handle);
      pending.delete(syncing);
    });
    pending.add(syncing);
    await Promise.race([syncing, new Promise((resolve) => setTimeout(resolve, SYNC_WAIT_MS))]);
  }

  return {
    async accept(delivery) {
      const running = recent.get(delivery.guid);
      if (running !== undefined) {
        await running;
        // Spooled again: a redelivery by hand may revive work that failed.
        await write(delivery);
        return 'duplicate';
      }
      const writing = write(delivery);
      recent.set(delivery.guid, writing);
      if (recent.size > RECENT) recent.delete(recent.keys().next().value!);
      try {
        await writing;
      } catch (error) {
        recent.delete(delivery.guid);
        throw error;
      }
      return 'accepted';
    },
    async close() {
      await Promise.allSettled([...recent.values(), ...pending]);
      closeSync(folderHandle);
    },
  };
}

/** The reading side, on the thread that owns the store. */
export function readSpool(folder: string): InboxReader {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const pathOf = (guid: string): string => join(folder, `${nameOf(guid)}${SUFFIX}`);
  return {
    async pending(limit) {
      const names = (await readdir(folder)).filter((name) => name.endsWith(SUFFIX));
      const dated = await Promise.all(
        names.map(async (name) => ({ name, at: (await stat(join(folder, name)).catch(() => null))?.mtimeMs ?? 0 })),
      );
      dated.sort((a, b) => a.at - b.at);
      const found: Delivery[] = [];
      for (const { name } of dated.slice(0, limit)) {
        try {
          found.push(JSON.parse(await readFile(join(folder, name), 'utf8')) as Delivery);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue;
          // Not ours or damaged on disk: set aside instead of blocking what follows.
          await link(join(folder, name), join(folder, `${name}.damaged`)).catch(() => undefined);
          await rm(join(folder, name), { force: true });
        }
      }
      return found;
    },
    async release(guid) {
      await rm(pathOf(guid), { force: true });
    },
    async tidy(olderThan) {
      for (const name of await readdir(folder)) {
        if (name.endsWith(SUFFIX)) continue;
        const file = await stat(join(folder, name)).catch(() => null);
        if (file !== null && file.mtimeMs < olderThan) await rm(join(folder, name), { force: true });
      }
    },
  };
}
