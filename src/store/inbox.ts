import type { Delivery, Inbox, InboxReader } from './ports.ts';

/** GitHub waits ten seconds for an answer. */
const PATIENCE_MS = 2000;
/** While the shared inbox fails it is not asked for so long. */
const REST_MS = 1000;

/**
 * Deliveries go to the inbox all processes share; while that cannot be reached, to the folder of this process, whose own jobs take them up
 * once it is back. Recording is by GUID, so one that reached both is worked on once.
 */
export function openInboxWithFallback(shared: Inbox, own: Inbox, onFallback: (error: unknown) => void): Inbox {
  let restsUntil = 0;
  const accept = async (delivery: Delivery): Promise<'accepted' | 'duplicate'> => {
    if (Date.now() >= restsUntil) {
      let timer: NodeJS.Timeout | undefined;
      try {
        const late = new Promise<never>((_, reject) => {
          timer = setTimeout(() => reject(new Error('the database does not answer')), PATIENCE_MS);
        });
        return await Promise.race([shared.accept(delivery), late]);
      } catch (error) {
        restsUntil = Date.now() + REST_MS;
        onFallback(error);
      } finally {
        clearTimeout(timer);
      }
    }
    return own.accept(delivery);
  };
  return {
    accept,
    async close() {
      await Promise.all([shared.close(), own.close()]);
    },
  };
}

/** Reads several inboxes as one, each as far as it can be read. */
export function readAll(readers: readonly InboxReader[]): InboxReader {
  return {
    async pending(limit) {
      const found: Delivery[] = [];
      for (const reader of readers) if (found.length < limit) found.push(...(await reader.pending(limit - found.length)));
      return found;
    },
    async release(guid) {
      for (const reader of readers) await reader.release(guid);
    },
    async tidy(olderThan) {
      for (const reader of readers) await reader.tidy?.(olderThan);
    },
  };
}
