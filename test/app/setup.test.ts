/* Registering the App in a browser: page, GitHub, and back with a code. The browser is a person's; here it is two requests. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LoopbackGitHub, startLoopbackGitHub } from '../../lab/loopback-github/index.ts';
import { examine } from '../../src/app/doctor/main.ts';
import { readEnv } from '../../src/app/env.ts';
import { type SetupOptions, setUp } from '../../src/app/setup/main.ts';

let hub: LoopbackGitHub;
let folder: string;
let env: Record<string, string>;
beforeAll(async () => {
  hub = await startLoopbackGitHub({ app: { id: 4242, slug: 'before', webhookSecret: 's'.repeat(40) } });
  folder = mkdtempSync(join(tmpdir(), 'npu-advisor-setup-'));
  env = { GHE_HOST: new URL(hub.url).host, GHE_PROTOCOL: 'http' };
});
afterAll(async () => {
  expect(hub.violations).toEqual([]);
  await hub.close();
  rmSync(folder, { recursive: true, force: true });
});

let count = 0;
const OPTIONS = { url: 'https://npu-advisor.example', org: null, name: 'NPU Advisor', port: '0', lang: 'en' } as const;

/** Starts the page; gives its address and what was told. */
async function start(over: Partial<SetupOptions> = {}): Promise<{ url: string; out: string; told: () => string; done: Promise<void> }> {
  const out = over.out ?? join(folder, `${count++}.env`);
  let told = '';
  let open: (url: string) => void = () => undefined;
  const opened = new Promise<string>((resolve) => {
    open = resolve;
  });
  const done = setUp(env, { ...OPTIONS, ...over, out }, (text) => {
    told += text;
    const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(text)?.[0];
    if (url !== undefined) open(url);
  });
  const url = await Promise.race([opened, done.then(() => '')]);
  return { url, out, told: () => told, done };
}

const unescaped = (text: string): string =>
  text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

/** Sends the form of the page, as the button does; gives where GitHub leads back to. */
async function click(url: string): Promise<{ back: string; manifest: Record<string, unknown>; action: string }> {
  const response = await fetch(url);
  const page = await response.text();
  const action = unescaped(/<form action="([^"]+)"/.exec(page)![1]!);
  const manifest = unescaped(/name="manifest" value="([^"]+)"/.exec(page)![1]!);
  expect(response.headers.get('content-security-policy')).toContain(`form-action ${new URL(action).origin};`);
  const answer = await fetch(action, { method: 'POST', body: new URLSearchParams({ manifest }), redirect: 'manual' });
  return { back: answer.headers.get('location')!, manifest: JSON.parse(manifest) as Record<string, unknown>, action };
}

describe('setup', () => {
  it('ends with an app that the doctor finds nothing wrong with', async () => {
    const { url, out, told, done } = await start();
    const { back, manifest, action } = await click(url);
    expect(action).toMatch(/\/settings\/apps\/new\?state=[0-9a-f]{48}$/);
    expect(manifest).toMatchObject({
      public: false,
      hook_attributes: { url: 'https://npu-advisor.example/api/github/webhooks', active: true },
    });
    const page = await (await fetch(back)).text();
    await done;
    expect(page).toContain('/apps/npu-advisor/installations/new');
    const keyPath = join(folder, '0.env.private-key.pem');
    const written = parseEnv(readFileSync(out, 'utf8')) as Record<string, string>;
    expect(written).toEqual({ APP_ID: '4243', PRIVATE_KEY_PATH: keyPath, WEBHOOK_SECRET: expect.stringMatching(/^[0-9a-f]{40}$/), ...env });
    for (const path of [out, keyPath]) expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readEnv(written)).toMatchObject({ appId: 4243, apiUrl: hub.apiUrl });
    const secrets = [written.WEBHOOK_SECRET!, readFileSync(keyPath, 'utf8').split('\n')[3]!];
    for (const secret of secrets) expect(told() + page).not.toContain(secret);
    const outcomes = await examine({
      ...written,
      NPU_ADVISOR_DATA_DIR: join(folder, 'data'),
      NPU_ADVISOR_ANALYSIS_MEMORY_MB: '64',
      PORT: '0',
    });
    expect(outcomes.filter(({ state }) => state === 'bad')).toEqual([]);
  });

  it('takes no code that somebody else brings, no code twice, and no other host', async () => {
    const { url, out, done } = await start({ name: 'Second', org: 'acme', lang: 'zh' });
    const { back, action } = await click(url);
    expect(action).toContain('/organizations/acme/settings/apps/new?state=');
    const without = new URL(back);
    without.searchParams.set('state', '0'.repeat(48));
    const refused = await fetch(without);
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('不是由本页发起的')]);
    const odd = new URL(back);
    odd.searchParams.set('code', '../../x');
    expect((await fetch(odd)).status).toBe(400);
    const unknown = new URL(back);
    unknown.searchParams.set('code', 'f'.repeat(40));
    const used = await fetch(unknown);
    expect([used.status, await used.text()]).toEqual([502, expect.stringContaining('只能使用一次')]);
    expect((await fetch(url, { method: 'POST' })).status).toBe(405);
    expect((await fetch(`${url}other`)).status).toBe(404);
    expect(readFileSync(out, 'utf8')).toBe('');
    await fetch(back);
    await done;
    expect(readFileSync(out, 'utf8')).toContain('APP_ID=4244\n');
  });

  it('overwrites nothing, and asks for nothing it cannot write down', async () => {
    const taken = join(folder, 'taken.env');
    writeFileSync(taken, 'APP_ID=1\n');
    await expect(start({ out: taken })).rejects.toThrow(/taken\.env exists/);
    expect(readFileSync(taken, 'utf8')).toBe('APP_ID=1\n');
    expect(existsSync(`${taken}.private-key.pem`)).toBe(false);
    await expect(start({ out: '/no/such/folder/.env' })).rejects.toThrow(/cannot be written \(ENOENT\)/);
    for (const [over, said] of [
      [{ url: 'http://npu-advisor.example' }, /https address/],
      [{ url: 'https://user:pw@npu-advisor.example' }, /without user/],
      [{ org: '../acme' }, /not the name of an organisation/],
      [{ port: 'x' }, /--port/],
    ] as const)
      await expect(start(over)).rejects.toThrow(said);
  });
});
