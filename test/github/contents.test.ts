import { describe, expect, test } from 'vitest';
import { chooseFiles, filesNamed } from '../../src/github/choose-files.ts';
import type { Octokit } from '../../src/github/client.ts';
import { openRepositorySource } from '../../src/github/contents.ts';
import type { ChangedFile } from '../../src/github/diff.ts';

const REPOSITORY = { id: 1, owner: 'o', name: 'r' } as unknown as Parameters<typeof openRepositorySource>[1];
const entry = (path: string, bytes = 100) => ({ path, sha: path, bytes });
const change = (path: string, more: Partial<ChangedFile> = {}): ChangedFile => ({
  path,
  status: 'modified',
  patch: null,
  bytesHint: 1,
  ...more,
});

interface Given {
  readonly files: Readonly<Record<string, string>>;
  /** The whole listing is cut: folders must be listed one by one. */
  readonly truncated?: boolean;
}

/** GitHub as far as the source is read; counts the calls. */
function hub({ files, truncated = false }: Given): { octokit: Octokit; calls: Record<string, number> } {
  const calls: Record<string, number> = { tree: 0, blob: 0, contents: 0 };
  const blob = (path: string) => ({ path, mode: '100644', type: 'blob', sha: `blob:${path}`, size: files[path]!.length });
  const folder = (base: string) => {
    const names = new Map<string, object>();
    for (const path of Object.keys(files).filter((p) => p.startsWith(base))) {
      const [name, ...rest] = path.slice(base.length).split('/');
      names.set(
        name!,
        rest.length === 0 ? { ...blob(path), path: name } : { path: name, mode: '040000', type: 'tree', sha: `${base}${name}/` },
      );
    }
    return [...names.values()];
  };
  const git = {
    getTree: async ({ tree_sha, recursive }: { tree_sha: string; recursive?: string }) => {
      calls.tree!++;
      if (recursive && !truncated)
        return {
          data: {
            truncated: false,
            tree: [...Object.keys(files).map(blob), { path: 'link.py', mode: '120000', type: 'blob', sha: 'l', size: 3 }],
          },
        };
      return { data: { truncated: Boolean(recursive), tree: folder(tree_sha === 'head' ? '' : tree_sha) } };
    },
    getBlob: async ({ file_sha }: { file_sha: string }) => {
      calls.blob!++;
      return { data: { content: Buffer.from(files[file_sha.slice('blob:'.length)]!).toString('base64') } };
    },
  };
  const repos = {
    getContent: async ({ path }: { path: string }) => {
      calls.contents!++;
      return { data: { type: 'file', size: 1, content: Buffer.from(files[path] ?? '').toString('base64') } };
    },
  };
  return { octokit: { rest: { git, repos } } as unknown as Octokit, calls };
}

describe('which files are worth a request', () => {
  test('changed files, scripts that start a training, versions and the parts of a step come first', () => {
    const noise = Array.from({ length: 2_000 }, (_, i) => entry(`lib/deep/er/util_${i}.py`, 10));
    const wanted = [
      'zoo/odd/changed.py',
      'train.py',
      'scripts/run.sh',
      'requirements.txt',
      'src/data/loader.py',
      'pretrain_gpt.py',
      'zoo/odd/neighbour.py',
    ];
    const chosen = chooseFiles(
      [...noise, ...wanted.map((path) => entry(path, 5_000)), entry('logo.png'), entry('tests/train.py')],
      new Set(['zoo/odd/changed.py']),
      { maxFiles: 8, maxBytes: 1e6 },
    );
    expect(chosen.map(({ path }) => path)).toEqual(expect.arrayContaining(wanted));
    expect(chosen[0]!.path).toBe('zoo/odd/changed.py');
    expect(chosen).toHaveLength(8);
  });

  test('a large file does not keep out the rest', () => {
    const chosen = chooseFiles([entry('train.py', 900), entry('main.py', 200), entry('run.py', 50)], new Set(), {
      maxFiles: 9,
      maxBytes: 300,
    });
    expect(chosen.map(({ path }) => path)).toEqual(['run.py', 'main.py']);
  });

  test('files that stacks name, by the longest end of the path; a name that is everywhere says nothing', () => {
    const entries = [
      'a/x/trainer.py',
      'b/x/trainer.py',
      'b/y/engine.py',
      'node_modules/q.py',
      ...Array.from({ length: 9 }, (_, i) => `m${i}/utils.py`),
    ].map((p) => entry(p));
    const named = (...frames: string[]) => filesNamed(entries, frames, 10).map(({ path }) => path);
    expect(named('/w/b/x/trainer.py')).toEqual(['b/x/trainer.py']);
    expect(named('/app/trainer.py')).toEqual(['a/x/trainer.py', 'b/x/trainer.py']);
    expect(named('/app/utils.py', '/app/q.py', 'engine.py', '')).toEqual(['b/y/engine.py']);
    expect(filesNamed(entries, ['/app/trainer.py'], 1)).toHaveLength(1);
  });
});

describe('reading the source', () => {
  const LIMITS = { maxFiles: 3, maxBytes: 100_000 };
  const files = {
    'train.py': 'import torch\n',
    'a/b/step.py': 'x = 1\n',
    'a/b/other.py': 'y = 1\n',
    'c/d/e/f/odd.py': 'z = 1\n',
    'logo.svg': '<svg/>',
  };

  test('one request for the tree and one for each chosen file; what the profile names is read once, later', async () => {
    const { octokit, calls } = hub({ files });
    const opened = await openRepositorySource(
      octokit,
      REPOSITORY,
      'head',
      [change('a/b/step.py', { patch: '@@ -1 +1 @@\n-x\n+x = 1', previousPath: 'a/old.py' })],
      LIMITS,
    );
    expect(calls).toEqual({ tree: 1, blob: 3, contents: 0 });
    expect(opened.source.files.map(([path]) => path)).toEqual(['a/b/step.py', 'train.py', 'a/b/other.py']);
    expect(opened.source.renames).toEqual([['a/old.py', 'a/b/step.py']]);
    expect(await opened.more(['/workspace/c/d/e/f/odd.py', '/workspace/nothing.py', '/w/train.py'])).toEqual([
      ['c/d/e/f/odd.py', 'z = 1\n'],
    ]);
    expect(opened.source.files).toHaveLength(4);
    expect(await opened.more(['/workspace/c/d/e/f/odd.py'])).toEqual([]);
    expect(calls.blob).toBe(4);
  });

  test('a listing that GitHub cuts is read folder by folder, and not without end', async () => {
    const { octokit, calls } = hub({ files, truncated: true });
    const opened = await openRepositorySource(octokit, REPOSITORY, 'head', [], { ...LIMITS, maxFiles: 9 });
    expect(opened.source.files.map(([path]) => path).sort()).toEqual(['a/b/other.py', 'a/b/step.py', 'c/d/e/f/odd.py', 'train.py']);
    const many = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`p${i}/m.py`, 'x\n']));
    const wide = hub({ files: many, truncated: true });
    await openRepositorySource(wide.octokit, REPOSITORY, 'head', [change('p59/m.py')], LIMITS);
    expect(calls.tree).toBeLessThan(10);
    expect(wide.calls.tree).toBeLessThanOrEqual(26);
    // Beyond the listing, what is changed is read by its path.
    expect(wide.calls.contents).toBe(1);
  });
});
