/** Faults a test asks for: the exchange fails in a given way before or after the state was changed. */

/** What to break, and how. */
export interface FaultOptions {
  /** Tested against `METHOD path?query`; blob requests are written `BLOB GET path`. */
  match: RegExp;
  /** How many matching requests are hit; default 1. */
  times?: number;
  /** How many matching requests are let through first. */
  skip?: number;
  /** Answer with this status instead. */
  status?: number;
  /** Message of the answer; a fitting one is chosen by default. */
  message?: string;
  headers?: { [name: string]: string };
  /** Wait this long first. */
  hangMs?: number;
  /** Wait for this first. */
  waitFor?: Promise<unknown>;
  /** Close the connection without an answer. */
  dropConnection?: boolean;
  /** `before` (default): the state stays as it is. `after`: the change was made, only the answer is lost. */
  phase?: 'before' | 'after';
}

/** A fault that is armed. */
export interface Fault extends FaultOptions {
  /** How many requests it has hit. */
  hits: number;
  seen: number;
}

/** Arms a fault. */
export function createFault(options: FaultOptions): Fault {
  return { ...options, hits: 0, seen: 0 };
}

/** The fault that hits a request in this phase, if any; it is used up by the call. */
export function takeFault(faults: Fault[], phase: 'before' | 'after', request: string): Fault | null {
  for (const fault of faults) {
    if ((fault.phase ?? 'before') !== phase || fault.hits >= (fault.times ?? 1) || !fault.match.test(request)) continue;
    fault.seen++;
    if (fault.seen <= (fault.skip ?? 0)) continue;
    fault.hits++;
    return fault;
  }
  return null;
}

/** GitHub's wording for a status that was asked for without a message. */
export function faultMessage(fault: Fault): string {
  if (fault.message !== undefined) return fault.message;
  const names = Object.keys(fault.headers ?? {}).map((name) => name.toLowerCase());
  if (fault.status === 403 && names.includes('x-ratelimit-remaining')) return 'API rate limit exceeded for installation ID 51000001.';
  if (fault.status === 403 || fault.status === 429) {
    return 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.';
  }
  if (fault.status === 404) return 'Not Found';
  if (fault.status === 401) return 'Bad credentials';
  return 'Server Error';
}
