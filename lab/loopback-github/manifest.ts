/** Registering the app from a manifest (docs: "Registering a GitHub App from a manifest"): a form that is posted, a code, its conversion. */
import { createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import { ApiError, notFound } from './api-error.ts';
import { isObject, type JsonObject } from './json.ts';
import { eventPermissions } from './permissions.ts';
import { appJson } from './present/account.ts';
import { account, type HubState, now, type Permissions } from './state.ts';

const CODE_LIFETIME_MS = 3_600_000;

/** Where the browser is sent after somebody has confirmed; null: GitHub shows what is wrong with the manifest. */
export function registerFromManifest(state: HubState, path: string, form: URLSearchParams): string | null {
  const url = new URL(path, state.url);
  const owner = /^\/organizations\/([\w.-]+)\/settings\/apps\/new$/.exec(url.pathname)?.[1] ?? null;
  if (owner === null && url.pathname !== '/settings/apps/new') return null;
  let manifest: unknown;
  try {
    manifest = JSON.parse(form.get('manifest') ?? '');
  } catch {
    return null;
  }
  if (!isObject(manifest) || !isAcceptable(manifest)) return null;
  const code = randomBytes(20).toString('hex');
  state.manifestCodes.set(code, { manifest, owner, expiresAt: Date.now() + CODE_LIFETIME_MS });
  const target = new URL(String(manifest.redirect_url));
  target.searchParams.set('code', code);
  const given = url.searchParams.get('state');
  if (given !== null) target.searchParams.set('state', given);
  return target.href;
}

function isAcceptable(manifest: JsonObject): boolean {
  const { url, redirect_url: redirect, hook_attributes: hook, default_permissions: permissions, default_events: events } = manifest;
  if (![url, redirect].every((text) => typeof text === 'string' && URL.canParse(text))) return false;
  // No webhook goes to a machine of the user (docs: "Using webhooks with GitHub Apps").
  if (!isObject(hook) || typeof hook.url !== 'string' || !URL.canParse(hook.url)) return false;
  if (/^(localhost|127\.)/.test(new URL(hook.url).hostname)) return false;
  if (!isObject(permissions) || !Array.isArray(events)) return false;
  return events.every((event) => {
    const [needed = '', level = ''] = (eventPermissions[String(event)] ?? 'unknown:read').split(':');
    return permissions[needed] === level || permissions[needed] === 'write';
  });
}

/** Makes the app of a code. A code is good for one use within an hour. */
export function convertManifest(state: HubState, code: string): JsonObject {
  const kept = state.manifestCodes.get(code);
  state.manifestCodes.delete(code);
  if (!kept || kept.expiresAt < Date.now()) throw notFound();
  const { manifest, owner } = kept;
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const pem = privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();
  const name = String(manifest.name ?? 'app');
  const slug = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
  if (slug === state.app.slug) throw new ApiError(422, 'Name is already taken');
  const id = state.app.id + 1;
  state.app = {
    ...state.app,
    id,
    slug,
    name,
    clientId: `Iv1.${id.toString(16).padStart(16, '0')}`,
    owner: owner === null ? state.app.owner : account(state, owner, 'Organization'),
    bot: account(state, `${slug}[bot]`, 'Bot'),
    publicKey: createPublicKey(pem),
    privateKeyPem: pem,
    webhookSecret: randomBytes(20).toString('hex'),
    permissions: { ...(manifest.default_permissions as Permissions) },
    events: (manifest.default_events as unknown[]).map(String),
    createdAt: now(state),
  };
  state.webhookUrl = String((manifest.hook_attributes as JsonObject).url);
  return { ...appJson(state), client_secret: randomBytes(20).toString('hex'), webhook_secret: state.app.webhookSecret, pem };
}
