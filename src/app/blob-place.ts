import { isAbsolute, resolve } from 'node:path';
import { withoutTrailing } from '../base/endings.ts';
import { AdviseError } from '../base/errors.ts';
import type { L10n } from '../model/lang.ts';
import type { BlobPlace } from '../store/blobs/place.ts';

/** The variables of a blob store as they are given. */
interface Given {
  readonly blobs: string | null;
  readonly endpoint: string | null;
  readonly region: string;
  readonly accessKeyId: string | null;
  readonly secretAccessKey: string | null;
}

function wrong(message: L10n, todo: L10n): AdviseError {
  return new AdviseError('environment', message, todo);
}

/** Where facts of portions lie: null (the database), a folder or a bucket. */
export function blobPlaceOf(given: Given): BlobPlace | null {
  const { blobs, region, accessKeyId, secretAccessKey } = given;
  if (blobs === null) return null;
  if (isAbsolute(blobs)) return { kind: 'folder', path: resolve(blobs) };
  // Parts that need no escapes in an address, none of them dots alone.
  const found = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:\/(?!\.+(?:\/|$))[\w.-]{1,100}){0,8})\/?$/.exec(blobs);
  if (found === null)
    throw wrong(
      {
        en: 'NPU_ADVISOR_BLOBS must be the absolute path of a folder, or s3://bucket/prefix',
        zh: 'NPU_ADVISOR_BLOBS 须为目录的绝对路径，或 s3://bucket/prefix',
      },
      {
        en: 'A prefix holds letters, digits, dots, hyphens and underscores only. Leave it empty to use the database.',
        zh: '前缀只能包含字母、数字、点、连字符与下划线。留空则使用数据库。',
      },
    );
  if (accessKeyId === null || secretAccessKey === null)
    throw wrong(
      {
        en: 'NPU_ADVISOR_BLOBS names a bucket, and AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not set',
        zh: 'NPU_ADVISOR_BLOBS 指向存储桶，但没有设置 AWS_ACCESS_KEY_ID 或 AWS_SECRET_ACCESS_KEY',
      },
      { en: 'Give a key that may list, read, write and remove there.', zh: '请给出对其有列举、读、写、删权限的密钥。' },
    );
  if (!/^[a-z0-9-]{1,60}$/.test(region))
    throw wrong(
      { en: 'AWS_REGION is not the name of a region', zh: 'AWS_REGION 不是区域名' },
      { en: 'Correct AWS_REGION in the environment.', zh: '在环境变量中改正 AWS_REGION。' },
    );
  const [, bucket = '', prefix = ''] = found;
  return { kind: 'bucket', url: `${addressOf(bucket, given)}${prefix}`, region, accessKeyId, secretAccessKey };
}

/** Storage that wants the bucket in the name of the host is given so; everywhere else it is the first part of the path. */
function addressOf(bucket: string, { endpoint, region }: Given): string {
  const text = endpoint ?? `https://s3.${region}.amazonaws.com`;
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain = url !== null && `${url.username}${url.password}${url.search}${url.hash}` === '' && /^[\w./-]*$/.test(url.pathname);
  if (url === null || !isPlain || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw wrong(
      {
        en: 'AWS_ENDPOINT_URL must be an https address without user, query or fragment',
        zh: 'AWS_ENDPOINT_URL 须为 https 地址，不含用户名、查询参数与片段',
      },
      {
        en: 'Give the address of the storage, such as https://storage.example; http only in a network of your own.',
        zh: '给出存储服务的地址，例如 https://storage.example；http 只用于自有网络。',
      },
    );
  const base = withoutTrailing(url.href, '/');
  return url.hostname.startsWith(`${bucket}.`) ? base : `${base}/${bucket}`;
}
