/* What operators see of a running server: /metrics, /readyz, the log. One server, one flow, looked at from all sides. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import parsePrometheus from 'parse-prometheus-text-format';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readEnv } from '../../src/app/env.ts';
import { boundedLabels } from '../../src/app/metrics/bounded-labels.ts';
import { createJobMetrics } from '../../src/app/metrics/job-metrics.ts';
import { startStatusServer } from '../../src/app/status-server.ts';
import type { Depth } from '../../src/store/depth.ts';
import { copyEmptyStore } from './support/empty-store.ts';
import {
  addRun,
  createWorld,
  isConcluded,
  ONE_FINDING,
  openPull,
  SECRET,
  type ServerProcess,
  until,
  untilQuiet,
  type World,
} from './support/world.ts';

interface Family {
  name: string;
  help: string;
  type: string;
  metrics: { value?: string; labels?: Record<string, string>; buckets?: Record<string, string>; count?: string; sum?: string }[];
}

/** Every value of a label that was seen. */
const labels = (families: readonly Family[], name: string): Set<string> =>
  new Set(families.flatMap(({ metrics }) => metrics.flatMap(({ labels: of }) => (of?.[name] === undefined ? [] : [of[name]]))));

/** The text format of Prometheus 0.0.4, line by line; its names and label names as the data model has them. */
const LINE =
  /^(?:# (?:HELP|TYPE) [a-zA-Z_:][\w:]* .+|[a-zA-Z_:][\w:]*(?:\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*\})? (?:[+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|Inf)|NaN))$/;

describe('a server that has worked', () => {
  let world: World;
  let server: ServerProcess;
  let families: Family[];
  let text: string;
  let status: string;

  beforeAll(async () => {
    world = await createWorld();
    server = await world.start({
      NPU_ADVISOR_METRICS_PORT: '0',
      LOG_LEVEL: 'debug',
      NPU_ADVISOR_ATTEMPTS: '1',
      WEBHOOK_SECRET_PREVIOUS: 'the-secret-of-before-that-is-still-good-enough',
    });
    const pull = openPull(world);
    await world.hub.deliver('pull_request', { action: 'opened', pr: pull }, { guid: 'delivery-of-the-pull-request' });
    world.hub.fault({ match: /^GET .*\/zip$/, status: 502, times: 1 });
    await world.hub.deliver(
      'workflow_run',
      { action: 'completed', run: addRun(world, pull, ONE_FINDING) },
      { guid: 'delivery-of-the-run' },
    );
    await until(world, pull, (view) => isConcluded(view) && view.reviews.length === 1, 'published');
    // One that fails with everything in its message, and one that is not GitHub's.
    const bad = openPull(world);
    await world.hub.deliver('workflow_run', { action: 'completed', run: addRun(world, bad, { crash: true }) });
    await world.hub.deliver('pull_request', { action: 'opened', pr: pull }, { secret: 'somebody-else-with-a-secret-of-32-bytes' });
    await until(world, bad, isConcluded, 'a concluded check');
    await untilQuiet(world, 400);
    status = /"metrics":"([^"]+)"/.exec(server.log())![1]!;
    text = await (await fetch(`${status}/metrics`)).text();
    families = parsePrometheus(text) as Family[];
  });
  afterAll(() => world.close());

  const one = (name: string, wanted: Record<string, string> = {}): Family['metrics'][number] | undefined =>
    families
      .find((family) => family.name === name)
      ?.metrics.find(({ labels: of }) => Object.entries(wanted).every(([key, value]) => of?.[key] === value));

  /** Of a histogram with labels; the parser above keeps one of them only. */
  function histogram(name: string, wanted: Record<string, string>): { counts: number[]; count: number } {
    const rows = [...text.matchAll(/^(\w+)\{([^}]*)\} (\S+)$/gm)].map(([, row = '', of = '', value]) => ({
      row,
      of: Object.fromEntries([...of.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, label]) => [key, label])) as Record<string, string>,
      value: Number(value),
    }));
    const mine = rows.filter(({ of }) => Object.entries(wanted).every(([key, value]) => of[key] === value));
    const buckets = mine.filter(({ row }) => row === `${name}_bucket`);
    expect(buckets.at(-1)?.of.le).toBe('+Inf');
    return { counts: buckets.map(({ value }) => value), count: mine.find(({ row }) => row === `${name}_count`)!.value };
  }

  it('exposes what it did in a form that another parser reads', () => {
    for (const line of text.trimEnd().split('\n')) if (line !== '') expect(line).toMatch(LINE);
    expect(new Set(families.map(({ name }) => name)).size).toBe(families.length);
    for (const { name, help, type } of families) {
      expect(help.length, name).toBeGreaterThan(5);
      expect(['COUNTER', 'GAUGE', 'HISTOGRAM']).toContain(type.toUpperCase());
      if (type.toUpperCase() === 'COUNTER') expect(name).toMatch(/_total$/);
    }
    expect(Number(one('npu_advisor_jobs_total', { kind: 'analyse', outcome: 'done' })?.value)).toBeGreaterThan(0);
    expect(Number(one('npu_advisor_findings_total', { rule: 'dataloader-stall' })?.value)).toBe(1);
    expect(Number(one('npu_advisor_reports_total', { outcome: 'causes' })?.value)).toBe(1);
    expect(Number(one('npu_advisor_fetched_bytes_total')?.value)).toBeGreaterThan(100);
    // The server may have asked for one of them again.
    expect(Number(one('npu_advisor_webhook_deliveries_total', { event: 'workflow_run', status: '200' })?.value)).toBeGreaterThanOrEqual(2);
    expect(Number(one('npu_advisor_webhook_deliveries_total', { event: 'unverified', status: '401' })?.value)).toBeGreaterThanOrEqual(1);
    expect(Number(one('npu_advisor_github_requests_total', { status: '5xx' })?.value)).toBe(1);
    expect(Number(one('npu_advisor_github_requests_total', { status: '2xx' })?.value)).toBeGreaterThan(5);
    expect(Number(one('npu_advisor_github_quota_remaining', { resource: 'core' })?.value)).toBeGreaterThan(0);
    for (const phase of ['wait', 'fetch', 'analyse', 'publish']) {
      const { counts, count } = histogram('npu_advisor_phase_seconds', { phase, outcome: 'done' });
      expect(count, phase).toBeGreaterThan(0);
      expect(counts, phase).toEqual([...counts].sort((a, b) => a - b));
      expect(counts.at(-1)).toBe(count);
    }
    expect(Number(one('npu_advisor_requests', { state: 'new' })?.value)).toBe(0);
    expect(Number(one('npu_advisor_requests', { state: 'failed' })?.value)).toBe(1);
    expect(one('npu_advisor_queue_jobs', { state: 'active' })?.value).toBe('0');
    expect(one('npu_advisor_ready')?.value).toBe('1');
    expect(Number(one('process_resident_memory_bytes')?.value)).toBeGreaterThan(10e6);
    expect(Number(one('process_start_time_seconds')?.value)).toBeGreaterThan(1.7e9);
  });

  it('names no repository, branch, person or delivery in its metrics', () => {
    for (const name of ['acme', 'train', 'faster-', 'alice', 'delivery-of', String(world.repository.id)])
      expect(text.replaceAll('dataloader-stall', ''), name).not.toContain(name);
    expect(labels(families, 'event').size).toBeLessThan(12);
  });

  it('serves metrics nowhere but there', async () => {
    expect((await fetch(`${server.url}/metrics`)).status).toBe(404);
    expect(new URL(status).hostname).toBe('127.0.0.1');
    expect((await fetch(`${status}/api/github/webhooks`, { method: 'POST' })).status).toBe(405);
    expect((await fetch(`${status}/other`)).status).toBe(404);
    for (const url of [status, server.url]) {
      expect(await (await fetch(`${url}/healthz`)).text()).toBe('ok\n');
      expect(await (await fetch(`${url}/readyz`)).text()).toBe('ready\n');
    }
  });

  it('logs every line as JSON, and those of a job with the job and the delivery it came from', () => {
    const lines = server
      .log()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.length).toBeGreaterThan(8);
    const of = (msg: string) => lines.filter((line) => line.msg === msg);
    expect(of('delivery accepted').map(({ guid }) => guid)).toContain('delivery-of-the-run');
    const done = of('analysis handled').find(({ guids }) => (guids as string[]).includes('delivery-of-the-run'));
    expect(done?.jobs).toEqual([expect.any(Number)]);
    expect(of('job given up')[0]).toMatchObject({ jobs: [expect.any(Number)], correlationId: expect.any(String) });
    expect(of('job done').length).toBeGreaterThan(2);
  });

  it('logs no secret: no key, token, webhook secret, signature or signed address', () => {
    const log = server.log();
    const key = world.hub.privateKeyPem.split('\n').filter((line) => line.length > 40 && !line.startsWith('-'));
    const secrets = [SECRET, 'the-secret-of-before-that-is-still-good-enough', ...key];
    secrets.push(...world.hub.tokens.map((token) => (token as unknown as { value: string }).value));
    for (const { requestHeaders } of world.hub.deliveries) secrets.push(requestHeaders['x-hub-signature-256']!);
    expect(world.hub.tokens.length).toBeGreaterThan(2);
    for (const secret of secrets) expect(log.includes(secret), `${secret.slice(0, 12)}…`).toBe(false);
    expect(log).not.toMatch(/ghs_|eyJ|BEGIN [A-Z ]*PRIVATE|[?&](sig|se|sp)=(?!\[)/);
    // Nor in what people and scrapers get.
    expect(text).not.toMatch(/ghs_|eyJ/);
  });

  it('keeps its ports: another one does not start, and nothing of it stays', async () => {
    const other = mkdtempSync(join(tmpdir(), 'npu-advisor-second-'));
    const { PATH = '', NODE_COMPILE_CACHE = '' } = process.env;
    const env = { PATH, NODE_COMPILE_CACHE, ...world.env, NPU_ADVISOR_DATA_DIR: other, NPU_ADVISOR_METRICS_PORT: new URL(status).port };
    await copyEmptyStore(other);
    const child = spawn(process.execPath, [join(import.meta.dirname, '../../src/cli/main.ts'), 'serve'], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    expect(await once(child, 'exit')).toEqual([2, null]);
    expect(said).toMatch(/^npu-advise: NPU_ADVISOR_METRICS_PORT: port \d+ is taken\. Stop what listens there/m);
    expect(existsSync(join(other, 'lock.json'))).toBe(false);
    rmSync(other, { recursive: true, force: true });
  });

  it('says when it stops', async () => {
    const stopping = server.stop();
    await stopping;
    expect(server.log()).toContain('server stopped');
    await expect(fetch(`${status}/healthz`)).rejects.toThrow();
  });
});

const NOTHING: Depth = {
  requests: { new: 0, retrying: 0, failed: 0 },
  jobs: { created: 0, retry: 0, active: 0 },
  oldestSeconds: 0,
  openChecks: 0,
};

describe('metrics of jobs', () => {
  it('show the fewest requests that are left to any installation, until the limit is reset', async () => {
    let now = 1_000_000;
    const metrics = createJobMetrics(['dataloader-stall'], () => now);
    const answer = (caller: string, remaining: number, resetS: number, resource = 'core') =>
      metrics.onExchange({
        caller,
        status: 200,
        seconds: 0.1,
        headers: new Headers({
          'x-ratelimit-remaining': String(remaining),
          'x-ratelimit-reset': String(resetS),
          'x-ratelimit-resource': resource,
        }),
      });
    answer('installation-1', 4000, 2000);
    answer('installation-2', 12, 1500);
    answer('installation-2', 7, 1500, 'search');
    metrics.onExchange({ caller: 'app', status: null, seconds: 1, headers: null });
    const at = async (resource: string) =>
      new RegExp(`quota_remaining\\{resource="${resource}"\\} (\\d+)`).exec(await metrics.text(async () => NOTHING))?.[1];
    expect([await at('core'), await at('search')]).toEqual(['12', '7']);
    now = 1_600_000;
    expect([await at('core'), await at('search')]).toEqual(['4000', undefined]);
    expect(await metrics.text(async () => NOTHING)).toContain('npu_advisor_github_requests_total{status="error"} 1');
  });

  it('count a try that failed, one that was interrupted and rules nobody knows', async () => {
    const metrics = createJobMetrics(['dataloader-stall']);
    const nothing = async (): Promise<void> => undefined;
    const pending = [
      { id: 1, kind: 'analyse' },
      { id: 2, kind: 'comment' },
      { id: 3, kind: 'Ha"x\n{}' },
    ];
    const store = metrics.store({
      requests: { pending: async () => pending, begin: nothing, uncount: nothing, settle: nothing },
      usage: { add: nothing },
    } as never);
    await store.requests.pending('s');
    await store.requests.begin([1, 2, 3]);
    await store.requests.begin([1]);
    await store.requests.settle([1], 'done', '');
    await store.requests.uncount([2]);
    await store.requests.settle([3], 'failed', '');
    const report = { verdict: { outcome: 'causes' }, findings: [{ rule: 'dataloader-stall' }, { rule: 'of a fork' }] };
    await metrics.analysis({ analyse: async () => report, parts: async () => [] } as never).analyse({} as never, {} as never);
    const text = await metrics.text(async () => NOTHING);
    for (const [kind, outcome] of [
      ['analyse', 'retried'],
      ['analyse', 'done'],
      ['comment', 'interrupted'],
      ['other', 'failed'],
    ])
      expect(text).toContain(`npu_advisor_jobs_total{kind="${kind}",outcome="${outcome}"} 1`);
    expect(text).toContain('npu_advisor_findings_total{rule="other"} 1');
  });

  it('have few labels, whatever comes', () => {
    const of = boundedLabels(3);
    expect(['a', 'b', 'c', 'd', 'a', 'evil"}', 'B'].map(of)).toEqual(['a', 'b', 'c', 'other', 'a', 'other', 'other']);
  });
});

describe('the status server', () => {
  const env = { APP_ID: '1', PRIVATE_KEY: '-----BEGIN PRIVATE KEY-----\n', WEBHOOK_SECRET: 'x'.repeat(32) };

  it('is off by default, on loopback when it is on, and says what is wrong', async () => {
    expect(readEnv(env)).toMatchObject({ metricsPort: null, metricsHost: '127.0.0.1' });
    const off = await startStatusServer(readEnv(env), { text: async () => '' }, { problem: async () => null, metrics: async () => '' });
    expect(off.url).toBeNull();
    const work = { problem: async () => 'the store does not answer (ECONNREFUSED); see the log', metrics: async () => 'b 2\n' };
    const on = await startStatusServer(
      { metricsPort: 0, metricsHost: '127.0.0.1' },
      { text: async (p) => `a ${p === null ? 1 : 0}\n` },
      work,
    );
    const ready = await fetch(`${on.url}/readyz`);
    expect([ready.status, await ready.text()]).toEqual([503, 'the store does not answer (ECONNREFUSED); see the log\n']);
    const metrics = await fetch(`${on.url}/metrics`);
    expect(metrics.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(await metrics.text()).toBe('a 0\nb 2\n');
    await on.close();
  });

  it('refuses to start in one sentence when its port is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    const start = startStatusServer({ metricsPort: port, metricsHost: '127.0.0.1' }, { text: async () => '' }, {} as never);
    await expect(start).rejects.toThrow(/port \d+ is taken/);
    other.close();
  });
});
