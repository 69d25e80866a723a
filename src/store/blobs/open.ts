import { type Blobs, checkedKey, MAX_BLOB_BYTES } from './blobs.ts';
import { openBucket } from './bucket.ts';
import { openFolder } from './folder.ts';
import type { BlobPlace } from './place.ts';

export function openBlobs(place: BlobPlace): Blobs {
  const blobs = place.kind === 'folder' ? openFolder(place) : openBucket(place);
  return {
    async write(key, bytes) {
      if (bytes.length > MAX_BLOB_BYTES) throw new Error(`a blob of ${bytes.length} bytes is too large`);
      await blobs.write(checkedKey(key), bytes);
    },
    read: async (key) => blobs.read(checkedKey(key)),
    remove: async (key) => blobs.remove(checkedKey(key)),
  };
}
