/* Archives made by hand, so that hostile ones can be made, too. */
import { crc32, deflateRawSync } from 'node:zlib';

/** One entry of a zip; what is left out is honest. */
export interface ZipEntry {
  readonly name: string | Buffer;
  readonly data?: Buffer | string;
  readonly stored?: boolean;
  /** General purpose flags; bit 0 says "encrypted". */
  readonly flags?: number;
  readonly method?: number;
  /** Unix mode in the upper half of the external attributes. */
  readonly mode?: number;
  /** What the headers claim instead of the truth. */
  readonly claimedSize?: number;
  readonly claimedCrc?: number;
}

/** `zip64`: its end says where the directory is in 64 bits, as it must from 4 GiB on. */
export function zipOf(entries: readonly ZipEntry[], { zip64 = false } = {}): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const entry of entries) {
    const name = Buffer.from(entry.name);
    const data = Buffer.from(entry.data ?? '');
    const method = entry.method ?? (entry.stored === true ? 0 : 8);
    const packed = method === 8 ? deflateRawSync(data) : data;
    const flags = entry.flags ?? 0x0800;
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(flags, 2);
    common.writeUInt16LE(method, 4);
    common.writeUInt16LE(0, 6);
    common.writeUInt16LE(0x21, 8);
    common.writeUInt32LE(entry.claimedCrc ?? crc32(data), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(entry.claimedSize ?? data.length, 18);
    common.writeUInt16LE(name.length, 22);
    common.writeUInt16LE(0, 24);
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), common, name, packed]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(((entry.mode ?? 0o100644) << 16) >>> 0, 6);
    tail.writeUInt32LE(offset, 10);
    // Made by unix (3), version 2.0.
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02', 'latin1'), Buffer.from([20, 3]), common, tail, name]));
    parts.push(local);
    offset += local.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 0, 'latin1');
  end.writeUInt16LE(Math.min(entries.length, 0xffff), 8);
  end.writeUInt16LE(Math.min(entries.length, 0xffff), 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(zip64 ? 0xffffffff : offset, 16);
  return Buffer.concat([...parts, central, ...(zip64 ? [end64(entries.length, central.length, offset)] : []), end]);
}

/** The zip64 end of a directory, and what points to it. */
export function end64(entries: number, bytes: number, offset: number): Buffer {
  const end = Buffer.alloc(76);
  end.writeUInt32LE(0x06064b50, 0);
  end.writeBigUInt64LE(44n, 4);
  end.writeUInt16LE(45, 12);
  end.writeUInt16LE(45, 14);
  end.writeBigUInt64LE(BigInt(entries), 24);
  end.writeBigUInt64LE(BigInt(entries), 32);
  end.writeBigUInt64LE(BigInt(bytes), 40);
  end.writeBigUInt64LE(BigInt(offset), 48);
  end.writeUInt32LE(0x07064b50, 56);
  end.writeBigUInt64LE(BigInt(offset + bytes), 64);
  end.writeUInt32LE(1, 72);
  return end;
}

/** One entry of a tar. */
export interface TarEntry {
  readonly name: string;
  readonly data?: Buffer | string;
  /** '0' file, '1' hard link, '2' symbolic link, '5' folder. */
  readonly type?: string;
  readonly linkTo?: string;
  readonly claimedSize?: number;
}

export function tarOf(entries: readonly TarEntry[]): Buffer {
  const blocks: Buffer[] = [];
  for (const entry of entries) {
    const data = Buffer.from(entry.data ?? '');
    const header = Buffer.alloc(512);
    const octal = (value: number, at: number, size: number): void => {
      header.write(value.toString(8).padStart(size - 1, '0'), at, size - 1, 'latin1');
    };
    header.write(entry.name, 0, 100, 'utf8');
    octal(0o644, 100, 8);
    octal(0, 108, 8);
    octal(0, 116, 8);
    octal(entry.claimedSize ?? data.length, 124, 12);
    octal(0, 136, 12);
    header.write(' '.repeat(8), 148, 8, 'latin1');
    header.write(entry.type ?? '0', 156, 1, 'latin1');
    header.write(entry.linkTo ?? '', 157, 100, 'utf8');
    header.write('ustar\x0000', 257, 8, 'latin1');
    octal(
      header.reduce((sum, byte) => sum + byte, 0),
      148,
      7,
    );
    blocks.push(header, data, Buffer.alloc((512 - (data.length % 512)) % 512));
  }
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}
