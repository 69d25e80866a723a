/* What `npu-advise doctor` finds, against a GitHub on this machine. */
import { execFileSync, spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type LoopbackGitHub, startLoopbackGitHub } from '../../lab/loopback-github/index.ts';
import { explainUnreachable, judgeDeliveries, judgeWebhook, missingPermissions } from '../../src/app/doctor/github.ts';
import { checkMemory, checkNode, checkProxy, memoryLimit } from '../../src/app/doctor/machine.ts';
import { examine, runDoctor } from '../../src/app/doctor/main.ts';
import type { Outcome } from '../../src/app/doctor/outcome.ts';
import { checkServer, checkStore, explainDatabase } from '../../src/app/doctor/store.ts';
import { readEnv } from '../../src/app/env.ts';
import { lockFolder } from '../../src/store/embedded/folder-lock.ts';
import { copyEmptyStore } from './support/empty-store.ts';

const SECRET = 's'.repeat(40);
const HOOK = 'https://npu-advisor.example/api/github/webhooks';

let hub: LoopbackGitHub;
let folder: string;
let env: Record<string, string>;
beforeAll(async () => {
  hub = await startLoopbackGitHub({ app: { id: 4242, slug: 'npu-advisor', webhookSecret: SECRET }, webhookUrl: HOOK });
  hub.addRepository({ owner: 'acme', name: 'train' });
  folder = mkdtempSync(join(tmpdir(), 'npu-advisor-doctor-'));
  await copyEmptyStore(folder);
  env = {
    APP_ID: '4242',
    PRIVATE_KEY: hub.privateKeyPem,
    WEBHOOK_SECRET: SECRET,
    GHE_HOST: new URL(hub.apiUrl).host,
    GHE_PROTOCOL: 'http',
    NPU_ADVISOR_DATA_DIR: folder,
    NPU_ADVISOR_ANALYSIS_MEMORY_MB: '64',
    NPU_ADVISOR_MAX_ARTIFACT_MB: '64',
    PORT: '0',
  };
});
afterAll(async () => {
  await hub.close();
  rmSync(folder, { recursive: true, force: true });
});
afterEach(() => {
  expect(hub.violations).toEqual([]);
});

const find = (outcomes: readonly Outcome[], id: string): Outcome => outcomes.find((outcome) => outcome.id === id)!;
const wrong = (outcomes: readonly Outcome[]): string[] => outcomes.filter(({ state }) => state === 'bad').map(({ id }) => id);
/** Everything but the store, which takes a second to open. */
const look = (over: Record<string, string> = {}): Promise<readonly Outcome[]> =>
  examine({ ...env, NPU_ADVISOR_DATA_DIR: join(folder, 'new'), ...over });

describe('a server that is set up', () => {
  it('has nothing wrong, and the doctor changes nothing', async () => {
    const drop = { drop: true };
    const repository = hub.addRepository({ owner: 'acme', name: 'other' });
    await hub.deliver('installation_repositories', { action: 'added', owner: 'acme', repositories: [repository] }, drop);
    const before = hub.journal.length;
    const outcomes = await examine(env);
    // The delivery that did not arrive.
    expect(wrong(outcomes)).toEqual(['deliveries']);
    expect(find(outcomes, 'deliveries').found.en).toContain('was answered 0');
    expect(find(outcomes, 'github').found.en).toContain('knows the app as npu-advisor');
    expect(find(outcomes, 'permissions').found.en).toBe('exactly what app.yml lists');
    expect(find(outcomes, 'store').found.en).toMatch(/^embedded, schema \d+$/);
    expect(find(outcomes, 'webhook').found.en).toBe(HOOK);
    expect(find(outcomes, 'clock').state).toBe('ok');
    expect(hub.journal.slice(before).map(({ method }) => method)).not.toContain('POST');
  });

  it('is told in both languages, as text and as JSON, without a secret', async () => {
    for (const lang of ['en', 'zh'] as const)
      for (const format of ['text', 'json']) {
        let out = '';
        const code = await runDoctor({ ...env, NPU_ADVISOR_DATA_DIR: join(folder, 'new') }, { lang, format }, (text) => {
          out += text;
        });
        expect(code).toBe(1);
        expect(out).not.toContain(SECRET);
        expect(out).not.toContain('BEGIN');
        if (format === 'text') {
          expect(out).toMatch(/^✔ .+$/m);
          expect(out).toMatch(/^✘ .+\n {2}→ .+$/m);
          expect(out).toMatch(/^– .+$/m);
          continue;
        }
        const { schema, ok, checks } = JSON.parse(out) as { schema: string; ok: boolean; checks: Record<string, unknown>[] };
        expect([schema, ok]).toEqual(['npu-advisor.doctor/1', false]);
        expect(new Set(checks.map(({ id }) => id)).size).toBe(checks.length);
        for (const check of checks) expect(check.state === 'bad' ? check.todo : '').not.toBeNull();
      }
    await expect(runDoctor(env, { lang: 'en', format: 'xml' }, () => undefined)).rejects.toThrow(/no format xml/);
  });
});

describe('what is wrong with the settings', () => {
  it('is named all at once, each with what to do', async () => {
    const outcomes = await examine({ PRIVATE_KEY: 'hello', WEBHOOK_SECRET: 'development', PORT: 'many', NPU_ADVISOR_DATA_DIR: folder });
    expect(wrong(outcomes)).toEqual(['environment', 'app-id', 'private-key', 'webhook-secret']);
    expect(find(outcomes, 'environment').found.en).toContain('PORT');
    expect(find(outcomes, 'webhook-secret').found.en).toContain('well-known word');
    for (const id of ['github', 'store']) expect(find(outcomes, id).state).toBe('skipped');
    for (const outcome of outcomes.filter(({ state }) => state === 'bad')) expect(outcome.todo?.en.length).toBeGreaterThan(10);
  });

  it('a key that is cut off, one of another kind, a file that is not there, one of another app', async () => {
    const torn = `${hub.privateKeyPem.slice(0, 400)}\n-----END RSA PRIVATE KEY-----\n`;
    const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    for (const [over, said] of [
      [{ PRIVATE_KEY: torn }, /no key in it can be read/],
      [{ PRIVATE_KEY: ec }, /not an RSA key/],
      [{ PRIVATE_KEY: '', PRIVATE_KEY_PATH: '/no/such.pem' }, /ENOENT/],
    ] as const) {
      const outcomes = await look(over);
      expect(find(outcomes, 'private-key').found.en).toMatch(said);
      expect(find(outcomes, 'github').state).toBe('skipped');
    }
    const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();
    const outcomes = await look({ PRIVATE_KEY: other });
    expect(find(outcomes, 'private-key').state).toBe('ok');
    expect(find(outcomes, 'github').found.en).toBe('GitHub does not accept the private key');
    expect(find(outcomes, 'permissions').state).toBe('skipped');
    expect(find(await look({ APP_ID: '17' }), 'github').found.en).toContain('no app with this APP_ID');
  });
});

describe('what GitHub says', () => {
  it('of permissions that an installation or the app lacks', async () => {
    const { checks: _, ...fewer } = {
      metadata: 'read',
      contents: 'read',
      actions: 'read',
      checks: 'write',
      pull_requests: 'write',
    } as const;
    hub.setPermissions('acme', fewer);
    const outcomes = await look();
    expect(find(outcomes, 'installations').found.en).toContain('not accepted by acme (checks: write, issues: read, merge_queues: read)');
    const poor = await startLoopbackGitHub({
      app: { id: 7, slug: 'poor', webhookSecret: SECRET, permissions: { metadata: 'read', contents: 'write' }, events: ['push'] },
    });
    const lacking = await look({ APP_ID: '7', PRIVATE_KEY: poor.privateKeyPem, GHE_HOST: new URL(poor.apiUrl).host });
    const { found, todo } = find(lacking, 'permissions');
    expect(found.en).toMatch(/^lacks permission actions: read, checks: write, .+; event pull_request, workflow_run/);
    expect(todo?.en).toContain('Permissions & events');
    expect(find(lacking, 'installations').state).toBe('skipped');
    expect(find(lacking, 'webhook').found.en).toBe('no address is set');
    expect(find(lacking, 'deliveries').state).toBe('skipped');
    expect(missingPermissions({ checks: 'read' }, { checks: 'write', metadata: 'read' })).toEqual(['checks: write', 'metadata: read']);
    expect(missingPermissions({ checks: 'admin' }, { checks: 'write' })).toEqual([]);
    await poor.close();
  });

  it('with a clock that is off, an error, or not at all', async () => {
    hub.fault({ match: /^GET \/app$/, phase: 'after', headers: { date: new Date(Date.now() + 95_000).toUTCString() } });
    const outcomes = await look();
    expect(find(outcomes, 'clock').found.en).toMatch(/^9[45] s behind GitHub$/);
    expect(find(outcomes, 'clock').state).toBe('bad');
    hub.fault({ match: /^GET \/app$/, status: 503, times: 10 });
    expect(find(await look(), 'github').found.en).toBe('GitHub answers 503');
    hub.fault({ match: /^GET \/app$/, status: 503, times: 0 });
    const gone = createServer().listen(0, '127.0.0.1');
    await once(gone, 'listening');
    const { port } = gone.address() as { port: number };
    await new Promise((resolve) => gone.close(resolve));
    const away = await look({ GHE_HOST: `127.0.0.1:${port}` });
    expect(find(away, 'github').found.en).toBe(`127.0.0.1:${port} does not answer (ECONNREFUSED)`);
    expect(find(away, 'clock').state).toBe('skipped');
  });

  it('behind a private authority says which variable to set', async () => {
    const enterprise = await startLoopbackGitHub({ app: { id: 4242, slug: 'npu-advisor', webhookSecret: SECRET }, enterprise: '3.17.0' });
    const outcomes = await look({ GHE_HOST: new URL(enterprise.apiUrl).host, GHE_PROTOCOL: 'https' });
    expect(find(outcomes, 'github').found.en).toContain('is not trusted');
    expect(find(outcomes, 'github').todo?.en).toContain('NODE_EXTRA_CA_CERTS');
    await enterprise.close();
    const lost = explainUnreachable({ cause: { cause: { code: 'ENOTFOUND' } } }, 'https://api.github.com');
    expect(lost.found.en).toBe('the name api.github.com is not known here (ENOTFOUND)');
  });

  it.each([
    [{}, 'no address'],
    [{ url: HOOK, content_type: 'json', secret: '********', insecure_ssl: '0' }, null],
    [{ url: 'https://npu-advisor.example/', content_type: 'json', secret: '********' }, 'The path must be'],
    [{ url: HOOK, content_type: 'form', secret: '********' }, 'application/json'],
    [{ url: HOOK, content_type: 'json' }, 'Set the secret'],
    [{ url: HOOK, content_type: 'json', secret: '********', insecure_ssl: '1' }, 'SSL verification'],
  ])('of the webhook: %j', (config, said) => {
    const { state, found, todo } = judgeWebhook(config);
    expect(state).toBe(said === null ? 'ok' : 'bad');
    if (said !== null) expect(`${found.en} ${todo?.en}`).toContain(said);
  });

  it.each([
    [[], 'skipped', 'Open a pull request'],
    [[200, 200, 202], 'ok', null],
    [[200, 502, 502], 'ok', 'asks for those again'],
    [[401, 200], 'bad', 'WEBHOOK_SECRET differ'],
    [[404], 'bad', 'Another server'],
    [[502, 200], 'bad', 'does not reach'],
    [[0], 'bad', 'does not reach'],
    [[504], 'bad', '10 s'],
    [[500], 'bad', 'log of the server'],
  ] as const)('of deliveries that were answered %j', (codes, state, said) => {
    const judged = judgeDeliveries(
      codes.map((statusCode) => ({ statusCode, at: 0 })),
      120_000,
    );
    expect(judged.state).toBe(state);
    if (said === null) expect(judged.todo).toBeNull();
    else expect(judged.todo?.en).toContain(said);
  });
});

describe('the machine', () => {
  const options = (over: Record<string, string> = {}) => readEnv({ ...env, ...over });

  it('needs a Node and a proxy that is used', async () => {
    expect((await checkNode('20.20.2')).state).toBe('bad');
    expect((await checkNode('22.12.0')).state).toBe('bad');
    expect((await checkNode('22.13.0')).state).toBe('ok');
    const proxy = { HTTPS_PROXY: 'http://user:hunter2@proxy:3128' };
    expect((await checkProxy({})).state).toBe('skipped');
    expect((await checkProxy({ NODE_EXTRA_CA_CERTS: '/ca.pem' })).found.en).toBe('certificates of /ca.pem');
    const unused = await checkProxy(proxy, '24.1.0');
    expect([unused.state, unused.todo?.en]).toEqual(['bad', 'Set NODE_USE_ENV_PROXY=1, or unset HTTPS_PROXY.']);
    expect((await checkProxy(proxy, '22.13.0')).todo?.en).toContain('Node 24');
    const used = await checkProxy({ ...proxy, NODE_USE_ENV_PROXY: '1' });
    expect([used.state, JSON.stringify(used).includes('hunter2')]).toEqual(['ok', false]);
  });

  it('needs memory for what it may run, by the limit of its control group', async () => {
    const files: Record<string, string> = {
      '/proc/self/cgroup': '0::/kube/pod/box\n',
      '/sys/fs/cgroup/kube/memory.max': '8000000000\n',
      '/sys/fs/cgroup/kube/pod/memory.max': '1000000000\n',
      '/sys/fs/cgroup/kube/pod/box/memory.max': 'max\n',
    };
    const read = (path: string): string => {
      if (files[path] === undefined) throw new Error('ENOENT');
      return files[path];
    };
    expect(memoryLimit(read)).toBe(1e9);
    files['/proc/self/cgroup'] = '4:cpu,memory:/docker\n';
    files['/sys/fs/cgroup/memory/docker/memory.limit_in_bytes'] = '9223372036854771712\n';
    expect(memoryLimit(read)).toBeNull();
    expect((await checkMemory(options(), 1e9)).state).toBe('bad');
    expect((await checkMemory(options({ DATABASE_URL: 'postgres://x' }), 1e9)).state).toBe('ok');
    expect((await checkMemory(options(), null)).state).toBe('ok');
  });

  it('needs a data folder that can be written', async () => {
    const file = join(folder, 'a-file');
    writeFileSync(file, '');
    const outcomes = await look({ NPU_ADVISOR_DATA_DIR: join(file, 'below') });
    expect(find(outcomes, 'data-folder').found.en).toMatch(/cannot be written \(ENOTDIR\)/);
    const roomy = find(await look({ NPU_ADVISOR_MAX_ARTIFACT_MB: '1000000' }), 'data-folder');
    expect([roomy.state, roomy.todo?.en]).toEqual(['ok', expect.stringContaining('would not fit')]);
  });

  const mayMount = spawnSync('unshare', ['-rm', 'true']).status === 0;
  it.skipIf(!mayMount)('says so when the disk is full (needs user namespaces)', () => {
    const full = join(folder, 'full');
    mkdirSync(full);
    const script = `mount -t tmpfs -o size=16k tmpfs ${full} && exec "$0" ${join(import.meta.dirname, '../../src/cli/main.ts')} doctor --format json`;
    const result = spawnSync('unshare', ['-rm', 'sh', '-c', script, process.execPath], {
      env: { PATH: process.env.PATH!, NPU_ADVISOR_DATA_DIR: full, TMPDIR: full, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '' },
      encoding: 'utf8',
    });
    expect(result.status, result.stderr).toBe(1);
    const { checks } = JSON.parse(result.stdout) as { checks: { id: string; found: string }[] };
    expect(checks.find(({ id }) => id === 'temp-folder')?.found).toContain('ENOSPC');
    expect(checks.find(({ id }) => id === 'data-folder')?.found).toContain('is full (ENOSPC)');
  });

  it('has a store that is new, in use, or of a newer version', async () => {
    const store = (dataDir: string) => checkStore({ databaseUrl: null, dataDir });
    expect((await store(join(folder, 'fresh'))).found.en).toBe('embedded, none yet: set up at the first start');
    const lock = lockFolder(folder);
    expect((await store(folder)).found.en).toMatch(/^embedded, in use by process \d+ on .+: the running server$/);
    lock.release();
    const broken = join(folder, 'broken');
    mkdirSync(join(broken, 'pglite'), { recursive: true });
    writeFileSync(join(broken, 'pglite', 'PG_VERSION'), 'nonsense');
    expect((await store(broken)).todo?.en).toContain('backup');
  });

  it('reaches PostgreSQL, or says what is in the way, without its password', async () => {
    const outcome = await checkStore({ databaseUrl: 'postgres://npu:hunter2@127.0.0.1:9/npu', dataDir: folder });
    expect(outcome.found.en).toBe('PostgreSQL cannot be used (ECONNREFUSED)');
    expect(JSON.stringify(outcome)).not.toContain('hunter2');
    for (const [code, said] of [
      ['28P01', 'password'],
      ['3D000', 'Create the database'],
      ['53300', 'max_connections'],
      ['ENOTFOUND', 'host'],
      ['SELF_SIGNED_CERT_IN_CHAIN', 'NODE_EXTRA_CA_CERTS'],
    ] as const)
      expect(explainDatabase(code).en).toContain(said);
  });

  it('may have the server running, or something else in its place', async () => {
    let answer = { status: 200, text: 'ready\n' };
    const server = createServer((_, response) => response.writeHead(answer.status).end(answer.text)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const at = () => checkServer({ host: '0.0.0.0', port });
    expect((await at()).found.en).toContain('is ready');
    answer = { status: 503, text: 'the store does not answer\n' };
    expect((await at()).found.en).toContain('is not ready: the store does not answer');
    answer = { status: 200, text: '<html>' };
    expect((await at()).found.en).toContain('something else listens');
    await new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    expect((await at()).state).toBe('skipped');
  });
});

describe('the command', () => {
  it('ends with 1 and prints one line for each check', () => {
    const run = spawnSync(process.execPath, [join(import.meta.dirname, '../../src/cli/main.ts'), 'doctor', '--lang', 'zh'], {
      env: { PATH: process.env.PATH!, NPU_ADVISOR_DATA_DIR: join(folder, 'cli'), NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '' },
      encoding: 'utf8',
    });
    expect(run.status).toBe(1);
    expect(run.stdout).toMatch(/^✘ 私钥：/m);
    // Names of variables and of GitHub's pages stay as they are; four words in a row are a sentence.
    expect(run.stdout).not.toMatch(/(\b[A-Za-z]+ ){3}[a-z]+/);
    expect(run.stdout).toContain('项未通过');
    expect(run.stderr).toBe('');
    expect(() =>
      execFileSync(process.execPath, [join(import.meta.dirname, '../../src/cli/main.ts'), 'doctor', '--env', '/no/such'], {
        stdio: 'pipe',
      }),
    ).toThrow(/no.such cannot be read \(ENOENT\)/);
  });
});
