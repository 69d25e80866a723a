/* An embedded store that was set up and never used. Setting one up takes seconds, a copy does not. */
import { createHash } from 'node:crypto';
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openStore } from '../../../src/store/open.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const CACHE = join(ROOT, 'node_modules', '.cache', 'npu-advisor');

/** Whatever decides how a new store looks. */
function fingerprint(): string {
  const hash = createHash('sha256');
  for (const file of globSync('src/store/**/*.ts', { cwd: ROOT }).sort()) hash.update(readFileSync(join(ROOT, file)));
  for (const name of ['@electric-sql/pglite', 'pg-boss']) hash.update(readFileSync(join(ROOT, 'node_modules', name, 'package.json')));
  return hash.digest('hex').slice(0, 16);
}

let known: Promise<string> | null = null;

async function template(): Promise<string> {
  const folder = join(CACHE, `store-${fingerprint()}`);
  if (existsSync(folder)) return folder;
  mkdirSync(CACHE, { recursive: true });
  const draft = mkdtempSync(join(CACHE, 'draft-'));
  const opened = await openStore({
    databaseUrl: null,
    dataDir: draft,
    retryLimit: 1,
    retryDelaySeconds: 0,
    expireSeconds: 60,
    onError: (error) => {
      throw error;
    },
  });
  await opened.queue.drain(1000);
  await opened.close();
  try {
    renameSync(draft, folder);
  } catch (error) {
    // Another test file was faster.
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}

/** Makes `dataDir` the folder of a server that has never run. */
export async function copyEmptyStore(dataDir: string): Promise<void> {
  known ??= template();
  cpSync(await known, dataDir, { recursive: true });
}
