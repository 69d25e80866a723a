/** Where blobs lie. Plain data: it is handed to the worker thread. */
export type BlobPlace = FolderPlace | BucketPlace;

export interface FolderPlace {
  readonly kind: 'folder';
  readonly path: string;
}

export interface BucketPlace {
  readonly kind: 'bucket';
  /** Address of the bucket and of the prefix in it, without a slash at its end. */
  readonly url: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}
