/** One call of an API operation, as its handler sees it. */
import type { IncomingHttpHeaders } from 'node:http';
import { ApiError, notFound } from './api-error.ts';
import type { Caller } from './auth.ts';
import type { Operation } from './description.ts';
import type { JsonObject } from './json.ts';
import type { Account, HubState, PullRequest, Repository } from './state.ts';

/** A call that was routed, authenticated and checked. */
export interface Call {
  state: HubState;
  operation: Operation;
  caller: Caller;
  /** Path and query parameters, typed as described. */
  parameters: JsonObject;
  body: JsonObject;
  headers: IncomingHttpHeaders;
  url: URL;
  /** The repository of the path, when there is one and the caller may see it. */
  repository: Repository | null;
}

/** What a handler answers. `raw` replaces the JSON body. */
export interface Reply {
  status: number;
  body?: unknown;
  raw?: Buffer;
  contentType?: string;
  headers?: { [name: string]: string };
}

/** Serves one operation. */
type Handler = (call: Call) => Reply;

/** Handlers by operation id. */
export type Handlers = { [operation: string]: Handler };

/** A text parameter. */
export function text(call: Call, name: string): string {
  const value = call.parameters[name];
  return typeof value === 'string' ? value : '';
}

/** A text parameter that may be missing. */
export function optionalText(call: Call, name: string): string | null {
  const value = call.parameters[name];
  return typeof value === 'string' ? value : null;
}

/** A whole-number parameter; NaN when missing. */
export function integer(call: Call, name: string): number {
  const value = call.parameters[name];
  return typeof value === 'number' ? value : Number.NaN;
}

/** A text property of the body. */
export function bodyText(body: JsonObject, name: string): string | null {
  const value = body[name];
  return typeof value === 'string' ? value : null;
}

/** A number property of the body. */
export function bodyInteger(body: JsonObject, name: string): number | null {
  const value = body[name];
  return typeof value === 'number' ? value : null;
}

/** The repository the path names. */
export function repositoryOf(call: Call): Repository {
  if (!call.repository) throw notFound();
  return call.repository;
}

/** The pull request the path names. */
export function pullOf(call: Call, parameter = 'pull_number'): PullRequest {
  const number = integer(call, parameter);
  return found(repositoryOf(call).pulls.find((pull) => pull.number === number));
}

/** The thing, or 404. */
export function found<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw notFound();
  return value;
}

/** The account that acts. */
export function actorOf(call: Call): Account {
  if (call.caller.kind !== 'installation') throw new ApiError(401, 'Requires authentication');
  return call.state.app.bot;
}

/** One page of a list, with the `link` header GitHub sends. */
export function page<T>(call: Call, items: readonly T[]): { items: T[]; headers: { [name: string]: string } } {
  const perPage = Math.max(1, Math.min(100, integer(call, 'per_page') || 30));
  const number = Math.max(1, integer(call, 'page') || 1);
  const last = Math.max(1, Math.ceil(items.length / perPage));
  const address = (target: number): string => {
    const url = new URL(call.url);
    url.searchParams.set('page', String(target));
    return url.href;
  };
  const links: string[] = [];
  if (number > 1) links.push(`<${address(number - 1)}>; rel="prev"`);
  if (number < last) links.push(`<${address(number + 1)}>; rel="next"`, `<${address(last)}>; rel="last"`);
  if (number > 1) links.push(`<${address(1)}>; rel="first"`);
  return { items: items.slice((number - 1) * perPage, number * perPage), headers: links.length > 0 ? { link: links.join(', ') } : {} };
}
