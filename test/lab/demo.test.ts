import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exampleJob } from '../../lab/demo/example.ts';
import { readOptions } from '../../lab/demo/options.ts';
import { readable } from '../../lab/demo/print.ts';
import { baseFiles, headFiles, lineOf } from '../../lab/demo/repository.ts';
import { zipFolder } from '../../lab/demo/zip-folder.ts';
import { simulate, writeProfiles } from '../../lab/simulator/index.ts';
import { openSource } from '../../src/sources/index.ts';

const MAIN = join(import.meta.dirname, '../../lab/demo/main.ts');
const TIMEOUT = 150_000;

let folder: string;
let busy: Server;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'npu-advisor-demo-test-'));
  busy = createServer();
  await new Promise<void>((resolve) => busy.listen(0, '127.0.0.1', resolve));
});
afterAll(() => {
  busy.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Run {
  readonly child: ChildProcess;
  out(): string;
  err(): string;
  readonly exited: Promise<number | null>;
  /** What the demo left in the temporary folder. */
  leftOver(): string[];
}

/** The demo as a stranger starts it, with a temporary folder of its own. */
function demo(...args: string[]): Run {
  const temporary = mkdtempSync(join(folder, 'tmp-'));
  const env = { ...process.env, TMPDIR: temporary };
  const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
  return { child, out: () => out, err: () => err, exited, leftOver: () => readdirSync(temporary) };
}

const count = (text: string, part: RegExp): number => text.match(part)?.length ?? 0;

describe('npm run demo', () => {
  it(
    'answers the example with one comment, one check and the three remedies',
    async () => {
      const run = demo('--once', '--ranks', '2');
      expect(await run.exited, run.err()).toBe(0);
      const out = run.out();
      expect(count(out, /^Comment by npu-advisor\[bot\]$/gm)).toBe(1);
      expect(count(out, /^Check run: NPU Advisor · completed · neutral$/gm)).toBe(1);
      expect(out).toMatch(/^### ⚠️ NPU Advisor: 3 causes cost about/m);
      expect(out).not.toContain('violation');
      const files = headFiles();
      const wrap = lineOf(files, 'train.py', 'model = DDP(');
      const mode = lineOf(files, 'train.py', 'jit_compile=True');
      const [, suggestions = ''] = out.split(/^Suggestions: /m);
      expect(suggestions).toMatch(new RegExp(`^train\\.py:${wrap}\\n[^]*\`\`\`suggestion\\n.*broadcast_buffers=False\\)`, 'm'));
      expect(suggestions).toMatch(new RegExp(`^train\\.py:${mode}\\n[^]*\`\`\`suggestion\\n.*jit_compile=False\\)`, 'm'));
      expect(out).toContain('contextlib.nullcontext() if last else model.no_sync()');
      expect(out).toMatch(/^Page: http:\/\/127\.0\.0\.1:\d+\/demo\/bert-npu\/pull\/1$/m);
      expect(run.leftOver()).toEqual([]);
    },
    TIMEOUT,
  );

  it(
    'shows a profile of the visitor on its page until it is stopped',
    async () => {
      const profiles = join(folder, 'job');
      await writeProfiles(simulate({ ranks: 2, layers: 2, faults: [{ kind: 'slow-loader', single: true }] }), profiles);
      const zip = join(folder, 'job.zip');
      await zipFolder(profiles, zip);
      const { port } = busy.address() as AddressInfo;
      const run = demo(zip, '--lang', 'zh', '--port', String(port));
      await expect.poll(run.out, { timeout: TIMEOUT, interval: 200 }).toMatch(/^Page: .*$/m);
      const page = /^Page: (.*)$/m.exec(run.out())![1]!;
      expect(new URL(page).port).not.toBe(String(port));
      expect(run.err()).toContain(`port ${port} is in use`);
      const response = await fetch(page);
      expect(response.status).toBe(200);
      expect(await response.text()).toContain('数据加载');
      expect(run.out()).toContain('改法');
      run.child.kill('SIGINT');
      expect(await run.exited).toBe(0);
      await expect(fetch(page)).rejects.toThrow();
      expect(run.leftOver()).toEqual([]);
    },
    TIMEOUT,
  );

  it.each([
    [['/no/such/profile', '--once'], /^demo: \/no\/such\/profile does not exist; .*\n$/],
    [['--port', 'x'], /^demo: --port must be a whole number.*\n$/],
    [['--wrong'], /^demo: Unknown option '--wrong'; .*\n$/],
  ])('refuses %j with one line', async (args, words) => {
    const run = demo(...args);
    expect(await run.exited).toBe(2);
    expect(run.err()).toMatch(words);
    expect(run.out()).toBe('');
  });
});

describe('its parts', () => {
  it('the call sites of the example are lines of the pull request', () => {
    const { code } = exampleJob(8);
    const files = { ...baseFiles('en'), ...headFiles() };
    for (const { file, line } of Object.values(code!)) {
      expect(files[file.replace('/workspace/bert-npu/', '')]!.split('\n')[line - 1]?.trim()).toBeTruthy();
    }
  });

  it('the example names nothing that never existed', () => {
    const text = Object.values({ ...baseFiles('en'), ...headFiles() }).join('\n');
    expect(text).not.toMatch(
      /torch_npu\.amp|torch_npu\.utils\.data|gradient_compress|contrib\.pipeline|set_mode\(|npu_matmul|\.prefetch\(/,
    );
  });

  it('the language reaches the settings', () => {
    expect(baseFiles('zh')['.github/npu-advisor.yml']).toMatch(/^lang: zh$/m);
  });

  it('a path is looked for where npm was called, then here', () => {
    const lab = join(import.meta.dirname, '../../lab');
    expect(readOptions(['demo', '--once'], { INIT_CWD: lab })).toMatchObject({ path: join(lab, 'demo'), once: true, port: 0, lang: 'en' });
    expect(() => readOptions(['demo', 'simulator'], { INIT_CWD: lab })).toThrow(/one PATH/);
    expect(readOptions(['--help'], {})).toBeNull();
  });

  it('text for the terminal has no markup that only a browser can use', () => {
    const body =
      '<!-- marker -->\n### A\u00a0b\n\n[`a.py:1`](http://x/y#L1) \\| 1\\. (1–&#8288;2)\n\n<details><summary>More</summary>\n\nx\n\n</details>\n';
    expect(readable(body)).toBe('### A b\n\n`a.py:1` | 1. (1–2)\n\n▸ More\n\nx');
  });

  it('a zipped folder holds its files, empty and nested ones too', async () => {
    const zip = join(folder, 'repository.zip');
    const root = join(import.meta.dirname, '../../lab/demo/repository');
    expect(await zipFolder(root, zip)).toBe(Object.keys(baseFiles('en')).length + Object.keys(headFiles()).length);
    const source = await openSource(zip);
    const paths = source.entries.map(({ path }) => path);
    expect(paths).toContain('base/.github/workflows/perf.yml');
    expect(source.entries.find(({ path }) => path === 'base/bert/__init__.py')?.bytes).toBe(0);
    await source.close();
  });
});
