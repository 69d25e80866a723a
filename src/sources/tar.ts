import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { extract } from 'tar-stream';
import { AdviseError, type Said, saidIn } from '../base/errors.ts';
import { fileEntry } from './folder.ts';
import type { SourceLimits } from './limits.ts';
import { reasonOf } from './reason.ts';
import { copies, type ProfileEntry, type ProfileSource } from './source.ts';

/** File types a profile reader may ask for; everything else of a tar is skipped without touching the disk. */
const WANTED = /(\.(json|csv|db|db-wal|done|gz|zip|tar|tgz)|(^|\/)info\.json\.\d+)$/i;
/** Raw captures are recognised by their names; their content is not kept. */
const RAW = /(^|\/)(FRAMEWORK|PROF_\d+_\d+_[0-9A-Za-z]+)\//;

function refuse(label: string, why: Said): AdviseError {
  return new AdviseError(
    'bad-tar',
    { en: `${label} cannot be used: ${saidIn(why, 'en')}`, zh: `${label} 无法使用：${saidIn(why, 'zh')}` },
    {
      en: 'Pack the profile folder again, e.g. tar czf profile.tar.gz prof/.',
      zh: '重新打包 profile 目录，例如 tar czf profile.tar.gz prof/。',
    },
  );
}

/** A tar has no directory, so the wanted files are spilled once, under generated names, into a folder that `close` removes. */
export async function openTar(label: string, content: AsyncIterable<Buffer>, limits: SourceLimits): Promise<ProfileSource> {
  const spill = await mkdtemp(join(tmpdir(), 'npu-advisor-tar-'));
  const entries: ProfileEntry[] = [];
  const close = (): Promise<void> => rm(spill, { recursive: true, force: true });
  let total = 0;
  let count = 0;
  const parser = extract();
  const reading = (async () => {
    for await (const entry of parser) {
      const { name, type, size = 0 } = entry.header;
      const path = name.replace(/^(\.\/)+/, '');
      // tar-stream 3.2.2 passes on a size it cannot read as null and then waits for ever for the entry to end.
      if (!Number.isSafeInteger(size) || size < 0) throw refuse(label, { en: 'a header of it is damaged', zh: '其中一个文件头已损坏' });
      count++;
      total += size;
      if (count > limits.maxEntries)
        throw refuse(label, { en: `it has more than ${limits.maxEntries} entries`, zh: `条目超过 ${limits.maxEntries} 个` });
      if (size > limits.maxEntryBytes || total > limits.maxTotalBytes)
        throw refuse(label, { en: 'it unpacks to more than the size limit', zh: '解压后超过大小限制' });
      if (type === 'symlink' || type === 'link') throw refuse(label, { en: 'it holds a link', zh: '其中有链接' });
      if (path.startsWith('/') || path.includes('\\') || path.split('/').includes('..') || path.length > limits.maxNameLength) {
        throw refuse(label, { en: 'it holds an unsafe file name', zh: '其中有不安全的文件名' });
      }
      if (type !== 'file' || !WANTED.test(path)) {
        entry.resume();
        if (type === 'file' && RAW.test(path)) entries.push({ path, bytes: size, place: { file: spill }, open: nothing });
        continue;
      }
      const target = join(spill, String(count));
      await pipeline(entry, createWriteStream(target));
      entries.push(fileEntry(target, path, size));
    }
  })();
  try {
    // Both have ended before the folder goes: a file still being opened would bring it back.
    const ends = await Promise.allSettled([pipeline(copies(content), parser), reading]);
    const failed = ends.filter((e) => e.status === 'rejected').map((e): unknown => e.reason);
    if (failed.length > 0) throw failed.find((e) => e instanceof AdviseError) ?? failed[0];
  } catch (error) {
    await close();
    if (error instanceof AdviseError) throw error;
    throw refuse(label, reasonOf(error));
  }
  return { label, kind: 'tar', entries, refused: [], close };
}

async function* nothing(): AsyncGenerator<Buffer> {}
