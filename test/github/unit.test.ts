import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { type Artifact, chooseArtifacts } from '../../src/github/artifacts.ts';
import { isInDiff, rightSideRanges } from '../../src/github/diff.ts';
import { checkSecret, createFront } from '../../src/github/front.ts';
import { toTask } from '../../src/github/intake.ts';
import { createLogger } from '../../src/github/log.ts';
import { createOutboundPolicy, GITHUB_ARTIFACT_HOSTS, isPrivateAddress } from '../../src/github/outbound.ts';
import { type Annotation, planAnnotations } from '../../src/github/publish/check.ts';
import { COMMENT_MARKER, hashBody, isOurs, planComment } from '../../src/github/publish/comment.ts';
import { planReview, type Suggestion, safeFingerprint } from '../../src/github/publish/review.ts';
import { planRedelivery } from '../../src/github/redeliver.ts';

describe('planning the comment', () => {
  const body = `${COMMENT_MARKER}app=a pr=1 -->\nnew`;
  const old = { id: 5, body: 'old', url: 'u' };

  it('creates only when it may', () => {
    expect(planComment({ body, mayCreate: true }, [], null)).toEqual([{ op: 'create', body }]);
    expect(planComment({ body, mayCreate: false }, [], null)).toEqual([]);
  });

  it('edits what is there, also when it may not create', () => {
    expect(planComment({ body, mayCreate: false }, [old], null)).toEqual([{ op: 'update', id: 5, body }]);
  });

  it('keeps the oldest and deletes the rest', () => {
    const newer = { id: 9, body, url: 'v' };
    expect(planComment({ body, mayCreate: true }, [newer, old], null)).toEqual([
      { op: 'update', id: 5, body },
      { op: 'delete', id: 9 },
    ]);
  });

  it('leaves an equal body alone, as it stands or as it was sent', () => {
    expect(planComment({ body, mayCreate: true }, [{ ...old, body }], null)).toEqual([{ op: 'keep', id: 5 }]);
    expect(planComment({ body, mayCreate: true }, [old], { id: 5, hash: hashBody(body) })).toEqual([{ op: 'keep', id: 5 }]);
    expect(planComment({ body, mayCreate: true }, [old], { id: 4, hash: hashBody(body) })[0]?.op).toBe('update');
  });

  it('is idempotent: planning on the result changes nothing', () => {
    for (const existing of [[], [old], [old, { id: 9, body, url: 'v' }]]) {
      const kept = existing.length === 0 ? { id: 11, body, url: '' } : { ...existing[0]!, body };
      expect(planComment({ body, mayCreate: true }, [kept], null)).toEqual([{ op: 'keep', id: kept.id }]);
    }
  });

  it('knows its own comments by app or by bot login, never by the marker', () => {
    const app = { id: 7, slug: 'npu-advisor' };
    expect(isOurs({ performed_via_github_app: { id: 7 } }, app)).toBe(true);
    expect(isOurs({ user: { login: 'NPU-Advisor[bot]' } }, app)).toBe(true);
    expect(isOurs({ user: { login: 'npu-advisor' }, performed_via_github_app: { id: 8 } }, app)).toBe(false);
  });
});

describe('planning annotations', () => {
  const annotation = (line: number): Annotation => ({
    path: 'train.py',
    start_line: line,
    end_line: line,
    annotation_level: 'notice',
    title: 't',
    message: 'm',
    raw_details: '',
  });

  it('sends 120 in three requests of at most 50', () => {
    const batches = planAnnotations(
      Array.from({ length: 120 }, (_, i) => annotation(i + 1)),
      [],
    );
    expect(batches.map((batch) => batch.length)).toEqual([50, 50, 20]);
  });

  it('never sends one that is there, nor the same one twice', () => {
    const all = [annotation(1), annotation(2), annotation(2), annotation(3)];
    expect(planAnnotations(all, [annotation(1)])).toEqual([[annotation(2), annotation(3)]]);
    expect(planAnnotations(all, all)).toEqual([]);
  });
});

describe('planning the review', () => {
  const files = [{ path: 'train.py', status: 'modified', patch: '@@ -1,3 +1,4 @@\n a\n+b\n c\n d\n@@ -20 +21,2 @@\n x\n+y', bytesHint: 2 }];
  const suggestion = (fingerprint: string, line: number, endLine = line): Suggestion => ({
    fingerprint,
    path: 'train.py',
    startLine: line,
    endLine,
    body: '',
  });

  it('reads the right-hand lines of a patch', () => {
    expect(rightSideRanges(files[0]!.patch)).toEqual([
      [1, 4],
      [21, 22],
    ]);
    expect(isInDiff(files, 'train.py', 2, 4)).toBe(true);
    expect(isInDiff(files, 'train.py', 4, 21)).toBe(false);
    expect(isInDiff(files, 'other.py', 2, 2)).toBe(false);
    expect(isInDiff([{ ...files[0]!, patch: null }], 'train.py', 2, 2)).toBe(false);
    expect(isInDiff([{ ...files[0]!, status: 'removed' }], 'train.py', 2, 2)).toBe(false);
  });

  it('takes three at most, in order, inside the diff and not on the same lines', () => {
    const wanted = [
      suggestion('far', 10),
      suggestion('a', 1),
      suggestion('on-a', 1),
      suggestion('b', 2, 3),
      suggestion('c', 21),
      suggestion('d', 22),
    ];
    expect(planReview(wanted, [], [], files, 'head').map(({ fingerprint }) => fingerprint)).toEqual(['a', 'b', 'c']);
  });

  it('never repeats a fingerprint, nor reviews a commit twice', () => {
    const wanted = [suggestion('a', 1), suggestion('b', 2)];
    expect(planReview(wanted, [{ fingerprint: 'a', url: '', sha: 'old' }], [], files, 'head')).toEqual([wanted[1]]);
    expect(planReview(wanted, [], ['a', 'b'], files, 'head')).toEqual([]);
    expect(planReview(wanted, [{ fingerprint: 'x', url: '', sha: 'head' }], [], files, 'head')).toEqual([]);
  });

  it('keeps fingerprints from ending an HTML comment', () => {
    expect(safeFingerprint('a-->b<!--c')).not.toMatch(/--|[<>]/);
  });
});

describe('choosing artifacts', () => {
  const artifact = (over: Partial<Artifact>): Artifact => ({
    id: 1,
    name: 'npu-profile',
    bytes: 1,
    expired: false,
    createdAt: '2026-01-01T00:00:00Z',
    expiresAt: null,
    digest: null,
    headSha: 'h',
    runId: 9,
    ...over,
  });
  const run = { id: 9, headSha: 'h' };

  it('takes the newest of each matching name, in natural order', () => {
    const chosen = chooseArtifacts(
      [
        artifact({ id: 1, name: 'npu-profile-10' }),
        artifact({ id: 2, name: 'npu-profile-9' }),
        artifact({ id: 3, name: 'npu-profile-9', createdAt: '2026-01-02T00:00:00Z' }),
        artifact({ id: 4, name: 'npu-profile-9', createdAt: '2026-01-02T00:00:00Z' }),
        artifact({ id: 5, name: 'logs' }),
      ],
      ['npu-profile*'],
      run,
    );
    expect(chosen.map(({ id }) => id)).toEqual([4, 1]);
  });

  it('refuses what belongs to another commit or run', () => {
    expect(chooseArtifacts([artifact({ headSha: 'other' }), artifact({ runId: 8 })], ['*'], run)).toEqual([]);
    expect(chooseArtifacts([artifact({ headSha: null, runId: null })], ['*'], run)).toHaveLength(1);
  });
});

describe('where a download may go', () => {
  const policy = createOutboundPolicy([...GITHUB_ARTIFACT_HOSTS, 'store.corp:9000', '127.0.0.1:4000'], 'https://ghes.example/api/v3');

  it.each([
    'https://productionresults.blob.core.windows.net/x?sig=1',
    'https://pipelines.actions.githubusercontent.com/x',
    'https://ghes.example/storage/x',
    'http://store.corp:9000/x',
    'http://127.0.0.1:4000/x',
  ])('allows %s', (address) => {
    expect(() => policy.check(new URL(address))).not.toThrow();
  });

  it.each([
    'http://productionresults.blob.core.windows.net/x',
    'https://blob.core.windows.net.evil.example/x',
    'https://evilblob.core.windows.net.evil/x',
    'https://.blob.core.windows.net/x',
    'https://169.254.169.254/latest/meta-data',
    'https://[::1]/x',
    'http://127.0.0.1:4001/x',
    'http://store.corp:9001/x',
    'https://user:pass@x.blob.core.windows.net/x',
    'file:///etc/passwd',
    'ftp://store.corp:9000/x',
  ])('refuses %s', (address) => {
    expect(() => policy.check(new URL(address))).toThrow(/the download leads to/);
  });

  it('resolves allowed wildcards with a guard and spelt-out hosts without', () => {
    expect(policy.check(new URL('https://a.blob.core.windows.net/x')).lookup).toBeTypeOf('function');
    expect(policy.check(new URL('http://store.corp:9000/x')).lookup).toBeUndefined();
  });

  it('does not connect to an allowed name that resolves to a private address', async () => {
    const { lookup } = createOutboundPolicy(['*.localhost'], 'https://api.example').check(new URL('https://a.localhost/x'));
    await expect(
      new Promise((resolve, reject) => lookup!('localhost', {}, (error, address) => (error ? reject(error) : resolve(address)))),
    ).rejects.toThrow(/private address/);
  });

  it.each([
    ['127.0.0.1', true],
    ['10.1.2.3', true],
    ['169.254.169.254', true],
    ['100.64.0.1', true],
    ['::1', true],
    ['fe80::1', true],
    ['fd00::1', true],
    ['::ffff:127.0.0.1', true],
    ['::ffff:7f00:1', true],
    ['64:ff9b::7f00:1', true],
    ['140.82.121.3', false],
    ['2606:50c0:8000::153', false],
    ['not an address', true],
  ])('%s is private: %s', (address, expected) => {
    expect(isPrivateAddress(address)).toBe(expected);
  });
});

describe('the log', () => {
  function logged(write: (log: ReturnType<typeof createLogger>) => void): string {
    let text = '';
    const sink = new Writable({
      write(chunk, _, done) {
        text += String(chunk);
        done();
      },
    });
    write(createLogger('info', sink));
    return text;
  }

  it('holds no payload, signature, token or storage signature', () => {
    const error = Object.assign(new Error('GET https://x.blob.core.windows.net/a?sv=1&sig=SECRETSIG failed for ghs_LONGtoken123'), {
      event: { payload: { secret: 'PAYLOAD' } },
      request: { headers: { authorization: 'token ghs_abc' } },
      status: 500,
    });
    const text = logged((log) => {
      log.error(error);
      log.error({ err: error, payload: 'PAYLOAD', signature: 'sha256=SIGN', headers: { authorization: 'bearer AUTH' } }, 'failed');
      log.warn('token ghs_other_token and eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOjF9.c2ln here');
      log.error(new AggregateError([error], 'several'));
    });
    for (const secret of ['PAYLOAD', 'SECRETSIG', 'ghs_', 'SIGN', 'AUTH', 'eyJhbGci']) expect(text).not.toContain(secret);
    expect(text).toContain('"status":500');
  });

  it('keeps the names of events', () => {
    expect(logged((log) => log.info({ event: 'pull_request.opened' }, 'delivery accepted'))).toContain('pull_request.opened');
  });
});

describe('the webhook front', () => {
  it.each([undefined, '', 'development', 'short'])('refuses the secret %s', (secret) => {
    expect(() => checkSecret(secret)).toThrow(/WEBHOOK_SECRET/);
  });

  it('passes verified bodies on, also those signed with the secret that is being replaced', async () => {
    const { createHmac } = await import('node:crypto');
    const secret = 'n'.repeat(32);
    const previousSecret = 'p'.repeat(32);
    const seen: string[] = [];
    const front = createFront({
      secret,
      previousSecret,
      problem: async () => null,
      log: createLogger('silent'),
      middleware: (request, response) => {
        const body = (request as unknown as { body: string }).body;
        const expected = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
        seen.push(request.headers['x-hub-signature-256'] === expected ? body : 'signature is not the new one');
        response.end('ok');
      },
    });
    const server = createServer(front);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/github/webhooks`;
    const send = (body: string, signedWith: string, headers = {}) =>
      fetch(url, {
        method: 'POST',
        body,
        headers: {
          'content-type': 'application/json; charset=utf-8',
          'x-github-event': 'ping',
          'x-github-delivery': 'guid-1',
          'x-hub-signature-256': `sha256=${createHmac('sha256', signedWith).update(body).digest('hex')}`,
          ...headers,
        },
      }).then((response) => response.status);
    try {
      expect(await send('{"a":"中文"}', secret)).toBe(200);
      expect(await send('{"b":1}', previousSecret)).toBe(200);
      expect(await send('{"c":1}', 'x'.repeat(32))).toBe(401);
      expect(await send('{"d":1}', secret, { 'x-hub-signature-256': 'sha256=00' })).toBe(401);
      expect(await send('{"e":1}', secret, { 'x-github-event': 'Bad\tName' })).toBe(400);
      expect(await send('{"f":1}', secret, { 'x-github-delivery': '../../etc' })).toBe(400);
      expect(seen).toEqual(['{"a":"中文"}', '{"b":1}']);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});

describe('taking events in', () => {
  const parse = (body: string) => (body.includes('/npu-advise') ? [{ name: 'run', args: [] }] : []);
  const base = {
    installation: { id: 1 },
    repository: { id: 2, name: 'train', owner: { login: 'acme' } },
    sender: { login: 'alice', type: 'User' },
  };

  it('keeps nothing of a comment but its commands', () => {
    const payload = {
      ...base,
      issue: { number: 3, pull_request: {} },
      comment: { id: 4, body: '/npu-advise run\nsecret plans', created_at: '2026-11-30T10:00:00Z' },
    };
    const writtenAt = Date.parse('2026-11-30T10:00:00Z');
    const task = toTask('issue_comment.created', payload, parse, writtenAt);
    expect(task).toMatchObject({ kind: 'comment', pr: 3, commentId: 4, actor: 'alice', writtenAt });
    expect(JSON.stringify(task)).not.toContain('secret plans');
  });

  it('hears no bots, no issues and no comments without a command', () => {
    const payload = { ...base, issue: { number: 3, pull_request: {} }, comment: { id: 4, body: '/npu-advise run' } };
    expect(toTask('issue_comment.created', { ...payload, sender: { login: 'x', type: 'Bot' } }, parse)).toBeNull();
    expect(toTask('issue_comment.created', { ...payload, issue: { number: 3 } }, parse)).toBeNull();
    expect(toTask('issue_comment.created', { ...payload, comment: { id: 4, body: 'hello' } }, parse)).toBeNull();
    expect(toTask('issue_comment.edited', payload, parse)).toBeNull();
  });

  it('hears of another base branch, and of no other edit', () => {
    const payload = { ...base, pull_request: { number: 3, head: { sha: 'a'.repeat(40) } } };
    const changes = { base: { ref: { from: 'main' }, sha: { from: 'b'.repeat(40) } } };
    const task = { kind: 'head-changed', pr: 3, headSha: 'a'.repeat(40), again: 'retargeted' };
    expect(toTask('pull_request.edited', { ...payload, changes }, parse)).toMatchObject(task);
    for (const other of [{ changes: { title: { from: 'x' } } }, { changes: {} }, {}]) {
      expect(toTask('pull_request.edited', { ...payload, ...other }, parse)).toBeNull();
    }
    expect(toTask('pull_request.synchronize', payload, parse)).not.toHaveProperty('again');
    expect(toTask('pull_request.reopened', payload, parse)).toMatchObject({ ...task, again: 'reopened' });
  });

  it('refuses events that lack what they must have', () => {
    expect(() => toTask('pull_request.opened', { repository: base.repository }, parse)).toThrow();
    expect(() =>
      toTask('workflow_run.completed', { ...base, workflow_run: { id: 1, event: 'push', head_sha: 'not a sha' } }, parse),
    ).toThrow();
  });
});

describe('asking for missed deliveries', () => {
  const attempt = (guid: string, at: number, isDelivered = false, name = 'workflow_run.completed') => ({
    id: at,
    guid,
    at,
    name,
    isDelivered,
  });

  it('asks for the newest attempt of what never arrived, oldest first, and for nothing else', () => {
    const attempts = [
      attempt('late', 50),
      attempt('arrived', 10),
      attempt('arrived', 11, true),
      attempt('lost', 20),
      attempt('lost', 30),
      attempt('known', 5),
      attempt('other', 6, false, 'star.created'),
      ...[1, 2, 3, 4].map((at) => attempt('hopeless', at)),
    ];
    const plan = planRedelivery(attempts, new Set(['workflow_run.completed']), (guid) => guid === 'known');
    expect(plan.map(({ guid, id }) => [guid, id])).toEqual([
      ['lost', 30],
      ['late', 50],
    ]);
  });
});
