/** Zipped facts of one artifact: some sixty ranks of a long capture, thousands of a short one. */
export const MAX_BLOB_BYTES = 64 * 1024 * 1024;

/** Bytes that are too many for rows, where all processes reach them. Throws when the place cannot be used; then it is tried again later. */
export interface Blobs {
  /** Whole or not at all; what was there is replaced. */
  write(key: string, bytes: Uint8Array): Promise<void>;
  /** null: there is nothing of this name. */
  read(key: string): Promise<Uint8Array | null>;
  /** Well, too, when there is nothing. */
  remove(key: string): Promise<void>;
}

const KEY = /^\d{1,19}\/[0-9a-f]{32}\/\d{1,5}$/;

/** The only form of a name: numbers and a digest, so that nothing foreign can lead elsewhere. */
export function keyOf(repoId: number, job: string, place: number): string {
  return checkedKey(`${repoId}/${job}/${place}`);
}

export function checkedKey(key: string): string {
  if (!KEY.test(key)) throw new Error('not the name of a blob');
  return key;
}
