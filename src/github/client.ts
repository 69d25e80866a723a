import { setTimeout as sleep } from 'node:timers/promises';
import { ProbotOctokit } from 'probot';
import { createLimits } from './limits.ts';
import type { Logger } from './log.ts';

export type Octokit = InstanceType<typeof ProbotOctokit>;

/** Permissions of an installation token, GitHub's own names. */
export type TokenPermissions = Readonly<Record<string, 'read' | 'write'>>;

/** What one kind of job needs and nothing more. */
export const PERMISSIONS = {
  /** Find the pull request of a run. */
  resolve: { metadata: 'read', actions: 'read', pull_requests: 'read' },
  /** Read the profile, the settings and the source. */
  read: { metadata: 'read', actions: 'read', contents: 'read', pull_requests: 'read' },
  /** Write comment, review and check. */
  publish: { metadata: 'read', checks: 'write', pull_requests: 'write', contents: 'read' },
  /** Read settings that are shared from another repository. */
  settings: { metadata: 'read', contents: 'read' },
  /** Answer a command. */
  command: { metadata: 'read', contents: 'read', pull_requests: 'write', checks: 'read' },
} as const satisfies Record<string, TokenPermissions>;

export interface AppIdentity {
  readonly id: number;
  readonly slug: string;
}

/** A repository as an event names it. */
export interface RepositoryRef {
  readonly id: number;
  readonly owner: string;
  readonly name: string;
}

export interface GitHub {
  /** A client that speaks for the app itself, not for an installation. */
  readonly app: Octokit;
  /** Who we are on this GitHub. Asked once. */
  identity(): Promise<AppIdentity>;
  /** A client whose token reaches one repository with the given permissions and nothing else. Tokens are kept in memory until they are old. */
  client(installationId: number, repository: RepositoryRef, permissions: TokenPermissions): Promise<Octokit>;
  /** The same for a repository of which only the name is known; null when the installation does not reach it. */
  named(installationId: number, name: string, permissions: TokenPermissions): Promise<Octokit | null>;
  /** A client whose token reaches every repository of the installation, for looking through them. */
  installation(installationId: number, permissions: TokenPermissions): Promise<Octokit>;
  /** Whether the App is still installed, and reaches the repository when one is given. `unknown`: suspended, so GitHub does not say. */
  reaches(installationId: number, repoId: number | null): Promise<'yes' | 'no' | 'unknown'>;
}

/** One request to the API and how it was answered. */
export interface Exchange {
  /** Who asked, as GitHub counts: the app or one of its installations. */
  readonly caller: string;
  /** null: no answer. */
  readonly status: number | null;
  readonly seconds: number;
  readonly headers: Headers | null;
}

export interface GitHubOptions {
  readonly appId: number;
  readonly privateKey: string;
  /** REST base address, e.g. `https://api.github.com` or `https://ghes.example/api/v3`. */
  readonly apiUrl: string;
  readonly userAgent: string;
  /** Spacing of writes as GitHub asks for. Off only in tests. */
  readonly throttle: boolean;
  readonly log: Logger;
  /** Told of every request, retries included. */
  readonly onExchange?: (exchange: Exchange) => void;
  /** So long an answer may take, with its body; only tests give another. */
  readonly timeoutMs?: number;
  /** The clock that `RateLimited.until` goes by. */
  readonly now?: () => number;
}

interface Token {
  readonly token: string;
  readonly mintedAt: number;
}

type OnLimit = () => boolean;

interface ThrottleOptions {
  readonly enabled: boolean;
  readonly id: string;
  readonly onRateLimit: OnLimit;
  readonly onSecondaryRateLimit: OnLimit;
}

/** Tokens live an hour; a job may take a while after it got one. */
const TOKEN_REUSE_MS = 20 * 60_000;
/**
 * A new token is unknown to some of GitHub's servers for some seconds (401), or known without its permissions (403):
 * octokit/auth-app.js#65 and #589.
 */
const TOKEN_LAG_MS = 5000;
const LAG_PAUSE_MS = 1000;
/** Answers that another try does not change; whoever is at a limit (429) must not ask again before it is over. */
const NO_RETRY = [400, 401, 403, 404, 410, 422, 429, 451];
/** A limit that is over sooner is waited for in place. */
const SHORT_WAIT_MS = 15_000;
const TEST_SHORT_WAIT_MS = 1500;
/** GitHub ends a request of its own after 10 s; a connection that says nothing would be waited for for five minutes. */
const ANSWER_MS = 60_000;
/** How long it is taken for granted that an installation does not reach a repository. */
const OUT_OF_REACH_MS = 2 * 60_000;

export function createGitHub(options: GitHubOptions): GitHub {
  const { appId, privateKey, apiUrl, userAgent, log, throttle: isPaced } = options;
  const quiet = { debug: () => undefined, info: () => undefined, warn: log.warn.bind(log), error: log.warn.bind(log) };
  const common = {
    baseUrl: apiUrl,
    userAgent,
    log: quiet,
    retry: { doNotRetry: NO_RETRY, ...(isPaced ? {} : { retryAfterBaseValue: 50 }) },
  } as ConstructorParameters<typeof ProbotOctokit>[0];
  // GitHub counts by installation, so one that writes a lot must not slow the others down.
  const throttle = (id: string): { throttle: ThrottleOptions } => {
    // It only spaces: there is no end to how long it would wait at a limit.
    const onLimit = (): boolean => false;
    return { throttle: { enabled: isPaced, id, onRateLimit: onLimit, onSecondaryRateLimit: onLimit } };
  };
  const obeyLimits = createLimits({
    now: options.now ?? Date.now,
    log,
    isLimit: (error) => refusalOf(error) === 'limit',
    shortWaitMs: isPaced ? SHORT_WAIT_MS : TEST_SHORT_WAIT_MS,
    unnamedMs: isPaced ? 60_000 : 300,
  });
  const watched = (caller: string): { request: { fetch: typeof fetch } } => ({
    request: { fetch: watchedFetch(caller, options.timeoutMs ?? ANSWER_MS, options.onExchange ?? (() => undefined)) },
  });
  const app = new ProbotOctokit({ ...common, ...throttle('app'), ...watched('app'), auth: { appId, privateKey } });
  obeyLimits(app, 'app');
  const tokens = new Map<string, Token>();
  const outOfReach = new Map<string, number>();
  let identity: Promise<AppIdentity> | null = null;

  async function readIdentity(): Promise<AppIdentity> {
    const { data } = await app.request('GET /app');
    if (data === null || typeof data.slug !== 'string') throw new Error('GitHub did not say which app this is');
    return { id: data.id, slug: data.slug };
  }

  async function clientFor(
    installationId: number,
    repositories: readonly number[] | string | null,
    permissions: TokenPermissions,
  ): Promise<Octokit> {
    const key = JSON.stringify([installationId, repositories, permissions]);
    const mint = async (): Promise<Token> => {
      const { data } = await app.request('POST /app/installations/{installation_id}/access_tokens', {
        installation_id: installationId,
        ...(repositories === null
          ? {}
          : typeof repositories === 'string'
            ? { repositories: [repositories] }
            : { repository_ids: [...repositories] }),
        permissions,
      });
      const entry = { token: data.token, mintedAt: Date.now() };
      if (tokens.size > 500) tokens.clear();
      tokens.set(key, entry);
      return entry;
    };
    const known = tokens.get(key);
    let entry = known === undefined || Date.now() - known.mintedAt > TOKEN_REUSE_MS ? await mint() : known;
    const renew = async (used: Token): Promise<void> => {
      if (entry !== used) return;
      const other = tokens.get(key);
      entry = other === undefined || other === used ? await mint() : other;
    };
    /** A job may wait for its turn longer than a token lives, and one that was revoked is no reason to give the job up either. */
    const authorised = async (request: Octokit['request'], asked: Parameters<Octokit['request']['defaults']>[0]): Promise<unknown> => {
      let isRenewed = false;
      for (let pauses = 0; ; ) {
        const used = entry;
        const endpoint = request.endpoint.merge(asked);
        // The long form of a token holds a JWT, which goes by another name.
        endpoint.headers.authorization = `${used.token.split('.').length === 3 ? 'bearer' : 'token'} ${used.token}`;
        try {
          return await request(endpoint as typeof endpoint & { url: string });
        } catch (error) {
          const isUnknown = statusOf(error) === 401;
          if (!isUnknown && refusalOf(error) !== 'right') throw error;
          if (Date.now() - used.mintedAt < TOKEN_LAG_MS && pauses < (isUnknown ? 3 : 1)) {
            await sleep(++pauses * (isPaced ? LAG_PAUSE_MS : LAG_PAUSE_MS / 50));
            continue;
          }
          if (!isUnknown || isRenewed) throw error;
          isRenewed = true;
          // Why there is no new one must not be taken for an answer about what was asked for.
          await renew(used).catch((failure: unknown) => {
            throw (statusOf(failure) ?? 500) < 500 ? error : failure;
          });
        }
      }
    };
    const caller = `installation-${installationId}`;
    const auth = async (): Promise<{ type: 'token'; token: string }> => ({ type: 'token', token: entry.token });
    const authStrategy = (): typeof auth => Object.assign(auth, { hook: authorised });
    const octokit = new ProbotOctokit({ ...common, ...throttle(caller), ...watched(caller), authStrategy } as typeof common);
    obeyLimits(octokit, caller);
    return octokit;
  }

  return {
    app,
    identity() {
      identity ??= readIdentity().catch((error: unknown) => {
        identity = null;
        throw error;
      });
      return identity;
    },
    client: (installationId, repository, permissions) => clientFor(installationId, [repository.id], permissions),
    installation: (installationId, permissions) => clientFor(installationId, null, permissions),
    async named(installationId, name, permissions) {
      const key = `${installationId}/${name.toLowerCase()}`;
      if (Date.now() - (outOfReach.get(key) ?? Number.NEGATIVE_INFINITY) < OUT_OF_REACH_MS) return null;
      try {
        return await clientFor(installationId, name, permissions);
      } catch (error) {
        if (statusOf(error) !== 422) throw error;
        if (outOfReach.size > 5000) outOfReach.clear();
        outOfReach.set(key, Date.now());
        return null;
      }
    },
    async reaches(installationId, repoId) {
      try {
        if (repoId === null) await app.request('GET /app/installations/{installation_id}', { installation_id: installationId });
        else {
          // By number, not by name: a name may be another repository's by now.
          await app.request('POST /app/installations/{installation_id}/access_tokens', {
            installation_id: installationId,
            repository_ids: [repoId],
            permissions: { metadata: 'read' },
          });
        }
        return 'yes';
      } catch (error) {
        const status = statusOf(error);
        if (status === 404 || (repoId !== null && status === 422)) return 'no';
        if (refusalOf(error) === 'suspended') return 'unknown';
        throw error;
      }
    },
  };
}

function watchedFetch(caller: string, timeoutMs: number, tell: (exchange: Exchange) => void): typeof fetch {
  return async (input, init) => {
    const started = performance.now();
    const seconds = (): number => (performance.now() - started) / 1000;
    try {
      const late = AbortSignal.timeout(timeoutMs);
      const signal = init?.signal == null ? late : AbortSignal.any([init.signal, late]);
      const response = await fetch(input, { ...init, signal });
      tell({ caller, status: response.status, seconds: seconds(), headers: response.headers });
      return response;
    } catch (error) {
      tell({ caller, status: null, seconds: seconds(), headers: null });
      throw error;
    }
  };
}

/** A client that speaks with a token it was given, for example the one of a workflow run. */
export function createTokenClient({
  token,
  apiUrl,
  userAgent,
  throttle,
  log,
}: Omit<GitHubOptions, 'appId' | 'privateKey'> & { readonly token: string }): Octokit {
  const onLimit = (seconds: number, { method, url }: { method: string; url: string }): boolean => {
    log.warn({ method, url, seconds }, 'a limit of GitHub is reached');
    return seconds < 300;
  };
  return new ProbotOctokit({
    baseUrl: apiUrl,
    userAgent,
    log: { debug: () => undefined, info: () => undefined, warn: log.warn.bind(log), error: log.warn.bind(log) },
    throttle: { enabled: throttle, id: 'token', onRateLimit: onLimit, onSecondaryRateLimit: onLimit },
    ...(throttle ? {} : { retry: { retryAfterBaseValue: 50 } }),
    auth: { token },
  } as ConstructorParameters<typeof ProbotOctokit>[0]);
}

/** A client without credentials, for the one call that is made before there are any. */
export function createAnonymousClient(apiUrl: string): Octokit {
  const quiet = (): undefined => undefined;
  return new ProbotOctokit({
    baseUrl: apiUrl,
    userAgent: 'npu-advisor/setup',
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    throttle: { enabled: false },
    retry: { retryAfterBaseValue: 50 },
  } as unknown as ConstructorParameters<typeof ProbotOctokit>[0]);
}

/** Status of a failed GitHub request, or null for any other error. */
export function statusOf(error: unknown): number | null {
  if (typeof error !== 'object' || error === null || !('status' in error)) return null;
  return typeof error.status === 'number' ? error.status : null;
}

/**
 * Why GitHub refuses with 403, by its own words: the conversation is locked, the repository archived, the installation suspended, a limit
 * reached, or a right is missing. null: any other answer. Wordings as quoted in renovatebot/renovate#6215 and r-universe-org/help#247.
 */
export function refusalOf(error: unknown): 'locked' | 'archived' | 'suspended' | 'limit' | 'right' | null {
  const status = statusOf(error);
  if (status === 429) return 'limit';
  if (status !== 403 || !(error instanceof Error)) return null;
  if (/\brate limit|abuse detection/i.test(error.message) || headerOf(error, 'retry-after') !== undefined) return 'limit';
  if (String(headerOf(error, 'x-ratelimit-remaining')) === '0') return 'limit';
  if (/\blocked\b/i.test(error.message)) return 'locked';
  if (/\barchived\b/i.test(error.message)) return 'archived';
  if (/\bsuspended\b/i.test(error.message)) return 'suspended';
  return 'right';
}

function headerOf(error: Error, name: string): unknown {
  return (error as { response?: { headers?: Record<string, unknown> } }).response?.headers?.[name];
}
