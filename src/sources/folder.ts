import { open, readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { AdviseError } from '../base/errors.ts';
import { formatBytes } from '../base/phrase.ts';
import type { SourceLimits } from './limits.ts';
import type { ProfileEntry, ProfileSource } from './source.ts';

const CHUNK = 1 << 20;

export function fileEntry(file: string, path: string, bytes: number): ProfileEntry {
  return { path, bytes, place: { file }, open: () => readFile(file, bytes) };
}

/** Two buffers in turn, however long the file: one is filled while the other is worked on. */
async function* readFile(file: string, bytes: number): AsyncGenerator<Buffer> {
  const handle = await open(file, 'r');
  const size = Math.min(CHUNK, bytes + 1);
  const buffers = [Buffer.allocUnsafe(size)];
  let reading = handle.read(buffers[0]!, 0, size, null);
  try {
    for (let turn = 0; ; turn ^= 1) {
      const { bytesRead } = await reading;
      if (bytesRead === 0) return;
      const last = bytesRead < size;
      if (!last) {
        buffers[turn ^ 1] ??= Buffer.allocUnsafe(size);
        reading = handle.read(buffers[turn ^ 1]!, 0, size, null);
      }
      yield buffers[turn]!.subarray(0, bytesRead);
      if (last) return;
    }
  } finally {
    await reading.catch(() => {});
    await handle.close();
  }
}

/** Lists a folder. Symbolic links are not followed. */
export async function openFolder(root: string, limits: SourceLimits): Promise<ProfileSource> {
  const entries: ProfileEntry[] = [];
  let total = 0;
  const walk = async (dir: string, prefix: string, depth: number): Promise<void> => {
    if (depth > limits.maxDepth) return;
    const children = await readdir(dir, { withFileTypes: true });
    children.sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const child of children) {
      const path = prefix === '' ? child.name : `${prefix}/${child.name}`;
      if (child.isDirectory()) await walk(join(dir, child.name), path, depth + 1);
      else if (child.isFile()) {
        const { size } = await stat(join(dir, child.name));
        total += size;
        if (entries.length >= limits.maxEntries || total > limits.maxTotalBytes) {
          throw new AdviseError(
            'too-large',
            {
              en: `${root} holds more than ${limits.maxEntries} files or ${formatBytes(limits.maxTotalBytes)}, which is too much to read`,
              zh: `${root} 中的文件超过 ${limits.maxEntries} 个或 ${formatBytes(limits.maxTotalBytes)}，无法读取`,
            },
            {
              en: 'Point at the profile folder itself, or at the folders of two ranks.',
              zh: '直接指定 profile 目录，或只指定两张卡的目录。',
            },
          );
        }
        entries.push(fileEntry(join(dir, child.name), path, size));
      }
    }
  };
  await walk(root, '', 0);
  return { label: basename(root), kind: 'folder', entries, refused: [], close: async () => {} };
}
