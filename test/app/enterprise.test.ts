/* A GitHub Enterprise Server: a private authority, addresses below /api/v3, artifacts without digest, length and ranges, no rate limits. */
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Jobs, openJobs } from './support/jobs.ts';
import { addRun, ONE_FINDING, openPull } from './support/world.ts';

const known = getCACertificates('default');
let jobs: Jobs;

beforeAll(async () => {
  jobs = await openJobs({}, null, '3.17.0');
});
afterAll(async () => {
  setDefaultCACertificates(known);
  await jobs.close();
});

it('is served like GitHub.com once its authority is trusted, and not before', async () => {
  const { hub } = jobs;
  expect(hub.apiUrl).toMatch(/^https:.*\/api\/v3$/);
  await expect(fetch(`${hub.apiUrl}/rate_limit`)).rejects.toThrow();
  // What NODE_EXTRA_CA_CERTS does when a process starts.
  setDefaultCACertificates([...known, hub.authority!]);

  const repository = hub.addRepository({ owner: 'acme', name: 'train', private: true, files: { 'train.py': 'import torch\n' } });
  const pull = openPull({ repository });
  await jobs.take('pull_request', { action: 'opened', pr: pull });
  expect(hub.view(pull).checks).toMatchObject([{ status: 'queued' }]);
  const run = addRun({ repository }, pull, ONE_FINDING);
  await jobs.take('workflow_run', { action: 'completed', run });

  const { comments, checks, reviews } = hub.view(pull);
  expect(checks).toMatchObject([{ status: 'completed', conclusion: 'neutral' }]);
  expect(reviews).toHaveLength(1);
  expect(comments).toHaveLength(1);
  // Links lead to this server, or to the page of the report.
  const links = [...comments[0]!.body.matchAll(/\]\((https?:\/\/[^)]+)\)/g)].map(([, url]) => url!);
  const [pages, places] = [true, false].map((own) => links.filter((url) => url.startsWith('https://advisor.example/details/') === own));
  expect(pages).toHaveLength(1);
  expect(places!.length).toBeGreaterThan(0);
  expect(places!.filter((url) => !url.startsWith(`${hub.url}/acme/train/`))).toEqual([]);

  expect(hub.violations).toEqual([]);
  expect(jobs.log).toEqual([]);
  // Tokens have more than 40 characters; storage never sees one.
  const blobs = hub.journal.filter(({ host }) => host === 'blob');
  expect(blobs).toMatchObject([{ authorization: false, range: null, status: 200 }]);
});
