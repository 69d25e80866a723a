import type { Server } from 'node:http';
import { Server as NetServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Ends a server without cutting anybody off: nothing new is let in, what is asked on open connections is answered and says that it is the
 * last answer. Only then are those closed on which nothing was asked; closed at once they would meet requests that are on their way.
 */
export async function drain(server: Server, idleMs: number): Promise<void> {
  server.prependListener('request', (_, response) => response.setHeader('connection', 'close'));
  // `close` of an HTTP server ends connections without a request at once [Node.js, http, since 19]; that of a plain one does not.
  const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  const over = new AbortController();
  await Promise.race([closed, sleep(idleMs, undefined, { signal: over.signal }).catch(() => undefined)]);
  over.abort();
  server.close();
  setTimeout(() => server.closeAllConnections(), 5000).unref();
  await closed;
}
