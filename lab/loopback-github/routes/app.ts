/** The app, its installations and tokens, the delivery log, rate limits, users. */
import { ApiError } from '../api-error.ts';
import { createToken, grants } from '../auth.ts';
import { type Call, found, type Handlers, integer, optionalText, page, repositoryOf, text } from '../call.ts';
import { redeliver } from '../deliveries.ts';
import { isObject, type JsonObject } from '../json.ts';
import { convertManifest } from '../manifest.ts';
import { accountJson, appJson, installationJson, profileJson } from '../present/account.ts';
import { repositoryJson } from '../present/repository.ts';
import { type Delivery, findRepository, type HubState, type Installation, type Permissions, timestamp } from '../state.ts';

function activeInstallations(state: HubState): Installation[] {
  return state.installations.filter((installation) => !installation.deleted);
}

function installationOf(call: Call): Installation {
  const id = integer(call, 'installation_id');
  return found(activeInstallations(call.state).find((installation) => installation.id === id));
}

function installationOfAccount(call: Call, login: string): Installation {
  const key = login.toLowerCase();
  return found(activeInstallations(call.state).find((installation) => installation.account.login.toLowerCase() === key));
}

function deliveryJson(delivery: Delivery): JsonObject {
  return {
    id: delivery.id,
    guid: delivery.guid,
    delivered_at: delivery.deliveredAt,
    redelivery: delivery.redelivery,
    duration: delivery.durationMs / 1000,
    status: delivery.status,
    status_code: delivery.statusCode,
    event: delivery.event,
    action: delivery.action,
    installation_id: delivery.installationId,
    repository_id: delivery.repositoryId,
    throttled_at: null,
  };
}

/** Permissions of a new token: what was asked for, which the installation must hold. */
function requestedPermissions(installation: Installation, body: JsonObject): Permissions {
  if (!isObject(body.permissions)) return { ...installation.permissions };
  const permissions: Permissions = { metadata: 'read' };
  for (const [name, level] of Object.entries(body.permissions)) {
    if (typeof level !== 'string' || !grants(installation.permissions, `${name}:${level}`)) {
      throw new ApiError(422, 'The permissions requested are not granted to this installation.', {
        rule: { name: 'token-permissions', blame: 'client' },
      });
    }
    permissions[name] = level as 'read' | 'write';
  }
  return permissions;
}

function requestedRepositories(state: HubState, installation: Installation, body: JsonObject): number[] | null {
  if (body.repository_ids === undefined && body.repositories === undefined) return null;
  const own = state.repositories.filter((repository) => repository.installation === installation);
  const ids = Array.isArray(body.repository_ids) ? body.repository_ids : [];
  const names = Array.isArray(body.repositories) ? body.repositories : [];
  const chosen = own.filter((repository) => ids.includes(repository.id) || names.includes(repository.name));
  if (chosen.length < ids.length + names.length) {
    throw new ApiError(422, 'There is at least one repository that does not exist or is not accessible to the parent installation.', {
      rule: { name: 'token-repositories', blame: 'circumstance' },
    });
  }
  return chosen.map((repository) => repository.id);
}

const LIMITS = { limit: 5000, used: 0, remaining: 5000 };

/** Handlers of this area. */
export const appHandlers: Handlers = {
  'apps/get-authenticated': ({ state }) => ({
    status: 200,
    body: { ...appJson(state), installations_count: activeInstallations(state).length },
  }),

  'apps/get-webhook-config-for-app': ({ state }) => ({
    status: 200,
    // The secret itself is never told.
    body: { url: state.webhookUrl ?? '', content_type: 'json', secret: '********', insecure_ssl: '0' },
  }),

  'apps/create-from-manifest': (call) => ({ status: 201, body: convertManifest(call.state, text(call, 'code')) }),

  'apps/list-installations': (call) => {
    const { items, headers } = page(call, activeInstallations(call.state));
    return { status: 200, body: items.map((installation) => installationJson(call.state, installation)), headers };
  },

  'apps/get-installation': (call) => ({ status: 200, body: installationJson(call.state, installationOf(call)) }),

  'apps/get-repo-installation': (call) => {
    const repository = findRepository(call.state, text(call, 'owner'), text(call, 'repo'));
    const installation = found(repository?.installation);
    if (installation.deleted) found(null);
    return { status: 200, body: installationJson(call.state, installation) };
  },

  'apps/get-org-installation': (call) => ({
    status: 200,
    body: installationJson(call.state, installationOfAccount(call, text(call, 'org'))),
  }),

  'apps/get-user-installation': (call) => ({
    status: 200,
    body: installationJson(call.state, installationOfAccount(call, text(call, 'username'))),
  }),

  'apps/create-installation-access-token': (call) => {
    const installation = installationOf(call);
    if (installation.suspendedAt !== null) throw new ApiError(403, 'This installation has been suspended');
    const permissions = requestedPermissions(installation, call.body);
    const ids = requestedRepositories(call.state, installation, call.body);
    const token = createToken(call.state, installation, ids, permissions);
    const repositories = call.state.repositories.filter((repository) => ids?.includes(repository.id));
    return {
      status: 201,
      body: {
        token: token.value,
        expires_at: timestamp(token.expiresAt),
        permissions,
        repository_selection: 'selected',
        ...(ids ? { repositories: repositories.map((repository) => repositoryJson(call.state, repository)) } : {}),
      },
    };
  },

  'apps/list-repos-accessible-to-installation': (call) => {
    if (call.caller.kind !== 'installation') throw new ApiError(401, 'Requires authentication');
    const { token } = call.caller;
    const repositories = call.state.repositories.filter(
      (repository) => repository.installation === token.installation && (token.repositoryIds?.includes(repository.id) ?? true),
    );
    const { items, headers } = page(call, repositories);
    return {
      status: 200,
      body: { total_count: repositories.length, repositories: items.map((repository) => repositoryJson(call.state, repository)) },
      headers,
    };
  },

  'apps/revoke-installation-access-token': (call) => {
    if (call.caller.kind === 'installation') call.caller.token.revoked = true;
    return { status: 204 };
  },

  'apps/list-webhook-deliveries': (call) => {
    const cursor = optionalText(call, 'cursor');
    const status = optionalText(call, 'status');
    const before = cursor === null ? Number.POSITIVE_INFINITY : Number(/^v1_(\d+)$/.exec(cursor)?.[1] ?? Number.NaN);
    if (Number.isNaN(before)) throw new ApiError(422, 'Invalid cursor');
    const succeeded = (delivery: Delivery): boolean => delivery.statusCode >= 200 && delivery.statusCode < 400;
    const all = call.state.deliveries.filter(
      (delivery) => delivery.id < before && (status === null || (status === 'success') === succeeded(delivery)),
    );
    const count = Math.min(100, integer(call, 'per_page') || 30);
    const items = all.slice(0, count);
    const last = items.at(-1);
    const next = new URL(call.url);
    if (last) next.searchParams.set('cursor', `v1_${last.id}`);
    return {
      status: 200,
      body: items.map(deliveryJson),
      headers: last && all.length > count ? { link: `<${next.href}>; rel="next"` } : {},
    };
  },

  'apps/get-webhook-delivery': (call) => {
    const delivery = found(call.state.deliveries.find((candidate) => candidate.id === integer(call, 'delivery_id')));
    return {
      status: 200,
      body: {
        ...deliveryJson(delivery),
        url: delivery.url,
        request: { headers: delivery.requestHeaders, payload: delivery.payload },
        response: { headers: delivery.responseHeaders, payload: delivery.responseBody },
      },
    };
  },

  'apps/redeliver-webhook-delivery': (call) => {
    const { state } = call;
    const delivery = found(state.deliveries.find((candidate) => candidate.id === integer(call, 'delivery_id')));
    state.outbox = state.outbox.then(async () => {
      await redeliver(state, delivery);
    });
    return { status: 202, body: {} };
  },

  'rate-limit/get': () => {
    const rate = { ...LIMITS, reset: Math.floor(Date.now() / 1000) + 3600 };
    return { status: 200, body: { resources: { core: rate, search: { ...rate, limit: 30, remaining: 30 }, graphql: rate }, rate } };
  },

  'users/get-by-username': (call) => ({
    status: 200,
    body: profileJson(call.state, found(call.state.accounts.get(text(call, 'username').toLowerCase()))),
  }),

  'repos/get-collaborator-permission-level': (call) => {
    const repository = repositoryOf(call);
    const login = text(call, 'username');
    const user = call.state.accounts.get(login.toLowerCase());
    if (!user) throw new ApiError(404, `${login} is not a user`);
    return {
      status: 200,
      body: collaboratorJson(call.state, repository.roles.get(login.toLowerCase()) ?? (repository.private ? 'none' : 'read'), user),
    };
  },
};

/** GitHub folds five roles into four permissions: maintain is write, triage is read. */
function collaboratorJson(state: HubState, role: string, user: Parameters<typeof accountJson>[1]): JsonObject {
  const permission = role === 'maintain' ? 'write' : role === 'triage' ? 'read' : role;
  const at = (roles: string[]): boolean => roles.includes(role);
  return {
    permission,
    role_name: role,
    user: {
      ...accountJson(state, user),
      permissions: {
        admin: role === 'admin',
        maintain: at(['admin', 'maintain']),
        push: at(['admin', 'maintain', 'write']),
        triage: at(['admin', 'maintain', 'write', 'triage']),
        pull: role !== 'none',
      },
      role_name: role,
    },
  };
}
