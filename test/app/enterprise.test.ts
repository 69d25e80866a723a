import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { copyEmptyStore } from './support/empty-store.ts';
import { addRun, createWorld, isConcluded, ONE_FINDING, openPull, type ServerProcess, until, type World } from './support/world.ts';

let world: World;
let server: ServerProcess;

beforeAll(async () => {
  world = await createWorld({ enterprise: '3.17.0' });
  await copyEmptyStore(world.dataDir);
  const authority = join(world.dataDir, 'authority.pem');
  writeFileSync(authority, world.hub.authority!);
  server = await world.start({ GHE_PROTOCOL: 'https', NODE_EXTRA_CA_CERTS: authority });
});
afterAll(() => world.close());

it('an Enterprise Server with a private authority, without digests, ranges and rate limits is served like GitHub.com', async () => {
  const { hub } = world;
  expect(hub.url).toMatch(/^https:/);
  const pull = openPull(world);
  await hub.deliver('pull_request', { action: 'opened', pr: pull });
  await until(world, pull, (view) => view.checks.length === 1, 'queued');
  await hub.deliver('workflow_run', { action: 'completed', run: addRun(world, pull, ONE_FINDING) });
  const { comments, checks, reviews } = await until(
    world,
    pull,
    (v) => isConcluded(v) && v.comments.length === 1 && v.reviews.length === 1,
    'published',
  );

  expect(checks[0]?.conclusion).toBe('neutral');
  expect(reviews).toHaveLength(1);
  // Links lead to this server.
  const links = [...comments[0]!.body.matchAll(/\]\((https?:\/\/[^)]+)\)/g)].map(([, url]) => url!);
  expect(links.length).toBeGreaterThan(0);
  for (const url of links) expect(url.startsWith(`${hub.url}/`) || url.startsWith(`${hub.apiUrl}/`)).toBe(true);

  expect(hub.violations).toEqual([]);
  // Asked under /api/v3, by the app and by tokens of more than 40 characters; storage never sees one.
  expect(hub.journal.filter(({ host }) => host === 'api').every(({ status }) => status < 500)).toBe(true);
  expect(hub.journal.filter(({ host }) => host === 'blob')).toEqual([expect.objectContaining({ authorization: false, range: null })]);
  expect(server.log()).not.toMatch(/ghs_/);
});

it('without the authority nothing is trusted', async () => {
  const { hub } = world;
  await expect(fetch(`${hub.apiUrl}/rate_limit`)).rejects.toThrow();
});
