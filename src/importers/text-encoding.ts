import { isUtf8 } from 'node:buffer';
import { TextDecoder } from 'node:util';

/** How a text file is written. Profiles are UTF-8; a spreadsheet or a Chinese Windows makes the others of them. */
export type TextEncoding = 'utf-8' | 'utf-16le' | 'utf-16be' | 'gb18030';

/** Bytes that are looked at before the first chunk is handed on. */
const HEAD = 64 * 1024;

/** The content as UTF-8, whatever it was; UTF-8 passes through untouched. `onEncoding` is called once when it was not. */
export async function* asUtf8(chunks: AsyncIterable<Buffer>, onEncoding: (encoding: TextEncoding) => void): AsyncGenerator<Buffer> {
  let decoder: TextDecoder | null = null;
  let head: Buffer | null = Buffer.alloc(0);
  const decode = (chunk: Buffer): Buffer => (decoder === null ? chunk : Buffer.from(decoder.decode(chunk, { stream: true })));
  const start = (first: Buffer): Buffer => {
    const encoding = encodingOf(first);
    if (encoding !== 'utf-8') {
      decoder = new TextDecoder(encoding);
      onEncoding(encoding);
    }
    return decode(first);
  };
  for await (const chunk of chunks) {
    if (head === null) {
      yield decode(chunk);
      continue;
    }
    const first: Buffer = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
    if (first.length < HEAD) {
      head = first === chunk ? Buffer.from(chunk) : first;
      continue;
    }
    head = null;
    yield start(first);
  }
  if (head !== null && head.length > 0) yield start(head);
}

function encodingOf(head: Buffer): TextEncoding {
  if (head[0] === 0xff && head[1] === 0xfe) return 'utf-16le';
  if (head[0] === 0xfe && head[1] === 0xff) return 'utf-16be';
  if (isUtf8(withoutCutCharacter(head))) return 'utf-8';
  try {
    new TextDecoder('gb18030', { fatal: true }).decode(head, { stream: true });
    return 'gb18030';
  } catch {
    // Neither: what cannot be read is replaced, character by character.
    return 'utf-8';
  }
}

/** The bytes without a last character of which only a part is here. */
function withoutCutCharacter(bytes: Buffer): Buffer {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back]!;
    if ((byte & 0xc0) === 0x80) continue;
    const wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return wanted > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}
