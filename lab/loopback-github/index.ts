/**
 * A GitHub on this machine: REST API (as a GitHub Enterprise Server, under `/api/v3`), artifact host, webhooks and pull request pages, with
 * state, checked exchange by exchange against GitHub's own description. For end-to-end tests and the demo; listens on 127.0.0.1 only.
 */
import { createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createBlobServer } from './blob-host.ts';
import { createCertificate } from './certificate.ts';
import { type DeliveryOptions, type DeliveryResult, deliver, emit } from './deliveries.ts';
import { createFault, type Fault, type FaultOptions } from './faults.ts';
import type { Changes } from './git.ts';
import { type PullHandle, type RepositoryHandle, repositoryHandle } from './handles.ts';
import { manifestEvents, manifestPermissions } from './permissions.ts';
import { commit } from './pulls.ts';
import { API_BASE, createHubServer } from './server.ts';
import {
  type Account,
  account,
  createRepository,
  type Delivery,
  type Exchange,
  type HubState,
  type Installation,
  nextId,
  now,
  type Permissions,
  type Refusal,
  type Violation,
} from './state.ts';
import { type PullView, viewPull } from './view.ts';
import { type WebhookRequest, type WebhookRequests, webhookSubject } from './webhook-requests.ts';

export type { DeliveryOptions, DeliveryResult } from './deliveries.ts';
export type { Fault, FaultOptions } from './faults.ts';
export type { ArtifactHandle, CommentHandle, MergeGroupHandle, PullHandle, RepositoryHandle, RunHandle } from './handles.ts';
export type { Exchange, Permissions, Refusal, Violation } from './state.ts';
export type { PullView } from './view.ts';
export type { WebhookRequests } from './webhook-requests.ts';

/** How a loopback GitHub is started. */
export interface LoopbackGitHubOptions {
  /** Port of the API and the pages; any free one by default. */
  port?: number;
  /** Port of the artifact host. */
  blobPort?: number;
  app: {
    id: number;
    slug: string;
    name?: string;
    /** PEM; a key is made when missing. */
    privateKey?: string;
    webhookSecret: string;
    /** What the app may do where it is installed; the manifest's permissions by default. */
    permissions?: Permissions;
    /** Events it subscribes to; the manifest's by default. */
    events?: string[];
  };
  webhookUrl?: string;
  /**
   * Version of a GitHub Enterprise Server to stand for, such as `3.17.0`: https with a certificate of a private authority, no `digest` at
   * artifacts, artifacts that are listed when their run is over and streamed without length or ranges, no rate limits, one API version.
   */
  enterprise?: string;
  /** Send the webhook of every state change by itself. */
  autoDeliver?: boolean;
}

/** What a repository starts with. */
export interface RepositoryOptions {
  owner: string;
  name: string;
  /** Whether the owner is an organisation; default true. */
  organization?: boolean;
  private?: boolean;
  defaultBranch?: string;
  files?: Changes;
  /** Whether the app is installed there; default true. */
  installed?: boolean;
}

/** A running loopback GitHub. */
export interface LoopbackGitHub {
  /** Address of the pages. */
  readonly url: string;
  /** Base of the REST API. */
  readonly apiUrl: string;
  readonly blobUrl: string;
  readonly privateKeyPem: string;
  /** PEM of the authority that its clients must trust; null: plain http. */
  readonly authority: string | null;
  readonly app: { readonly id: number; readonly slug: string; readonly webhookSecret: string };
  /** Where webhooks go; may be set once the app listens. */
  webhookUrl: string | null;
  autoDeliver: boolean;
  /** What did not fit GitHub's description or rules. Expected to be empty at the end of a scenario. */
  readonly violations: Violation[];
  /** Requests that were refused for circumstances (races, missing rights, expired artifacts). */
  readonly refusals: Refusal[];
  /** Every exchange, in order of arrival. */
  readonly journal: Exchange[];
  /** The app's delivery log, newest first. */
  readonly deliveries: Delivery[];
  addRepository(options: RepositoryOptions): RepositoryHandle;
  /** Sends a webhook and waits for the answer. */
  deliver<Event extends keyof WebhookRequests>(
    event: Event,
    request: WebhookRequests[Event],
    options?: DeliveryOptions,
  ): Promise<DeliveryResult>;
  /** What people see of a pull request. */
  view(pull: PullHandle): PullView;
  /** Arms a fault; the answer counts its hits. */
  fault(options: FaultOptions): Fault;
  /** So many requests are left to an owner's installation until this GitHub's clock says so, ms; then it has as many as it wants. */
  limit(owner: string, left: number, resetAt: number): void;
  /** Changes what an owner's installation may do. */
  setPermissions(owner: string, permissions: Permissions): void;
  /** Makes every issued token invalid. */
  revokeTokens(): void;
  /** Installation tokens that were given out, oldest first: for which repositories, with which permissions. */
  readonly tokens: readonly { readonly repositoryIds: readonly number[] | null; readonly permissions: Permissions }[];
  /** Moves this GitHub's clock ahead: tokens and download addresses expire. */
  advanceClock(ms: number): void;
  /** Waits until every automatic delivery was answered. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

let sharedKey: string | null = null;

/** A key for apps that bring none; made once per process, because making one takes a tenth of a second. */
function defaultKey(): string {
  sharedKey ??= generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();
  return sharedKey;
}

function createState(options: LoopbackGitHubOptions): HubState {
  const privateKeyPem = options.app.privateKey ?? defaultKey();
  const bot = {
    id: 90_000_000 + options.app.id,
    login: `${options.app.slug}[bot]`,
    type: 'Bot',
    createdAt: '2026-01-02T03:04:05Z',
  } as const;
  const owner = { id: 40_000_100, login: 'app-owner', type: 'User', createdAt: '2020-01-02T03:04:05Z' } as const;
  return {
    app: {
      id: options.app.id,
      slug: options.app.slug,
      name: options.app.name ?? options.app.slug,
      clientId: `Iv1.${options.app.id.toString(16).padStart(16, '0')}`,
      owner,
      bot,
      publicKey: createPublicKey(privateKeyPem),
      privateKeyPem,
      webhookSecret: options.app.webhookSecret,
      permissions: options.app.permissions ?? manifestPermissions,
      events: options.app.events ?? [...manifestEvents],
      createdAt: '2026-01-02T03:04:05Z',
    },
    url: '',
    apiUrl: '',
    blobUrl: '',
    webhookUrl: options.webhookUrl ?? null,
    enterprise: options.enterprise ?? null,
    certificate: options.enterprise === undefined ? null : createCertificate(),
    autoDeliver: options.autoDeliver ?? false,
    accounts: new Map<string, Account>([
      [bot.login.toLowerCase(), bot],
      [owner.login, owner],
    ]),
    installations: [],
    repositories: [],
    tokens: new Map(),
    manifestCodes: new Map(),
    deliveries: [],
    journal: [],
    violations: [],
    refusals: [],
    faults: [],
    hours: new Map(),
    blobSecret: randomBytes(32),
    clockOffsetMs: 0,
    ids: new Map(),
    outbox: Promise.resolve(),
  };
}

function listen(server: Server, port: number, scheme: string): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve(`${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`));
  });
}

function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

function installationFor(state: HubState, owner: string): { installation: Installation; created: boolean } {
  const known = state.installations.find(
    (installation) => installation.account.login.toLowerCase() === owner.toLowerCase() && !installation.deleted,
  );
  if (known) return { installation: known, created: false };
  const installation: Installation = {
    id: nextId(state, 'installation'),
    account: account(state, owner),
    permissions: { ...state.app.permissions },
    events: state.app.events,
    createdAt: now(state),
    suspendedAt: null,
    deleted: false,
  };
  state.installations.push(installation);
  return { installation, created: true };
}

function addRepository(state: HubState, options: RepositoryOptions): RepositoryHandle {
  const owner = account(state, options.owner, options.organization === false ? 'User' : 'Organization');
  const installed = options.installed === false ? null : installationFor(state, options.owner);
  const repository = createRepository(state, {
    owner,
    name: options.name,
    private: options.private ?? false,
    defaultBranch: options.defaultBranch ?? 'main',
    parent: null,
    installation: installed?.installation ?? null,
  });
  const files = options.files && Object.keys(options.files).length > 0 ? options.files : { 'README.md': `# ${options.name}\n` };
  repository.branches.set(repository.defaultBranch, commit(state, repository, [], files, 'Initial commit', options.owner));
  if (installed?.created) emit(state, { event: 'installation', action: 'created', installation: installed.installation });
  else if (installed) {
    emit(state, { event: 'installation_repositories', action: 'added', installation: installed.installation, repositories: [repository] });
  }
  return repositoryHandle(state, repository);
}

/** Starts a loopback GitHub. */
export async function startLoopbackGitHub(options: LoopbackGitHubOptions): Promise<LoopbackGitHub> {
  const state = createState(options);
  const server = createHubServer(state);
  const blobServer = createBlobServer(state);
  const scheme = state.certificate === null ? 'http' : 'https';
  state.url = await listen(server, options.port ?? 0, scheme);
  state.apiUrl = `${state.url}${API_BASE}`;
  state.blobUrl = await listen(blobServer, options.blobPort ?? 0, scheme);
  return {
    url: state.url,
    apiUrl: state.apiUrl,
    blobUrl: state.blobUrl,
    privateKeyPem: state.app.privateKeyPem,
    authority: state.certificate?.ca ?? null,
    app: { id: state.app.id, slug: state.app.slug, webhookSecret: state.app.webhookSecret },
    get webhookUrl() {
      return state.webhookUrl;
    },
    set webhookUrl(url) {
      state.webhookUrl = url;
    },
    get autoDeliver() {
      return state.autoDeliver;
    },
    set autoDeliver(on) {
      state.autoDeliver = on;
    },
    violations: state.violations,
    refusals: state.refusals,
    journal: state.journal,
    deliveries: state.deliveries,
    addRepository: (repository) => addRepository(state, repository),
    deliver: (event, request, delivery) => deliver(state, webhookSubject(state, { event, ...request } as WebhookRequest), delivery),
    view(handle) {
      const repository = state.repositories.find((candidate) => candidate.id === handle.repository.id);
      const pull = repository?.pulls.find((candidate) => candidate.number === handle.number);
      if (!pull) throw new Error(`no pull request ${handle.number}`);
      return viewPull(state, pull);
    },
    fault(fault) {
      const armed = createFault(fault);
      state.faults.push(armed);
      return armed;
    },
    limit(owner, left, resetAt) {
      state.hours.set(installationFor(state, owner).installation.id, { left, resetAt });
    },
    setPermissions(owner, permissions) {
      installationFor(state, owner).installation.permissions = permissions;
    },
    get tokens() {
      return [...state.tokens.values()];
    },
    revokeTokens() {
      for (const token of state.tokens.values()) token.revoked = true;
    },
    advanceClock(ms) {
      state.clockOffsetMs += ms;
    },
    async settled() {
      for (let outbox: Promise<void> | null = null; outbox !== state.outbox; ) {
        outbox = state.outbox;
        await outbox;
      }
    },
    async close() {
      await Promise.all([stop(server), stop(blobServer)]);
    },
  };
}
