/** Output buffer of the decoders, bytes; smaller for what is known to be smaller. */
export const DECODED_CHUNK = 1 << 20;
/** Below this a buffer may be one of Node's own, which many share. */
const OWN = 128 << 10;

/**
 * Gives the memory of a used chunk back at once. A decoder makes a new buffer for each; left to the collector, they make it run
 * so often that reading a zip costs a third more. The decoder's current buffer is spared: that one is not full.
 */
export function release(chunk: Buffer, chunkSize: number): void {
  const { buffer, byteOffset, length } = chunk;
  if (chunkSize < OWN || buffer.byteLength !== chunkSize || byteOffset + length !== chunkSize) return;
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}
