import { readFileSync } from 'node:fs';
import { tmpdir, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { withoutTrailing } from '../base/endings.ts';
import { AdviseError } from '../base/errors.ts';
import { checkSecret } from '../github/front.ts';
import { GITHUB_ARTIFACT_HOSTS } from '../github/outbound.ts';
import type { L10n } from '../model/lang.ts';
import type { BlobPlace } from '../store/blobs/place.ts';
import { blobPlaceOf } from './blob-place.ts';

/** One variable of the environment. This table is the documentation, too (`npu-advise doctor`, docs/operate.md). */
export interface Variable {
  readonly name: string;
  /** Text of the default; null: required or empty by default, the description says. */
  readonly default: string | null;
  readonly description: string;
  readonly isSecret?: true;
}

export const VARIABLES = [
  { name: 'APP_ID', default: null, description: 'Required. Number of the GitHub App.' },
  { name: 'PRIVATE_KEY', default: null, description: 'Private key of the app, PEM or base64 of it. Or PRIVATE_KEY_PATH.', isSecret: true },
  { name: 'PRIVATE_KEY_PATH', default: null, description: 'File that holds the private key.' },
  { name: 'WEBHOOK_SECRET', default: null, description: 'Required. Secret of the webhook, at least 32 bytes.', isSecret: true },
  { name: 'WEBHOOK_SECRET_PREVIOUS', default: null, description: 'Old secret, still accepted while it is being changed.', isSecret: true },
  {
    name: 'GHE_HOST',
    default: null,
    description: 'Host (and port) of a GitHub Enterprise Server, or SUBDOMAIN.ghe.com. Empty: GitHub.com.',
  },
  {
    name: 'NODE_EXTRA_CA_CERTS',
    default: null,
    description: 'File with the certificates (PEM) of a private authority that signed those of the server and its storage.',
  },
  { name: 'GHE_PROTOCOL', default: 'https', description: '`https`, or `http` for a stand-in on this machine.' },
  { name: 'HOST', default: '127.0.0.1', description: 'Address to listen on; `0.0.0.0` in a container.' },
  { name: 'PORT', default: '3000', description: 'Port to listen on; 0 takes a free one.' },
  {
    name: 'NPU_ADVISOR_SHARE_PORT',
    default: null,
    description: 'Set to 1, a new server takes the port over before the old one ends (Linux, with `DATABASE_URL`). Of both of them.',
  },
  {
    name: 'NPU_ADVISOR_METRICS_PORT',
    default: null,
    description: 'Port of `/metrics`, apart from the webhook; `/healthz` and `/readyz` are there, too. Empty: not served.',
  },
  {
    name: 'NPU_ADVISOR_METRICS_HOST',
    default: '127.0.0.1',
    description: 'Address to serve metrics on. They are for those who run the server: never one that the internet reaches.',
  },
  {
    name: 'NPU_ADVISOR_PUBLIC_URL',
    default: null,
    description:
      'Address under which people reach this server, such as `https://npu-advisor.example`. Then comments and checks link to the whole report. Empty: no such links.',
  },
  { name: 'NPU_ADVISOR_LINK_DAYS', default: '30', description: 'Days a link to a report works; those of open pull requests are renewed.' },
  { name: 'DATABASE_URL', default: null, description: 'PostgreSQL shared by several processes. Empty: embedded store.', isSecret: true },
  {
    name: 'NPU_ADVISOR_DATA_DIR',
    default: './data',
    description: 'Folder for the embedded store, accepted deliveries and downloads. One process each.',
  },
  {
    name: 'NPU_ADVISOR_BLOBS',
    default: null,
    description:
      'Where the facts of a large job lie until it is put together: absolute path of a folder that all machines share, or `s3://bucket/prefix`. The same for every process. Empty: in the database.',
  },
  {
    name: 'AWS_ENDPOINT_URL',
    default: null,
    description:
      'Address of the storage of that bucket, where it is not Amazon S3; with the bucket in the name of the host where it wants so.',
  },
  { name: 'AWS_REGION', default: 'us-east-1', description: 'Region of that bucket.' },
  { name: 'AWS_ACCESS_KEY_ID', default: null, description: 'Key that may list, read, write and remove in that bucket.', isSecret: true },
  { name: 'AWS_SECRET_ACCESS_KEY', default: null, description: 'Its secret.', isSecret: true },
  {
    name: 'NPU_ADVISOR_ARTIFACT_HOSTS',
    default: GITHUB_ARTIFACT_HOSTS.join(','),
    description: 'Hosts artifacts may come from: `name`, `name:port` or `*.suffix`, separated by commas. Spelt-out hosts may be private.',
  },
  {
    name: 'NPU_ADVISOR_REPOSITORIES',
    default: null,
    description: 'Repositories that are served: `owner/name`, with `*` and `?`, separated by commas. Empty: all the App is installed on.',
  },
  {
    name: 'NPU_ADVISOR_MAX_DAILY_MB',
    default: '204800',
    description: 'Bytes of artifacts that are fetched for one repository in a day (UTC); a job that has begun is finished.',
  },
  { name: 'NPU_ADVISOR_MAX_ARTIFACT_MB', default: '8192', description: 'Bytes of artifacts that are fetched for one job at most.' },
  {
    name: 'NPU_ADVISOR_SPREAD_MB',
    default: '1024',
    description:
      'From so many bytes on a job is read by all workers side by side: an artifact at a time, of a large zip some of its ranks; 0 never.',
  },
  {
    name: 'NPU_ADVISOR_PORTION_MB',
    default: '256',
    description: 'About so many bytes of one large zip are read by one worker at a time.',
  },
  { name: 'NPU_ADVISOR_DOWNLOAD_TIMEOUT_S', default: '1800', description: 'Time limit of one download, retries included.' },
  { name: 'NPU_ADVISOR_ANALYSIS_TIMEOUT_S', default: '1800', description: 'Time limit of one analysis.' },
  { name: 'NPU_ADVISOR_ANALYSIS_MEMORY_MB', default: '4096', description: 'Memory limit of the analysis process.' },
  { name: 'NPU_ADVISOR_ANALYSES', default: '1', description: 'Analyses that run at the same time in this process.' },
  {
    name: 'NPU_ADVISOR_MEMORY_MB',
    default: null,
    description:
      'Memory that the analyses of this process may take together; no more are started. Empty: that of the machine or container.',
  },
  {
    name: 'NPU_ADVISOR_DISK_MB',
    default: null,
    description: 'Room that the downloads of this process may take together; no more are started. Empty: 80 % of what is free.',
  },
  {
    name: 'NPU_ADVISOR_COMMANDS_PER_HOUR',
    default: '30',
    description: 'Comments with commands and buttons of one person in one repository that are heard within an hour.',
  },
  { name: 'NPU_ADVISOR_ATTEMPTS', default: '4', description: 'Tries before a job gives up and says so on the check.' },
  { name: 'NPU_ADVISOR_RETRY_DELAY_S', default: '10', description: 'Pause before the second try; it doubles with every further one.' },
  { name: 'NPU_ADVISOR_PROGRESS_S', default: '15', description: 'How often a check shows how far a long analysis is; 0 never.' },
  { name: 'NPU_ADVISOR_SWEEP_S', default: '30', description: 'How often deadlines and forgotten work are looked for.' },
  { name: 'NPU_ADVISOR_DRAIN_S', default: '25', description: 'How long running jobs may go on after SIGTERM.' },
  { name: 'LOG_LEVEL', default: 'info', description: '`debug`, `info`, `warn` or `error`.' },
  {
    name: 'NPU_ADVISOR_TEST',
    default: null,
    description: 'Set to 1 in tests only: no pause between writes, and the two variables below are honoured.',
  },
  {
    name: 'NPU_ADVISOR_KILL_AT',
    default: null,
    description: 'Tests only: the process kills itself at this point (src/app/kill-point.ts).',
  },
  { name: 'NPU_ADVISOR_TEST_ANALYSER', default: null, description: 'Tests only: module that takes the place of the analyser.' },
] as const satisfies readonly Variable[];

const LOG_LEVELS: readonly string[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

type Name = (typeof VARIABLES)[number]['name'];

/** What applies when a variable is not set. */
export function defaultOf(name: Name): string {
  return VARIABLES.find((variable) => variable.name === name)?.default ?? '';
}

/** The environment, checked and typed. Plain data: it is handed to the worker thread. */
export interface ServerOptions {
  readonly appId: number;
  readonly privateKey: string;
  readonly webhookSecret: string;
  readonly previousWebhookSecret: string | null;
  /** REST base, e.g. `https://api.github.com`. */
  readonly apiUrl: string;
  readonly host: string;
  readonly port: number;
  /** Another server of the same user may listen there, too. */
  readonly sharesPort: boolean;
  /** null: metrics are not served. */
  readonly metricsPort: number | null;
  readonly metricsHost: string;
  /** Without a slash at its end; null: no links to details pages. */
  readonly publicUrl: string | null;
  readonly linkDays: number;
  readonly databaseUrl: string | null;
  readonly dataDir: string;
  /** null: in the database. */
  readonly blobs: BlobPlace | null;
  readonly artifactHosts: readonly string[];
  /** Patterns of `owner/name`; empty: all. */
  readonly repositories: readonly string[];
  readonly maxDailyBytes: number;
  readonly maxArtifactBytes: number;
  /** 0: never. */
  readonly spreadBytes: number;
  /** About so much of a zip is one portion of it. */
  readonly portionBytes: number;
  readonly downloadTimeoutMs: number;
  readonly analysisTimeoutMs: number;
  readonly analysisMemoryMb: number;
  readonly analyses: number;
  /** What all analyses together may take. */
  readonly memoryMb: number;
  /** What all downloads together may take; null: of what is free. */
  readonly diskBytes: number | null;
  readonly commandsPerHour: number;
  readonly attempts: number;
  readonly retryDelaySeconds: number;
  readonly progressMs: number;
  readonly sweepMs: number;
  readonly drainMs: number;
  readonly logLevel: string;
  readonly isTest: boolean;
  readonly killAt: string | null;
  readonly testAnalyser: string | null;
}

/** Enterprise Cloud with a subdomain of its own, whose API is a host of its own, too. */
function isCloud(host: string | null): host is string {
  return host !== null && /^[\w-]+\.ghe\.com$/i.test(host);
}

/** Base of the REST API [docs, "Getting started with the REST API", for GitHub.com, GHE.com and Enterprise Server]. */
function apiUrlOf(host: string | null, protocol: string): string {
  if (host === null) return 'https://api.github.com';
  if (!/^[\w.-]+(?::\d{1,5})?$|^\[[\da-f:]+\](?::\d{1,5})?$/i.test(host)) {
    throw new AdviseError(
      'environment',
      {
        en: 'GHE_HOST must be a host, such as ghe.example or ghe.example:8443',
        zh: 'GHE_HOST 须为主机名，例如 ghe.example 或 ghe.example:8443',
      },
      { en: 'Leave out https:// and the path.', zh: '不要写 https:// 与路径。' },
    );
  }
  return isCloud(host) ? `https://api.${host}` : `${protocol}://${host}/api/v3`;
}

/** A link holds what opens the page it leads to, so it travels over https only, or not at all. */
function publicUrlOf(text: string | null): string | null {
  if (text === null) return null;
  const url = URL.canParse(text) ? new URL(text) : null;
  const isHere = url?.protocol === 'http:' && /^(?:127(?:\.\d{1,3}){3}|localhost|\[::1\])$/.test(url.hostname);
  const isPlain = url !== null && `${url.username}${url.password}${url.search}${url.hash}` === '';
  if (url !== null && isPlain && (url.protocol === 'https:' || isHere)) return withoutTrailing(url.href, '/');
  throw new AdviseError(
    'environment',
    {
      en: 'NPU_ADVISOR_PUBLIC_URL must be an https address without user, query or fragment',
      zh: 'NPU_ADVISOR_PUBLIC_URL 须为 https 地址，不含用户名、查询参数与片段',
    },
    {
      en: 'Give the address of the reverse proxy, such as https://npu-advisor.example; http only for this machine.',
      zh: '给出反向代理的地址，例如 https://npu-advisor.example；http 只能用于本机。',
    },
  );
}

/** Addresses of the configured GitHub: of its API, and of what people see. */
export function gitHubAddresses(env: Readonly<Record<string, string | undefined>>): { readonly apiUrl: string; readonly webUrl: string } {
  const host = env.GHE_HOST?.trim() || null;
  const protocol = env.GHE_PROTOCOL?.trim() || defaultOf('GHE_PROTOCOL');
  return {
    apiUrl: apiUrlOf(host, protocol),
    webUrl: host === null ? 'https://github.com' : `${isCloud(host) ? 'https' : protocol}://${host}`,
  };
}

/** Node says nothing when it cannot read this file, and then trusts nobody it should. */
function checkAuthorities(file: string | null): void {
  if (file === null) return;
  let text = '';
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    // said below
  }
  if (text.includes('-----BEGIN CERTIFICATE-----')) return;
  throw new AdviseError(
    'environment',
    { en: 'NODE_EXTRA_CA_CERTS names no file with certificates', zh: 'NODE_EXTRA_CA_CERTS 所指的文件中没有证书' },
    {
      en: 'Give the path of a PEM file that the process may read, before it starts.',
      zh: '启动之前给出进程可读取的 PEM 文件路径。',
    },
  );
}

/** Two servers on one port need one store between them, which the embedded one is not. */
function isPortShared(value: string | null, databaseUrl: string | null): boolean {
  if (value === null || value === '0') return false;
  if (value === '1' && databaseUrl !== null) return true;
  throw new AdviseError(
    'environment',
    {
      en: value === '1' ? 'NPU_ADVISOR_SHARE_PORT needs DATABASE_URL' : 'NPU_ADVISOR_SHARE_PORT must be 1 or empty',
      zh: value === '1' ? 'NPU_ADVISOR_SHARE_PORT 须与 DATABASE_URL 一起使用' : 'NPU_ADVISOR_SHARE_PORT 须为 1 或留空',
    },
    {
      en: 'Leave it out with the embedded store: one process works on it, and deliveries of a restart are asked for again.',
      zh: '使用内置存储时不要设置：它只支持一个进程，重启期间的投递会再次请求。',
    },
  );
}

function readPrivateKey(get: (name: Name) => string | null): string {
  const path = get('PRIVATE_KEY_PATH');
  const raw = get('PRIVATE_KEY') ?? (path === null ? null : readFileSync(path, 'utf8'));
  const problem = (message: L10n): AdviseError =>
    new AdviseError('private-key', message, {
      en: 'Set PRIVATE_KEY or PRIVATE_KEY_PATH to the key GitHub gave for the app.',
      zh: '将 PRIVATE_KEY 或 PRIVATE_KEY_PATH 设为 GitHub 为该 App 生成的私钥。',
    });
  if (raw === null) throw problem({ en: 'PRIVATE_KEY is not set', zh: '没有设置 PRIVATE_KEY' });
  const pem = raw.includes('-----BEGIN') ? raw.replaceAll('\\n', '\n') : Buffer.from(raw, 'base64').toString('utf8');
  if (!pem.includes('-----BEGIN') || !pem.includes('PRIVATE KEY-----'))
    throw problem({ en: 'PRIVATE_KEY is not a private key', zh: 'PRIVATE_KEY 不是私钥' });
  return pem;
}

/** Reads the environment. Throws AdviseError with one clear sentence for the first thing that is wrong. */
export function readEnv(env: Readonly<Record<string, string | undefined>>): ServerOptions {
  const get = (name: Name): string | null => {
    const value = env[name]?.trim();
    if (value !== undefined && value !== '') return value;
    return VARIABLES.find((variable) => variable.name === name)?.default ?? null;
  };
  const number = (name: Name, min: number, max: number): number => {
    const value = Number(get(name));
    if (!Number.isFinite(value) || value < min || value > max) {
      throw new AdviseError(
        'environment',
        { en: `${name} must be a number from ${min} to ${max}`, zh: `${name} 须为 ${min}～${max} 之间的数` },
        { en: `Correct ${name} in the environment.`, zh: `在环境变量中改正 ${name}。` },
      );
    }
    return value;
  };

  const webhookSecret = checkSecret(get('WEBHOOK_SECRET') ?? undefined);
  const previous = get('WEBHOOK_SECRET_PREVIOUS');
  const appId = Number(get('APP_ID'));
  if (!Number.isInteger(appId) || appId <= 0) {
    throw new AdviseError(
      'environment',
      { en: 'APP_ID is not set to the number of the app', zh: 'APP_ID 没有设为该 App 的编号' },
      { en: 'The number is on the settings page of the app.', zh: '编号见该 App 的设置页。' },
    );
  }
  const gheHost = get('GHE_HOST');
  checkAuthorities(get('NODE_EXTRA_CA_CERTS'));
  const protocol = get('GHE_PROTOCOL');
  if (protocol !== 'https' && protocol !== 'http') {
    throw new AdviseError(
      'environment',
      { en: 'GHE_PROTOCOL must be https or http', zh: 'GHE_PROTOCOL 须为 https 或 http' },
      { en: 'Correct GHE_PROTOCOL in the environment.', zh: '在环境变量中改正 GHE_PROTOCOL。' },
    );
  }
  const logLevel = get('LOG_LEVEL') ?? defaultOf('LOG_LEVEL');
  if (!LOG_LEVELS.includes(logLevel)) {
    throw new AdviseError(
      'environment',
      { en: `LOG_LEVEL must be one of ${LOG_LEVELS.join(', ')}`, zh: `LOG_LEVEL 须为 ${LOG_LEVELS.join('、')} 之一` },
      { en: 'Correct LOG_LEVEL in the environment.', zh: '在环境变量中改正 LOG_LEVEL。' },
    );
  }
  const isTest = env.NPU_ADVISOR_TEST === '1';
  return {
    appId,
    privateKey: readPrivateKey(get),
    webhookSecret,
    previousWebhookSecret: previous === null ? null : checkSecret(previous, 'WEBHOOK_SECRET_PREVIOUS'),
    apiUrl: apiUrlOf(gheHost, protocol),
    host: get('HOST') ?? '127.0.0.1',
    port: number('PORT', 0, 65_535),
    sharesPort: isPortShared(get('NPU_ADVISOR_SHARE_PORT'), get('DATABASE_URL')),
    metricsPort: get('NPU_ADVISOR_METRICS_PORT') === null ? null : number('NPU_ADVISOR_METRICS_PORT', 0, 65_535),
    metricsHost: get('NPU_ADVISOR_METRICS_HOST') ?? '127.0.0.1',
    publicUrl: publicUrlOf(get('NPU_ADVISOR_PUBLIC_URL')),
    linkDays: number('NPU_ADVISOR_LINK_DAYS', 2, 90),
    databaseUrl: get('DATABASE_URL'),
    dataDir: resolve(get('NPU_ADVISOR_DATA_DIR') ?? join(tmpdir(), 'npu-advisor')),
    blobs: blobPlaceOf({
      blobs: get('NPU_ADVISOR_BLOBS'),
      endpoint: get('AWS_ENDPOINT_URL'),
      region: get('AWS_REGION') ?? defaultOf('AWS_REGION'),
      accessKeyId: get('AWS_ACCESS_KEY_ID'),
      secretAccessKey: get('AWS_SECRET_ACCESS_KEY'),
    }),
    artifactHosts: [...listOf(get('NPU_ADVISOR_ARTIFACT_HOSTS')), ...(isCloud(gheHost) ? [`*.${gheHost}`] : [])],
    repositories: listOf(get('NPU_ADVISOR_REPOSITORIES')),
    maxDailyBytes: number('NPU_ADVISOR_MAX_DAILY_MB', 1, 1_000_000_000) * 1024 * 1024,
    maxArtifactBytes: number('NPU_ADVISOR_MAX_ARTIFACT_MB', 1, 1_000_000) * 1024 * 1024,
    spreadBytes: number('NPU_ADVISOR_SPREAD_MB', 0, 1_000_000) * 1024 * 1024,
    portionBytes: number('NPU_ADVISOR_PORTION_MB', 1, 1_000_000) * 1024 * 1024,
    downloadTimeoutMs: number('NPU_ADVISOR_DOWNLOAD_TIMEOUT_S', 1, 86_400) * 1000,
    analysisTimeoutMs: number('NPU_ADVISOR_ANALYSIS_TIMEOUT_S', 1, 86_400) * 1000,
    analysisMemoryMb: number('NPU_ADVISOR_ANALYSIS_MEMORY_MB', 64, 1_000_000),
    analyses: number('NPU_ADVISOR_ANALYSES', 1, 64),
    memoryMb: get('NPU_ADVISOR_MEMORY_MB') === null ? machineMemoryMb() : number('NPU_ADVISOR_MEMORY_MB', 64, 100_000_000),
    diskBytes: get('NPU_ADVISOR_DISK_MB') === null ? null : number('NPU_ADVISOR_DISK_MB', 1, 1_000_000_000) * 1024 * 1024,
    commandsPerHour: number('NPU_ADVISOR_COMMANDS_PER_HOUR', 1, 100_000),
    attempts: number('NPU_ADVISOR_ATTEMPTS', 1, 20),
    retryDelaySeconds: number('NPU_ADVISOR_RETRY_DELAY_S', 0, 3600),
    progressMs: number('NPU_ADVISOR_PROGRESS_S', 0, 3600) * 1000,
    sweepMs: number('NPU_ADVISOR_SWEEP_S', 0.2, 3600) * 1000,
    drainMs: number('NPU_ADVISOR_DRAIN_S', 0, 3600) * 1000,
    logLevel,
    isTest,
    killAt: isTest ? get('NPU_ADVISOR_KILL_AT') : null,
    testAnalyser: isTest ? get('NPU_ADVISOR_TEST_ANALYSER') : null,
  };
}

/** Of the container, where it has a limit [Node.js: 0 or a huge number without one], else of the machine. */
function machineMemoryMb(): number {
  const limit = process.constrainedMemory();
  return Math.floor((limit > 0 ? Math.min(limit, totalmem()) : totalmem()) / 1024 / 1024);
}

function listOf(value: string | null): string[] {
  return (value ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}
