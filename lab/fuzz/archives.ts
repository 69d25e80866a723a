import { crc32, deflateRawSync, gzipSync } from 'node:zlib';
import type { Random } from './random.ts';

export type Files = readonly (readonly [path: string, data: Buffer])[];

const packedOf = new WeakMap<Buffer, Buffer>();

function pack(data: Buffer): Buffer {
  let packed = packedOf.get(data);
  if (packed === undefined) {
    packed = deflateRawSync(data, { level: 1 });
    packedOf.set(data, packed);
  }
  return packed;
}

const NAMES = [
  '../../escaped.txt', '/absolute.json', 'a\\..\\b.json', 'C:/x.json', 'x/../../y.json', '.', '..', '', 'a/'.repeat(40), 'n'.repeat(3000), 'con\0.json', '\ufeffx.json',
  'trace_view.json', 'ASCEND_PROFILER_OUTPUT/trace_view.json',
]; // biome-ignore format: a table of names

interface Lies {
  local: (head: Buffer) => void;
  central: (head: Buffer) => void;
}

/** What one entry's headers say instead of the truth. Offsets are those of the local header; the central one has two bytes more. */
function lieOf(random: Random): Lies {
  const field = random.pick([
    [6, 2],
    [8, 2],
    [14, 4],
    [18, 4],
    [22, 4],
    [26, 2],
    [28, 2],
  ] as const);
  const value = random.pick([0, 1, 9, 0x7fff, 0xffff, 0xfffffffe, 0xffffffff, random.int(2 ** 31)]);
  const put = (head: Buffer, shift: number): void => {
    if (field[1] === 2) head.writeUInt16LE(value & 0xffff, field[0] + shift);
    else head.writeUInt32LE(value >>> 0, field[0] + shift);
  };
  const where = random.int(3);
  return {
    local: (head) => where !== 1 && put(head, 0),
    central: (head) => where !== 0 && put(head, 2),
  };
}

/** A zip, honest or not. */
export function zipOf(files: Files, random: Random | null): { data: Buffer; what: string } {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  const list = [...files];
  let what = 'honest';
  const trick = random === null ? -1 : random.int(12);
  const victim = random === null ? -1 : random.int(list.length);
  if (random !== null && trick === 0) {
    what = 'name';
    list[victim] = [random.pick(NAMES), list[victim]![1]];
  }
  if (random !== null && trick === 1) {
    what = 'many entries';
    for (let i = 0; i < 2_000; i++) list.push([`f${i}/${i}.json`, Buffer.from('{}')]);
  }
  if (random !== null && trick === 2) {
    what = 'same name twice';
    list.push(list[victim]!);
  }
  let offset = 0;
  let first = 0;
  list.forEach(([path, data], index) => {
    const name = Buffer.from(path);
    const stored = random?.chance(0.2) === true;
    const packed = stored ? data : pack(data);
    const local = Buffer.alloc(30);
    local.write('PK\x03\x04', 0, 'latin1');
    local.writeUInt16LE(20, 4);
    local.writeUInt16LE(0x0800, 6);
    local.writeUInt16LE(stored ? 0 : 8, 8);
    local.writeUInt16LE(0x21, 12);
    local.writeUInt32LE(crc32(data), 14);
    local.writeUInt32LE(packed.length, 18);
    local.writeUInt32LE(data.length, 22);
    local.writeUInt16LE(name.length, 26);
    let extra = Buffer.alloc(0);
    const central = Buffer.alloc(46);
    central.write('PK\x01\x02', 0, 'latin1');
    central.writeUInt16LE(0x0314, 4);
    local.copy(central, 6, 4, 30);
    central.writeUInt32LE((0o100644 << 16) >>> 0, 38);
    central.writeUInt32LE(offset, 42);
    if (random !== null && index === victim) {
      if (trick === 3 || trick === 4 || trick === 5) {
        what = 'lying header';
        const lie = lieOf(random);
        lie.local(local);
        lie.central(central);
      } else if (trick === 6) {
        what = 'symbolic link';
        central.writeUInt32LE((0o120777 << 16) >>> 0, 38);
      } else if (trick === 7) {
        what = 'overlapping';
        central.writeUInt32LE(first, 42);
      } else if (trick === 8) {
        what = 'zip64';
        central.writeUInt32LE(0xffffffff, 20);
        central.writeUInt32LE(0xffffffff, 24);
        extra = Buffer.alloc(20);
        extra.writeUInt16LE(1, 0);
        extra.writeUInt16LE(random.pick([16, 8, 0, 60_000]), 2);
        extra.writeBigUInt64LE(random.pick([BigInt(data.length), 0n, 2n ** 40n, 2n ** 63n, 2n ** 64n - 1n]), 4);
        extra.writeBigUInt64LE(random.pick([BigInt(packed.length), 0n, 2n ** 53n, 2n ** 64n - 1n]), 12);
        central.writeUInt16LE(extra.length, 30);
      } else if (trick === 9) {
        what = 'offset';
        central.writeUInt32LE(random.pick([0xffffffff, 0xfffffffe, 1, offset + 3, random.int(2 ** 31)]), 42);
      }
    }
    if (index === 0) first = offset;
    directory.push(central, name, extra);
    parts.push(local, name, packed);
    offset += 30 + name.length + packed.length;
  });
  const size = directory.reduce((sum, d) => sum + d.length, 0);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 0, 'latin1');
  end.writeUInt16LE(list.length & 0xffff, 8);
  end.writeUInt16LE(list.length & 0xffff, 10);
  end.writeUInt32LE(size, 12);
  end.writeUInt32LE(offset, 16);
  if (random !== null && trick === 10) {
    what = 'lying end';
    end.writeUInt32LE(random.pick([0, 1, 0xffff, 0xffffffff, random.int(2 ** 31)]), random.pick([8, 12, 16, 4]));
  }
  let data = Buffer.concat([...parts, ...directory, end]);
  if (random !== null && trick === 11) {
    what = 'damaged bytes';
    for (let n = 1 + random.int(10); n > 0; n--) data[random.int(data.length)] = random.int(256);
    if (random.chance(0.4)) data = data.subarray(0, random.int(data.length));
  }
  return { data, what };
}

/** A tar, honest or not, perhaps compressed. */
export function tarOf(files: Files, gzip: boolean, random: Random | null): { data: Buffer; what: string } {
  const blocks: Buffer[] = [];
  let what = 'honest';
  const trick = random === null ? -1 : random.int(8);
  const victim = random === null ? -1 : random.int(files.length);
  files.forEach(([path, data], index) => {
    const head = Buffer.alloc(512);
    const octal = (value: number, at: number, size: number): void => {
      head.write(value.toString(8).padStart(size - 1, '0'), at, size - 1, 'latin1');
    };
    let name = path;
    let type = '0';
    let claimed = data.length;
    const own = random !== null && index === victim;
    if (own && trick === 0) {
      what = 'name';
      name = random.pick(NAMES);
    } else if (own && trick === 1) {
      what = 'type';
      type = random.pick(['1', '2', '3', '4', '5', '6', '7', 'x', 'g', 'L', 'K', 'S', '\0', 'Z']);
    } else if (own && trick === 2) {
      what = 'size';
      claimed = random.pick([0, 1, data.length + 1, data.length * 3, 8 ** 11 - 1, 511, 512]);
    }
    head.write(name, 0, 100, 'utf8');
    octal(0o644, 100, 8);
    octal(0, 108, 8);
    octal(0, 116, 8);
    octal(claimed, 124, 12);
    octal(0, 136, 12);
    head.write(' '.repeat(8), 148, 8, 'latin1');
    head.write(type, 156, 1, 'latin1');
    head.write('ustar\x0000', 257, 8, 'latin1');
    if (own && trick === 3) {
      what = 'header bytes';
      for (let n = 1 + random.int(5); n > 0; n--) head[random.int(512)] = random.int(256);
    }
    octal(
      head.reduce((sum, byte) => sum + byte, 0),
      148,
      7,
    );
    if (own && trick === 4) {
      what = 'base-256 size';
      random.bytes(12).copy(head, 124);
      head[124] = 0x80;
    }
    blocks.push(head, data, Buffer.alloc((512 - (data.length % 512)) % 512));
  });
  let data = Buffer.concat([...blocks, Buffer.alloc(1024)]);
  if (random !== null && trick === 5) {
    what = 'cut';
    data = data.subarray(0, random.int(data.length));
  }
  if (gzip) data = gzipSync(data, { level: 1 });
  if (random !== null && trick >= 6) {
    what = 'damaged bytes';
    for (let n = 1 + random.int(10); n > 0 && data.length > 0; n--) data[random.int(data.length)] = random.int(256);
  }
  return { data, what };
}
