import { gunzip } from './gzip.ts';
import type { ProfileEntry } from './source.ts';

/** What kind of archive a file is, by content: `tgz` is a packed tar, `gz` one packed file. */
export type ArchiveKind = 'zip' | 'tar' | 'tgz' | 'gz';

const HEAD = 512;

export async function archiveKind(entry: ProfileEntry): Promise<ArchiveKind | null> {
  const head = await headOf(entry.open());
  if (head.length >= 4 && (head.readUInt32LE(0) === 0x04034b50 || head.readUInt32LE(0) === 0x06054b50)) return 'zip';
  if (isTar(head)) return 'tar';
  if (head[0] !== 0x1f || head[1] !== 0x8b) return null;
  if (/\.(tar\.gz|tgz)$/i.test(entry.path)) return 'tgz';
  return isTar(await headOf(gunzip(entry, Number.POSITIVE_INFINITY))) ? 'tgz' : 'gz';
}

function isTar(head: Buffer): boolean {
  return head.toString('latin1', 257, 262) === 'ustar';
}

/** The first bytes; what is damaged right at its start has none. */
async function headOf(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  let head = Buffer.alloc(0);
  try {
    for await (const chunk of chunks) {
      head = Buffer.concat([head, chunk.subarray(0, HEAD)]);
      if (head.length >= HEAD) break;
    }
  } catch {
    // Damage is told when the file is read.
  }
  return head;
}
