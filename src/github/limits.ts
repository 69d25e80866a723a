import { setTimeout as sleep } from 'node:timers/promises';
import type { ProbotOctokit } from 'probot';
import type { Logger } from './log.ts';

type Octokit = InstanceType<typeof ProbotOctokit>;

/**
 * GitHub refuses one caller for so long that a job must not wait for it: an installation has used up its requests of the hour, for one.
 * Looks like GitHub's own answer to whoever asks for its status.
 */
export class RateLimited extends Error {
  readonly status = 429;
  /** When it may ask again, by the clock the client was given. */
  readonly until: number;
  constructor(caller: string, until: number, options?: ErrorOptions) {
    super(`${caller} is at a rate limit of GitHub until ${new Date(until).toISOString()}`, options);
    this.name = 'RateLimited';
    this.until = until;
  }
}

/** The limit that an error is about, or that lies behind it. */
export function limitOf(error: unknown): RateLimited | null {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++)
    if (at instanceof RateLimited) return at;
  return null;
}

export interface LimitOptions {
  readonly now: () => number;
  readonly log: Logger;
  /** Whether GitHub has refused because of a limit. */
  readonly isLimit: (error: unknown) => boolean;
  /** A request waits so long by itself; beyond that its job gives its place back. */
  readonly shortWaitMs: number;
  /** Where GitHub says "later" and not when: at least a minute ("Best practices for using the REST API"). */
  readonly unnamedMs: number;
}

/** A limit that comes back after so many waits is not a short one. */
const MAX_WAITS = 3;
/** Longer than GitHub's hour is a mistake of a clock. */
const MAX_WAIT_MS = 3600_000 + 60_000;
/** GitHub counts in whole seconds. */
const RESET_MARGIN_MS = 1000;
/**
 * So many requests of the hour are kept to say on checks what is waited for: a hundredth, at most 50. Once they are all used, GitHub
 * refuses that as well.
 */
const RESERVE_SHARE = 0.01;
const MOST_RESERVE = 50;

interface RequestKind {
  readonly bestEffort?: boolean;
  readonly reserve?: boolean;
}

interface Standing {
  readonly until: number;
  /** What is kept in reserve is still there. */
  readonly hasReserve: boolean;
}

type Headers = Readonly<Record<string, string | number | undefined>>;

/** Makes clients obey limits; each caller, an installation for example, has its own, as GitHub counts. */
export function createLimits({ now, log, isLimit, shortWaitMs, unnamedMs }: LimitOptions): (octokit: Octokit, caller: string) => void {
  const standings = new Map<string, Standing>();

  function note(caller: string, headers: Headers): void {
    const { 'x-ratelimit-remaining': remaining, 'x-ratelimit-limit': limit, 'x-ratelimit-resource': resource = 'core' } = headers;
    const ms = untilReset(headers, now());
    if (remaining === undefined || limit === undefined || ms === null || resource !== 'core') return;
    const reserve = Math.min(MOST_RESERVE, Math.floor(Number(limit) * RESERVE_SHARE));
    if (Number(remaining) > reserve || ms <= 0) return;
    if ((standings.get(caller)?.until ?? 0) > now()) return;
    standings.set(caller, { until: now() + ms, hasReserve: Number(remaining) > 0 });
    log.warn({ caller, remaining, seconds: Math.round(ms / 1000) }, 'the requests of the hour are nearly used up');
  }

  return (octokit, caller) => {
    octokit.hook.wrap('request', async (request, options) => {
      const { bestEffort = false, reserve = false } = options.request as RequestKind;
      for (let waits = 0; ; ) {
        const standing = standings.get(caller);
        const leftMs = (standing?.until ?? 0) - now();
        if (standing !== undefined && leftMs > 0 && !(reserve && standing.hasReserve)) {
          if (leftMs > shortWaitMs || bestEffort || waits >= MAX_WAITS) throw new RateLimited(caller, standing.until);
          waits++;
          // Those that wait do not all come back at once.
          await sleep(leftMs * (1 + Math.random() * 0.1));
          continue;
        }
        try {
          const response = await request(options);
          note(caller, response.headers);
          return response;
        } catch (error) {
          if (!isLimit(error) || error instanceof RateLimited) throw error;
          const until = now() + (waitOf(error, now()) ?? unnamedMs);
          log.warn(
            { caller, method: options.method, url: options.url, seconds: Math.round((until - now()) / 1000) },
            'a limit of GitHub is reached',
          );
          // What only tells how far a job is must not hold up what concludes it; that finds out by itself.
          if (bestEffort) throw new RateLimited(caller, until, { cause: error });
          standings.set(caller, { until, hasReserve: false });
          if (waits >= MAX_WAITS) throw new RateLimited(caller, until, { cause: error });
        }
      }
    });
  };
}

/** How long GitHub asks to wait, by its own clock; null: it does not say. */
function waitOf(error: unknown, now: number): number | null {
  const headers = (error as { response?: { headers?: Headers } }).response?.headers ?? {};
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  if (Number.isFinite(seconds) && seconds >= 0) return Math.min(MAX_WAIT_MS, seconds * 1000);
  return Number(headers['x-ratelimit-remaining'] ?? 1) === 0 ? untilReset(headers, now) : null;
}

/** Until the requests of the next hour. Both moments are GitHub's, so that it does not matter what this machine's clock says. */
function untilReset(headers: Headers, now: number): number | null {
  const resetAt = Number(headers['x-ratelimit-reset'] ?? Number.NaN) * 1000;
  if (!Number.isFinite(resetAt)) return null;
  const date = Date.parse(String(headers.date ?? ''));
  const ms = resetAt - (Number.isFinite(date) ? date : now);
  return Math.min(MAX_WAIT_MS, Math.max(0, ms) + RESET_MARGIN_MS);
}
