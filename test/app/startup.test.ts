import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { readEnv, VARIABLES } from '../../src/app/env.ts';
import { EVENTS } from '../../src/github/intake.ts';
import { startServer } from './support/world.ts';

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const PRIVATE_KEY = privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();
const GOOD = { APP_ID: '1', PRIVATE_KEY, WEBHOOK_SECRET: 'x'.repeat(32) };

describe('the environment', () => {
  it.each([
    ['no webhook secret', { WEBHOOK_SECRET: '' }, /WEBHOOK_SECRET is not set/],
    ['the secret "development"', { WEBHOOK_SECRET: 'development' }, /well-known word/],
    ['a short secret', { WEBHOOK_SECRET: 'x'.repeat(31) }, /shorter than 32 bytes/],
    ['a short previous secret', { WEBHOOK_SECRET_PREVIOUS: 'short' }, /WEBHOOK_SECRET_PREVIOUS is shorter/],
    ['no app', { APP_ID: '' }, /APP_ID/],
    ['no key', { PRIVATE_KEY: '' }, /PRIVATE_KEY is not set/],
    ['a key that is none', { PRIVATE_KEY: 'hello' }, /not a private key/],
    ['a number that is none', { PORT: 'many' }, /PORT must be a number/],
    ['a level that is none', { LOG_LEVEL: 'loud' }, /LOG_LEVEL must be one of trace, debug/],
    ['a shared port on the embedded store', { NPU_ADVISOR_SHARE_PORT: '1' }, /NPU_ADVISOR_SHARE_PORT needs DATABASE_URL/],
    ['an address as host', { GHE_HOST: 'https://ghe.example/' }, /GHE_HOST must be a host/],
    ['authorities that are not there', { NODE_EXTRA_CA_CERTS: '/no/such.pem' }, /NODE_EXTRA_CA_CERTS names no file/],
    ['authorities that are none', { NODE_EXTRA_CA_CERTS: import.meta.filename }, /NODE_EXTRA_CA_CERTS names no file/],
  ])('with %s is refused in one sentence', (_, over, message) => {
    expect(() => readEnv({ ...GOOD, ...over })).toThrow(message);
  });

  it('ends the process before it listens, saying what to do', async () => {
    const { WEBHOOK_SECRET: _, ...rest } = GOOD;
    await expect(startServer(rest)).rejects.toThrow(/WEBHOOK_SECRET is not set\. Set WEBHOOK_SECRET/);
  });

  it('accepts keys as PEM, with escaped line breaks, and as base64', () => {
    for (const key of [PRIVATE_KEY, PRIVATE_KEY.replaceAll('\n', '\\n'), Buffer.from(PRIVATE_KEY).toString('base64')]) {
      expect(readEnv({ ...GOOD, PRIVATE_KEY: key }).privateKey).toContain('BEGIN RSA PRIVATE KEY');
    }
  });

  it('names the API of GitHub.com and of an Enterprise Server', () => {
    expect(readEnv(GOOD).apiUrl).toBe('https://api.github.com');
    expect(readEnv({ ...GOOD, GHE_HOST: 'ghe.example' }).apiUrl).toBe('https://ghe.example/api/v3');
    expect(readEnv({ ...GOOD, GHE_HOST: 'ghe.example:8443', GHE_PROTOCOL: 'http' }).apiUrl).toBe('http://ghe.example:8443/api/v3');
    const cloud = readEnv({ ...GOOD, GHE_HOST: 'octocorp.ghe.com' });
    expect(cloud.apiUrl).toBe('https://api.octocorp.ghe.com');
    expect(cloud.artifactHosts).toContain('*.octocorp.ghe.com');
  });

  it('honours the test switches in tests only', () => {
    expect(readEnv({ ...GOOD, NPU_ADVISOR_KILL_AT: 'job-started' }).killAt).toBeNull();
    expect(readEnv({ ...GOOD, NPU_ADVISOR_TEST_ANALYSER: 'x' }).testAnalyser).toBeNull();
  });

  it('is described, every variable once', () => {
    const names = VARIABLES.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const { description } of VARIABLES) expect(description.length).toBeGreaterThan(10);
  });
});

describe('app.yml', () => {
  const manifest = parse(readFileSync(join(import.meta.dirname, '../../app.yml'), 'utf8')) as {
    default_events: string[];
    default_permissions: Record<string, string>;
    hook_attributes: { url: string };
    public: boolean;
  };

  it('asks for what is used and nothing that could change code', () => {
    expect(manifest.default_permissions).toEqual({
      metadata: 'read',
      contents: 'read',
      actions: 'read',
      checks: 'write',
      pull_requests: 'write',
      issues: 'read',
      merge_queues: 'read',
    });
  });

  it('subscribes to every event that is handled; installation events come by themselves', () => {
    const handled = new Set<string>(EVENTS.map((name) => name.split('.')[0]!));
    for (const own of ['installation', 'installation_repositories']) handled.delete(own);
    expect(new Set(manifest.default_events)).toEqual(handled);
  });

  it('sends webhooks to where they are taken', () => {
    expect(manifest.hook_attributes.url.endsWith('/api/github/webhooks')).toBe(true);
    expect(manifest.public).toBe(false);
  });
});
