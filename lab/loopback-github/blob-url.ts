/** Signed addresses of the blob host, good for a minute. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { type Artifact, clock, type HubState, type StoredFile } from './state.ts';

/** Download addresses expire after a minute [spec, actions/download-artifact]. */
const LIFETIME_MS = 60_000;

function signature(state: HubState, path: string, expiry: string): string {
  return createHmac('sha256', state.blobSecret).update(`${path}\n${expiry}`).digest('base64');
}

/** Where the bytes of a file can be fetched for the next minute, without a token. */
export function signedBlobUrl(state: HubState, file: Artifact | StoredFile): string {
  const path = 'run' in file ? `/actions-results/${file.run.id}/artifact-${file.id}.zip` : `/files/file-${file.id}`;
  const expiry = new Date(clock(state) + LIFETIME_MS).toISOString();
  const url = new URL(path, state.blobUrl);
  url.searchParams.set('sv', '2025-11-05');
  url.searchParams.set('se', expiry);
  url.searchParams.set('sp', 'r');
  url.searchParams.set('sig', signature(state, path, expiry));
  return url.href;
}

/** Whether an address was signed by this GitHub and is still good. */
export function blobUrlState(state: HubState, url: URL): 'good' | 'expired' | 'forged' {
  const expiry = url.searchParams.get('se') ?? '';
  const given = Buffer.from(url.searchParams.get('sig') ?? '');
  const wanted = Buffer.from(signature(state, url.pathname, expiry));
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return 'forged';
  return Date.parse(expiry) > clock(state) ? 'good' : 'expired';
}

/** The file an address names. */
export function fileOfBlobPath(state: HubState, path: string): StoredFile | null {
  const id = Number(/\/(?:artifact-(?=\d+\.zip$)|file-)(\d+)(?:\.zip)?$/.exec(path)?.[1]);
  for (const repository of state.repositories) {
    const files = [...repository.artifacts, ...repository.releases.flatMap(({ assets }) => assets), ...repository.attachments];
    const file = files.find((candidate) => candidate.id === id);
    if (file) return file;
  }
  return null;
}
