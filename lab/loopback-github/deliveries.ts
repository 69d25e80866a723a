/** Sends webhooks as GitHub does: signed, with a GUID, filed in the app's delivery log; and misbehaves on request. */
import { createHmac, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { description } from './description.ts';
import { excepted } from './exceptions.ts';
import { isObject, type JsonObject, merged } from './json.ts';
import { account, type Delivery, type HubState, nextId, now } from './state.ts';
import { type Payload, type WebhookSubject, webhookPayload } from './webhook-payloads.ts';

/** How to send a webhook. */
export interface DeliveryOptions {
  /** Login that sets the event off; by default the natural one (author, commenter, owner). */
  sender?: string;
  /** Merged over the built payload. The result must still fit GitHub's schema. */
  payload?: JsonObject;
  guid?: string;
  /** Send the same delivery this often. */
  times?: number;
  /** Sign with another secret. */
  secret?: string;
  delayMs?: number;
  /** File the delivery as failed without sending it: the app was down. */
  drop?: boolean;
  /** Send to another address than the app's webhook URL. */
  url?: string;
  headers?: { [name: string]: string };
  /** Send these bytes instead of the payload's JSON (signed as they are). */
  rawBody?: string | Buffer;
}

/** What the receiver answered. */
export interface DeliveryResult {
  id: number;
  guid: string;
  event: string;
  status: number;
  ms: number;
  body: string;
  payload: JsonObject;
  /** Every attempt, when it was sent several times. */
  attempts: { status: number; ms: number; body: string }[];
}

/** GitHub drops payloads above this size (docs: "Webhook events and payloads"). */
const MAX_PAYLOAD_BYTES = 25 * 1024 * 1024;
/** GitHub waits this long for an answer (docs: "Handling webhook deliveries"; 30 s on GHES). */
const TIMEOUT_MS = 10_000;

/** Builds, checks, signs and sends a webhook. */
export async function deliver(state: HubState, subject: WebhookSubject, options: DeliveryOptions = {}): Promise<DeliveryResult> {
  const sender = options.sender === undefined ? null : account(state, options.sender);
  const payload = webhookPayload(state, subject, sender);
  payload.body = merged(JSON.parse(JSON.stringify(payload.body)) as JsonObject, options.payload ?? {});
  if (isObject(options.payload?.installation) && typeof options.payload.installation.id === 'number')
    payload.installationId = options.payload.installation.id;
  checkPayload(state, payload);
  return send(state, payload, options);
}

function checkPayload(state: HubState, payload: Payload): void {
  const where = `webhook:${payload.schema}`;
  if (!description().webhooks.has(payload.schema)) {
    state.violations.push({ side: 'hub', kind: 'webhook', exchange: where, faults: ['GitHub describes no such webhook'] });
    return;
  }
  const faults = description()
    .faults(['webhooks', 'events', payload.schema], payload.body)
    .filter((fault) => !excepted(where, fault));
  if (faults.length > 0) state.violations.push({ side: 'hub', kind: 'webhook', exchange: where, faults });
}

async function send(state: HubState, payload: Payload, options: DeliveryOptions): Promise<DeliveryResult> {
  const guid = options.guid ?? randomUUID();
  const raw = options.rawBody ?? JSON.stringify(payload.body);
  const bytes = Buffer.isBuffer(raw) ? raw : Buffer.from(raw, 'utf8');
  const delivery: Delivery = {
    id: nextId(state, 'delivery'),
    guid,
    event: payload.event,
    action: payload.action,
    deliveredAt: now(state),
    redelivery: false,
    durationMs: 0,
    status: 'OK',
    statusCode: 0,
    installationId: payload.installationId,
    repositoryId: payload.repositoryId,
    url: options.url ?? state.webhookUrl ?? '',
    requestHeaders: headersOf(state, payload.event, guid, bytes, options),
    payload: payload.body,
    rawBody: bytes.toString('utf8'),
    responseBody: '',
    responseHeaders: {},
  };
  const result: DeliveryResult = {
    id: delivery.id,
    guid,
    event: payload.event,
    status: 0,
    ms: 0,
    body: '',
    payload: payload.body,
    attempts: [],
  };
  if (bytes.length > MAX_PAYLOAD_BYTES) return { ...result, body: 'payload above 25 MB: dropped' };
  if (options.delayMs) await sleep(options.delayMs);
  state.deliveries.unshift(delivery);
  if (options.drop || delivery.url === '') {
    delivery.status = 'failed to connect to host';
    return result;
  }
  for (let attempt = 0; attempt < (options.times ?? 1); attempt++) {
    await post(delivery, bytes);
    result.attempts.push({ status: delivery.statusCode, ms: delivery.durationMs, body: delivery.responseBody });
  }
  return { ...result, status: delivery.statusCode, ms: delivery.durationMs, body: delivery.responseBody };
}

function headersOf(state: HubState, event: string, guid: string, bytes: Buffer, options: DeliveryOptions): { [name: string]: string } {
  const secret = options.secret ?? state.app.webhookSecret;
  return {
    accept: '*/*',
    'content-type': 'application/json',
    'user-agent': 'GitHub-Hookshot/0a1b2c3',
    'x-github-delivery': guid,
    'x-github-event': event,
    'x-github-hook-id': '480000001',
    'x-github-hook-installation-target-id': String(state.app.id),
    'x-github-hook-installation-target-type': 'integration',
    ...(state.enterprise === null
      ? {}
      : { 'x-github-enterprise-host': new URL(state.url).host, 'x-github-enterprise-version': state.enterprise }),
    'x-hub-signature': `sha1=${createHmac('sha1', secret).update(bytes).digest('hex')}`,
    'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(bytes).digest('hex')}`,
    ...options.headers,
  };
}

async function post(delivery: Delivery, bytes: Buffer): Promise<void> {
  const started = performance.now();
  try {
    const response = await fetch(delivery.url, {
      method: 'POST',
      headers: delivery.requestHeaders,
      body: new Uint8Array(bytes),
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    delivery.responseBody = await response.text();
    delivery.responseHeaders = Object.fromEntries(response.headers);
    delivery.statusCode = response.status;
    delivery.status = response.ok ? 'OK' : `Invalid HTTP Response: ${response.status}`;
  } catch (error) {
    delivery.statusCode = error instanceof Error && error.name === 'TimeoutError' ? 504 : 502;
    delivery.status = delivery.statusCode === 504 ? 'timed out' : 'failed to connect to host';
    delivery.responseBody = '';
  }
  delivery.durationMs = Math.round(performance.now() - started);
}

/** Sends a filed delivery again, under the same GUID, as a new entry of the log. */
export async function redeliver(state: HubState, original: Delivery): Promise<Delivery> {
  const again: Delivery = {
    ...original,
    id: nextId(state, 'delivery'),
    deliveredAt: now(state),
    redelivery: true,
    url: state.webhookUrl ?? original.url,
  };
  state.deliveries.unshift(again);
  await post(again, Buffer.from(original.rawBody, 'utf8'));
  return again;
}

/** Sends the webhook of a state change, when this is switched on and the app subscribes to the event. Deliveries keep their order. */
export function emit(state: HubState, subject: WebhookSubject, sender?: string): void {
  const always = subject.event === 'installation' || subject.event === 'installation_repositories';
  if (!state.autoDeliver || state.webhookUrl === null || !(always || state.app.events.includes(subject.event))) return;
  const payload = webhookPayload(state, subject, sender === undefined ? null : account(state, sender));
  if (payload.installationId === null) return;
  payload.body = JSON.parse(JSON.stringify(payload.body)) as JsonObject;
  checkPayload(state, payload);
  state.outbox = state.outbox.then(async () => {
    await send(state, payload, {});
  });
}
