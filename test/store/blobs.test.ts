/* Facts of portions outside of the database: in a folder, and in a bucket whose stand-in checks every signature with another implementation. */
import { createHash, createHmac } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SignatureV4 } from '@smithy/signature-v4';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { blobPlaceOf } from '../../src/app/blob-place.ts';
import { type Blobs, keyOf } from '../../src/store/blobs/blobs.ts';
import { openBlobs } from '../../src/store/blobs/open.ts';
import { type OpenStore, openStore } from '../../src/store/open.ts';
import { createStore } from '../../src/store/tables.ts';
import { copyEmptyStore } from '../app/support/empty-store.ts';

const JOB = 'ab'.repeat(16);
const OTHER = 'cd'.repeat(16);
const SECRET = 'a secret of the test';
const home = mkdtempSync(join(tmpdir(), 'npu-blobs-'));
const objects = new Map<string, Buffer>();
/** Answers that come before the next real ones. */
const failing: number[] = [];
let endpoint = '';
let opened: OpenStore;

class Sha256 {
  readonly hash;
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.hash =
      secret === undefined
        ? createHash('sha256')
        : createHmac('sha256', typeof secret === 'string' ? secret : Buffer.from(secret as Uint8Array));
  }
  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.hash.update(typeof data === 'string' ? data : Buffer.from(data as Uint8Array));
  }
  async digest(): Promise<Uint8Array> {
    return this.hash.digest();
  }
  reset(): void {}
}

const signer = new SignatureV4({
  service: 's3',
  region: 'cn-north-4',
  credentials: { accessKeyId: 'KEY', secretAccessKey: SECRET },
  sha256: Sha256,
  uriEscapePath: false,
  applyChecksum: false,
});

const storage = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', async () => {
    const body = Buffer.concat(chunks);
    const answer = (status: number, content: Buffer | string = ''): void => void response.writeHead(status).end(content);
    if (failing.length > 0) return answer(failing.shift()!);
    const { host = '', authorization, 'x-amz-date': at = '', 'x-amz-content-sha256': digest = '' } = request.headers;
    const [hostname = '', port] = host.split(':');
    const time = String(at).replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z');
    const signed = await signer.sign(
      {
        method: request.method!,
        protocol: 'http:',
        hostname,
        port: Number(port),
        path: request.url!,
        query: {},
        headers: { host, 'x-amz-content-sha256': String(digest), 'x-amz-date': String(at) },
      },
      { signingDate: new Date(time) },
    );
    const isTrue = signed.headers.authorization === authorization && digest === createHash('sha256').update(body).digest('hex');
    if (!isTrue) return answer(403, '<Error><Code>SignatureDoesNotMatch</Code></Error>');
    const key = request.url!;
    if (request.method === 'PUT') objects.set(key, body);
    if (request.method === 'DELETE') objects.delete(key);
    if (request.method !== 'GET') return answer(request.method === 'PUT' ? 200 : 204);
    const found = objects.get(key);
    return found === undefined ? answer(404, '<Error><Code>NoSuchKey</Code></Error>') : answer(200, found);
  });
});

beforeAll(async () => {
  await new Promise<void>((resolve) => storage.listen(0, '127.0.0.1', resolve));
  endpoint = `http://127.0.0.1:${(storage.address() as AddressInfo).port}`;
  const dataDir = join(home, 'data');
  mkdirSync(dataDir);
  await copyEmptyStore(dataDir);
  opened = await openStore({
    databaseUrl: null,
    dataDir,
    retryLimit: 1,
    retryDelaySeconds: 0,
    expireSeconds: 60,
    onError: () => undefined,
  });
});
afterAll(async () => {
  await opened.queue.drain(100);
  await opened.close();
  storage.close();
  rmSync(home, { recursive: true, force: true });
});

const given = (over: Partial<Parameters<typeof blobPlaceOf>[0]> = {}) =>
  blobPlaceOf({
    blobs: 's3://facts/npu-advisor/v1',
    endpoint,
    region: 'cn-north-4',
    accessKeyId: 'KEY',
    secretAccessKey: SECRET,
    ...over,
  });
const PLACES = [
  { name: 'folder', open: () => openBlobs(given({ blobs: join(home, 'shared') })!), names: () => files(join(home, 'shared')) },
  {
    name: 'bucket',
    open: () => openBlobs(given()!),
    names: () => [...objects.keys()].map((key) => key.slice('/facts/npu-advisor/v1/'.length)),
  },
];

function files(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const all = readdirSync(folder, { recursive: true, withFileTypes: true });
  return all.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name).slice(folder.length + 1));
}

describe.each(PLACES)('blobs in a $name', ({ name, open, names }) => {
  it('come back as they were written, and are gone when removed', async () => {
    const blobs = open();
    const key = keyOf(7, JOB, 12);
    expect(await blobs.read(key)).toBeNull();
    await blobs.write(key, Buffer.from('first'));
    const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, i) => i % 251));
    await blobs.write(key, bytes);
    expect(Buffer.from((await blobs.read(key))!).equals(bytes)).toBe(true);
    expect(names()).toEqual([key]);
    await blobs.remove(key);
    await blobs.remove(key);
    expect(names()).toEqual([]);
    for (const hostile of ['../x', `7/${JOB}/../1`, `7/${JOB}/1?acl`, `7/${JOB}`, `/7/${JOB}/1`]) {
      await expect(blobs.read(hostile)).rejects.toThrow(/not the name of a blob/);
      await expect(blobs.write(hostile, bytes)).rejects.toThrow(/not the name of a blob/);
    }
    await expect(blobs.write(key, Buffer.alloc(64 * 1024 * 1024 + 1))).rejects.toThrow(/too large/);
  });

  it('hold the facts of portions and go with them', async () => {
    const blobs = open();
    const { portions, erasures, repositories } = createStore(opened.store.database, Date.now, blobs);
    const plan = async (repoId: number, job: string) => {
      await portions.plan(repoId, job, [{}, {}]);
      return portions.of(repoId, job);
    };
    const [first, second] = await plan(7, JOB);
    await portions.finish(first!.id, Buffer.from('facts'));
    expect(Buffer.from((await portions.facts(first!.id))!).toString()).toBe('facts');
    const [row] = await opened.store.database.query<{ facts: string | null }>('SELECT facts FROM npu_advisor.portions WHERE id = $1', [
      first!.id,
    ]);
    expect(row!.facts).toBeNull();

    // A second worker that is late changes nothing, and one whose portion was dropped while it wrote leaves nothing.
    await portions.finish(first!.id, Buffer.from('late'));
    expect(Buffer.from((await portions.facts(first!.id))!).toString()).toBe('facts');
    const slow = createStore(opened.store.database, Date.now, {
      ...blobs,
      write: async (key, bytes) => {
        await portions.drop(7, JOB);
        await blobs.write(key, bytes);
      },
    } satisfies Blobs);
    await slow.portions.finish(second!.id, Buffer.from('nobody waits'));
    expect(names()).toEqual([]);

    // What cannot be removed is removed later.
    const [third] = await plan(7, OTHER);
    await portions.finish(third!.id, Buffer.from('stays'));
    const away = createStore(opened.store.database, Date.now, { ...blobs, remove: () => Promise.reject(new Error('away')) });
    await away.portions.drop(7, OTHER);
    expect(names()).toHaveLength(1);
    await portions.prune(0);
    expect(names()).toEqual([]);

    const [old] = await plan(7, JOB);
    await portions.finish(old!.id, Buffer.from('old'));
    await portions.prune(Date.now() + 1000);
    expect(names()).toEqual([]);

    // The App is removed from the repository.
    const [erased] = await plan(8, JOB);
    await portions.finish(erased!.id, Buffer.from('private'));
    await repositories.see({ repoId: 8, installationId: 3, owner: 'acme', name: name });
    await erasures.ask(3, 8);
    const [removal] = await erasures.due(10);
    await erasures.erase(removal!, Date.now());
    await erasures.drop(removal!);
    await portions.tidy();
    expect(names()).toEqual([]);
    expect(await opened.store.database.query('SELECT key FROM npu_advisor.unwanted_blobs')).toEqual([]);
  });
});

describe('a bucket', () => {
  it('refuses a wrong signature, and says so without the secret', async () => {
    const blobs = openBlobs(given({ secretAccessKey: 'another secret' })!);
    const key = keyOf(1, JOB, 0);
    await expect(blobs.write(key, Buffer.from('x'))).rejects.toThrow(/cannot be written: the storage answers 403 SignatureDoesNotMatch$/);
    await expect(blobs.read(key)).rejects.toThrow(/403/);
    await expect(blobs.remove(key)).rejects.toThrow(/403/);
    expect(objects.size).toBe(0);
  });

  it('is asked again when it is busy, and gives up in the end', async () => {
    const blobs = openBlobs(given()!);
    failing.push(503);
    await blobs.write(keyOf(1, JOB, 0), Buffer.from('x'));
    await blobs.remove(keyOf(1, JOB, 0));
    failing.push(500, 503, 429);
    await expect(blobs.read(keyOf(1, JOB, 0))).rejects.toThrow(/429/);
  });
});

describe('the setting', () => {
  it.each([
    ['relative', 'data/blobs'],
    ['of another kind', 'gs://facts'],
    ['with a way out', 's3://facts/../other'],
    ['with a query', 's3://facts/a?acl'],
    ['with a bucket that is none', 's3://Facts_1'],
  ])('is refused when it is %s', (_, blobs) => {
    expect(() => given({ blobs })).toThrow(/NPU_ADVISOR_BLOBS must be/);
  });

  it('leads where it says', () => {
    expect(given({ blobs: null })).toBeNull();
    expect(given({ endpoint: null })).toMatchObject({ url: 'https://s3.cn-north-4.amazonaws.com/facts/npu-advisor/v1' });
    expect(given({ endpoint: 'https://facts.storage.example/' })).toMatchObject({ url: 'https://facts.storage.example/npu-advisor/v1' });
    expect(() => given({ endpoint: 'https://user@storage.example' })).toThrow(/AWS_ENDPOINT_URL/);
    expect(() => given({ secretAccessKey: null })).toThrow(/AWS_SECRET_ACCESS_KEY is not set/);
    expect(() => given({ region: 'x y' })).toThrow(/AWS_REGION/);
  });
});

it('a file that is too large is not read', async () => {
  const blobs = openBlobs({ kind: 'folder', path: join(home, 'large') });
  mkdirSync(join(home, 'large', '1', JOB), { recursive: true });
  const path = join(home, 'large', keyOf(1, JOB, 0));
  writeFileSync(path, '');
  truncateSync(path, 64 * 1024 * 1024 + 1);
  await expect(blobs.read(keyOf(1, JOB, 0))).rejects.toThrow(/too large/);
});
