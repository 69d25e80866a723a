import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';

/** Below the public address and the front alike. */
export const DETAILS_PATH = '/details/';
const SHAPE = /^(\d{1,15})\/([\w-]{22})\/(\d{10,11})\/([\w-]{8})\/([\w-]{43})$/;
const MAX_LENGTH = 160;
const DAY = 24 * 3600 * 1000;

/** What a page is of. Its name is made of this and tells none of it. */
export interface PageSubject {
  readonly repoId: number;
  readonly pr: number;
  readonly sha: string;
  /** Name of the training job; null: the repository has one. */
  readonly job: string | null;
}

export interface OpenedLink {
  readonly repoId: number;
  readonly page: string;
  readonly expiresAt: number;
}

/** Writes addresses of pages. */
export interface DetailsLinks {
  readonly lifetimeMs: number;
  addressOf(repoId: number, page: string, expiresAt: number): string;
  /** A text whose links to a page, whenever they were written, end later. */
  renewIn(text: string, repoId: number, page: string, expiresAt: number): string;
}

export function pageOf({ repoId, pr, sha, job }: PageSubject): string {
  return createHash('sha256')
    .update(JSON.stringify([repoId, pr, sha, job]))
    .digest('base64url')
    .slice(0, 22);
}

interface Key {
  readonly id: string;
  readonly secret: Buffer;
}

/** A key of its own for links: whoever has one learns nothing of the secret it is made from, nor the other way round by its id. */
function keyOf(secret: string): Key {
  const derive = (use: string, bytes: number): Buffer => Buffer.from(hkdfSync('sha256', secret, '', `npu-advisor/details/1/${use}`, bytes));
  return { id: derive('id', 6).toString('base64url'), secret: derive('key', 32) };
}

function signatureOf(key: Key, repoId: number, page: string, seconds: number): string {
  const signed = ['npu-advisor/details/1', repoId, page, seconds, key.id].join('\n');
  return createHmac('sha256', key.secret).update(signed).digest('base64url');
}

/** `publicUrl`: where the server is reached from outside, without a slash at its end. */
export function createDetailsLinks(publicUrl: string, secret: string, days: number): DetailsLinks {
  const key = keyOf(secret);
  const addressOf = (repoId: number, page: string, expiresAt: number): string => {
    const seconds = Math.floor(expiresAt / 1000);
    return `${publicUrl}${DETAILS_PATH}${repoId}/${page}/${seconds}/${key.id}/${signatureOf(key, repoId, page, seconds)}`;
  };
  return {
    lifetimeMs: days * DAY,
    addressOf,
    renewIn(text, repoId, page, expiresAt) {
      const written = new RegExp(`https?://[^\\s()<>"\\\\]{1,300}${DETAILS_PATH}${repoId}/${page}/\\d{10,11}/[\\w-]{8}/[\\w-]{43}`, 'g');
      return text.replace(written, () => addressOf(repoId, page, expiresAt));
    },
  };
}

/** Reads what follows `/details/`. null: not signed by us, whatever else may be wrong with it; the caller learns no more. */
export function createLinkReader(secrets: readonly string[]): (path: string) => OpenedLink | null {
  const keys = secrets.map(keyOf);
  return (path) => {
    const parts = path.length > MAX_LENGTH ? null : SHAPE.exec(path);
    if (parts === null) return null;
    const [, repo, page = '', expires, id, signature = ''] = parts;
    const [repoId, seconds] = [Number(repo), Number(expires)];
    // Also for a key that is not known, so that it takes as long.
    const key = keys.find((one) => one.id === id) ?? keys[0]!;
    const expected = signatureOf(key, repoId, page, seconds);
    const isOurs = timingSafeEqual(Buffer.from(expected), Buffer.from(signature)) && key.id === id;
    // Written another way than we write it, it is another address.
    return isOurs && String(repoId) === repo && String(seconds) === expires ? { repoId, page, expiresAt: seconds * 1000 } : null;
  };
}
