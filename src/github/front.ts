import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { withoutTrailing } from '../base/endings.ts';
import { AdviseError } from '../base/errors.ts';
import type { Logger } from './log.ts';

export const WEBHOOK_PATH = '/api/github/webhooks';
/** GitHub drops larger events itself. */
export const MAX_BODY_BYTES = 25 * 1024 * 1024;
const MIN_SECRET_BYTES = 32;
const NEEDED_HEADERS = ['x-github-event', 'x-github-delivery', 'x-hub-signature-256'] as const;
const NAME = /^[a-z_]{1,64}$/;
const GUID = /^[\w-]{1,100}$/;

/** Refuses to start with a secret that would let strangers send events. */
export function checkSecret(secret: string | undefined, name = 'WEBHOOK_SECRET'): string {
  const hint = {
    en: `Set ${name} to the app's webhook secret, at least ${MIN_SECRET_BYTES} random bytes, for example from \`openssl rand -hex 32\`.`,
    zh: `将 ${name} 设为 App 的 webhook secret，至少 ${MIN_SECRET_BYTES} 字节的随机数，例如用 \`openssl rand -hex 32\` 生成。`,
  };
  if (secret === undefined || secret === '')
    throw new AdviseError('webhook-secret-missing', { en: `${name} is not set`, zh: `没有设置 ${name}` }, hint);
  if (secret === 'development')
    throw new AdviseError(
      'webhook-secret-weak',
      { en: `${name} is the well-known word "development"`, zh: `${name} 是众所周知的「development」` },
      hint,
    );
  if (Buffer.byteLength(secret) < MIN_SECRET_BYTES) {
    throw new AdviseError(
      'webhook-secret-weak',
      { en: `${name} is shorter than ${MIN_SECRET_BYTES} bytes`, zh: `${name} 不足 ${MIN_SECRET_BYTES} 字节` },
      hint,
    );
  }
  return secret;
}

function signatureOf(body: Buffer, secret: string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}

function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

function answer(response: ServerResponse, status: number, text: string, headers: Record<string, string> = {}): void {
  if (response.headersSent) return;
  const body = Buffer.from(`${text}\n`);
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': body.length, ...headers }).end(body);
}

/** Reads at most `limit` bytes; null when there is more. */
async function readBody(request: IncomingMessage, limit: number): Promise<Buffer | null> {
  const parts: Buffer[] = [];
  let total = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    total += part.length;
    if (total > limit) return null;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

export interface FrontOptions {
  readonly secret: string;
  /** Still accepted while the secret is being changed. */
  readonly previousSecret: string | null;
  /** Probot's middleware. It sees the request only after size and signature were checked. */
  readonly middleware: (request: IncomingMessage, response: ServerResponse) => unknown;
  /** Why deliveries cannot be worked on, one sentence; null: they can. The webhook accepts them even when not. */
  readonly problem: () => Promise<string | null>;
  /** Answers details pages; false: not one of them. null, or not given: there are none. */
  readonly details?: ((request: IncomingMessage, response: ServerResponse, path: string) => boolean) | null;
  readonly log: Logger;
}

/** The HTTP front: health, readiness and the webhook, with a size cap before anything is parsed. */
export function createFront(options: FrontOptions): RequestListener {
  const { secret, previousSecret, middleware, problem, details, log } = options;

  async function webhook(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refuse = (status: number, text: string, headers: Record<string, string> = {}): void => {
      log.warn(
        {
          status,
          reason: text,
          guid: GUID.test(String(request.headers['x-github-delivery'])) ? request.headers['x-github-delivery'] : null,
        },
        'delivery refused',
      );
      answer(response, status, text, { connection: 'close', ...headers });
    };
    if (request.method !== 'POST') return refuse(405, 'use POST', { allow: 'POST' });
    if (!/^\s*application\/json\s*(?:;|$)/i.test(request.headers['content-type'] ?? ''))
      return refuse(415, 'content type must be application/json');
    const missing = NEEDED_HEADERS.filter((name) => typeof request.headers[name] !== 'string');
    if (missing.length > 0) return refuse(400, `missing header ${missing.join(', ')}`);
    if (!NAME.test(String(request.headers['x-github-event'])) || !GUID.test(String(request.headers['x-github-delivery']))) {
      return refuse(400, 'malformed event name or delivery id');
    }
    if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) return refuse(413, 'larger than 25 MB');
    const body = await readBody(request, MAX_BODY_BYTES);
    if (body === null) return refuse(413, 'larger than 25 MB');

    const given = String(request.headers['x-hub-signature-256']);
    const expected = signatureOf(body, secret);
    if (!isEqual(given, expected)) {
      if (previousSecret === null || !isEqual(given, signatureOf(body, previousSecret))) return refuse(401, 'signature does not match');
      // Signed with the secret that is being replaced: the middleware knows the new one only.
      request.headers['x-hub-signature-256'] = expected;
    }
    Object.assign(request, { body: body.toString('utf8') });
    await middleware(request, response);
  }

  return (request, response) => {
    const path = withoutTrailing((request.url ?? '/').split('?', 1)[0]!, '/') || '/';
    if (path === '/healthz') return answer(response, 200, 'ok');
    if (path === '/readyz') {
      problem().then(
        (text) => (text === null ? answer(response, 200, 'ready') : answer(response, 503, text)),
        () => answer(response, 503, 'it is not known whether jobs run'),
      );
      return;
    }
    if (details?.(request, response, path) === true) return;
    if (path !== WEBHOOK_PATH) return answer(response, 404, 'not found');
    webhook(request, response).catch((error: unknown) => {
      log.error({ err: error }, 'delivery could not be accepted');
      answer(response, 500, 'not accepted, deliver again');
    });
  };
}
