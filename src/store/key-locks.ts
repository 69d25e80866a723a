/** Mutual exclusion by key inside one process, first come first served. */
export function createKeyLocks(): <T>(key: string, body: () => Promise<T>) => Promise<T> {
  const tails = new Map<string, Promise<unknown>>();
  return async (key, body) => {
    const before = tails.get(key) ?? Promise.resolve();
    const mine = before.then(body, body);
    const settled = mine.catch(() => undefined);
    tails.set(key, settled);
    try {
      return await mine;
    } finally {
      if (tails.get(key) === settled) tails.delete(key);
    }
  };
}
