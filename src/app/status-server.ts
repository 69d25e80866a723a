import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AdviseError } from '../base/errors.ts';
import type { ServerOptions } from './env.ts';
import type { FrontMetrics } from './metrics/front-metrics.ts';

export interface StatusServer {
  /** null: not asked for. */
  readonly url: string | null;
  close(): Promise<void>;
}

interface Work {
  problem(): Promise<string | null>;
  metrics(): Promise<string>;
}

/** Metrics, health and readiness on an address of their own, which the webhook's proxy does not lead to. */
export async function startStatusServer(
  { metricsPort, metricsHost }: Pick<ServerOptions, 'metricsPort' | 'metricsHost'>,
  metrics: Pick<FrontMetrics, 'text'>,
  work: Work,
): Promise<StatusServer> {
  if (metricsPort === null) return { url: null, close: async () => undefined };

  async function serve(path: string, response: ServerResponse): Promise<void> {
    if (path === '/healthz') return answer(response, 200, 'ok\n');
    const problem = await work.problem();
    if (path === '/readyz') return answer(response, problem === null ? 200 : 503, `${problem ?? 'ready'}\n`);
    answer(response, 200, (await metrics.text(problem)) + (await work.metrics()), 'text/plain; version=0.0.4; charset=utf-8');
  }
  const server = createServer((request, response) => {
    const path = (request.url ?? '/').split('?', 1)[0]!;
    if (request.method !== 'GET' && request.method !== 'HEAD') return answer(response, 405, 'use GET\n');
    if (!['/healthz', '/readyz', '/metrics'].includes(path)) return answer(response, 404, 'not found\n');
    serve(path, response).catch(() => answer(response, 500, 'not available\n'));
  });
  server.requestTimeout = 10_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(error.code === 'EADDRINUSE' ? portTaken('NPU_ADVISOR_METRICS_PORT', metricsPort) : error);
    });
    server.listen(metricsPort, metricsHost, resolve);
  });
  const { address, family, port } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function portTaken(variable: string, port: number): AdviseError {
  return new AdviseError(
    'port-taken',
    { en: `${variable}: port ${port} is taken`, zh: `${variable}：端口 ${port} 已被占用` },
    { en: `Stop what listens there, or set ${variable} to another one.`, zh: `停止占用该端口的程序，或将 ${variable} 设为其他端口。` },
  );
}

function answer(response: ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  if (response.headersSent) return;
  const body = Buffer.from(text);
  response.writeHead(status, { 'content-type': type, 'content-length': body.length, 'cache-control': 'no-store' }).end(body);
}
