/** Who is calling: the app itself (JWT), one of its installation tokens, or nobody. */
import { randomBytes, verify } from 'node:crypto';
import { ApiError } from './api-error.ts';
import { isObject } from './json.ts';
import { clock, type HubState, type Installation, type Permissions, type Repository, type Token } from './state.ts';

/** The caller of an operation. */
export type Caller = { kind: 'app' } | { kind: 'installation'; token: Token } | { kind: 'anonymous' };

/** Lifetime of an installation token (docs: "Generating an installation access token"). */
const TOKEN_LIFETIME_MS = 3_600_000;
/** Longest lifetime of an app's JWT (docs: "Generating a JSON Web Token (JWT) for a GitHub App"). */
const JWT_LIFETIME_S = 600;

/** Reads the Authorization header; refuses what GitHub refuses. */
export function authenticate(state: HubState, authorization: string | undefined): Caller {
  if (authorization === undefined) return { kind: 'anonymous' };
  const match = /^(?:bearer|token)\s+(\S+)$/i.exec(authorization);
  const credential = match?.[1];
  if (credential === undefined) throw new ApiError(401, 'Bad credentials');
  if (/^eyJ[\w-]*\.[\w-]+\.[\w-]+$/.test(credential)) {
    verifyJwt(state, credential);
    return { kind: 'app' };
  }
  const token = state.tokens.get(credential);
  if (!token || token.revoked || token.expiresAt <= clock(state) || token.installation.deleted) throw new ApiError(401, 'Bad credentials');
  if (token.installation.suspendedAt !== null) throw new ApiError(403, 'This installation has been suspended');
  return { kind: 'installation', token };
}

function verifyJwt(state: HubState, jwt: string): void {
  const undecodable = new ApiError(401, 'A JSON web token could not be decoded');
  const [head = '', claims = '', signature = ''] = jwt.split('.');
  let header: unknown;
  let payload: unknown;
  try {
    header = JSON.parse(Buffer.from(head, 'base64url').toString('utf8'));
    payload = JSON.parse(Buffer.from(claims, 'base64url').toString('utf8'));
  } catch {
    throw undecodable;
  }
  if (!isObject(header) || header.alg !== 'RS256' || !isObject(payload)) throw undecodable;
  if (!verify('sha256', Buffer.from(`${head}.${claims}`), state.app.publicKey, Buffer.from(signature, 'base64url'))) throw undecodable;
  if (String(payload.iss) !== String(state.app.id) && payload.iss !== state.app.clientId) throw new ApiError(404, 'Integration not found');
  // Real time, not the hub's: the client signs with the machine's clock.
  const seconds = Date.now() / 1000;
  const { iat, exp } = payload;
  if (typeof iat !== 'number' || iat > seconds + 1) {
    throw new ApiError(401, "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued");
  }
  if (typeof exp !== 'number' || exp <= seconds) {
    throw new ApiError(
      401,
      "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires",
    );
  }
  if (exp > seconds + JWT_LIFETIME_S) throw new ApiError(401, "'Expiration time' claim ('exp') is too far in the future");
}

/** A new installation token. Its text is long and of no fixed length: nothing may rely on 40 characters. */
export function createToken(state: HubState, installation: Installation, repositoryIds: number[] | null, permissions: Permissions): Token {
  const value = `ghs_${state.app.id}_${randomBytes(72).toString('hex')}`;
  const token: Token = { value, installation, repositoryIds, permissions, expiresAt: clock(state) + TOKEN_LIFETIME_MS, revoked: false };
  state.tokens.set(value, token);
  return token;
}

/** Whether a caller's token covers a repository. */
export function covers(caller: Caller, repository: Repository): boolean {
  if (caller.kind !== 'installation' || repository.installation !== caller.token.installation) return false;
  return caller.token.repositoryIds === null || caller.token.repositoryIds.includes(repository.id);
}

const LEVELS = ['none', 'read', 'write', 'admin'];

/** Whether permissions include `name:level`. */
export function grants(permissions: Permissions, wanted: string): boolean {
  const [name = '', level = 'read'] = wanted.split(':');
  const held = permissions[name] ?? (name === 'metadata' ? 'read' : 'none');
  return LEVELS.indexOf(held) >= LEVELS.indexOf(level);
}
