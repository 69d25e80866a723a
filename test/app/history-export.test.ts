/* `npu-advise history export`: everything that is kept, as a person or a spreadsheet reads it. */
import { describe, expect, it } from 'vitest';
import { exportHistory, writeHistory } from '../../src/app/history-export.ts';
import type { KeptProfile, Store } from '../../src/store/ports.ts';

function profile(id: number, over: Partial<KeptProfile> = {}): KeptProfile {
  const metrics = { stepTimeMs: 741.9, freeShare: 0.2, exposedMs: null, top: [{ rule: 'slow-rank', savingMs: 38 }] };
  const common = { id, repoId: 7, installationId: 1, job: 'default', sha: 'a'.repeat(40), branch: 'main', pr: null, trusted: true };
  return { ...common, origin: `run/${id}`, recordedAt: Date.UTC(2026, 10, 30), metrics, factsSchema: null, ...over };
}

function storeOf(all: readonly KeptProfile[]): Pick<Store, 'profiles' | 'repositories'> {
  const list: Store['profiles']['list'] = async ({ repoId, job, after, limit }) =>
    all.filter((p) => p.id > after && (repoId ?? p.repoId) === p.repoId && (job ?? p.job) === p.job).slice(0, limit);
  const repositories = { list: async () => [{ repoId: 7, installationId: 1, owner: 'acme', name: 'train' }] };
  return { profiles: { list }, repositories } as unknown as Pick<Store, 'profiles' | 'repositories'>;
}

async function exported(all: readonly KeptProfile[], over: { repository?: string; job?: string; format?: string } = {}): Promise<string> {
  let text = '';
  const options = { repository: over.repository ?? null, job: over.job ?? null, format: over.format ?? 'json' };
  await writeHistory(storeOf(all), options, (part) => {
    text += part;
  });
  return text;
}

describe('the export of the history', () => {
  it('is one JSON document, however many profiles there are', async () => {
    const many = Array.from({ length: 1001 }, (_, i) => profile(i + 1));
    const { schema, profiles } = JSON.parse(await exported(many)) as { schema: string; profiles: object[] };
    expect(schema).toBe('npu-advisor.history/1');
    expect(profiles).toHaveLength(1001);
    expect(profiles[0]).toEqual({
      ...{ repository: 'acme/train', repositoryId: 7, job: 'default', branch: 'main', pullRequest: null, commit: 'a'.repeat(40) },
      ...{ recordedAt: '2026-11-30T00:00:00.000Z', fromFork: false, comparable: false },
      ...{ stepTimeMs: 741.9, idleShare: 0.2, exposedCommunicationMs: null, causes: [{ rule: 'slow-rank', savingMs: 38 }] },
    });
    expect(JSON.parse(await exported([]))).toEqual({ schema, profiles: [] });
  });

  it('is CSV with quoted texts, and no cell a spreadsheet would run', async () => {
    const text = await exported([profile(1, { branch: '=HYPERLINK("x")', trusted: false })], { format: 'csv' });
    const [head, row, end] = text.split('\r\n');
    expect(head).toContain('commit,recordedAt,fromFork');
    expect(row).toContain(`"'=HYPERLINK(""x"")"`);
    expect(row).toContain('true,false,741.9,0.2,,"slow-rank=38"');
    expect(end).toBe('');
  });

  it('is of one repository or job when asked', async () => {
    const all = [profile(1), profile(2, { job: 'bert' }), profile(3, { repoId: 8 })];
    const commits = async (over: object): Promise<number> =>
      (JSON.parse(await exported(all, over)) as { profiles: object[] }).profiles.length;
    expect(await commits({ repository: 'Acme/train' })).toBe(2);
    expect(await commits({ repository: '8' })).toBe(1);
    expect(await commits({ job: 'bert' })).toBe(1);
    await expect(exported(all, { repository: 'acme/other' })).rejects.toThrow('nothing is kept of acme/other');
    await expect(exported(all, { format: 'xml' })).rejects.toThrow('no format xml');
  });

  it('does not make a store where there is none', async () => {
    const env = { NPU_ADVISOR_DATA_DIR: '/nonexistent/store' };
    await expect(exportHistory(env, { repository: null, job: null, format: 'json' }, () => {})).rejects.toThrow('there is no store');
  });
});
