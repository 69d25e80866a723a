/** The server of the API and of the pages: reads requests, applies armed faults, keeps the journal. */
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, serveApi } from './api.ts';
import { type Fault, faultMessage, takeFault } from './faults.ts';
import { registerFromManifest } from './manifest.ts';
import { servePage } from './page/pages.ts';
import { type Exchange, type HubState, now } from './state.ts';

/** Base path of the API, as on GitHub Enterprise Server. */
export const API_BASE = '/api/v3';

/** A server with the hub's certificate, where it has one. */
export function createOwnServer(state: HubState, listener: RequestListener): Server {
  return state.certificate === null ? createServer(listener) : createTlsServer(state.certificate, listener);
}

/** A server of the API and the pages. */
export function createHubServer(state: HubState): Server {
  return createOwnServer(state, (request, response) => {
    const path = request.url ?? '/';
    const api = path.startsWith('/api/');
    const started = performance.now();
    const entry: Exchange = {
      host: api ? 'api' : 'page',
      method: request.method ?? 'GET',
      path: path.startsWith(API_BASE) ? path.slice(API_BASE.length) : path,
      operation: null,
      status: 0,
      authorization: request.headers.authorization !== undefined,
      range: request.headers.range ?? null,
      bytes: 0,
      at: now(state),
      ms: 0,
    };
    state.journal.push(entry);
    response.on('close', () => {
      entry.ms = Math.round(performance.now() - started);
    });
    const served = api
      ? exchange(state, request, response, entry)
      : Promise.resolve().then(() =>
          request.method === 'POST' ? form(state, request, response, path, entry) : page(state, request, response, path, entry),
        );
    served.catch((error: unknown) => {
      // The client hung up in the middle of its request.
      if (!request.complete) return;
      state.violations.push({
        side: 'hub',
        kind: 'response',
        exchange: `${request.method} ${path}`,
        faults: [String(error instanceof Error ? error.stack : error)],
      });
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  });
}

/** GitHub's own limit on request bodies is larger than anything the API takes. */
const MAX_BODY_BYTES = 25 * 1024 * 1024;

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    if (size > MAX_BODY_BYTES) throw new Error('request body above 25 MB');
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

async function exchange(state: HubState, request: IncomingMessage, response: ServerResponse, entry: Exchange): Promise<void> {
  const path = entry.path || '/';
  const body = await readBody(request);
  const name = `${request.method} ${path}`;
  const before = takeFault(state.faults, 'before', name);
  if (before && (await fail(before, response, entry))) return;
  const answer = serveApi(state, request, path, body);
  entry.operation = answer.operation;
  const after = takeFault(state.faults, 'after', name);
  if (after && (await fail(after, response, entry))) return;
  write(response, answer, { ...before?.headers, ...after?.headers }, entry);
}

function write(response: ServerResponse, answer: Answer, extra: { [name: string]: string }, entry: Exchange): void {
  entry.status = answer.status;
  const headers: { [name: string]: string | number } = { server: 'github.com', ...answer.headers, ...extra };
  if (answer.status !== 204 && answer.status !== 304) headers['content-length'] = answer.body.length;
  response.writeHead(answer.status, headers);
  response.end(answer.body);
}

/** Carries a fault out; false when the exchange goes on after it. */
async function fail(fault: Fault, response: ServerResponse, entry: Exchange): Promise<boolean> {
  await fault.waitFor;
  if (fault.hangMs) await sleep(fault.hangMs);
  if (fault.dropConnection) {
    response.destroy();
    return true;
  }
  if (fault.status === undefined) return false;
  const body = Buffer.from(
    JSON.stringify({ message: faultMessage(fault), documentation_url: 'https://docs.github.com/rest', status: String(fault.status) }),
  );
  write(
    response,
    { status: fault.status, headers: { 'content-type': 'application/json; charset=utf-8' }, body, operation: null },
    fault.headers ?? {},
    entry,
  );
  return true;
}

/** The one form there is: the manifest of an app. Whoever posts it is taken to confirm at once. */
async function form(state: HubState, request: IncomingMessage, response: ServerResponse, path: string, entry: Exchange): Promise<void> {
  const target = registerFromManifest(state, path, new URLSearchParams((await readBody(request)).toString('utf8')));
  entry.status = target === null ? 422 : 302;
  response.writeHead(entry.status, target === null ? {} : { location: target }).end();
}

function page(state: HubState, request: IncomingMessage, response: ServerResponse, path: string, entry: Exchange): void {
  const { status, headers, body } = servePage(state, request.method ?? 'GET', path);
  entry.status = status;
  response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
  response.end(request.method === 'HEAD' ? undefined : body);
}
