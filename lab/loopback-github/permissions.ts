/**
 * Which permission of an installation token each operation needs (docs: "Permissions required for GitHub Apps", whose table is
 * src/github-apps/data/fpt-2022-11-28/server-to-server-permissions.json of github/docs). `app` is the app's own JWT, `public` needs nothing.
 * Several entries are alternatives.
 *
 * In one place the table and GitHub disagree. The table has reactions to issue comments under Issues only; on a comment of a pull request
 * `pull_requests: write` is what counts: with `issues: write` alone the answer is 403 [issue NOFireAI/ravel#347, 2026-08], and with
 * `pull_requests: write` alone it works [issue GitHubSecurityLab/seclab-taskflow-agent#25, 2025-10].
 */
export const requiredPermissions: { readonly [operation: string]: 'app' | 'public' | 'any' | readonly string[] } = {
  'apps/get-authenticated': 'app',
  'apps/list-installations': 'app',
  'apps/get-installation': 'app',
  'apps/create-installation-access-token': 'app',
  'apps/get-repo-installation': 'app',
  'apps/get-org-installation': 'app',
  'apps/get-user-installation': 'app',
  'apps/list-webhook-deliveries': 'app',
  'apps/get-webhook-delivery': 'app',
  'apps/redeliver-webhook-delivery': 'app',
  'apps/list-repos-accessible-to-installation': 'any',
  'apps/revoke-installation-access-token': 'any',
  'rate-limit/get': 'public',
  'users/get-by-username': 'public',
  'repos/get': ['metadata:read'],
  'repos/get-branch': ['contents:read'],
  'repos/list-branches': ['contents:read'],
  'repos/get-commit': ['contents:read'],
  'repos/list-commits': ['contents:read'],
  'repos/list-pull-requests-associated-with-commit': ['pull_requests:read', 'contents:read'],
  'repos/compare-commits-with-basehead': ['contents:read'],
  'repos/get-content': ['contents:read'],
  'repos/get-release-by-tag': ['contents:read'],
  'repos/get-release-asset': ['contents:read'],
  'repos/get-collaborator-permission-level': ['metadata:read'],
  'git/get-tree': ['contents:read'],
  'git/get-blob': ['contents:read'],
  'git/get-ref': ['contents:read'],
  'git/get-commit': ['contents:read'],
  'pulls/list': ['pull_requests:read'],
  'pulls/get': ['pull_requests:read'],
  'pulls/list-files': ['pull_requests:read'],
  'pulls/list-commits': ['pull_requests:read'],
  'pulls/list-reviews': ['pull_requests:read'],
  'pulls/get-review': ['pull_requests:read'],
  'pulls/create-review': ['pull_requests:write'],
  'pulls/update-review': ['pull_requests:write'],
  'pulls/list-comments-for-review': ['pull_requests:read'],
  'pulls/list-review-comments': ['pull_requests:read'],
  'pulls/get-review-comment': ['pull_requests:read'],
  'pulls/create-review-comment': ['pull_requests:write'],
  'pulls/update-review-comment': ['pull_requests:write'],
  'pulls/delete-review-comment': ['pull_requests:write'],
  'issues/get': ['issues:read', 'pull_requests:read'],
  'issues/list-comments': ['issues:read', 'pull_requests:read'],
  'issues/get-comment': ['issues:read', 'pull_requests:read'],
  'issues/create-comment': ['issues:write', 'pull_requests:write'],
  'issues/update-comment': ['issues:write', 'pull_requests:write'],
  'issues/delete-comment': ['issues:write', 'pull_requests:write'],
  'issues/list-labels-on-issue': ['issues:read', 'pull_requests:read'],
  'reactions/list-for-issue-comment': ['issues:read', 'pull_requests:read'],
  'reactions/create-for-issue-comment': ['issues:write', 'pull_requests:write'],
  'reactions/delete-for-issue-comment': ['issues:write', 'pull_requests:write'],
  'checks/create': ['checks:write'],
  'checks/get': ['checks:read'],
  'checks/update': ['checks:write'],
  'checks/list-annotations': ['checks:read'],
  'checks/rerequest-run': ['checks:write'],
  'checks/list-for-ref': ['checks:read'],
  'checks/list-suites-for-ref': ['checks:read'],
  'checks/get-suite': ['checks:read'],
  'checks/list-for-suite': ['checks:read'],
  'actions/list-repo-workflows': ['actions:read'],
  'actions/get-workflow': ['actions:read'],
  'actions/list-workflow-runs': ['actions:read'],
  'actions/list-workflow-runs-for-repo': ['actions:read'],
  'actions/get-workflow-run': ['actions:read'],
  'actions/get-workflow-run-attempt': ['actions:read'],
  'actions/list-workflow-run-artifacts': ['actions:read'],
  'actions/list-artifacts-for-repo': ['actions:read'],
  'actions/get-artifact': ['actions:read'],
  'actions/download-artifact': ['actions:read'],
};

/** Permissions the product's manifest asks for (github.md 2.1). */
export const manifestPermissions = {
  metadata: 'read',
  contents: 'read',
  actions: 'read',
  checks: 'write',
  pull_requests: 'write',
  issues: 'read',
  merge_queues: 'read',
} as const;

/** Events the product's manifest subscribes to. */
export const manifestEvents: readonly string[] = [
  'pull_request',
  'workflow_run',
  'issue_comment',
  'check_run',
  'check_suite',
  'merge_group',
  'push',
];

/** Which permission an event needs before an app can subscribe to it [docs, "Webhook events and payloads"]. */
export const eventPermissions: { readonly [event: string]: string | null } = {
  pull_request: 'pull_requests:read',
  workflow_run: 'actions:read',
  issue_comment: 'issues:read',
  check_run: 'checks:read',
  check_suite: 'checks:read',
  merge_group: 'merge_queues:read',
  push: 'contents:read',
  installation: null,
  installation_repositories: null,
};
