import { AsyncLocalStorage } from 'node:async_hooks';
import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger };

/** What is being worked on: every line that is logged meanwhile says so. */
export interface LogContext {
  /** Requests of the store that are worked on together. */
  readonly jobs: readonly number[];
  /** What they came from: deliveries of GitHub by their id, or a name of ours. */
  readonly guids: readonly string[];
}

const context = new AsyncLocalStorage<LogContext>();

/** Runs `body`; lines logged in it, also much later, carry the context. */
export function withLogContext<T>(of: LogContext, body: () => Promise<T>): Promise<T> {
  return context.run(of, body);
}

/** Secrets that may end up inside a text: installation tokens of any length, JWTs, PEM keys, signatures of storage addresses, links to details pages. */
const SECRETS =
  /\bgh[a-z]_[\w-]+|\bgithub_pat_\w+|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*|-----BEGIN [A-Z ]+-----[\s\S]*?-----END [A-Z ]+-----|\b(?:sig|signature|token|se|sp)=[^&\s"']+|\/details\/\d+\/[\w/-]+/gi;

/** Takes secrets out of a text that goes to the log. */
export function scrub(text: string): string {
  return text.replace(SECRETS, '[secret]').slice(0, 4000);
}

interface ErrorLike {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly code?: unknown;
  readonly status?: unknown;
  readonly stack?: unknown;
  readonly cause?: unknown;
  readonly errors?: unknown;
}

/** An error as it may be logged: never its event, request or response, which hold payloads and tokens. */
function describeError(error: unknown, depth = 0): unknown {
  if (typeof error !== 'object' || error === null) return scrub(String(error));
  const { name, message, code, status, stack, cause, errors } = error as ErrorLike;
  return {
    type: String(name ?? 'Error'),
    message: scrub(String(message ?? '')),
    ...(code === undefined ? {} : { code: scrub(String(code)) }),
    ...(typeof status === 'number' ? { status } : {}),
    ...(typeof stack === 'string' ? { stack: scrub(stack) } : {}),
    ...(cause === undefined || depth > 2 ? {} : { cause: describeError(cause, depth + 1) }),
    ...(Array.isArray(errors) && depth < 2 ? { errors: errors.slice(0, 3).map((e) => describeError(e, depth + 1)) } : {}),
  };
}

/** JSON log lines without payloads, signatures and tokens. */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    mixin: () => ({ ...context.getStore() }),
    serializers: {
      err: (error: unknown) => describeError(error),
      error: (error: unknown) => describeError(error),
      event: (event: unknown) => (typeof event === 'string' ? scrub(event) : '[event]'),
    },
    redact: {
      paths: [
        'authorization',
        '*.authorization',
        'headers',
        '*.headers',
        'payload',
        '*.payload',
        'signature',
        '*.signature',
        'token',
        '*.token',
        'body',
        '*.body',
      ],
      censor: '[removed]',
    },
    hooks: {
      // Libraries log errors as the first argument or texts with addresses in them.
      logMethod(this: Logger, args: Parameters<Logger['info']>, method: (...args: unknown[]) => void) {
        const [first, ...rest] = args as unknown[];
        const safeRest = rest.map((part) => (typeof part === 'string' ? scrub(part) : part));
        if (first instanceof Error) method.apply(this, [{ err: first }, ...(safeRest.length > 0 ? safeRest : ['an error was reported'])]);
        else method.apply(this, [typeof first === 'string' ? scrub(first) : first, ...safeRest]);
      },
    },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}
