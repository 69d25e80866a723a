/** The training repository of the demo: real text files beside this one, as they are on the base branch and in the pull request. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, 'repository');

/** Files by path in the repository. */
export type Files = { [path: string]: string };

function filesBelow(folder: string): Files {
  const files: Files = {};
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    files[path.slice(folder.length + 1).replaceAll('\\', '/')] = readFileSync(path, 'utf8');
  }
  return files;
}

/** The base branch, with the App's language set. */
export function baseFiles(lang: 'en' | 'zh'): Files {
  const files = filesBelow(join(ROOT, 'base'));
  const settings = '.github/npu-advisor.yml';
  return { ...files, [settings]: files[settings]!.replace('lang: en', `lang: ${lang}`) };
}

/** What the pull request changes. */
export function headFiles(): Files {
  return filesBelow(join(ROOT, 'head'));
}

/** Number of the only line that contains a text. */
export function lineOf(files: Files, path: string, text: string): number {
  const lines = (files[path] ?? '').split('\n');
  const at = lines.findIndex((line) => line.includes(text));
  if (at < 0 || lines.findLastIndex((line) => line.includes(text)) !== at) {
    throw new Error(`${path} of the demo must have one line with ${JSON.stringify(text)}`);
  }
  return at + 1;
}
