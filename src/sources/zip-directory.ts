import yauzl from 'yauzl';
import { AdviseError, type Said, saidIn } from '../base/errors.ts';
import type { SourceLimits } from './limits.ts';
import { reasonOf } from './reason.ts';

const SYMLINK = 0o120000;
const FILE_TYPE = 0o170000;
/** Fixed part of a local header, and the longest extra field that may follow it. */
const LOCAL_HEADER = 30;
const MAX_EXTRA = 0xffff;

export function refuseZip(label: string, why: Said): AdviseError {
  return new AdviseError(
    'bad-zip',
    { en: `${label} cannot be used: ${saidIn(why, 'en')}`, zh: `${label} 无法使用：${saidIn(why, 'zh')}` },
    {
      en: 'Upload the profile folder again with actions/upload-artifact or a plain zip.',
      zh: '用 actions/upload-artifact 或普通 zip 重新上传 profile 目录。',
    },
  );
}

/** A file of an archive. `start` to `end` of the archive hold its header and its packed bytes, and nothing of another file. */
export interface ZipMember {
  readonly entry: yauzl.Entry;
  readonly start: number;
  readonly end: number;
}

export interface ZipDirectory {
  readonly zip: yauzl.ZipFile;
  readonly members: readonly ZipMember[];
}

/** Opens an archive and checks its directory; no file in it is touched. Throws AdviseError when one of them gives reason to refuse all. */
export async function openDirectory(file: string, limits: SourceLimits, label: string): Promise<ZipDirectory> {
  let zip: yauzl.ZipFile | null = null;
  try {
    zip = await openZipFile(file);
    const entries = await listEntries(zip, limits, label);
    check(entries, limits, label);
    return { zip, members: placed(entries, zip.fileSize, label) };
  } catch (error) {
    zip?.close();
    if (error instanceof AdviseError) throw error;
    throw refuseZip(label, reasonOf(error));
  }
}

function openZipFile(path: string): Promise<yauzl.ZipFile> {
  return new Promise((resolve, reject) => {
    yauzl.open(path, { lazyEntries: true, autoClose: false, strictFileNames: true, validateEntrySizes: true }, (error, zip) => {
      if (error) reject(error);
      else resolve(zip);
    });
  });
}

/** Files only; names that end in a slash are folders. */
function listEntries(zip: yauzl.ZipFile, limits: SourceLimits, label: string): Promise<yauzl.Entry[]> {
  return new Promise((resolve, reject) => {
    const list: yauzl.Entry[] = [];
    let count = 0;
    zip.on('error', reject);
    zip.on('end', () => resolve(list));
    zip.on('entry', (entry: yauzl.Entry) => {
      count++;
      if (!entry.fileName.endsWith('/')) list.push(entry);
      if (count > limits.maxEntries)
        reject(refuseZip(label, { en: `it has more than ${limits.maxEntries} entries`, zh: `条目超过 ${limits.maxEntries} 个` }));
      else zip.readEntry();
    });
    zip.readEntry();
  });
}

function check(entries: readonly yauzl.Entry[], limits: SourceLimits, label: string): void {
  const seen = new Set<string>();
  let total = 0;
  for (const entry of entries) {
    const name = entry.fileName;
    if (((entry.externalFileAttributes >>> 16) & FILE_TYPE) === SYMLINK)
      throw refuseZip(label, { en: 'it holds a symbolic link', zh: '其中有符号链接' });
    if ((entry.generalPurposeBitFlag & 1) !== 0) throw refuseZip(label, { en: 'it is encrypted', zh: '它已加密' });
    if (entry.compressionMethod !== 0 && entry.compressionMethod !== 8)
      throw refuseZip(label, {
        en: `compression method ${entry.compressionMethod} is not supported`,
        zh: `不支持压缩方法 ${entry.compressionMethod}`,
      });
    if (name.length > limits.maxNameLength) throw refuseZip(label, { en: 'a file name in it is too long', zh: '其中有过长的文件名' });
    const key = name.toLowerCase();
    if (seen.has(key)) throw refuseZip(label, { en: 'two entries have the same name', zh: '有两个条目同名' });
    seen.add(key);
    total += entry.uncompressedSize;
    if (entry.uncompressedSize > limits.maxEntryBytes || total > limits.maxTotalBytes)
      throw refuseZip(label, { en: 'it unpacks to more than the size limit', zh: '解压后超过大小限制' });
  }
}

/** Each file with its part of the archive. Files that share bytes are how a small archive unpacks to petabytes: refused. */
function placed(entries: readonly yauzl.Entry[], size: number, label: string): ZipMember[] {
  const byPlace = [...entries].sort((a, b) => a.relativeOffsetOfLocalHeader - b.relativeOffsetOfLocalHeader);
  const ends = new Map<yauzl.Entry, number>();
  for (const [i, entry] of byPlace.entries()) {
    const next = byPlace[i + 1]?.relativeOffsetOfLocalHeader ?? size;
    const least = entry.relativeOffsetOfLocalHeader + LOCAL_HEADER + entry.fileNameLength + entry.compressedSize;
    if (least > size) throw refuseZip(label, { en: 'it is cut off', zh: '它已被截断' });
    if (least > next) throw refuseZip(label, { en: 'files in it overlap', zh: '其中的文件互相重叠' });
    ends.set(entry, Math.min(next, least + MAX_EXTRA));
  }
  return entries.map((entry) => ({ entry, start: entry.relativeOffsetOfLocalHeader, end: ends.get(entry)! }));
}
