/** One API exchange: routing, authentication, checks against the description, the handler, checks of the answer. */
import { createHash, randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { ApiError, notFound } from './api-error.ts';
import { authenticate, type Caller, covers, grants } from './auth.ts';
import type { Call, Handlers, Reply } from './call.ts';
import { type Description, description, type Operation } from './description.ts';
import { excepted, universalStatuses } from './exceptions.ts';
import { isObject, type JsonObject } from './json.ts';
import { readParameters } from './parameters.ts';
import { requiredPermissions } from './permissions.ts';
import { actionHandlers } from './routes/action.ts';
import { appHandlers } from './routes/app.ts';
import { checkHandlers } from './routes/check.ts';
import { commentHandlers } from './routes/comment.ts';
import { pullHandlers } from './routes/pull.ts';
import { repositoryHandlers } from './routes/repository.ts';
import { reviewHandlers } from './routes/review.ts';
import {
  API_VERSIONS,
  checkHeaders,
  checkWritable,
  ENTERPRISE_API_VERSIONS,
  permissionMissing,
  requireUserAgent,
  unseenRepository,
} from './rules.ts';
import { clock, findRepository, type HubState, type Repository, type Violation } from './state.ts';
import { githubWording } from './wording.ts';

/** Handlers of all operations. */
export const handlers: Handlers = {
  ...appHandlers,
  ...repositoryHandlers,
  ...pullHandlers,
  ...commentHandlers,
  ...checkHandlers,
  ...reviewHandlers,
  ...actionHandlers,
};

const DOCUMENTATION = 'https://docs.github.com/rest';

/** The answer of the API, ready to be written. */
export interface Answer {
  status: number;
  headers: { [name: string]: string };
  body: Buffer;
  operation: string | null;
}

/** Serves one request; `path` is relative to the API's base. */
export function serveApi(state: HubState, request: IncomingMessage, path: string, body: Buffer): Answer {
  const exchange = `${request.method} ${path}`;
  const url = new URL(path, `${state.apiUrl}/`);
  url.pathname = new URL(state.apiUrl).pathname + new URL(path, 'http://x').pathname;
  const context: Context = { state, exchange, url, request, operation: null, accepted: null };
  let reply: Reply;
  try {
    reply = moved(context) ?? handle(context, body);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    reply = errorReply(context, error);
  }
  return answer(context, reply);
}

/**
 * Requests to a former name are sent on to the repository's number, with 301 for reading and 307 for the rest [docs, "Best practices for
 * using the REST API", Redirects]; a repository that took the name over since is that name's.
 */
function moved({ state, url, request }: Context): Reply | null {
  const base = new URL(state.apiUrl).pathname;
  const path = url.pathname.slice(base.length);
  const byNumber = /^\/repositories\/(\d+)(\/.*)?$/.exec(path);
  if (byNumber) {
    const repository = state.repositories.find((candidate) => candidate.id === Number(byNumber[1]));
    if (repository) url.pathname = `${base}/repos/${repository.owner.login}/${repository.name}${byNumber[2] ?? ''}`;
    return null;
  }
  const [, owner = '', name = '', rest = ''] = /^\/repos\/([^/]+)\/([^/]+)(\/.*)?$/.exec(path) ?? [];
  if (owner === '' || findRepository(state, owner, name)) return null;
  const former = `${owner}/${name}`.toLowerCase();
  const target = state.repositories.find(({ formerNames }) => formerNames.includes(former));
  if (!target) return null;
  const location = `${state.apiUrl}/repositories/${target.id}${rest}${url.search}`;
  const isRead = request.method === 'GET';
  const message = isRead ? 'Moved Permanently' : 'Temporary Redirect';
  return { status: isRead ? 301 : 307, headers: { location }, body: { message, url: location, documentation_url: DOCUMENTATION } };
}

interface Context {
  state: HubState;
  exchange: string;
  url: URL;
  request: IncomingMessage;
  operation: Operation | null;
  accepted: string | null;
  /** What is left to the caller, where that is counted. */
  hour?: { left: number; resetAt: number };
}

function report(context: Context, side: Violation['side'], kind: Violation['kind'], faults: string[]): void {
  const where = context.operation?.id ?? '*';
  const kept = faults.filter((fault) => !excepted(where, fault));
  if (kept.length > 0) context.state.violations.push({ side, kind, exchange: context.exchange, faults: kept });
}

function handle(context: Context, rawBody: Buffer): Reply {
  const { state, request, url } = context;
  requireUserAgent(request.headers['user-agent']);
  const versions = state.enterprise === null ? API_VERSIONS : ENTERPRISE_API_VERSIONS;
  checkHeaders(request.headers['x-github-api-version'], versions, request.headers.accept, /\/releases\/assets\/\d+$/.test(url.pathname));
  const caller = authenticate(state, request.headers.authorization);
  takeOfHour(context, caller);
  const api = description();
  const route = api.route(request.method ?? 'GET', url.pathname.slice(new URL(state.apiUrl).pathname.length));
  const handler = route ? handlers[route.operation.id] : undefined;
  if (!route || !handler) {
    report(context, 'client', 'operation', ['No such operation is described here']);
    throw notFound();
  }
  const { operation } = route;
  context.operation = operation;
  const repository = authorise(context, operation, caller, route.parameters);
  const parameters = readParameters(api, operation, route.parameters, url.searchParams);
  report(context, 'client', 'parameters', [...parameters.pathFaults, ...parameters.queryFaults, ...parameters.unknown]);
  if (parameters.pathFaults.length > 0) throw notFound();
  if (parameters.queryFaults.length > 0) throw new ApiError(422, 'Validation Failed', { errors: problems(parameters.queryFaults) });
  const call: Call = {
    state,
    operation,
    caller,
    parameters: parameters.values,
    body: readBody(context, api, operation, rawBody),
    headers: request.headers,
    url,
    repository,
  };
  return handler(call);
}

/** Checks who may call; gives the repository of the path when the caller may see it. */
function authorise(context: Context, operation: Operation, caller: Caller, path: { [name: string]: string }): Repository | null {
  const { state } = context;
  const required = requiredPermissions[operation.id] ?? [];
  const repository = path.owner !== undefined && path.repo !== undefined ? findRepository(state, path.owner, path.repo) : null;
  if (required === 'app') {
    if (caller.kind === 'app') return repository;
    throw new ApiError(401, 'A JSON web token could not be decoded');
  }
  if (required === 'public') return repository;
  if (caller.kind === 'app') throw new ApiError(401, 'Bad credentials', { rule: { name: 'app-token-misused', blame: 'client' } });
  if (required === 'any') {
    if (caller.kind === 'anonymous') throw new ApiError(401, 'Requires authentication');
    return repository;
  }
  if (!repository) throw notFound();
  const accepted = required.map((entry) => entry.replace(':', '=')).join('; ');
  context.accepted = accepted;
  const reading = operation.method === 'GET';
  if (!covers(caller, repository)) {
    // Public repositories can be read by anybody, written only where the app is installed.
    if (repository.private) throw unseenRepository();
    if (reading) return repository;
    throw caller.kind === 'anonymous' ? new ApiError(401, 'Requires authentication') : permissionMissing(accepted);
  }
  const held = caller.kind === 'installation' ? caller.token.permissions : {};
  if (!required.some((entry) => grants(held, entry))) throw permissionMissing(accepted);
  if (!reading) checkWritable(repository.archived);
  return repository;
}

function readBody(context: Context, api: Description, operation: Operation, raw: Buffer): JsonObject {
  const text = raw.toString('utf8');
  if (!operation.body) {
    if (text.trim() !== '' && text.trim() !== '{}') report(context, 'client', 'body', ['The operation takes no body']);
    return {};
  }
  if (text.trim() === '') {
    if (operation.body.required) {
      report(context, 'client', 'body', ['The body is missing']);
      throw new ApiError(422, 'Invalid request.\n\nA body is required.');
    }
    return {};
  }
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    report(context, 'client', 'body', ['The body is not JSON']);
    throw new ApiError(400, 'Problems parsing JSON');
  }
  if (!isObject(body)) {
    report(context, 'client', 'body', ['The body is not an object']);
    throw new ApiError(400, 'Body should be a JSON object');
  }
  const faults = api.faults(['rest', 'operations', operation.id, 'body', 'schema'], body);
  report(context, 'client', 'body', faults);
  // GitHub ignores properties it does not know; they are only recorded.
  const serious = faults.filter((fault) => !fault.endsWith('is not described'));
  if (serious.length > 0) throw new ApiError(422, `Invalid request.\n\n${serious.map((fault) => githubWording(fault, body)).join('\n')}`);
  return body;
}

function problems(faults: string[]): JsonObject[] {
  return faults.map((message) => ({ resource: 'Request', code: 'invalid', field: message.split(' ')[0] ?? '', message }));
}

function errorReply(context: Context, error: ApiError): Reply {
  if (error.rule?.blame === 'client') report(context, 'client', 'rule', [`${error.rule.name}: ${error.message}${detail(error)}`]);
  else if (error.rule) {
    context.state.refusals.push({ rule: error.rule.name, exchange: context.exchange, message: `${error.message}${detail(error)}` });
  }
  // Where the description wants plain texts, objects become their messages, and the other way round.
  const simple = describesPlainErrors(context.operation, error.status);
  const errors = error.errors?.map((entry) => {
    if (simple) return isObject(entry) ? String(entry.message ?? entry.code) : entry;
    return isObject(entry) ? entry : { resource: 'PullRequestReviewComment', code: 'custom', message: String(entry) };
  });
  return {
    status: error.status,
    headers: error.headers,
    body: { message: error.message, ...(errors ? { errors } : {}), documentation_url: DOCUMENTATION, status: String(error.status) },
  };
}

function detail(error: ApiError): string {
  return error.errors ? ` ${JSON.stringify(error.errors)}` : '';
}

function describesPlainErrors(operation: Operation | null, status: number): boolean {
  const schema = operation?.responses[String(status)]?.['application/json'];
  return typeof schema?.$ref === 'string' && schema.$ref.endsWith('validation-error-simple');
}

/** A GitHub Enterprise Server has rate limits only where its operator sets them. */
function rateLimits({ hour, state }: Context): { [name: string]: string } {
  const left = hour?.left ?? 4999;
  return {
    'x-ratelimit-limit': '5000',
    'x-ratelimit-remaining': String(left),
    'x-ratelimit-used': String(5000 - left),
    'x-ratelimit-reset': String(Math.floor((hour?.resetAt ?? clock(state) + 3600_000) / 1000)),
    'x-ratelimit-resource': 'core',
    // Not the machine's: the reset is a moment of this clock.
    date: new Date(clock(state)).toUTCString(),
  };
}

/** Takes one of an installation's requests of the hour; refuses when none is left ("Rate limits for the REST API"). */
function takeOfHour(context: Context, caller: Caller): void {
  if (caller.kind !== 'installation') return;
  const { id } = caller.token.installation;
  const hour = context.state.hours.get(id);
  if (hour === undefined || hour.resetAt <= clock(context.state)) return;
  context.hour = hour;
  if (hour.left === 0) throw new ApiError(403, `API rate limit exceeded for installation ID ${id}.`);
  hour.left--;
}

function answer(context: Context, reply: Reply): Answer {
  const { request, operation } = context;
  const headers: { [name: string]: string } = {
    'x-github-request-id': randomUUID().slice(0, 18).toUpperCase(),
    'x-github-media-type': 'github.v3; format=json',
    ...(context.state.enterprise === null ? rateLimits(context) : { 'x-github-enterprise-version': context.state.enterprise }),
    'access-control-expose-headers': 'ETag, Link, Location, Retry-After, X-RateLimit-Limit, X-GitHub-Request-Id',
    'cache-control': 'private, max-age=60, s-maxage=60',
    ...(context.accepted ? { 'x-accepted-github-permissions': context.accepted } : {}),
    ...reply.headers,
  };
  if (reply.raw) {
    headers['content-type'] = reply.contentType ?? 'application/octet-stream';
    return { status: reply.status, headers, body: reply.raw, operation: operation?.id ?? null };
  }
  if (reply.body === undefined) {
    checkResponse(context, reply.status, undefined);
    return { status: reply.status, headers, body: Buffer.alloc(0), operation: operation?.id ?? null };
  }
  const text = JSON.stringify(reply.body);
  checkResponse(context, reply.status, JSON.parse(text));
  headers['content-type'] = 'application/json; charset=utf-8';
  const body = Buffer.from(text, 'utf8');
  if (request.method === 'GET' && reply.status === 200) {
    headers.etag = `W/"${createHash('sha256').update(body).digest('hex')}"`;
    if (request.headers['if-none-match'] === headers.etag)
      return { status: 304, headers, body: Buffer.alloc(0), operation: operation?.id ?? null };
  }
  return { status: reply.status, headers, body, operation: operation?.id ?? null };
}

function checkResponse(context: Context, status: number, body: unknown): void {
  const { operation } = context;
  if (!operation) return;
  const described = operation.responses[String(status)];
  if (!described) {
    if (!universalStatuses.includes(status)) report(context, 'hub', 'response', [`status ${status} is not described`]);
    return;
  }
  const types = Object.keys(described);
  if (body === undefined) {
    if (types.length > 0) report(context, 'hub', 'response', ['the body is missing']);
    return;
  }
  const accept = context.request.headers.accept ?? '';
  const type =
    types.find((candidate) => accept.includes(candidate)) ?? types.find((candidate) => candidate === 'application/json') ?? types[0];
  if (type === undefined) {
    report(context, 'hub', 'response', ['no body is described']);
    return;
  }
  report(context, 'hub', 'response', description().faults(['rest', 'operations', operation.id, 'responses', String(status), type], body));
}
