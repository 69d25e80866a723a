import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { link, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Delivery, Inbox, InboxReader } from '../ports.ts';

/**
 * Deliveries as one fsynced file each, so that answering a webhook costs two small writes and no database.
 * The name is a digest of the GUID, so the same delivery twice is one file; the clock in front keeps the order.
 */
const SUFFIX = '.delivery.json';
const RECENT = 20_000;

function nameOf(guid: string): string {
  return createHash('sha256').update(guid).digest('hex').slice(0, 40);
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The writing side, on the thread that answers webhooks. */
export function openSpool(folder: string): Inbox {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // Remembers what this process accepted, so that a repeated delivery costs nothing; the store is the final judge.
  const recent = new Map<string, Promise<void>>();

  async function write(delivery: Delivery): Promise<void> {
    const path = join(folder, `${nameOf(delivery.guid)}${SUFFIX}`);
    const draft = `${path}.${process.pid}.tmp`;
    const handle = await open(draft, 'w', 0o600);
    try {
      await handle.writeFile(JSON.stringify(delivery));
      await handle.datasync();
    } finally {
      await handle.close();
    }
    await rename(draft, path);
    await syncFolder(folder);
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
    async close() {},
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
  };
}
