/** The host artifacts are downloaded from: another port, signed addresses, no tokens; errors in the style of Azure Blob Storage. */
import { createReadStream } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { blobUrlState, fileOfBlobPath } from './blob-url.ts';
import { takeFault } from './faults.ts';
import { createOwnServer } from './server.ts';
import { type Exchange, type HubState, now, type StoredFile } from './state.ts';

interface BlobExchange {
  request: IncomingMessage;
  response: ServerResponse;
  entry: Exchange;
}

/** A server that serves artifact bytes. */
export function createBlobServer(state: HubState): Server {
  return createOwnServer(state, (request, response) => {
    const started = performance.now();
    const path = request.url ?? '/';
    const entry: Exchange = {
      host: 'blob',
      method: request.method ?? 'GET',
      path,
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
    serve(state, { request, response, entry }).catch(() => response.destroy());
  });
}

function refuse(exchange: BlobExchange, status: number, code: string, message: string): void {
  const { response, entry } = exchange;
  entry.status = status;
  const body = `<?xml version="1.0" encoding="utf-8"?><Error><Code>${code}</Code><Message>${message}\nTime:${new Date().toISOString()}</Message></Error>`;
  response.writeHead(status, { 'content-type': 'application/xml', 'content-length': Buffer.byteLength(body), 'x-ms-error-code': code });
  response.end(body);
}

async function serve(state: HubState, exchange: BlobExchange): Promise<void> {
  const { request, response } = exchange;
  const url = new URL(request.url ?? '/', state.blobUrl);
  const fault = takeFault(state.faults, 'before', `BLOB ${request.method} ${request.url}`);
  if (fault?.hangMs) await sleep(fault.hangMs);
  if (fault?.dropConnection) return void response.destroy();
  if (fault?.status !== undefined)
    return refuse(exchange, fault.status, 'ServerBusy', 'The server is currently unable to receive requests.');

  if (request.method !== 'GET' && request.method !== 'HEAD')
    return refuse(exchange, 405, 'UnsupportedHttpVerb', 'The resource does not support the verb.');
  // An Authorization header beside a signature is refused (actions/upload-artifact#517, cloudflare/workers-sdk#4816).
  if (request.headers.authorization !== undefined) {
    return refuse(
      exchange,
      400,
      'InvalidAuthenticationInfo',
      'Authentication information is not given in the correct format. Check the value of Authorization header.',
    );
  }
  const signed = blobUrlState(state, url);
  if (signed !== 'good')
    return refuse(
      exchange,
      403,
      'AuthenticationFailed',
      'Server failed to authenticate the request. Signature not valid in the specified time frame.',
    );
  const artifact = fileOfBlobPath(state, url.pathname);
  if (!artifact) return refuse(exchange, 404, 'BlobNotFound', 'The specified blob does not exist.');
  await serveArtifact(artifact, exchange);
}

async function serveArtifact(artifact: StoredFile, exchange: BlobExchange): Promise<void> {
  const { request, response, entry } = exchange;
  const { etag } = artifact;
  const match = request.headers['if-match'];
  if (match !== undefined && match !== etag && match !== '*') {
    return refuse(exchange, 412, 'ConditionNotMet', 'The condition specified using HTTP conditional header(s) is not met.');
  }
  if (request.headers['if-none-match'] === etag) {
    entry.status = 304;
    response.writeHead(304, { etag });
    return void response.end();
  }
  const ifRange = request.headers['if-range'];
  const isRanged = !artifact.ignoreRange && (ifRange === undefined || ifRange === etag);
  const range = isRanged ? parseRange(request.headers.range, artifact.size) : null;
  if (range === 'unsatisfiable') {
    response.setHeader('content-range', `bytes */${artifact.size}`);
    return refuse(exchange, 416, 'InvalidRange', 'The range specified is invalid for the current size of the resource.');
  }
  const { start, end } = range ?? { start: 0, end: artifact.size };
  entry.status = range ? 206 : 200;
  response.writeHead(entry.status, {
    'content-type': artifact.contentType,
    'content-disposition': `attachment; filename="${encodeURIComponent(artifact.name)}.zip"`,
    ...(artifact.ignoreRange ? {} : { 'accept-ranges': 'bytes' }),
    etag,
    'last-modified': new Date(artifact.createdAt).toUTCString(),
    'x-ms-blob-type': 'BlockBlob',
    ...(artifact.omitLength ? {} : { 'content-length': end - start }),
    ...(range ? { 'content-range': `bytes ${start}-${end - 1}/${artifact.size}` } : {}),
  });
  if (request.method === 'HEAD') return void response.end();
  await send(artifact, start, end, exchange);
}

/**
 * The two forms Azure knows, `bytes=start-` and `bytes=start-end`; a suffix (`bytes=-500`) or several ranges are answered with everything
 * [docs, rest/api/storageservices/specifying-the-range-header-for-blob-service-operations; tus/tusd#1234].
 */
function parseRange(header: string | undefined, size: number): { start: number; end: number } | 'unsatisfiable' | null {
  const match = /^bytes=(\d+)-(\d*)$/.exec(header ?? '');
  if (!match) return null;
  const start = Number(match[1]);
  const end = match[2] === '' ? size : Math.min(size, Number(match[2]) + 1);
  return start >= size || end <= start ? 'unsatisfiable' : { start, end };
}

async function* chunks(artifact: StoredFile, start: number, end: number): AsyncGenerator<Buffer> {
  if (end <= start) return;
  const highWaterMark = artifact.slowBytesPerSecond === null ? 256 * 1024 : Math.max(1, Math.ceil(artifact.slowBytesPerSecond / 20));
  if ('file' in artifact.bytes) {
    for await (const chunk of createReadStream(artifact.bytes.file, { start, end: end - 1, highWaterMark })) yield chunk as Buffer;
    return;
  }
  for (let at = start; at < end; at += highWaterMark) yield artifact.bytes.buffer.subarray(at, Math.min(end, at + highWaterMark));
}

async function send(artifact: StoredFile, start: number, end: number, { response, entry }: BlobExchange): Promise<void> {
  let at = start;
  for await (const chunk of chunks(artifact, start, end)) {
    const { truncateAt } = artifact;
    const cut = truncateAt === null || start >= truncateAt ? chunk.length : Math.min(chunk.length, truncateAt - at);
    if (artifact.slowBytesPerSecond !== null) await sleep((chunk.length / artifact.slowBytesPerSecond) * 1000);
    if (response.destroyed) return;
    entry.bytes += cut;
    if (!response.write(chunk.subarray(0, cut))) await drained(response);
    at += cut;
    if (cut < chunk.length) {
      // Let what was written go out, then break the connection in the middle of the file.
      await sleep(5);
      return void response.destroy();
    }
  }
  response.end();
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
  });
}
