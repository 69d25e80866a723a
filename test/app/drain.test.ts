import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { drain } from '../../src/app/drain.ts';

const IDLE_MS = 300;

async function listen(server: Server, port = 0): Promise<number> {
  server.listen({ port, host: '127.0.0.1', reusePort: true });
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

function named(name: string): Server {
  return createServer((incoming, response) => void sleep(incoming.url === '/slow' ? 100 : 0).then(() => response.end(name)));
}

async function ask(port: number, path: string, agent: Agent): Promise<{ by: string; connection: string | undefined }> {
  const sent = request({ host: '127.0.0.1', port, path, agent }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  let by = '';
  for await (const part of response.setEncoding('utf8')) by += part;
  return { by, connection: response.headers.connection };
}

describe.skipIf(process.platform !== 'linux')('a server that ends while another one has its port', () => {
  it('answers what was asked and what comes on open connections; new ones go to the other', async () => {
    const [old, next] = [named('old'), named('next')];
    const port = await listen(old);
    const [kept, busy, fresh] = [0, 1, 2].map(() => new Agent({ keepAlive: true, maxSockets: 1 })) as [Agent, Agent, Agent];
    expect(await ask(port, '/', kept)).toEqual({ by: 'old', connection: 'keep-alive' });
    const slow = ask(port, '/slow', busy);
    await once(old, 'request');
    await listen(next, port);
    const drained = drain(old, IDLE_MS);

    expect(await ask(port, '/', kept)).toEqual({ by: 'old', connection: 'close' });
    for (let i = 0; i < 20; i++) expect((await ask(port, '/', new Agent())).by).toBe('next');
    expect((await slow).by).toBe('old');
    expect((await ask(port, '/', fresh)).by).toBe('next');
    await drained;
    expect(old.listening).toBe(false);
    expect((await ask(port, '/', kept)).by).toBe('next');
    for (const agent of [kept, busy, fresh]) agent.destroy();
    const started = performance.now();
    await drain(next, 60_000);
    expect(performance.now() - started).toBeLessThan(5000);
  });
});
